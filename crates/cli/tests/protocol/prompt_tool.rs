//! A tool of an MCP server may stand for the person: questions go to it, and only its clear yes is one.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::{Host, call, say};

const CONFIG: &str = r#"{"mcpServers":{"guard":{"type":"sdk","name":"guard"}}}"#;
const FLAGS: [&str; 4] = ["--mcp-config", CONFIG, "--permission-prompt-tool", "mcp__guard__ask"];

fn run(answer: &Value) -> (Sandbox, Value) {
    let sandbox = Sandbox::new();
    let file = sandbox.project().join("a.txt");
    let replies = json!([call(1, "Write", &json!({ "file_path": file, "content": "x" })), say("done")]);
    let mut host = Host::connect(&sandbox, &replies, &FLAGS, json!({}));
    host.prompt("write");
    loop {
        let line = host.until(|line| line["type"] == "control_request" || line["type"] == "result");
        if line["type"] == "result" {
            return (sandbox, line);
        }
        let message = &line["request"]["message"];
        let result = match message["method"].as_str().unwrap() {
            "tools/list" => json!({ "tools": [{ "name": "ask", "inputSchema": { "type": "object" } }] }),
            "tools/call" => {
                assert_eq!(message["params"]["arguments"]["tool_name"], "Write");
                assert_eq!(message["params"]["arguments"]["input"]["content"], "x");
                answer.clone()
            }
            _ => json!({}),
        };
        host.respond(
            &line,
            &json!({ "mcp_response": { "jsonrpc": "2.0", "id": message["id"], "result": result } }),
        );
    }
}

fn text(answer: &Value) -> Value {
    json!({ "content": [{ "type": "text", "text": answer.to_string() }] })
}

#[test]
fn its_yes_lets_the_call_run() {
    let (sandbox, result) = run(&text(&json!({ "behavior": "allow" })));
    assert_eq!(result["result"], "done");
    assert!(sandbox.project().join("a.txt").exists());
}

#[test]
fn everything_else_is_a_no() {
    for answer in [
        text(&json!({ "behavior": "deny", "message": "not now" })),
        json!({ "content": [{ "type": "text", "text": "sure, go ahead" }] }),
        json!({ "content": [], "isError": true }),
        json!({ "content": [{ "type": "text", "text": "{\"behavior\":\"allow\"}" }], "isError": true }),
    ] {
        let (sandbox, result) = run(&answer);
        assert_eq!(result["permission_denials"][0]["tool_name"], "Write", "{answer}");
        assert!(!sandbox.project().join("a.txt").exists(), "{answer}");
    }
}
