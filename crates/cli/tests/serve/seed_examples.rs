//! Every example of the guide to permission policies, word for word but for the address, the token and the ids.

use qoder_testkit::Reply;
use serde_json::json;

use super::support::{Server, custom, id, kind, message, pending, result_text};

/// Example 1: policies in the `tools` of an agent.
#[test]
fn policies_are_configured_in_the_agent() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let agent = server.post(
        "/api/v1/cloud/agents",
        &json!({ "name": "reviewer", "model": "auto",
            "mcp_servers": [{ "type": "url", "name": "weather-service", "url": "http://127.0.0.1:9/mcp" }],
            "tools": [
                {
                    "type": "agent_toolset_20260401",
                    "enabled_tools": ["Bash", "Read", "Write"],
                    "configs": [
                        { "name": "Read", "permission_policy": { "type": "always_allow" } },
                        { "name": "Write", "permission_policy": { "type": "always_ask" } },
                        { "name": "Bash", "permission_policy": { "type": "always_deny" } }
                    ]
                },
                {
                    "type": "mcp_toolset",
                    "mcp_server_name": "weather-service",
                    "configs": [{ "name": "get_forecast", "permission_policy": { "type": "always_ask" } }]
                }
            ] }),
    );
    let agent = agent.ok();
    assert_eq!(agent["tools"][0]["enabled_tools"], json!(["Bash", "Read", "Write"]));
    let policies: Vec<_> = agent["tools"][0]["configs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|config| (config["name"].clone(), config["permission_policy"]["type"].clone()))
        .collect();
    assert_eq!(
        policies,
        [
            (json!("Read"), json!("always_allow")),
            (json!("Write"), json!("always_ask")),
            (json!("Bash"), json!("always_deny"))
        ]
    );
    assert_eq!(agent["tools"][1]["configs"][0]["name"], "get_forecast");
}

/// Examples 2 and 3: `session.status_idle` with `requires_action`, and the confirmation of a call.
#[test]
fn a_call_waits_for_its_confirmation_and_the_same_turn_continues() {
    let write = Reply::tool("Write", json!({ "file_path": "report.txt", "content": "done" }));
    let server = Server::replying(vec![write, Reply::text("written")]);
    let session = server.session(&json!([{
        "type": "agent_toolset_20260401",
        "enabled_tools": ["Write"],
        "configs": [{ "name": "Write", "permission_policy": { "type": "always_ask" } }]
    }]));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("write the report")])).ok();
    let asked = stream.until("agent.tool_use");
    assert_eq!(asked["evaluated_permission"], "ask");
    let idle = stream.until("session.status_idle");
    assert_eq!(idle["status"], "idle");
    assert_eq!(pending(&idle), [id(&asked)]);
    assert!(id(&asked).starts_with("evt_"), "the id of an event, not the provider's");
    assert!(!server.workspace(&session).join("report.txt").exists());
    let confirmed = server.request(
        "POST",
        &format!("/api/v1/cloud/sessions/{session}/events"),
        &[("content-type", "application/json")],
        json!({ "events": [{ "type": "user.tool_confirmation", "tool_use_id": id(&asked), "result": "allow" }] })
            .to_string()
            .as_bytes(),
    );
    assert_eq!(kind(&confirmed.ok()["data"][0]), "user.tool_confirmation");
    let result = stream.until("agent.tool_result");
    assert_eq!(result["tool_use_id"], asked["id"]);
    assert_eq!(stream.until("session.status_idle")["stop_reason"], json!({ "type": "end_turn" }));
    assert_eq!(std::fs::read_to_string(server.workspace(&session).join("report.txt")).unwrap(), "done");
    assert_eq!(stream.kinds().iter().filter(|kind| *kind == "user.message").count(), 1, "the same turn");
}

