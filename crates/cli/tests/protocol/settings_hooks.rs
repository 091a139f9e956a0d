//! Hooks of settings files in a session that continues: answers that come later, waking the model, files that change while
//! it runs, notifications, and hooks of the host beside them.

use std::time::{Duration, Instant};

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::Host;

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

/// A session whose hook for changes exits with this code; the project is trusted.
fn watched(sandbox: &Sandbox, code: &str, replies: &Value) -> Host {
    let watch = command(&format!("{NOTE}; exit {code}"), &json!({}));
    settings(sandbox, &json!({ "ConfigChange": watch }));
    Host::connect(sandbox, replies, &["--trust", "--allowedTools", "Skill,Agent"], json!({}))
}

fn skill(sandbox: &Sandbox, text: &str) {
    let text = format!("---\nname: pdf\ndescription: Knows pdf.\n---\n{text}\n");
    sandbox.write(".qoder/skills/pdf/SKILL.md", text);
}

#[test]
fn config_change_with_source_skills_lets_a_change_count_or_exit_code_2_blocks_it() {
    for (code, counts) in [("0", true), ("2", false)] {
        let sandbox = Sandbox::new();
        skill(&sandbox, "OLD TEXT");
        let load =
            json!({ "toolCalls": [{ "name": "Skill", "id": "toolu_1", "input": { "skill": "pdf" } }] });
        let mut host = watched(&sandbox, code, &json!([say("first"), load, say("second")]));
        host.prompt("go");
        host.result();
        skill(&sandbox, "A NEW AND LONGER TEXT");
        host.prompt("again");
        let result = host.tool_result();
        host.result();
        assert_eq!(result.contains("A NEW AND LONGER TEXT"), counts, "{result}");
        assert_eq!(result.contains("has changed since it was read"), !counts, "{result}");
        let input = &seen(&sandbox)[0];
        assert_eq!(input["source"], "skills", "{input:#}");
        assert_eq!(input["file_path"], json!(sandbox.project().join(".qoder/skills/pdf/SKILL.md")));
    }
}

#[test]
fn config_change_with_source_agents_lets_a_new_agent_count_or_exit_code_2_blocks_it() {
    for (code, counts) in [("0", true), ("2", false)] {
        let sandbox = Sandbox::new();
        let mut host = watched(&sandbox, code, &json!([say("first"), say("second")]));
        host.prompt("go");
        host.result();
        let file =
            sandbox.write(".qoder/agents/new.md", "---\nname: newcomer\ndescription: d\n---\nYou are new.\n");
        host.prompt("again");
        host.result();
        let agents = host.request(&json!({ "subtype": "supported_agents" })).unwrap();
        assert_eq!(agents.to_string().contains("newcomer"), counts, "{agents:#}");
        let input = &seen(&sandbox)[0];
        assert_eq!((&input["source"], &input["file_path"]), (&json!("agents"), &json!(file)), "{input:#}");
    }
}

#[test]
fn config_change_tells_of_project_settings_and_local_settings() {
    let sandbox = Sandbox::new();
    let mut host = watched(&sandbox, "0", &json!([say("first"), say("second")]));
    host.prompt("go");
    host.result();
    for name in ["settings.json", "settings.local.json"] {
        sandbox.write(format!(".qoder/{name}"), json!({ "language": "German" }).to_string());
    }
    host.prompt("again");
    host.result();
    let sources: Vec<Value> = seen(&sandbox).iter().map(|input| input["source"].clone()).collect();
    assert_eq!(sources, [json!("project_settings"), json!("local_settings")]);
}

