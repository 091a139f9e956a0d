//! Writing plugins, and short ways to run the program with them.

use std::path::{Path, PathBuf};
use std::process::Output;

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::host::QODERCLI;

/// An MCP server with the standard library alone: one tool that tells where the plugin lies.
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
        result = {"tools": [{"name": "where", "description": "Tells where.", "inputSchema": {"type": "object"}}]}
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

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// The output of a run that went well.
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}\n{}", self.stdout, self.stderr);
        self.stdout
    }

    /// The output of a run that went well, as JSON.
    pub fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// The message that opens a turn.
    pub fn init(&self) -> Value {
        let mut lines = self.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.find(|line| line["subtype"] == "init").unwrap_or_else(|| panic!("{self:?}"))
    }
}

/// Runs `qodercli plugins`.
pub fn plugins(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    Ran::of(sandbox.run(QODERCLI, &[&["plugins"], arguments].concat()))
}

/// Runs one turn in print mode with a model that says `done`.
pub fn turn(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let playbook = sandbox
        .write("../playbook.json", json!({ "replies": [{ "text": "done", "repeat": true }] }).to_string());
    let model = format!("scripted:{}", playbook.display());
    let fixed = ["-p", "hello", "--output-format", "stream-json", "--model", &model];
    Ran::of(sandbox.run(QODERCLI, &[&fixed, arguments].concat()))
}

/// The names of the plugins that a message names.
pub fn names(rows: &Value) -> Vec<&str> {
    rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect()
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
