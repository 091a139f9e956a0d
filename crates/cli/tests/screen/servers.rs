//! MCP servers: how they are described, and what they say of themselves.

use serde_json::json;

use crate::screen::support::{ascii, assert_escaped, assert_tame, hostile, shown, trusted};

/// A server with the standard library alone; its words are the text in its first argument.
const SERVER: &str = r#"
import json, sys
words = json.loads(open(sys.argv[1]).read())
print(words, file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    result = {}
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": words, "version": words}}
    elif method == "tools/list":
        result = {"tools": [{"name": "one", "description": words, "inputSchema": {"type": "object"}}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

#[test]
fn descriptions_of_servers_and_their_own_words_are_escaped() {
    let hostile = hostile();
    let sandbox = trusted(&json!({}));
    let program = sandbox.write("server.py", SERVER);
    let words = sandbox.write("words.json", ascii(&hostile));
    let servers = json!({ "mcpServers": {
        "speaks": { "command": "python3", "args": [program, words, hostile] },
        "fails": { "command": "python3", "args": ["-c", format!("import sys; sys.exit('{}')", hostile.replace('\r', ""))] },
        "remote": { "type": "http", "url": format!("http://127.0.0.1:1/{hostile}"), "headers": { "A": hostile } },
    } });
    sandbox.write(".mcp.json", servers.to_string());
    for arguments in [
        &["mcp", "approve"][..],
        &["mcp", "list"],
        &["mcp", "get", "speaks"],
        &["mcp", "get", "remote"],
        &["mcp", "approve", "--all"],
        &["mcp", "list"],
        &["mcp", "status"],
    ] {
        assert_escaped(&shown(&sandbox, arguments), &format!("{arguments:?}"));
    }
    for arguments in
        [&["mcp", "status", "fails"][..], &["mcp", "auth", "remote"], &["mcp", "logout", "remote"]]
    {
        assert_tame(&shown(&sandbox, arguments), &format!("{arguments:?}"));
    }
}
