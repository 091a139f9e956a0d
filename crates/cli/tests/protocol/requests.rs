//! Requests while a session runs: each is answered by itself, also in the middle of a turn, and takes effect at once.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::{Host, call, say};

fn slow(text: &str) -> Value {
    json!({ "text": text, "delayMs": 600_000 })
}

#[test]
fn an_interrupt_stops_the_model_and_names_what_waits() {
    let sandbox = Sandbox::new();
    let replies = json!([{ "when": { "contains": "second" }, "text": "next" }, slow("late")]);
    let mut host = Host::connect(&sandbox, &replies, &[], json!({}));
    host.prompt("first");
    host.until(|line| line["subtype"] == "init");
    let uuid = "5f0c8a52-6a51-4e0c-a5c1-2d3c25b1e0aa";
    host.send(&json!({ "type": "user", "uuid": uuid, "message": { "role": "user", "content": "second" } }));
    let receipt = host.request(&json!({ "subtype": "interrupt" })).unwrap();
    assert_eq!(receipt, json!({ "still_queued": [uuid], "cancelled": [] }));
    let result = host.result();
    assert_eq!(
        (&result["is_error"], &result["terminal_reason"]),
        (&json!(true), &json!("aborted_streaming"))
    );
    assert_eq!(host.result()["result"], "next");
}

#[test]
fn an_interrupt_while_nothing_runs_does_nothing() {
    let sandbox = Sandbox::new();
    let mut host = Host::connect(&sandbox, &json!([say("hi")]), &[], json!({}));
    host.request(&json!({ "subtype": "interrupt" })).unwrap();
    host.prompt("hello");
    assert_eq!(host.result()["result"], "hi");
}

#[test]
fn a_message_that_waits_can_be_taken_back() {
    let sandbox = Sandbox::new();
    let mut host = Host::connect(&sandbox, &json!([slow("late")]), &[], json!({}));
    host.prompt("first");
    host.until(|line| line["subtype"] == "init");
    let uuid = "5f0c8a52-6a51-4e0c-a5c1-2d3c25b1e0bb";
    host.send(&json!({ "type": "user", "uuid": uuid, "message": { "role": "user", "content": "second" } }));
    let take_back = json!({ "subtype": "cancel_async_message", "uuid": uuid });
    assert_eq!(host.request(&take_back).unwrap(), json!({ "cancelled": true }));
    assert_eq!(host.request(&take_back).unwrap(), json!({ "cancelled": false }));
    host.request(&json!({ "subtype": "interrupt" })).unwrap();
    host.result();
    let (_, rest) = host.end();
    assert!(rest.iter().all(|line| line["type"] != "result"), "the second message has no turn: {rest:?}");
}

#[test]
fn another_mode_counts_from_the_next_decision_on() {
    let sandbox = Sandbox::new();
    let file = sandbox.project().join("a.txt");
    let replies = json!([call(1, "Write", &json!({ "file_path": file, "content": "x" })), say("done")]);
    let mut host = Host::connect(&sandbox, &replies, &["--trust"], json!({}));
    host.request(&json!({ "subtype": "set_permission_mode", "mode": "acceptEdits" })).unwrap();
    host.prompt("write");
    assert_eq!(host.until(|line| line["subtype"] == "init")["permissionMode"], "acceptEdits");
    host.result();
    assert!(file.exists());
    let problem = host.request(&json!({ "subtype": "set_permission_mode", "mode": "reckless" })).unwrap_err();
    assert!(problem.contains("reckless") && problem.contains("acceptEdits"), "{problem}");
}

