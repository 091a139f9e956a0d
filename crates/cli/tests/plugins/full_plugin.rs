//! A plugin with every part, used end to end.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::plugins::host::{Host, call, named, say};
use crate::plugins::support::{plugin, server_files, text};

#[test]
fn a_server_of_a_plugin_runs_with_the_plugins_root_and_data() {
    let sandbox = Sandbox::new();
    let [(path, description), (program, code)] = server_files();
    let folder = plugin(&sandbox, "demo", &[(path, &description), (program, &code)]);
    let replies = json!([call(1, "mcp__plugin_demo_where__where", &json!({})), say("done")]);
    let flags = ["--plugin-dir", text(&folder), "--allowed-tools", "mcp__plugin_demo_where__where"];
    let mut command = Host::command(&sandbox, &replies, &flags);
    // Programs start slowly on a machine that runs many tests.
    command.env("QODER_MCP_START_WAIT_MS", "60000");
    let mut host = Host::spawn(command);
    host.initialize(named(json!({})));
    host.prompt("where?");
    let data = sandbox.config().join("plugins/data/demo");
    assert_eq!(host.tool_result(), format!("{} {}", folder.display(), data.display()));
    assert!(data.is_dir());
    let rows = host.request(&json!({ "subtype": "mcp_status" })).unwrap();
    assert_eq!(rows["mcpServers"][0]["scope"], "plugin");
}

#[test]
fn only_the_servers_of_the_command_line_count_when_that_is_asked_for() {
    let sandbox = Sandbox::new();
    let [(path, description), (program, code)] = server_files();
    let folder = plugin(&sandbox, "demo", &[(path, &description), (program, &code)]);
    let flags = ["--plugin-dir", text(&folder), "--strict-mcp-config"];
    let mut host = Host::connect(&sandbox, &json!([say("done")]), &flags, named(json!({})));
    let rows = host.request(&json!({ "subtype": "mcp_status" })).unwrap();
    assert_eq!(rows["mcpServers"], json!([]));
    let told = host.request(&json!({ "subtype": "reload_plugins" })).unwrap();
    assert_eq!(told["mcpServers"], json!([]));
}

const HOOKS: &str = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
    {"type": "command", "command": "${QODER_PLUGIN_ROOT}/bin/refuse"}]}]}}"#;

/// Every part in one folder.
fn everything(sandbox: &Sandbox) -> PathBuf {
    let [(path, description), (program, code)] = server_files();
    let folder = plugin(
        sandbox,
        "demo",
        &[
            (".qoder-plugin/plugin.json", "{\"name\": \"demo\", \"version\": \"1.0.0\"}"),
            ("commands/greet.md", "---\ndescription: Greets.\n---\nSay hello to $ARGUMENTS.\n"),
            ("agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nYou help.\n"),
            ("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: About PDF.\n---\nUse the small printer.\n"),
            ("hooks/hooks.json", HOOKS),
            ("bin/refuse", "#!/bin/sh\necho \"not in $QODER_PLUGIN_DATA\" >&2\nexit 2\n"),
            (path, &description),
            (program, &code),
        ],
    );
    std::fs::set_permissions(folder.join("bin/refuse"), PermissionsExt::from_mode(0o755)).unwrap();
    folder
}

/// One tool a prompt.
fn replies() -> Value {
    let called = |words: &str, name: &str, input: Value| json!({ "when": { "contains": words }, "toolCalls": [{ "name": name, "input": input }] });
    json!([
        { "when": { "contains": "Say hello to Ada." }, "text": "Hello, Ada." },
        called("take the skill", "Skill", json!({ "skill": "demo:pdf" })),
        called("take the agent", "Agent", json!({ "prompt": "Help.", "agent": "helper" })),
        called("take the command", "Bash", json!({ "command": "echo hi" })),
        called("take the server", "mcp__plugin_demo_where__where", json!({})),
        { "when": { "purpose": "subagent" }, "text": "I helped.", "repeat": true },
        { "text": "done", "repeat": true },
    ])
}

