//! `qodercli hooks list`: every hook with its origin, event, matcher and what runs.

use serde_json::{Value, json};

use crate::hooks::support::{BINARY, Stage, entry_with};

fn list(stage: &Stage, flags: &[&str]) -> String {
    let output = stage.sandbox.run(BINARY, &[&["hooks", "list"], flags].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn hooks_are_listed_with_origin_event_matcher_and_what_runs() {
    let mut group = entry_with("./check.sh --all", &json!({ "if": "Bash(git *)", "onFailure": "deny" }));
    group["matcher"] = json!("Bash");
    let stage = Stage::new(&json!({ "PreToolUse": [group] }));
    stage.sandbox.write(
        ".qoder/settings.json",
        json!({ "hooks": { "Stop": [{ "hooks": [{ "type": "prompt", "prompt": "Is it done?" }] }] } })
            .to_string(),
    );
    let text = list(&stage, &["--trust"]);
    assert!(
        text.contains("PreToolUse Bash if Bash(git *)") && text.contains("command: ./check.sh --all"),
        "{text}"
    );
    assert!(
        text.contains("Stop *") && text.contains("prompt: Is it done?") && text.contains("[project "),
        "{text}"
    );
    let rows: Value = serde_json::from_str(&list(&stage, &["--trust", "--json"])).unwrap();
    let row = &rows["hooks"][0];
    let expected = json!({ "event": "PreToolUse", "matcher": "Bash", "type": "command", "runs": "./check.sh --all",
        "origin": "user", "onFailure": "deny", "timeout": 600.0, "line": 1, "if": "Bash(git *)" });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&row[field], value, "{field}: {row:#}");
    }
}

#[test]
fn what_cannot_be_used_is_among_the_problems() {
    let stage = Stage::new(&json!({ "PreTooluse": [], "Stop": [{ "hooks": [{ "type": "magic" }] }] }));
    let rows: Value = serde_json::from_str(&list(&stage, &["--json"])).unwrap();
    let problems = rows["problems"].as_array().unwrap();
    assert_eq!((problems.len(), rows["hooks"].as_array().unwrap().len()), (2, 0), "{rows:#}");
    assert!(problems.iter().all(|problem| problem["line"] == 1 && problem["file"].is_string()), "{rows:#}");
}