#[test]
fn another_model_answers_the_next_call() {
    let sandbox = Sandbox::new();
    let other =
        sandbox.write("../other.json", json!([{ "text": "from the other", "repeat": true }]).to_string());
    let mut host = Host::connect(&sandbox, &json!([say("from the first")]), &[], json!({}));
    host.prompt("one");
    assert_eq!(host.result()["result"], "from the first");
    let model = format!("scripted:{}", other.display());
    host.request(&json!({ "subtype": "set_model", "model": model })).unwrap();
    host.prompt("two");
    assert_eq!(host.result()["result"], "from the other");
    host.request(&json!({ "subtype": "set_model", "model": null })).unwrap();
    host.prompt("three");
    assert_eq!(host.result()["result"], "from the first");
    let problem = host.request(&json!({ "subtype": "set_model", "model": "scripted:/nowhere" })).unwrap_err();
    assert!(problem.contains("/nowhere"), "{problem}");
}

#[test]
fn settings_laid_on_top_take_effect_at_once() {
    let sandbox = Sandbox::new();
    sandbox.write("note.txt", "secret");
    let read = json!({ "file_path": "note.txt" });
    let replies = json!([call(1, "Read", &read), { "when": { "turn": 2 }, "text": "one" }, call(3, "Read", &read), say("two")]);
    let mut host = Host::connect(&sandbox, &replies, &[], json!({}));
    host.prompt("read");
    assert!(host.tool_result().contains("secret"));
    host.result();
    let settings = json!({ "permissions": { "deny": ["Read(note.txt)"] } });
    host.request(&json!({ "subtype": "apply_flag_settings", "settings": settings })).unwrap();
    host.prompt("read again");
    let told = host.tool_result();
    assert!(told.contains("denied") && told.contains("Read(note.txt)"), "{told}");
    let bad = json!({ "subtype": "apply_flag_settings", "settings": { "permissions": { "deny": "Read" } } });
    assert!(host.request(&bad).unwrap_err().contains("permissions.deny"));
}

#[test]
fn a_background_task_is_stopped() {
    let sandbox = Sandbox::new();
    let input = json!({ "command": "sleep 600", "run_in_background": true });
    let mut host = Host::connect(
        &sandbox,
        &json!([call(1, "Bash", &input), say("started")]),
        &["--allowedTools", "Bash"],
        json!({}),
    );
    host.prompt("start");
    let started = host.until(|line| line["subtype"] == "task_started");
    host.result();
    host.request(&json!({ "subtype": "stop_task", "task_id": started["task_id"] })).unwrap();
    let told = host.until(|line| line["subtype"] == "task_notification");
    assert_eq!((&told["status"], &told["task_id"]), (&json!("stopped"), &started["task_id"]));
    let problem = host.request(&json!({ "subtype": "stop_task", "task_id": "bash_99" })).unwrap_err();
    assert!(problem.contains("bash_99"), "{problem}");
}

#[test]
fn the_context_is_accounted_for() {
    let sandbox = Sandbox::new();
    let mut host = Host::connect(&sandbox, &json!([say("hi")]), &[], json!({}));
    host.prompt("hello");
    host.result();
    let usage = host.request(&json!({ "subtype": "get_context_usage" })).unwrap();
    for key in ["categories", "memoryFiles", "mcpTools", "agents", "gridRows"] {
        assert!(usage[key].is_array(), "{key}: {usage}");
    }
    let total: u64 = usage["totalTokens"].as_u64().unwrap();
    assert!(total > 0 && usage["maxTokens"].as_u64().unwrap() > total);
    assert!(
        usage["percentage"].is_number()
            && usage["isAutoCompactEnabled"].is_boolean()
            && usage["model"].is_string()
    );
}

#[test]
fn models_providers_and_agents_are_listed() {
    let sandbox = Sandbox::new();
    let mut host = Host::connect(&sandbox, &json!([say("hi")]), &[], json!({}));
    let models = host.request(&json!({ "subtype": "get_available_models" })).unwrap();
    assert_eq!(models["models"][0]["value"], "offline");
    assert_eq!(host.request(&json!({ "subtype": "get_byok_config" })).unwrap(), json!({ "providers": [] }));
    let agents = host.request(&json!({ "subtype": "supported_agents" })).unwrap();
    assert_eq!(agents["agents"][0]["name"], "general-purpose");
    let added =
        host.request(&json!({ "subtype": "add_directories", "directories": [sandbox.home()] })).unwrap();
    assert_eq!(added, json!({ "added": [sandbox.home()] }));
    assert!(host.request(&json!({ "subtype": "add_directories", "directories": ["/nowhere"] })).is_err());
}

