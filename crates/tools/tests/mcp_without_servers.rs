//! The MCP tools while no server can be connected: both spellings of the server, and advice instead of a riddle.

use crate::common::Bench;
use serde_json::json;

#[tokio::test]
async fn each_of_them_says_how_a_server_is_configured() {
    let bench = Bench::new();
    for (tool, input) in [
        ("ListMcpResources", json!({})),
        ("ListMcpResources", json!({ "server": "files" })),
        ("ReadMcpResource", json!({ "server_name": "files", "uri": "file:///x" })),
        ("Mcp", json!({ "server": "files", "tool_name": "list", "arguments": { "a": [1] } })),
    ] {
        let text = bench.fail(tool, input.clone()).await;
        assert!(
            text.contains("no MCP server is configured") && text.contains("mcpServers"),
            "{tool}: {text}"
        );
        if input != json!({}) {
            assert!(text.contains("\"files\""), "{tool}: {text}");
        }
    }
    assert!(bench.fail("Mcp", json!({ "server": "x", "tool_name": "" })).await.contains("tool_name"));
    assert!(bench.fail("ReadMcpResource", json!({ "server": "x", "uri": " " })).await.contains("uri"));
}
