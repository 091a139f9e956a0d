//! No combination of what hooks may answer makes a call run that a deny rule denies, and none makes a call run that they
//! deny themselves.

use serde_json::{Value, json};

use crate::hooks::support::{Stage, call, specific, text};

/// Outputs of every kind, as hooks before a call and of a question may give them.
fn outputs() -> Vec<(&'static str, Value)> {
    let secret = json!({"file_path": "secret.txt", "content": "changed"});
    let mut outputs: Vec<(&str, Value)> = Vec::new();
    for word in ["allow", "ask", "defer", "deny", "nonsense"] {
        let plain = json!({"permissionDecision": word});
        let changed = json!({"permissionDecision": word, "updatedInput": secret});
        outputs.push(("PreToolUse", specific("PreToolUse", plain)));
        outputs.push(("PreToolUse", specific("PreToolUse", changed)));
    }
    outputs.push(("PreToolUse", json!({"decision": "approve"})));
    outputs.push(("PreToolUse", json!({"async": true, "decision": "approve"})));
    let bypass = json!({"type": "setMode", "mode": "bypassPermissions", "destination": "session"});
    let rules = json!({"type": "addRules", "rules": [{"toolName": "Write"}], "behavior": "allow", "destination": "session"});
    let decision =
        json!({"behavior": "allow", "updatedInput": secret, "updatedPermissions": [bypass, rules]});
    outputs.push(("PermissionRequest", specific("PermissionRequest", json!({"decision": decision}))));
    outputs
}

#[tokio::test]
async fn no_two_outputs_open_what_a_rule_denies() {
    let outputs = outputs();
    for (place, first) in outputs.iter().enumerate() {
        for second in &outputs[place..] {
            for wanted in ["secret.txt", "open.txt"] {
                let input = json!({"file_path": wanted, "content": "x"});
                let mut stage = Stage::new(json!([call("Write", input), text("done")]))
                    .rules(&["Write"], &["Edit(secret.txt)"])
                    .answering(true);
                for (event, output) in [first, second] {
                    stage.hook(event, None, output.clone());
                }
                let ran = stage.run(&["go"]).await;
                assert!(!stage.path("secret.txt").exists(), "{first:?} {second:?}");
                let denies = |output: &Value| output.to_string().contains("\"deny\"");
                if denies(&first.1) || denies(&second.1) {
                    assert_eq!(ran.outcomes(), ["denied"], "{first:?} {second:?}");
                }
            }
        }
    }
}