#[test]
fn the_host_chooses_the_model_before_each_call() {
    let sandbox = Sandbox::new();
    let other = sandbox.write("../other.json", json!([{ "text": "chosen", "repeat": true }]).to_string());
    let mut host = Host::connect(&sandbox, &json!([say("usual")]), &[], json!({ "modelPolicy": true }));
    host.prompt("hello");
    let asked = host.asked("get_model_policy");
    assert_eq!(asked["request"]["purpose"], "main");
    assert_eq!(asked["request"]["agentId"], "main");
    assert!(asked["request"]["availableModels"].is_array() && asked["request"]["turnIndex"].is_number());
    host.respond(&asked, &json!({ "model": format!("scripted:{}", other.display()) }));
    assert_eq!(host.result()["result"], "chosen");
    host.prompt("again");
    let asked = host.asked("get_model_policy");
    host.respond(&asked, &json!({ "model": "" }));
    let result = host.result();
    assert_eq!(result["is_error"], true);
    assert!(result["errors"][0].as_str().unwrap().contains("empty model"), "{result}");
}

#[test]
fn a_mode_that_is_set_outlives_the_flag_it_was_started_with() {
    let sandbox = Sandbox::new();
    let write = |name: &str| json!({ "file_path": sandbox.project().join(name), "content": "x" });
    let replies = json!([call(1, "Write", &write("a")), { "when": { "turn": 2 }, "text": "one" }, call(3, "Write", &write("b")), say("two")]);
    let mut host = Host::connect(&sandbox, &replies, &["--permission-mode", "acceptEdits"], json!({}));
    host.prompt("write");
    host.result();
    host.request(&json!({ "subtype": "set_permission_mode", "mode": "plan" })).unwrap();
    host.prompt("write again");
    assert_eq!(host.until(|line| line["subtype"] == "init")["permissionMode"], "plan");
    host.result();
    assert!(sandbox.project().join("a").exists() && !sandbox.project().join("b").exists());
}

#[test]
fn servers_are_replaced_while_a_session_runs() {
    let sandbox = Sandbox::new();
    let mut host = Host::connect(&sandbox, &json!([say("hi")]), &[], json!({}));
    let servers = json!({ "calc": { "type": "sdk", "name": "calc" }, "far": { "type": "http", "url": "http://127.0.0.1:1/mcp" } });
    let id = host.ask(&json!({ "subtype": "mcp_set_servers", "servers": servers }));
    for _ in 0..3 {
        let asked = host.asked("mcp_message");
        let message = asked["request"]["message"].clone();
        let result = json!({ "tools": [{ "name": "add", "inputSchema": { "type": "object" } }] });
        host.respond(
            &asked,
            &json!({ "mcp_response": { "jsonrpc": "2.0", "id": message["id"], "result": result } }),
        );
    }
    let replaced = host.answer_to(&id).unwrap();
    assert_eq!((&replaced["added"], &replaced["removed"]), (&json!(["calc", "far"]), &json!([])));
    assert!(!replaced["errors"]["far"].as_str().unwrap().is_empty(), "{replaced}");
    host.prompt("hello");
    let tools = host.until(|line| line["subtype"] == "init")["tools"].clone();
    assert!(tools.as_array().unwrap().contains(&json!("mcp__calc__add")));
    let replaced = host.request(&json!({ "subtype": "mcp_set_servers", "servers": {} })).unwrap();
    assert_eq!(replaced, json!({ "added": [], "removed": ["calc", "far"], "errors": {} }));
}