#[test]
fn an_edit_of_a_loaded_rule_or_memory_file_counts_from_the_next_turn() {
    let sandbox = Sandbox::new();
    sandbox.write("AGENTS.md", "BE KIND\n@more.md\n");
    sandbox.write("more.md", "AND BRIEF\n");
    sandbox.write(".qoder/rules/rust.md", "---\npaths: ['*.rs']\n---\nNO UNSAFE CODE\n");
    sandbox.write("a.rs", "fn a() {}\n");
    let read = json!([{ "name": "Read", "id": "toolu_1", "input": { "file_path": "a.rs" } }]);
    let told = |text: &str, said: &str| json!({ "when": { "contains": text }, "text": said });
    let replies = json!([
        { "when": { "turn": 1 }, "toolCalls": read },
        told("NO UNSAFE CODE", "first"),
        told("NO PANICS EITHER", "second"),
        told("AND THOROUGH, TOO", "third"),
        told("does not count any more", "fourth"),
        { "text": "unchanged", "repeat": true },
    ]);
    let mut host = Host::connect(&sandbox, &replies, &["--trust"], json!({}));
    let next = |host: &mut Host| {
        host.prompt("go");
        host.result()["result"].clone()
    };
    assert_eq!(next(&mut host), "first");
    sandbox.write(".qoder/rules/rust.md", "---\npaths: ['*.rs']\n---\nNO PANICS EITHER, AND MORE\n");
    assert_eq!(next(&mut host), "second");
    sandbox.write("more.md", "AND THOROUGH, TOO\n");
    assert_eq!(next(&mut host), "third");
    std::fs::remove_file(sandbox.project().join(".qoder/rules/rust.md")).unwrap();
    assert_eq!(next(&mut host), "fourth");
    assert_eq!(next(&mut host), "unchanged");
}

#[test]
fn initial_user_message_begins_a_session_in_which_nobody_has_asked_anything() {
    let sandbox = Sandbox::new();
    let part = json!({ "hookEventName": "SessionStart", "initialUserMessage": "greet everybody" });
    let print = format!("cat > /dev/null; printf '%s' '{}'", json!({ "hookSpecificOutput": part }));
    settings(&sandbox, &json!({ "SessionStart": command(&print, &json!({})) }));
    let replies = json!([{ "when": { "contains": "greet everybody" }, "text": "hello all" }, say("gone")]);
    let mut host = Host::connect(&sandbox, &replies, &[], json!({}));
    assert_eq!(host.result()["result"], "hello all");
    host.prompt("go");
    assert_eq!(host.result()["result"], "gone");
    assert_eq!(host.end().0, 0);
}

#[test]
fn clear_has_session_end_with_reason_clear_and_session_start_with_source_clear() {
    let sandbox = Sandbox::new();
    let note = command(NOTE, &json!({}));
    settings(&sandbox, &json!({ "SessionStart": note, "SessionEnd": note }));
    let mut host = Host::connect(&sandbox, &json!([say("first")]), &[], json!({}));
    for prompt in ["go", "/clear"] {
        host.prompt(prompt);
        host.result();
    }
    assert_eq!(host.end().0, 0);
    let told: Vec<String> = seen(&sandbox)
        .iter()
        .map(|input| {
            let why = input["source"].as_str().or_else(|| input["reason"].as_str()).unwrap();
            format!("{} {why}", input["hook_event_name"].as_str().unwrap())
        })
        .collect();
    assert_eq!(told, ["SessionStart startup", "SessionEnd clear", "SessionStart clear", "SessionEnd other"]);
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

#[test]
fn notification_idle_prompt_comes_when_a_session_waits_for_a_prompt() {
    let sandbox = Sandbox::new();
    settings(&sandbox, &json!({ "Notification": command(NOTE, &json!({})) }));
    let mut command = Host::command(&sandbox, &json!([say("first")]), &[]);
    command.env("QODER_IDLE_PROMPT_MS", "1");
    let mut host = Host::spawn(command);
    host.initialize(json!({}));
    host.prompt("go");
    host.result();
    let begun = Instant::now();
    while seen(&sandbox).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the hook was not called");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(host.end().0, 0);
    let told = seen(&sandbox);
    assert_eq!(told.len(), 1, "told once: {told:#?}");
    assert_eq!(told[0]["notification_type"], "idle_prompt", "{:#}", told[0]);
    assert!(told[0]["message"].is_string() && told[0]["title"].is_string());
}
