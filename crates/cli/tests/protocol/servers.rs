//! Servers that live in the host: their tools are offered, judged and called like any other.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::{Host, ROOMY, call, say};

const CONFIG: &str = r#"{"mcpServers":{"calc":{"type":"sdk","name":"calc"}}}"#;

/// Answers what a server is asked until the turn's result; `tool` answers calls.
fn serve(host: &mut Host, tool: impl Fn(&Value) -> Value) -> Value {
    loop {
        let line = host.until(|line| line["type"] == "control_request" || line["type"] == "result");
        if line["type"] == "result" {
            return line;
        }
        assert_eq!(line["request"]["server_name"], "calc");
        let message = &line["request"]["message"];
        let answer = match message["method"].as_str().unwrap() {
            "initialize" => {
                json!({ "protocolVersion": message["params"]["protocolVersion"], "capabilities": {},
                "serverInfo": { "name": "calculator", "version": "1.0.0" } })
            }
            "tools/list" => json!({ "tools": [{ "name": "add", "description": "adds",
                "inputSchema": { "type": "object", "properties": { "a": { "type": "number" } }, "required": ["a"] },
                "annotations": { "readOnlyHint": true } }] }),
            "tools/call" => tool(&message["params"]),
            _ => json!({}),
        };
        let response = json!({ "mcp_response": { "jsonrpc": "2.0", "id": message["id"], "result": answer } });
        host.respond(&line, &response);
    }
}

fn flags() -> Vec<&'static str> {
    vec!["--mcp-config", CONFIG, "--allowedTools", "mcp__calc__add", "--settings", ROOMY]
}

#[test]
fn a_tool_of_the_host_is_called() {
    let sandbox = Sandbox::new();
    let replies = json!([call(1, "mcp__calc__add", &json!({ "a": 2 })), say("done")]);
    let mut host = Host::connect(&sandbox, &replies, &flags(), json!({}));
    host.prompt("add");
    let result = serve(&mut host, |params| {
        assert_eq!(params, &json!({ "name": "add", "arguments": { "a": 2 } }));
        json!({ "content": [{ "type": "text", "text": "4" }], "isError": false })
    });
    assert_eq!(result["result"], "done");
    let rows = host.request(&json!({ "subtype": "mcp_status" })).unwrap();
    assert_eq!(
        rows["mcpServers"],
        json!([{
            "name": "calc", "status": "connected", "config": { "type": "sdk", "name": "calc" }, "scope": "sdk",
            "serverInfo": { "name": "calculator", "version": "1.0.0" },
            "tools": [{ "name": "add", "description": "adds", "annotations": { "readOnly": true } }],
        }])
    );
}

#[test]
fn a_tool_that_fails_is_a_tool_error() {
    let sandbox = Sandbox::new();
    let replies = json!([
        call(1, "mcp__calc__add", &json!({ "a": 2 })),
        { "when": { "lastToolResultContains": "out of numbers" }, "text": "understood" },
    ]);
    let mut host = Host::connect(&sandbox, &replies, &flags(), json!({}));
    host.prompt("add");
    let failed = json!({ "content": [{ "type": "text", "text": "out of numbers" }], "isError": true });
    assert_eq!(serve(&mut host, |_| failed.clone())["result"], "understood");
}

#[test]
fn arguments_that_do_not_fit_the_schema_never_reach_the_host() {
    let sandbox = Sandbox::new();
    let replies = json!([
        call(1, "mcp__calc__add", &json!({ "a": "two" })),
        { "when": { "lastToolResultContains": "do not fit its schema" }, "text": "understood" },
    ]);
    let mut host = Host::connect(&sandbox, &replies, &flags(), json!({}));
    host.prompt("add");
    let result = serve(&mut host, |_| panic!("the tool was called"));
    assert_eq!(result["result"], "understood");
}

#[test]
fn a_rule_denies_a_tool_of_the_host() {
    let sandbox = Sandbox::new();
    let replies = json!([call(1, "mcp__calc__add", &json!({ "a": 2 })), say("done")]);
    let flags =
        ["--mcp-config", CONFIG, "--allowedTools", "mcp__calc__add", "--disallowedTools", "mcp__calc"];
    let mut host = Host::connect(&sandbox, &replies, &flags, json!({}));
    host.prompt("add");
    serve(&mut host, |_| panic!("the tool was called"));
}

#[test]
fn a_server_that_answers_nonsense_is_failed_and_the_session_goes_on() {
    let sandbox = Sandbox::new();
    let mut host = Host::connect(&sandbox, &json!([say("done")]), &flags(), json!({}));
    host.prompt("hello");
    let asked = host.asked("mcp_message");
    host.respond(&asked, &json!({ "unexpected": 1 }));
    assert_eq!(host.result()["result"], "done");
    let rows = host.request(&json!({ "subtype": "mcp_status" })).unwrap();
    assert_eq!(rows["mcpServers"][0]["status"], "failed");
    assert!(rows["mcpServers"][0]["error"].as_str().unwrap().contains("mcp_response"));
    let problem = host.request(&json!({ "subtype": "mcp_reconnect", "serverName": "other" })).unwrap_err();
    assert_eq!(problem, "there is no MCP server named `other`; known are: calc");
}

#[test]
fn arguments_that_no_line_can_carry_are_a_tool_error() {
    let sandbox = Sandbox::new();
    let replies = json!([
        call(1, "mcp__calc__add", &json!({ "a": 2, "text": "x".repeat(1_100_000) })),
        { "when": { "lastToolResultContains": "1 MiB" }, "text": "understood" },
    ]);
    let mut host = Host::connect(&sandbox, &replies, &flags(), json!({}));
    host.prompt("add");
    assert_eq!(serve(&mut host, |_| panic!("the tool was called"))["result"], "understood");
}
