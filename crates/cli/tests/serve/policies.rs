//! Permission policies: what happens when the model calls a tool, for built-in tools and for tools of MCP servers by their raw
//! names.

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::mcp_server::McpServer;
use super::support::{Server, bash, confirm, id, kind, message, pending, result_text, toolset};

/// The one tool-use event of a session, its result, and how the turn stopped.
fn call(server: &Server, session: &str) -> (Value, Option<Value>, Value) {
    let idle = server.ask(session, "go");
    let events = server.events(session);
    let find = |suffix: &str| events.iter().find(|event| kind(event).ends_with(suffix)).cloned();
    (find("tool_use").unwrap(), find("tool_result"), idle["stop_reason"].clone())
}

fn offered(server: &Server) -> Vec<String> {
    let request = server.model.as_ref().unwrap().requests().last().unwrap().json();
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn always_allow_runs_even_what_a_person_would_be_asked_about() {
    // Protected files, a repository and removals are the session's own here.
    let command = "git init -q . && git config user.email a@b && git config user.name a && echo x > .envrc && git add -A && \
                   git commit -qm first && rm -rf .git && ls -a";
    let server = Server::replying(vec![bash(command), Reply::text("done")]);
    let session = server.session(&json!([toolset(&[("Bash", "always_allow")])]));
    let (used, result, stop) = call(&server, &session);
    assert_eq!(
        (&used["evaluated_permission"], &used["evaluation"]["type"]),
        (&json!("allow"), &json!("always_allow"))
    );
    let result = result.unwrap();
    assert_eq!(result["is_error"], false, "{result}");
    assert!(result_text(&result).contains(".envrc"), "{result}");
    assert_eq!(stop["type"], "end_turn");
}

#[test]
fn always_deny_stays_visible_and_its_denial_is_a_result() {
    let server = Server::replying(vec![bash("touch made"), Reply::text("done")]);
    let session = server.session(&json!([toolset(&[("Bash", "always_deny")])]));
    let (used, result, stop) = call(&server, &session);
    assert_eq!((&used["evaluated_permission"], used.get("evaluation")), (&json!("deny"), None));
    let result = result.unwrap();
    assert_eq!((&result["is_error"], &result["tool_use_id"]), (&json!(true), &used["id"]));
    assert_eq!(stop["type"], "end_turn", "the turn continues");
    assert!(offered(&server).contains(&"Bash".to_owned()), "{:?}", offered(&server));
    assert!(!server.workspace(&session).join("made").exists());
}

#[test]
fn a_denied_call_carries_the_words_of_the_person() {
    let server = Server::replying(vec![bash("touch made"), Reply::text("I see")]);
    let session = server.session(&json!([toolset(&[("bash", "always_ask")])]));
    let (used, _, _) = call(&server, &session);
    assert_eq!(used["name"], "bash", "as the agent spells it");
    let mut stream = server.stream(&session, None);
    let deny = json!({ "type": "user.tool_confirmation", "tool_use_id": id(&used), "result": "deny",
        "deny_message": "not on Fridays" });
    server.send(&session, &json!([deny])).ok();
    let result = stream.until("agent.tool_result");
    assert!(result["is_error"] == true && result_text(&result).contains("not on Fridays"), "{result}");
    stream.until_end_of_turn();
    assert!(!server.workspace(&session).join("made").exists());
    let last = server.model.as_ref().unwrap().requests().last().unwrap().json();
    assert!(last.to_string().contains("not on Fridays"), "the model reads it");
}

#[test]
fn a_policy_of_one_tool_says_nothing_about_another() {
    let edit = Reply::tool("Edit", json!({ "file_path": "a.txt", "old_string": "1", "new_string": "2" }));
    let write = Reply::tool("Write", json!({ "file_path": "a.txt", "content": "1" }));
    let read = Reply::tool("Read", json!({ "file_path": "a.txt" }));
    let server = Server::replying(vec![write, bash("cat a.txt >> b.txt"), read, edit, Reply::text("done")]);
    let session = server.session(&json!([toolset(&[("Edit", "always_ask"), ("Glob", "always_deny")])]));
    let idle = server.ask(&session, "go");
    let asked = pending(&idle);
    let events = server.events(&session);
    let evaluated: Vec<(Value, Value)> = events
        .iter()
        .filter(|event| kind(event) == "agent.tool_use")
        .map(|event| (event["name"].clone(), event["evaluated_permission"].clone()))
        .collect();
    let expected = [("Write", "allow"), ("Bash", "allow"), ("Read", "allow"), ("Edit", "ask")];
    assert_eq!(evaluated, expected.map(|(name, word)| (json!(name), json!(word))));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([confirm(&asked[0], "allow")])).ok();
    stream.until_end_of_turn();
    assert_eq!(std::fs::read_to_string(server.workspace(&session).join("a.txt")).unwrap(), "2");
}

