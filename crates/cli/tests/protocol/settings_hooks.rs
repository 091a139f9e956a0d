//! Hooks of settings files in a session that goes on: answers that come later, waking the model, files that change while
//! it runs, notifications, and hooks of the host beside them.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::host::Host;

fn settings(sandbox: &Sandbox, hooks: &Value) {
    sandbox.write(sandbox.config().join("settings.json"), json!({ "hooks": hooks }).to_string());
}

fn command(command: &str, more: &Value) -> Value {
    let mut hook = json!({ "type": "command", "command": command });
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!([{ "hooks": [hook] }])
}

fn bash(number: u64, command: &str) -> Value {
    json!({ "toolCalls": [{ "name": "Bash", "id": format!("toolu_{number}"), "input": { "command": command } }] })
}

fn seen(sandbox: &Sandbox) -> Vec<Value> {
    let text = std::fs::read_to_string(sandbox.project().join("../seen")).unwrap_or_default();
    text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A reply that is given once, in its place.
fn say(text: &str) -> Value {
    json!({ "text": text })
}

const NOTE: &str = "input=$(cat); printf '%s\\n' \"$input\" >> ../seen";

#[test]
fn the_result_of_an_async_hook_becomes_context_of_the_next_turn() {
    let sandbox = Sandbox::new();
    let output = "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"UserPromptSubmit\", \
                  \"additionalContext\": \"the build is green\"}}'";
    let more = json!({ "async": true, "once": true });
    settings(&sandbox, &json!({ "UserPromptSubmit": command(output, &more) }));
    let replies =
        json!([say("first"), { "when": { "contains": "the build is green" }, "text": "good to know" }]);
    let mut host = Host::connect(&sandbox, &replies, &["--include-hook-events"], json!({}));
    host.prompt("go");
    let mut left = vec!["result", "hook_response"];
    while !left.is_empty() {
        let line =
            host.until(|line| left.iter().any(|word| line["type"] == *word || line["subtype"] == *word));
        left.retain(|word| line["type"] != *word && line["subtype"] != *word);
    }
    host.prompt("and now");
    assert_eq!(host.result()["result"], "good to know");
}

#[test]
fn async_rewake_with_exit_code_2_wakes_the_model_with_a_system_reminder() {
    let sandbox = Sandbox::new();
    let script = "while [ ! -f ../ready ]; do sleep 0.01; done; echo 'the tests broke' >&2; exit 2";
    let more = json!({ "asyncRewake": true, "once": true, "rewakeMessage": "From the watcher:" });
    settings(&sandbox, &json!({ "UserPromptSubmit": command(script, &more) }));
    let woken = json!({ "when": { "contains": "<system-reminder>\nFrom the watcher:\nthe tests broke" }, "text": "I repair them" });
    let mut host = Host::connect(&sandbox, &json!([say("first"), woken]), &[], json!({}));
    host.prompt("go");
    assert_eq!(host.result()["result"], "first");
    sandbox.write("../ready", "");
    assert_eq!(host.result()["result"], "I repair them");
}

#[test]
fn changes_of_settings_files_apply_without_restart() {
    let sandbox = Sandbox::new();
    let replies = json!([bash(1, "touch one"), say("first"), bash(2, "touch two"), say("second")]);
    let mut host = Host::connect(&sandbox, &replies, &["--allowedTools", "Bash"], json!({}));
    host.prompt("go");
    host.result();
    settings(&sandbox, &json!({ "PreToolUse": command("exit 2", &json!({})) }));
    host.prompt("again");
    assert_eq!(host.result()["result"], "second");
    assert!(sandbox.project().join("one").exists() && !sandbox.project().join("two").exists());
}

#[test]
fn config_change_has_source_and_file_path_and_exit_code_2_blocks_the_change() {
    for (code, changed) in [("0", true), ("2", false)] {
        let sandbox = Sandbox::new();
        let watch = command(&format!("{NOTE}; exit {code}"), &json!({}));
        settings(&sandbox, &json!({ "ConfigChange": watch }));
        let replies = json!([say("first"), bash(2, "touch made"), say("second")]);
        let mut host = Host::connect(&sandbox, &replies, &["--allowedTools", "Bash"], json!({}));
        host.prompt("go");
        host.result();
        settings(&sandbox, &json!({ "PreToolUse": command("exit 2", &json!({})) }));
        host.prompt("again");
        host.result();
        assert_eq!(sandbox.project().join("made").exists(), !changed, "exit code {code}");
        let input = &seen(&sandbox)[0];
        assert_eq!(input["source"], "user_settings", "{input:#}");
        assert_eq!(input["file_path"], json!(sandbox.config().join("settings.json")));
    }
}

#[test]
fn notification_tells_of_a_permission_prompt() {
    let sandbox = Sandbox::new();
    settings(&sandbox, &json!({ "Notification": command(NOTE, &json!({})) }));
    let replies = json!([bash(1, "touch made"), say("done")]);
    let flags = ["--permission-prompt-tool", "stdio"];
    let mut host = Host::connect(&sandbox, &replies, &flags, json!({}));
    host.prompt("go");
    let asked = host.asked("can_use_tool");
    host.respond(&asked, &json!({ "behavior": "allow", "updatedInput": asked["request"]["input"] }));
    host.result();
    host.end();
    let input = &seen(&sandbox)[0];
    assert_eq!(input["notification_type"], "permission_prompt", "{input:#}");
    assert!(input["message"].as_str().unwrap().contains("Bash") && input["title"].is_string());
    assert_eq!(input["details"]["tool_use_id"], "toolu_1");
}

#[test]
fn hooks_of_the_host_and_of_settings_run_together_and_the_strictest_wins() {
    let sandbox = Sandbox::new();
    settings(&sandbox, &json!({ "PreToolUse": command("echo 'the file says no' >&2; exit 2", &json!({})) }));
    let declared = json!({ "hooks": { "PreToolUse": [{ "hookCallbackIds": ["own"] }] } });
    let replies = json!([bash(1, "touch made"), say("done")]);
    let mut host = Host::connect(&sandbox, &replies, &["--allowedTools", "Bash"], declared);
    host.prompt("go");
    let asked = host.asked("hook_callback");
    let allow = json!({ "hookEventName": "PreToolUse", "permissionDecision": "allow" });
    host.respond(&asked, &json!({ "hookSpecificOutput": allow }));
    assert!(host.tool_result().contains("the file says no"));
    host.result();
    assert!(!sandbox.project().join("made").exists());
}

#[test]
fn what_an_agent_hook_spent_is_accounted_for_when_it_is_withdrawn() {
    let sandbox = Sandbox::new();
    let hook = json!({ "type": "agent", "prompt": "Look.", "tools": ["Bash"] });
    settings(&sandbox, &json!({ "PreToolUse": [{ "matcher": "Write", "hooks": [hook] }] }));
    let replies = json!([
        { "toolCalls": [{ "name": "Write", "input": { "file_path": "a", "content": "b" } }] },
        { "when": { "purpose": "subagent" }, "usage": { "input_tokens": 1_000_000, "output_tokens": 1 },
          "toolCalls": [{ "name": "Bash", "input": { "command": "sleep 1000" } }] },
    ]);
    let mut host = Host::connect(&sandbox, &replies, &["--allowedTools", "Write,Bash"], json!({}));
    host.prompt("go");
    host.until(|line| line["type"] == "assistant" && line["message"]["content"][0]["name"] == "Bash");
    host.ask(&json!({ "subtype": "interrupt" }));
    let result = host.result();
    assert!(result["usage"]["input_tokens"].as_u64() >= Some(1_000_000), "{result:#}");
}
