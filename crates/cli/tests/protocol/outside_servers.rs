//! Servers outside of the host, as a host sees them: their statuses as they change, their tools, what the host may order
//! while a session runs, and questions of servers to a person.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::{Host, ROOMY, call, named, say};

/// The script of the server.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/protocol/scripts/server.py");

fn described() -> Value {
    json!({ "type": "stdio", "command": "python3", "args": [SCRIPT], "env": { "SECRET": "hide-me-please" } })
}

fn config() -> String {
    json!({ "mcpServers": { "kb": described(), "dead": { "command": "/does/not/exist" } } }).to_string()
}

/// Reads until the host gets this status of the server.
fn until_status(host: &mut Host, name: &str, status: &str) -> Value {
    let line = host.until(|line| {
        let rows = line["servers"].as_array().into_iter().flatten();
        line["subtype"] == "mcp_status_change"
            && rows.into_iter().any(|row| row["name"] == name && row["status"] == status)
    });
    line["servers"][0].clone()
}

/// Everything that is on record.
fn logs(sandbox: &Sandbox) -> String {
    sandbox.session_files().iter().map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

fn rows(host: &mut Host) -> Vec<Value> {
    let answer = host.request(&json!({ "subtype": "mcp_status" })).unwrap();
    answer["mcpServers"].as_array().unwrap().clone()
}

#[test]
fn statuses_are_told_as_they_change_and_shown_without_secrets() {
    let sandbox = Sandbox::new();
    let config = config();
    let flags = ["--mcp-config", &config, "--settings", ROOMY];
    let mut host = Host::connect(&sandbox, &json!([say("done")]), &flags, named(json!({})));
    let first = host.until(|line| line["subtype"] == "mcp_status_change");
    assert_eq!(first["servers"][0]["status"], "connecting");
    assert!(first["uuid"].is_string() && first["session_id"].is_string());
    let row = until_status(&mut host, "kb", "connected");
    assert_eq!(row["serverInfo"], json!({ "name": "test server", "version": "1.2.3" }));
    assert_eq!(row["scope"], "dynamic");
    assert_eq!(row["config"]["type"], "stdio");
    assert_eq!(
        row["tools"][0],
        json!({ "name": "echo", "description": "Says it again.",
        "annotations": { "readOnly": true } })
    );
    assert_eq!(row["tools"][1]["name"], "ask person");
    let rows = rows(&mut host);
    assert_eq!(rows[0]["status"], "failed");
    assert!(rows[0]["error"].as_str().unwrap().contains("/does/not/exist"), "{}", rows[0]);
    assert!(!json!(rows).to_string().contains("hide-me-please"));
    host.prompt("hello");
    let init = host.until(|line| line["subtype"] == "init");
    let statuses: Vec<&Value> =
        init["mcp_servers"].as_array().unwrap().iter().map(|row| &row["status"]).collect();
    assert_eq!(statuses, ["failed", "connected"]);
    assert!(init["tools"].as_array().unwrap().contains(&json!("mcp__kb__echo")));
    assert_eq!(host.result()["result"], "done");
}

#[test]
fn a_tool_is_called_and_one_that_kills_its_server_is_started_again() {
    let sandbox = Sandbox::new();
    let config = config();
    let flags = ["--mcp-config", &config, "--settings", ROOMY, "--allowedTools", "mcp__kb"];
    let replies = json!([
        call(1, "mcp__kb__echo", &json!({ "text": "hello" })),
        call(2, "mcp__kb__die", &json!({})),
        call(3, "mcp__kb__echo", &json!({ "text": "again" })),
        say("done"),
    ]);
    let mut host = Host::connect(&sandbox, &replies, &flags, named(json!({})));
    host.prompt("go");
    assert_eq!(host.tool_result(), "hello");
    let died = host.tool_result();
    assert!(died.contains("ended during the call"), "{died}");
    assert_eq!(host.tool_result(), "again");
    assert_eq!(host.result()["result"], "done");
}

#[test]
fn tools_that_come_later_are_offered_in_a_new_epoch() {
    let sandbox = Sandbox::new();
    let config = config();
    let flags = ["--mcp-config", &config, "--settings", ROOMY, "--allowedTools", "mcp__kb"];
    let replies = json!([call(1, "mcp__kb__grow", &json!({})), say("done")]);
    let mut host = Host::connect(&sandbox, &replies, &flags, named(json!({})));
    let row = until_status(&mut host, "kb", "connected");
    assert_eq!(row["tools"].as_array().unwrap().len(), 5);
    host.prompt("go");
    host.result();
    while rows(&mut host)[1]["tools"][5]["name"] != "grown" {}
    host.prompt("again");
    let init = host.until(|line| line["subtype"] == "init");
    assert!(init["tools"].as_array().unwrap().contains(&json!("mcp__kb__grown")));
    host.result();
    assert!(logs(&sandbox).contains("tool list changed"));
}

#[test]
fn a_tool_that_changed_is_asked_about_again() {
    let sandbox = Sandbox::new();
    let config = json!({ "mcpServers": { "kb": described() } }).to_string();
    let flags = [
        "--mcp-config",
        &config,
        "--settings",
        ROOMY,
        "--permission-prompt-tool",
        "stdio",
        "--allowedTools",
        "mcp__kb__change",
    ];
    let replies = json!([
        call(1, "mcp__kb__echo", &json!({ "text": "one" })),
        call(2, "mcp__kb__echo", &json!({ "text": "two" })),
        call(3, "mcp__kb__change", &json!({})),
        call(5, "mcp__kb__echo", &json!({ "text": "three" })),
        say("done"),
    ]);
    let mut host = Host::connect(&sandbox, &replies, &flags, named(json!({})));
    host.prompt("go");
    let asked = host.asked("can_use_tool");
    let rule = json!({ "type": "addRules", "rules": [{ "toolName": "mcp__kb__echo" }], "behavior": "allow",
        "destination": "session" });
    host.respond(
        &asked,
        &json!({ "behavior": "allow", "updatedInput": asked["request"]["input"],
        "updatedPermissions": [rule] }),
    );
    assert_eq!(host.tool_result(), "one");
    // Not asked about again while it is what it was.
    assert_eq!(host.tool_result(), "two");
    loop {
        let rows = rows(&mut host);
        if rows[0]["tools"][0]["description"] == "Sends everything you say to a stranger." {
            break;
        }
    }
    host.prompt("more");
    let asked = host.asked("can_use_tool");
    assert_eq!(asked["request"]["input"]["text"], "three");
    host.respond(&asked, &json!({ "behavior": "deny", "message": "no more" }));
    assert_eq!(host.tool_result(), "no more");
    assert!(logs(&sandbox).contains("\"by\":\"changed tool\""));
}

#[test]
fn servers_are_replaced_while_the_session_runs() {
    let sandbox = Sandbox::new();
    let config = config();
    let flags = ["--mcp-config", &config, "--settings", ROOMY];
    let mut host = Host::connect(&sandbox, &json!([say("done")]), &flags, named(json!({})));
    until_status(&mut host, "kb", "connected");
    let wanted = json!({ "kb": described(), "odd": { "type": "ws", "url": "ws://x" },
        "more": { "command": "python3", "args": [SCRIPT],
            "tools": [{ "name": "echo", "permission_policy": "always_deny" }] } });
    let replaced = host.request(&json!({ "subtype": "mcp_set_servers", "servers": wanted })).unwrap();
    assert_eq!(replaced["added"], json!(["more", "odd"]));
    assert_eq!(replaced["removed"], json!(["dead"]));
    assert!(replaced["errors"]["odd"].as_str().unwrap().contains("`ws` is not supported"), "{replaced}");
    assert_eq!(replaced["errors"].as_object().unwrap().len(), 1);
    let statuses: Vec<Value> = rows(&mut host).iter().map(|row| row["status"].clone()).collect();
    assert_eq!(statuses, ["connected", "connected", "failed"]);
    host.prompt("hello");
    let init = host.until(|line| line["subtype"] == "init");
    let tools = init["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("mcp__more__grow")));
    // What its description always denies is not even offered.
    assert!(!tools.contains(&json!("mcp__more__echo")));
    host.result();
    host.request(&json!({ "subtype": "mcp_toggle", "serverName": "more", "enabled": false })).unwrap();
    assert_eq!(rows(&mut host)[1]["status"], "disabled");
    host.request(&json!({ "subtype": "mcp_reconnect", "serverName": "more" })).unwrap();
    let problem = host.request(&json!({ "subtype": "mcp_reconnect", "serverName": "odd" })).unwrap_err();
    assert!(problem.contains("`ws` is not supported"), "{problem}");
}

fn asking_flags(config: &str) -> Vec<String> {
    ["--mcp-config", config, "--settings", ROOMY, "--allowedTools", "mcp__kb"].map(str::to_owned).to_vec()
}

/// The name that a model calls the tool with the space by.
fn ask_person(host: &mut Host) -> String {
    let rows = host.request(&json!({ "subtype": "get_context_usage" })).unwrap();
    let tools = rows["mcpTools"].as_array().unwrap();
    let name = tools.iter().filter_map(|tool| tool["name"].as_str()).find(|name| name.contains("ask_person"));
    name.unwrap_or_else(|| panic!("{rows}")).to_owned()
}

#[test]
fn a_server_asks_a_person_through_the_host_and_hooks_observe() {
    let sandbox = Sandbox::new();
    let config = config();
    let flags = asking_flags(&config);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let name = qoder_mcp_name();
    let replies = json!([
        call(1, &name, &json!({})),
        { "when": { "lastToolResultContains": "\"project\": \"apollo\"" }, "text": "understood" },
    ]);
    let hooks = json!({ "Elicitation": [{ "matcher": "kb", "hookCallbackIds": ["before"] }],
        "ElicitationResult": [{ "matcher": null, "hookCallbackIds": ["after"] }] });
    let mut command = Host::command(&sandbox, &replies, &flags);
    command.env("QODER_SDK_READS_SESSION_STATE", "1");
    let mut host = Host::spawn(command);
    host.initialize(named(json!({ "elicitation": true, "hooks": hooks })));
    until_status(&mut host, "kb", "connected");
    assert_eq!(ask_person(&mut host), name);
    host.prompt("go");
    let before = host.asked("hook_callback");
    assert_eq!(before["request"]["input"]["hook_event_name"], "Elicitation");
    assert_eq!(before["request"]["input"]["mcp_server_name"], "kb");
    assert_eq!(before["request"]["input"]["message"], "Which project?");
    host.respond(&before, &json!({}));
    let asked = host.asked("elicitation");
    let request = &asked["request"];
    assert_eq!((&request["server_name"], &request["mode"]), (&json!("kb"), &json!("form")));
    assert_eq!(request["requested_schema"]["required"], json!(["project"]));
    // It is in the log before anybody answers.
    assert!(logs(&sandbox).contains("\"type\":\"elicitation\""));
    host.respond(&asked, &json!({ "action": "accept", "content": { "project": "apollo" } }));
    let after = host.asked("hook_callback");
    assert_eq!(after["request"]["input"]["action"], "accept");
    assert_eq!(after["request"]["input"]["content"], json!({ "project": "apollo" }));
    host.respond(&after, &json!({}));
    assert_eq!(host.result()["result"], "understood");
    assert!(logs(&sandbox).contains("\"type\":\"elicitation-answer\""));
}

/// The safe name of the tool `ask person`.
fn qoder_mcp_name() -> String {
    qoder_runtime::mcp::tool_name("kb", "ask person")
}

#[test]
fn without_anybody_to_ask_the_question_is_cancelled() {
    let sandbox = Sandbox::new();
    let config = config();
    let flags = asking_flags(&config);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let replies = json!([
        call(1, &qoder_mcp_name(), &json!({})),
        { "when": { "lastToolResultContains": "cancel" }, "text": "understood" },
    ]);
    let mut host = Host::connect(&sandbox, &replies, &flags, named(json!({})));
    host.prompt("go");
    assert_eq!(host.result()["result"], "understood");
}

#[test]
fn a_question_that_waited_when_the_process_was_killed_is_cancelled_on_resume() {
    let sandbox = Sandbox::new();
    let config = config();
    let flags = asking_flags(&config);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let replies = json!([call(1, &qoder_mcp_name(), &json!({})), say("done")]);
    let mut host = Host::connect(&sandbox, &replies, &flags, named(json!({ "elicitation": true })));
    host.prompt("go");
    let asked = host.asked("elicitation");
    let session = host_session(&sandbox);
    assert_eq!(asked["request"]["server_name"], "kb");
    drop(host);
    let mut flags = flags.clone();
    flags.extend(["--resume", &session]);
    let mut host =
        Host::connect(&sandbox, &json!([say("done")]), &flags, named(json!({ "elicitation": true })));
    host.prompt("more");
    assert_eq!(host.result()["result"], "done");
    let log = logs(&sandbox);
    assert!(log.contains("\"action\":\"cancel\",\"by\":\"resume\""), "{log}");
}

fn host_session(sandbox: &Sandbox) -> String {
    let log = logs(sandbox);
    let line: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    line["sessionId"].as_str().unwrap().to_owned()
}

#[test]
fn a_program_that_is_none_of_ours_hears_of_the_session_first() {
    let sandbox = Sandbox::new();
    let config = config();
    let flags = ["--mcp-config", &config, "--settings", ROOMY];
    let mut host = Host::connect(&sandbox, &json!([say("done")]), &flags, json!({}));
    while rows(&mut host)[1]["status"] != "connected" {}
    host.prompt("hello");
    let first = host.until(|line| line["type"] == "system");
    assert_eq!(first["subtype"], "init");
    host.result();
    host.ask(&json!({ "subtype": "mcp_toggle", "serverName": "kb", "enabled": false }));
    assert_eq!(until_status(&mut host, "kb", "disabled")["name"], "kb");
}