/// Example 4: the result of a tool that the client runs.
#[test]
fn a_client_brings_the_result_of_its_tool() {
    let call = Reply::tool("order_status", json!({ "order": "42" }));
    let server = Server::replying(vec![call, Reply::text("It was shipped.")]);
    let session = server.session(&json!([custom("order_status")]));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("where is my order?")])).ok();
    let asked = stream.until("agent.custom_tool_use");
    assert_eq!((&asked["name"], &asked["input"]), (&json!("order_status"), &json!({ "order": "42" })));
    assert_eq!(asked.get("evaluated_permission"), None, "custom tools have no policy");
    assert_eq!(pending(&stream.until("session.status_idle")), [id(&asked)]);
    let brought = server.request(
        "POST",
        &format!("/api/v1/cloud/sessions/{session}/events"),
        &[("content-type", "application/json")],
        json!({ "events": [{
            "type": "user.custom_tool_result",
            "custom_tool_use_id": id(&asked),
            "content": [{ "type": "text", "text": "订单状态:已发货" }]
        }] })
        .to_string()
        .as_bytes(),
    );
    assert_eq!(brought.ok()["data"][0]["content"], json!([{ "type": "text", "text": "订单状态:已发货" }]));
    assert_eq!(stream.until("session.status_idle")["stop_reason"]["type"], "end_turn");
    assert!(!stream.kinds().contains(&"agent.tool_result".to_owned()), "the client's event is the result");
    let requests = server.model.as_ref().unwrap().requests();
    assert!(requests.last().unwrap().json().to_string().contains("订单状态:已发货"), "the model reads it");
}

/// Example 5: `content` as a text, one block or several; events come back with blocks.
#[test]
fn content_is_stored_as_blocks_whatever_its_form() {
    for content in [
        json!("sunny"),
        json!({ "type": "text", "text": "sunny" }),
        json!([{ "type": "text", "text": "sunny" }]),
    ] {
        let server = Server::replying(vec![Reply::tool("weather", json!({})), Reply::text("ok")]);
        let session = server.session(&json!([custom("weather")]));
        let asked = pending(&server.ask(&session, "weather?"));
        let mut stream = server.stream(&session, None);
        let sent = server.send(&session, &json!([super::support::result(&asked[0], content)])).ok();
        assert_eq!(sent["data"][0]["content"], json!([{ "type": "text", "text": "sunny" }]));
        stream.until_end_of_turn();
    }
}

/// The questions at the end: several actions of a turn, each answered by itself; a custom tool takes no policy.
#[test]
fn a_turn_may_have_several_actions_and_custom_tools_take_no_policy() {
    let calls = Reply::ToolCalls(vec![
        ("Write".to_owned(), json!({ "file_path": "a", "content": "1" })),
        ("weather".to_owned(), json!({})),
        ("Write".to_owned(), json!({ "file_path": "b", "content": "2" })),
    ]);
    let server = Server::replying(vec![calls, Reply::text("done")]);
    let policy = json!({ "name": "a", "model": "auto",
        "tools": [{ "type": "custom", "name": "x", "permission_policy": { "type": "always_ask" } }] });
    let (kind_of_error, message_of_error) = server.post("/v1/agents", &policy).error(400);
    assert_eq!(kind_of_error, "invalid_request_error");
    assert!(message_of_error.contains("permission_policy"), "{message_of_error}");
    let tools = json!([super::support::toolset(&[("Write", "always_ask")]), custom("weather")]);
    let session = server.session(&tools);
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("go")])).ok();
    let idle = stream.until("session.status_idle");
    let ids = pending(&idle);
    assert_eq!(ids.len(), 3);
    let shown: Vec<String> =
        stream.seen.iter().filter(|event| kind(event).ends_with("tool_use")).map(id).collect();
    assert_eq!(ids, shown, "in the order of the calls");
    // One by one, in any order.
    server.send(&session, &json!([super::support::confirm(&ids[2], "deny")])).ok();
    assert_eq!(pending(&stream.until("session.status_idle")), ids[..2]);
    server.send(&session, &json!([super::support::result(&ids[1], "rain")])).ok();
    assert_eq!(pending(&stream.until("session.status_idle")), ids[..1]);
    server.send(&session, &json!([super::support::confirm(&ids[0], "allow")])).ok();
    assert_eq!(stream.until("session.status_idle")["stop_reason"]["type"], "end_turn");
    let workspace = server.workspace(&session);
    assert!(workspace.join("a").exists() && !workspace.join("b").exists());
    let denied =
        stream.seen.iter().find(|event| event["tool_use_id"] == ids[2] && kind(event) == "agent.tool_result");
    assert_eq!(denied.unwrap()["is_error"], true);
    assert!(!result_text(denied.unwrap()).is_empty());
}