#[test]
fn tools_that_are_not_enabled_are_invisible_and_a_call_of_one_is_denied() {
    for tools in [
        json!([{ "type": "agent_toolset_20260401", "enabled_tools": ["Read"] }]),
        json!([{ "type": "agent_toolset_20260401", "disallowed_tools": ["bash"] }]),
        json!([{ "type": "agent_toolset_20260401", "configs": [{ "name": "Bash", "enabled": false }] }]),
        json!([{ "type": "agent_toolset_20260401", "default_config": { "enabled": false },
            "configs": [{ "name": "Read", "enabled": true }] }]),
        json!([{ "type": "agent_toolset_20260401", "enabled_tools": ["Bash"],
            "configs": [{ "name": "Bash", "enabled": false }] }]),
    ] {
        let server = Server::replying(vec![bash("touch made"), Reply::text("done")]);
        let session = server.session(&tools);
        let (used, result, stop) = call(&server, &session);
        assert_eq!(
            (&used["evaluated_permission"], used.get("evaluation")),
            (&json!("deny"), None),
            "{tools}"
        );
        assert_eq!((&result.unwrap()["is_error"], &stop["type"]), (&json!(true), &json!("end_turn")));
        assert!(!offered(&server).contains(&"Bash".to_owned()), "{tools}: {:?}", offered(&server));
        assert!(!server.workspace(&session).join("made").exists());
    }
    let server = Server::replying(vec![Reply::text("hi")]);
    let session = server.session(&json!([]));
    server.ask(&session, "go");
    assert_eq!(offered(&server), [""; 0], "no toolset, no tools");
}

fn with_servers(server: &Server, tools: &Value, url: &str) -> String {
    let body = json!({ "name": "a", "model": "auto", "tools": tools,
        "mcp_servers": [{ "type": "url", "name": "weather-service", "url": url }] });
    let agent = id(&server.post("/v1/agents", &body).ok());
    let body = json!({ "agent": agent, "environment_id": server.environment() });
    id(&server.post("/v1/sessions", &body).ok())
}

#[test]
fn tools_of_mcp_servers_are_meant_by_their_raw_names() {
    let mcp = McpServer::start();
    let calls = Reply::ToolCalls(vec![
        ("mcp__weather-service__get_forecast".to_owned(), json!({ "city": "Oslo" })),
        ("mcp__weather-service__set_alarm".to_owned(), json!({})),
    ]);
    let server = Server::replying(vec![calls, Reply::text("done")]);
    let tools = json!([{ "type": "mcp_toolset", "mcp_server_name": "weather-service", "configs": [
        { "name": "get_forecast", "permission_policy": { "type": "always_allow" } },
        { "name": "old.tool", "enabled": false },
    ] }]);
    let session = with_servers(&server, &tools, &mcp.url);
    let asked = pending(&server.ask(&session, "go"));
    let names = offered(&server);
    assert!(names.contains(&"mcp__weather-service__get_forecast".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("old")), "{names:?}");
    let events = server.events(&session);
    let used: Vec<&Value> = events.iter().filter(|event| kind(event) == "agent.mcp_tool_use").collect();
    assert_eq!(
        (&used[0]["mcp_server_name"], &used[0]["name"]),
        (&json!("weather-service"), &json!("get_forecast"))
    );
    assert_eq!(used[0]["evaluated_permission"], "allow");
    assert_eq!(used[1]["evaluated_permission"], "ask", "tools of servers ask unless something else is said");
    assert_eq!(asked, [id(used[1])]);
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([confirm(&asked[0], "allow")])).ok();
    let result = stream.until("agent.mcp_tool_result");
    assert!(result_text(&result).contains("sunny in MCP"), "{result}");
    assert_eq!(result["mcp_tool_use_id"], used[0]["id"]);
    stream.until_end_of_turn();
    let called: Vec<Value> = mcp.calls().iter().map(|call| call["name"].clone()).collect();
    assert_eq!(called, [json!("get_forecast"), json!("set_alarm")]);
}

#[test]
fn sessions_share_the_connection_to_a_server_that_keeps_no_sessions() {
    let mcp = McpServer::start();
    let script = |request: &Value, _: usize| {
        if request["messages"].to_string().contains("sunny in MCP") {
            return Reply::text("done");
        }
        Reply::tool("mcp__weather-service__get_forecast", json!({}))
    };
    let server = Server::with(Some(Script::by(script)), &[], &[]);
    let tools = json!([{ "type": "mcp_toolset", "mcp_server_name": "weather-service",
        "default_config": { "permission_policy": { "type": "always_allow" } } }]);
    for _ in 0..3 {
        let session = with_servers(&server, &tools, &mcp.url);
        assert_eq!(server.ask(&session, "go")["stop_reason"]["type"], "end_turn");
    }
    assert_eq!((mcp.calls().len(), mcp.handshakes()), (3, 1));
}

