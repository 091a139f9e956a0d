//! Resources of a real server in a turn: they are listed with their templates, text is read as text, and what is no text
//! is kept in a file. A server that is not there is a clear error.

use qoder_testkit::Reply;
use serde_json::{Value, json};

use crate::mcp::support::{bodies, everything, mcp, model, results_in, trusted, turn};

/// The results of these calls, one model reply each. Reading is allowed unless the settings say otherwise.
fn results(calls: &[(&str, Value)], settings: &Value) -> Vec<(Value, bool)> {
    let sandbox = trusted(settings);
    let mut replies: Vec<Reply> =
        calls.iter().map(|(tool, input)| Reply::tool(*tool, input.clone())).collect();
    replies.push(Reply::text("done"));
    let server = model(replies);
    let ran = turn(&sandbox, &server, &["go", "--allowed-tools", "ReadMcpResource"]);
    assert_eq!(ran.result()["result"], "done", "{}", ran.stderr);
    bodies(&server)[1..].iter().map(|body| results_in(body)[0].clone()).collect()
}

#[test]
fn resources_are_listed_and_read() {
    let settings = json!({ "mcpServers": { "all": everything() } });
    let told = results(
        &[
            ("ListMcpResources", json!({})),
            ("ReadMcpResource", json!({ "server_name": "all", "uri": "demo://resource/dynamic/text/1" })),
            ("ReadMcpResource", json!({ "server": "all", "uri": "demo://resource/dynamic/blob/1" })),
            ("ReadMcpResource", json!({ "server": "all", "uri": "demo://resource/none" })),
        ],
        &settings,
    );
    let list = told[0].0.to_string();
    assert!(list.contains("demo://resource/static/document/features.md"), "{list}");
    assert!(
        list.contains("uriTemplate") && list.contains("demo://resource/dynamic/text/{resourceId}"),
        "{list}"
    );
    assert!(told[1].0.to_string().contains("Resource 1: This is a plaintext resource"), "{}", told[1].0);
    let blob = told[2].0.to_string();
    assert!(!told[2].1 && blob.contains("bytes, text/plain, kept in "), "{blob}");
    let path = blob.split("kept in ").nth(1).unwrap().split(']').next().unwrap().to_owned();
    assert!(path.contains("outputs"), "{path}");
    assert!(told[3].1 && told[3].0.to_string().contains("cannot be read"), "{}", told[3].0);
}

#[test]
fn a_rule_against_the_server_keeps_its_resources_away_too() {
    let settings = json!({ "mcpServers": { "all": everything() }, "permissions": { "deny": ["mcp__all"] } });
    let read = json!({ "server_name": "all", "uri": "demo://resource/dynamic/text/1" });
    let list = json!({ "server_name": "all" });
    let calls = [("ReadMcpResource", read), ("ListMcpResources", list), ("ListMcpResources", json!({}))];
    let told = results(&calls, &settings);
    assert!(told[0].1 && told[0].0.to_string().contains("denied by the rule `mcp__all`"), "{}", told[0].0);
    assert!(told[1].1 && told[1].0.to_string().contains("denied by the rule `mcp__all`"), "{}", told[1].0);
    assert!(told[2].0.to_string().contains("No connected MCP server offers resources"), "{}", told[2].0);
}

#[test]
fn a_server_that_is_not_there_is_a_clear_error() {
    let settings = json!({ "mcpServers": { "gone": { "command": "no-such-program-at-all" } } });
    let read = |server: &str| ("ReadMcpResource", json!({ "server_name": server, "uri": "x://y" }));
    let told = results(&[read("gone"), read("other"), ("ListMcpResources", json!({}))], &settings);
    assert!(told[0].1 && told[0].0.to_string().contains("its status is failed"), "{}", told[0].0);
    assert!(told[1].1 && told[1].0.to_string().contains("known are: gone"), "{}", told[1].0);
    assert!(told[2].0.to_string().contains("No connected MCP server offers resources"), "{}", told[2].0);
}

#[test]
fn without_any_server_the_tools_say_how_one_is_configured() {
    let told = results(&[("ListMcpResources", json!({}))], &json!({}));
    assert!(told[0].1 && told[0].0.to_string().contains("no MCP server is configured"), "{}", told[0].0);
    let sandbox = trusted(&json!({}));
    assert!(mcp(&sandbox, &["status"]).ok().contains("no MCP servers"));
}
