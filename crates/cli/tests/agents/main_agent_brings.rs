//! What an agent brings when it is the main one: its hooks, servers, memory and limits are those of the session, under the
//! same conditions as anywhere else.

use std::time::Duration;

use qoder_testkit::{Ran, Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::agents::support::{file, requests, run, stream, tools};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/crash/scripts/notes.py");
const DENIES: &str = "PreToolUse:\n    - matcher: Bash\n      hooks:\n        - {type: command, command: \"echo no commands here >&2; exit 2\"}";

fn of_user(head: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.config().join("agents/r.md"), file("r", "Reviews code.", head));
    sandbox
}

fn of_project(head: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".qoder/agents/r.md", file("r", "Reviews code.", head));
    sandbox
}

fn playing(replies: Vec<Reply>) -> ScriptedServer {
    ScriptedServer::start(Script::by_assistant_count(replies))
}

fn result_of(ran: &Ran) -> Value {
    ran.lines().into_iter().rfind(|line| line["type"] == "result").unwrap_or_else(|| panic!("{ran:?}"))
}

/// The results of calls in the last request.
fn last_result(server: &ScriptedServer) -> String {
    requests(server).last().unwrap()["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
}

#[test]
fn hooks_of_the_main_agent_are_those_of_the_session_and_stop_stays_stop() {
    let stop = "Stop:\n    - hooks:\n        - {type: command, command: \"cat > stopped.json\"}";
    let sandbox = of_user(&format!("hooks:\n  {DENIES}\n  {stop}"));
    let server = playing(vec![Reply::tool("Bash", json!({ "command": "touch made" })), Reply::text("done")]);
    stream(&sandbox, &server, &["go", "--agent", "r", "--allowed-tools", "Bash"]).ok();
    assert!(last_result(&server).contains("no commands here"), "{}", last_result(&server));
    assert!(!sandbox.project().join("made").exists());
    let told = std::fs::read_to_string(sandbox.project().join("stopped.json")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["hook_event_name"], "Stop");
}

#[test]
fn hooks_of_the_main_agent_bind_the_agents_that_it_starts() {
    let sandbox = of_user(&format!("hooks:\n  {DENIES}"));
    let server = crate::agents::support::delegating(
        "general-purpose",
        vec![Reply::tool("Bash", json!({ "command": "touch made" })), Reply::text("child is done")],
    );
    stream(&sandbox, &server, &["go", "--agent", "r", "--allowed-tools", "Bash,Agent"]).ok();
    let denied = requests(&server).iter().any(|request| request.to_string().contains("no commands here"));
    assert!(denied && !sandbox.project().join("made").exists());
}

#[test]
fn hooks_of_a_projects_main_agent_run_as_they_were_when_its_folder_was_trusted() {
    let sandbox = of_project(&format!("hooks:\n  {DENIES}"));
    run(&sandbox, &["trust"]).ok();
    let server = playing(vec![Reply::text("done")]);
    stream(&sandbox, &server, &["go", "--agent", "r"]).ok();
    let other = DENIES.replace("no commands here", "changed");
    sandbox.write(".qoder/agents/r.md", file("r", "Reviews code.", &format!("hooks:\n  {other}")));
    let ran = stream(&sandbox, &server, &["go", "--agent", "r"]);
    assert!(ran.code == 42 && ran.stderr.contains("`qodercli trust`"), "{ran:?}");
}

fn inline() -> String {
    format!("mcpServers:\n  - other\n  - kit:\n      command: python3\n      args: [\"{SERVER}\"]")
}

#[test]
fn described_servers_of_the_main_agent_are_those_of_the_session() {
    let sandbox = of_user(&inline());
    let settings = json!({ "mcpServers": { "unlisted": { "command": "touch", "args": ["started"] } } });
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    let note = Reply::tool("mcp__kit__note", json!({ "line": "noted" }));
    let server = playing(vec![note, Reply::text("done")]);
    let ran = stream(&sandbox, &server, &["go", "--agent", "r", "--allowed-tools", "mcp__kit__note"]);
    assert!(tools(&requests(&server)[0]).contains(&"mcp__kit__note"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(sandbox.project().join("notes.txt")).unwrap(), "noted\n");
    let init = ran.init();
    let names: Vec<&Value> = init["mcp_servers"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["kit"], "a server that it does not list is not its own");
    assert!(!sandbox.project().join("started").exists());
    assert!(ran.stderr.contains("lists the server `other`, which no file describes"), "{}", ran.stderr);
}

#[test]
fn described_servers_of_a_projects_main_agent_need_approval() {
    let sandbox = of_project(&inline());
    run(&sandbox, &["trust"]).ok();
    let server = playing(vec![Reply::text("done")]);
    let ran = stream(&sandbox, &server, &["go", "--agent", "r"]);
    assert_eq!(ran.init()["mcp_servers"][0]["status"], "disabled", "{ran:?}");
    assert!(ran.stderr.contains("run `qodercli mcp approve kit`"), "{}", ran.stderr);
    run(&sandbox, &["mcp", "approve", "kit"]).ok();
    let ran = stream(&sandbox, &server, &["go", "--agent", "r"]);
    assert_eq!(ran.init()["mcp_servers"][0]["status"], "connected", "{ran:?}");
}

#[test]
fn timeout_mins_of_the_main_agent_ends_a_turn() {
    let sandbox = of_user("timeoutMins: 0.01");
    let long = Duration::from_secs(600).as_secs();
    let server = playing(vec![
        Reply::tool("Bash", json!({ "command": format!("sleep {long}") })),
        Reply::text("done"),
    ]);
    let result = result_of(&stream(&sandbox, &server, &["go", "--agent", "r", "--allowed-tools", "Bash"]));
    assert_eq!(result["subtype"], "error_during_execution", "{result}");
    assert!(result["errors"][0].as_str().unwrap().contains("time limit of the agent"), "{result}");
}

#[test]
fn max_turns_is_the_smaller_of_the_agents_and_the_runs() {
    for (head, flags, most) in
        [("maxTurns: 1", &["--max-turns", "5"][..], 1), ("maxTurns: 5", &["--max-turns", "2"], 2)]
    {
        let sandbox = of_user(head);
        let server = ScriptedServer::start(Script::by(|_, _| Reply::tool("Glob", json!({ "pattern": "*" }))));
        let ran = stream(&sandbox, &server, &[&["go", "--agent", "r"], flags].concat());
        let result = result_of(&ran);
        assert_eq!((&result["subtype"], &result["num_turns"]), (&json!("error_max_turns"), &json!(most)));
    }
}

#[test]
fn memory_of_the_main_agent_is_in_its_prompt_and_its_to_write() {
    let sandbox = of_user("memory: user");
    let folder = sandbox.config().canonicalize().unwrap().join("agent-memory/r");
    sandbox.write(folder.join("MEMORY.md"), "- the build is slow\n");
    let more = json!({ "file_path": folder.join("build.md"), "content": "use two jobs\n" });
    let server = playing(vec![Reply::tool("Write", more), Reply::text("done")]);
    stream(&sandbox, &server, &["go", "--agent", "r", "--permission-mode", "acceptEdits"]).ok();
    let system = requests(&server)[0]["system"].to_string();
    assert!(system.contains("- the build is slow") && system.contains(folder.to_str().unwrap()), "{system}");
    let kept = std::fs::read_to_string(folder.join("build.md"));
    assert_eq!(kept.unwrap_or_else(|_| panic!("{}", last_result(&server))), "use two jobs\n");
}