#[test]
fn every_part_of_a_plugin_works_under_its_name() {
    let sandbox = Sandbox::new();
    let folder = everything(&sandbox);
    let allowed = "Agent,Skill,mcp__plugin_demo_where__where";
    let flags = ["--plugin-dir", text(&folder), "--allowed-tools", allowed];
    let mut command = Host::command(&sandbox, &replies(), &flags);
    command.env("QODER_MCP_START_WAIT_MS", "60000");
    let mut host = Host::spawn(command);
    host.initialize(named(json!({})));
    let row = host.request(&json!({ "subtype": "list_plugins" })).unwrap()["plugins"][0].clone();
    assert_eq!(row["parts"], json!({ "commands": 1, "agents": 1, "skills": 1, "hooks": 1, "mcpServers": 1 }));
    assert_eq!(row["errors"], json!([]));
    host.prompt("/demo:greet Ada");
    let init = host.until(|line| line["subtype"] == "init");
    for (list, name) in [("slash_commands", "demo:greet"), ("skills", "demo:pdf"), ("agents", "helper")] {
        assert!(init[list].as_array().unwrap().contains(&json!(name)), "{list}: {init}");
    }
    assert_eq!(
        init["plugins"],
        json!([{ "name": "demo", "path": text(&folder), "source": "inline", "version": "1.0.0" }])
    );
    assert_eq!(host.result()["result"], "Hello, Ada.");
    let data = sandbox.config().join("plugins/data/demo");
    for (prompt, words) in [
        ("take the skill", "Use the small printer.".to_owned()),
        ("take the agent", "I helped.".to_owned()),
        ("take the command", format!("not in {}", data.display())),
        ("take the server", folder.display().to_string()),
    ] {
        host.prompt(prompt);
        let is_result = |line: &Value| {
            line["type"] == "user"
                && line["parent_tool_use_id"].is_null()
                && line["message"]["content"][0]["type"] == "tool_result"
        };
        let line = host.until(is_result);
        assert!(line["message"]["content"][0]["content"].to_string().contains(&words), "{prompt}: {line}");
        host.result();
    }
}

#[test]
fn commands_skills_and_hooks_come_and_go_with_a_reload() {
    let sandbox = Sandbox::new();
    let folder = plugin(
        &sandbox,
        "demo",
        &[("agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nHelp.\n")],
    );
    let flags = ["--plugin-dir", text(&folder), "--allowed-tools", "Agent,Skill"];
    let mut host = Host::connect(&sandbox, &replies(), &flags, named(json!({})));
    host.prompt("first");
    let init = host.until(|line| line["subtype"] == "init");
    assert!(!init["tools"].as_array().unwrap().contains(&json!("Skill")), "{init}");
    host.result();
    everything(&sandbox);
    let told = host.request(&json!({ "subtype": "reload_plugins" })).unwrap();
    assert_eq!(told["error_count"], 0, "{told}");
    assert!(told["commands"].as_array().unwrap().iter().any(|one| one["name"] == "demo:greet"), "{told}");
    host.prompt("take the command");
    let init = host.until(|line| line["subtype"] == "init");
    assert!(init["tools"].as_array().unwrap().contains(&json!("Skill")), "{init}");
    assert!(host.tool_result().contains("not in "), "the hook is there");
    host.result();
    std::fs::remove_dir_all(folder.join("hooks")).unwrap();
    std::fs::remove_dir_all(folder.join("skills")).unwrap();
    let told = host.request(&json!({ "subtype": "reload_plugins" })).unwrap();
    assert_eq!(told["plugins"][0]["parts"]["hooks"], 0, "{told}");
    host.prompt("last");
    let init = host.until(|line| line["subtype"] == "init");
    assert_eq!(init["skills"], json!([]));
}