#[test]
fn the_default_of_a_toolset_holds_for_tools_without_an_entry() {
    let mcp = McpServer::start();
    let calls = Reply::ToolCalls(vec![
        ("mcp__weather-service__get_forecast".to_owned(), json!({})),
        ("mcp__weather-service__set_alarm".to_owned(), json!({})),
    ]);
    let server = Server::replying(vec![calls, Reply::text("done")]);
    let tools = json!([{ "type": "mcp_toolset", "mcp_server_name": "weather-service",
        "default_config": { "permission_policy": { "type": "always_deny" } },
        "configs": [{ "name": "set_alarm", "permission_policy": { "type": "always_allow" } }] }]);
    let session = with_servers(&server, &tools, &mcp.url);
    assert_eq!(server.ask(&session, "go")["stop_reason"]["type"], "end_turn");
    let called: Vec<Value> = mcp.calls().iter().map(|call| call["name"].clone()).collect();
    assert_eq!(called, [json!("set_alarm")], "a denied default does not deny what is allowed by name");
}

#[test]
fn a_server_that_cannot_be_reached_is_reported_and_the_turn_continues() {
    let server = Server::with(
        Some(Script::by_assistant_count(vec![Reply::text("without it")])),
        &[],
        &[("QODER_MCP_START_WAIT_MS", "2000")],
    );
    let tools = json!([{ "type": "mcp_toolset", "mcp_server_name": "weather-service" }]);
    let session = with_servers(&server, &tools, "http://127.0.0.1:9/mcp");
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("go")])).ok();
    let error = stream.until("session.error");
    assert_eq!(error["error"]["type"], "mcp_connection_failed_error");
    assert_eq!(error["error"]["mcp_server_name"], "weather-service");
    stream.until_end_of_turn();
}

#[test]
fn auto_asks_without_a_classifier_and_names_the_policy() {
    let server = Server::replying(vec![bash("touch made"), Reply::text("done")]);
    let session = server.session(&json!([toolset(&[("bash", "auto")])]));
    let (used, _, stop) = call(&server, &session);
    assert_eq!(used["evaluated_permission"], "ask");
    assert_eq!(
        used["evaluation"],
        json!({ "type": "auto", "evaluated_permission": { "type": "ask", "reason_code": "indeterminate" } })
    );
    assert_eq!(stop["type"], "requires_action");
}

#[test]
fn auto_with_a_classifier_follows_its_word() {
    for (decision, word, code) in [("allow", "allow", None), ("deny", "deny", Some("high_risk"))] {
        let judged = json!({ "decision": decision, "reason": "because" }).to_string();
        let script = Script::by(move |request, _| {
            if request["system"].to_string().contains("You decide whether a coding agent") {
                return Reply::text(judged.clone());
            }
            let replies = [bash("touch made"), Reply::text("done")];
            replies[qoder_testkit::assistant_count(request).min(1)].clone()
        });
        let sandbox = qoder_testkit::Sandbox::new();
        let config = sandbox.write("serve.yaml", "settings:\n  autoMode:\n    classifier: judge-model\n");
        let server = Server::with(Some(script), &["--config", config.to_str().unwrap()], &[]);
        let session = server.session(&json!([toolset(&[("bash", "auto")])]));
        let (used, _, stop) = call(&server, &session);
        let mut expected = json!({ "type": word });
        if let Some(code) = code {
            expected["reason_code"] = json!(code);
        }
        assert_eq!(used["evaluation"], json!({ "type": "auto", "evaluated_permission": expected }));
        assert_eq!((&used["evaluated_permission"], &stop["type"]), (&json!(word), &json!("end_turn")));
        assert_eq!(server.workspace(&session).join("made").exists(), decision == "allow");
    }
}

#[test]
fn claude_clients_never_read_always_deny() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let agent = server.agent(&json!([toolset(&[("Bash", "always_deny")])]));
    let shown = server.claude("GET", &format!("/v1/agents/{agent}"), &Value::Null).ok();
    assert!(!shown.to_string().contains("always_deny"), "{shown}");
    assert_eq!(shown["tools"][0]["configs"][0]["enabled"], false);
    let shown = server.get(&format!("/api/v1/cloud/agents/{agent}")).ok();
    assert!(shown.to_string().contains("always_deny"), "{shown}");
}
