//! What a definition brings for its agent alone: servers of its own, skills that it begins with, and hooks. None of it is
//! the main session's, and what a project's file brings needs the same approval as elsewhere.

use qoder_testkit::{Reply, Sandbox, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::agents::{agent, child_requests, family};
use crate::turns::support::{bodies, calls, results_in, stream};

const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/crash/scripts/notes.py");

fn define(sandbox: &Sandbox, folder: &str, head: &str) {
    let text = format!("---\nname: keeper\ndescription: keeps notes\n{head}---\nYou keep notes.\n");
    let root =
        if folder == "user" { sandbox.config().to_path_buf() } else { sandbox.project().join(".qoder") };
    sandbox.write(root.join("agents/keeper.md"), text);
}

fn keeper(child: Vec<Reply>) -> ScriptedServer {
    let start = agent("toolu_agent", &json!({ "agent": "keeper" }));
    family(vec![calls(&[start]), Reply::text("done")], child)
}

fn tools_of(request: &Value) -> String {
    request["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| format!("{} ", tool["name"].as_str().unwrap()))
        .collect()
}

fn inline() -> String {
    format!("mcpServers:\n  - kit:\n      command: python3\n      args: [\"{SERVER}\"]\n")
}

#[test]
fn inline_mcp_servers_are_connected_for_that_agent_alone() {
    let sandbox = Sandbox::new();
    define(&sandbox, "user", &inline());
    let note = ("toolu_note", "mcp__kit__note", json!({ "line": "noted by the agent" }));
    let server = keeper(vec![calls(&[note]), Reply::text("kept")]);
    let flags = ["go", "--allowed-tools", "Agent,mcp__kit__note"];
    stream(&sandbox, &server, &flags).success();
    let requests = bodies(&server);
    assert!(!tools_of(&requests[0]).contains("mcp__kit__note"));
    assert!(tools_of(&child_requests(&server)[0]).contains("mcp__kit__note"));
    assert_eq!(results_in(requests.last().unwrap())[0].1, "kept");
    let notes = std::fs::read_to_string(sandbox.project().join("notes.txt")).unwrap();
    assert_eq!(notes, "noted by the agent\n");
}

#[test]
fn inline_mcp_servers_of_a_project_need_approval() {
    for approved in [false, true] {
        let sandbox = Sandbox::new();
        define(&sandbox, "project", &inline());
        let project = sandbox.project().to_str().unwrap().to_owned();
        let mut settings = json!({ "permissions": { "trustDirectories": [project] } });
        if approved {
            settings["mcp"] = json!({ "enabledProjectMcpServers": ["kit"] });
        }
        sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
        let server = keeper(vec![Reply::text("kept")]);
        stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]).success();
        let (_, text, failed) = results_in(bodies(&server).last().unwrap()).remove(0);
        assert_eq!(failed, !approved, "{text}");
        assert_eq!(text.contains("run `qodercli mcp approve kit`"), !approved, "{text}");
    }
}

#[test]
fn preloaded_skills_are_in_the_prompt_of_the_agent() {
    let sandbox = Sandbox::new();
    let skill = "---\nname: style\ndescription: how to write\n---\nWrite short sentences.\n";
    sandbox.write(sandbox.config().join("skills/style/SKILL.md"), skill);
    define(&sandbox, "user", "skills: [style]\n");
    let server = keeper(vec![Reply::text("kept")]);
    stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]).success();
    assert!(child_requests(&server)[0]["system"].to_string().contains("Write short sentences."));
    assert!(!bodies(&server)[0]["system"].to_string().contains("Write short sentences."));
}

#[test]
fn a_skill_that_does_not_exist_keeps_the_agent_from_starting() {
    let sandbox = Sandbox::new();
    define(&sandbox, "user", "skills: [nowhere]\n");
    let server = keeper(vec![Reply::text("kept")]);
    stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]).success();
    let (_, text, failed) = results_in(bodies(&server).last().unwrap()).remove(0);
    assert!(failed && text.contains("no skill named nowhere"), "{text}");
}

#[test]
fn hooks_of_the_frontmatter_bind_the_agent_and_stop_becomes_subagent_stop() {
    let sandbox = Sandbox::new();
    let hooks = "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: echo no commands here >&2; exit 2\n  Stop:\n    - hooks:\n        - type: command\n          command: cat > stopped.json\n";
    define(&sandbox, "user", hooks);
    let bash = ("toolu_bash", "Bash", json!({ "command": "touch made" }));
    let server = keeper(vec![calls(&[bash]), Reply::text("kept")]);
    stream(&sandbox, &server, &["go", "--allowed-tools", "Agent,Bash"]).success();
    let (_, text, failed) = results_in(&child_requests(&server)[1]).remove(0);
    assert!(failed && text.contains("no commands here"), "{text}");
    assert!(!sandbox.project().join("made").exists());
    let told = std::fs::read_to_string(sandbox.project().join("stopped.json")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["hook_event_name"], &told["agent_type"]), (&json!("SubagentStop"), &json!("keeper")));
}

#[test]
fn hooks_of_a_projects_agent_run_as_they_were_when_its_folder_was_trusted() {
    let sandbox = Sandbox::new();
    let with = |word: &str| {
        let command = format!("echo {word} > stopped");
        let hook = format!("- hooks:\n        - type: command\n          command: {command}");
        define(&sandbox, "project", &format!("hooks:\n  Stop:\n    {hook}\n"));
    };
    let trust = || String::from_utf8(sandbox.run(BINARY, &["trust"]).stdout).unwrap();
    let run = || {
        let _ = std::fs::remove_file(sandbox.project().join("stopped"));
        let server = keeper(vec![Reply::text("kept")]);
        stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]).success();
        let (_, text, failed) = results_in(bodies(&server).last().unwrap()).remove(0);
        (text, failed, std::fs::read_to_string(sandbox.project().join("stopped")).unwrap_or_default())
    };
    with("one");
    let told = trust();
    assert!(told.contains("echo one > stopped"), "{told}");
    assert_eq!(run(), ("kept".to_owned(), false, "one\n".to_owned()));
    with("two");
    let (text, failed, ran) = run();
    assert!(failed && text.contains("`qodercli trust`") && ran.is_empty(), "{text}");
    assert!(trust().contains("echo two > stopped"));
    assert_eq!(run(), ("kept".to_owned(), false, "two\n".to_owned()));
}

#[test]
fn the_temperature_of_a_definition_is_asked_for_with_that_agents_requests() {
    let sandbox = Sandbox::new();
    define(&sandbox, "user", "temperature: 0.25\n");
    let server = keeper(vec![Reply::text("kept")]);
    stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]).success();
    assert_eq!(child_requests(&server)[0]["temperature"], 0.25);
    assert_eq!(bodies(&server)[0].get("temperature"), None);
}
