//! Short ways to run the program with servers. The servers are found in the folder that `QODER_TEST_MCP` names, with
//! `node_modules/` and `venv/` in it; `cargo xtask test` installs them there.

use std::process::{Command, Output};

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");

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

    /// The lines of a stream.
    pub fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The message that opens a turn.
    pub fn init(&self) -> Value {
        let lines = self.lines();
        lines.into_iter().find(|line| line["subtype"] == "init").unwrap_or_else(|| panic!("{self:?}"))
    }

    /// The result of a turn.
    pub fn result(&self) -> Value {
        let lines = self.lines();
        lines.into_iter().find(|line| line["type"] == "result").unwrap_or_else(|| panic!("{self:?}"))
    }
}

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
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
}

/// Runs `qodercli mcp`.
pub fn mcp(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    Ran::of(sandbox.run(BINARY, &[&["mcp"], arguments].concat()))
}

/// Runs a command to its end.
pub fn run(command: Command) -> Ran {
    Ran::of(Sandbox::finish(command))
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

/// The description of the server that tells the time: two small tools.
pub fn time() -> Value {
    json!({ "command": installed("venv/bin/mcp-server-time"), "args": ["--local-timezone", "UTC"] })
}
