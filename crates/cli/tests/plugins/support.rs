//! Writing plugins, and short ways to run the program with them.

use std::path::{Path, PathBuf};

use qoder_testkit::{Ran, Sandbox};
use serde_json::{Value, json};

use crate::plugins::host::QODERCLI;

/// An MCP server with the standard library alone: one tool that returns where the plugin lies.
const SERVER: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    result = {}
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "where", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "where", "description": "Returns where.", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        words = " ".join([sys.argv[1], os.environ["QODER_PLUGIN_DATA"]])
        result = {"content": [{"type": "text", "text": words}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// Writes files of a plugin; answers with its folder.
pub fn plugin(sandbox: &Sandbox, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = sandbox.home().join("sources").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    for (path, text) in files {
        sandbox.write(folder.join(path), text);
    }
    folder
}

/// The description of the server above, and its program.
pub fn server_files() -> [(&'static str, String); 2] {
    let description = json!({ "mcpServers": { "where": {
        "command": "python3", "args": ["${QODER_PLUGIN_ROOT}/bin/server.py", "${QODER_PLUGIN_ROOT}"] } } });
    [(".mcp.json", description.to_string()), ("bin/server.py", SERVER.to_owned())]
}

/// Runs `qodercli plugins`.
pub fn plugins(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    Ran::from(sandbox.run(QODERCLI, &[&["plugins"], arguments].concat()))
}

/// Runs one turn in print mode with a model that says `done`.
pub fn turn(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let playbook = sandbox
        .write("../playbook.json", json!({ "replies": [{ "text": "done", "repeat": true }] }).to_string());
    let model = format!("scripted:{}", playbook.display());
    let fixed = ["-p", "hello", "--output-format", "stream-json", "--model", &model];
    Ran::from(sandbox.run(QODERCLI, &[&fixed, arguments].concat()))
}

/// The names of the plugins that a message names.
pub fn names(rows: &Value) -> Vec<&str> {
    rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect()
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
