//! Short ways to run the program with servers. The servers are found in the folder that `QODER_TEST_MCP` names, with
//! `node_modules/` and `venv/` in it; `cargo xtask test` installs them there.

use std::process::Command;

use qoder_testkit::{Ran, Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");

/// A project that the user trusts, with more user settings.
pub fn trusted(more: &Value) -> Sandbox {
    let sandbox = Sandbox::new();
    settle(&sandbox, more);
    sandbox
}

/// Writes user settings in which the project is trusted.
pub fn settle(sandbox: &Sandbox, more: &Value) {
    let mut settings =
        json!({ "permissions": { "trustDirectories": [sandbox.project().to_str().unwrap()] } });
    for (group, value) in more.as_object().unwrap() {
        match settings[group].as_object_mut() {
            Some(present) => present.extend(value.as_object().unwrap().clone()),
            None => settings[group] = value.clone(),
        }
    }
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
}

/// Runs `qodercli mcp`.
pub fn mcp(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    Ran::from(sandbox.run(BINARY, &[&["mcp"], arguments].concat()))
}

/// Runs a command to its end.
pub fn run(command: Command) -> Ran {
    Ran::from(Sandbox::finish(command))
}

/// A model that gives these replies.
pub fn model(replies: Vec<Reply>) -> ScriptedServer {
    ScriptedServer::start(Script::by_assistant_count(replies))
}

/// The command of one turn in print mode.
pub fn turn_command(sandbox: &Sandbox, server: &ScriptedServer, arguments: &[&str]) -> Command {
    let mut command = sandbox.command_with(BINARY, server);
    // Servers start slowly on a machine that runs many tests.
    command.env("QODER_MCP_START_WAIT_MS", "60000");
    command.args(["-p", "--output-format", "stream-json"]).args(arguments);
    command
}

/// Runs one turn in print mode.
pub fn turn(sandbox: &Sandbox, server: &ScriptedServer, arguments: &[&str]) -> Ran {
    run(turn_command(sandbox, server, arguments))
}

/// What the model was sent, request by request.
pub fn bodies(server: &ScriptedServer) -> Vec<Value> {
    server.requests().iter().map(qoder_testkit::ReceivedRequest::json).collect()
}

/// The content of the tool results in the last message of a request, and whether each is an error.
pub fn results_in(request: &Value) -> Vec<(Value, bool)> {
    let last = request["messages"].as_array().unwrap().last().unwrap();
    let blocks = last["content"].as_array().unwrap().iter();
    blocks.map(|block| (block["content"].clone(), block["is_error"] == true)).collect()
}

/// The names of the tools that a request offers.
pub fn offered(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().map_or(&[][..], Vec::as_slice);
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn installed(path: &str) -> String {
    let folder = std::env::var("QODER_TEST_MCP").unwrap_or_else(|_| {
        panic!("QODER_TEST_MCP must name a folder with node_modules/ and venv/ of MCP servers; `cargo xtask test` makes it")
    });
    format!("{folder}/{path}")
}

/// The description of the server that shows everything.
pub fn everything() -> Value {
    json!({ "command": "node", "args": [
        installed("node_modules/@modelcontextprotocol/server-everything/dist/index.js"), "stdio"] })
}

/// The description of the server that returns the time: two small tools.
pub fn time() -> Value {
    json!({ "command": installed("venv/bin/mcp-server-time"), "args": ["--local-timezone", "UTC"] })
}
