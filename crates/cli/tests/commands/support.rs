//! Short ways to define skills and commands, to run turns with a scripted model, and to speak the protocol.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use qoder_testkit::{ReceivedRequest, Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

pub const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");

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
        let code = output.status.code().unwrap_or(-1);
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    pub fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn system(&self, subtype: &str) -> Value {
        self.lines().into_iter().find(|line| line["subtype"] == subtype).unwrap_or_else(|| panic!("{self:?}"))
    }

    pub fn result(&self) -> Value {
        let results: Vec<Value> = self.lines().into_iter().filter(|line| line["type"] == "result").collect();
        assert_eq!(results.len(), 1, "{self:?}");
        results[0].clone()
    }

    /// What went wrong, of a run that asked no model.
    pub fn error(&self) -> String {
        let result = self.result();
        assert_eq!((self.code, &result["is_error"]), (1, &json!(true)), "{self:?}");
        result["errors"][0].as_str().unwrap().to_owned()
    }
}

/// A project that the user trusts.
pub fn trusted() -> Sandbox {
    let sandbox = Sandbox::new();
    let settings = json!({ "permissions": { "trustDirectories": [sandbox.project().to_str().unwrap()] } });
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    sandbox
}

/// A command of the project.
pub fn command(sandbox: &Sandbox, name: &str, text: &str) {
    sandbox.write(format!(".qoder/commands/{name}.md"), text);
}

/// The text of a skill's file.
pub fn skill_text(name: &str, more: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Knows {name}.\n{more}---\n{body}\n")
}

/// A skill of the project.
pub fn skill(sandbox: &Sandbox, name: &str, more: &str, body: &str) {
    sandbox.write(format!(".qoder/skills/{name}/SKILL.md"), skill_text(name, more, body));
}

/// A skill of the person.
pub fn own_skill(sandbox: &Sandbox, name: &str, more: &str, body: &str) {
    let file = sandbox.config().join("skills").join(name).join("SKILL.md");
    sandbox.write(file, skill_text(name, more, body));
}

/// A model that gives these replies, one after another.
pub fn model(replies: Vec<Reply>) -> ScriptedServer {
    ScriptedServer::start(Script::by_assistant_count(replies))
}

/// A reply that calls a tool.
pub fn call(id: &str, name: &str, input: Value) -> Reply {
    Reply::Blocks {
        thinking: None,
        text: None,
        tools: vec![(id.to_owned(), name.to_owned(), input)],
        stop_reason: None,
        usage: None,
    }
}

/// Runs one turn in print mode.
pub fn turn(sandbox: &Sandbox, server: &ScriptedServer, arguments: &[&str]) -> Ran {
    let mut command = sandbox.command_with(BINARY, server);
    command.args(["-p", "--output-format", "stream-json"]).args(arguments);
    Ran::of(Sandbox::finish(command))
}

/// Runs a subcommand.
pub fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    Ran::of(sandbox.run(BINARY, arguments))
}

/// What the model was sent, request by request.
pub fn bodies(server: &ScriptedServer) -> Vec<Value> {
    server.requests().iter().map(ReceivedRequest::json).collect()
}

/// The text of the last user message of a request.
pub fn asked(request: &Value) -> String {
    let last = &request["messages"].as_array().unwrap().last().unwrap()["content"];
    match last {
        Value::String(text) => text.clone(),
        blocks => {
            let blocks = blocks.as_array().unwrap().iter();
            blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
    }
}

/// Text of the tool result in the last message of a request, and whether it is an error.
pub fn answered(request: &Value) -> (String, bool) {
    let block = &request["messages"].as_array().unwrap().last().unwrap()["content"][0];
    let text = match &block["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    (text, block["is_error"] == true)
}

/// The tool of this name that a request offers.
pub fn offered(request: &Value, name: &str) -> Option<Value> {
    request["tools"].as_array().into_iter().flatten().find(|tool| tool["name"] == name).cloned()
}

/// The records of one type in the log.
pub fn records(sandbox: &Sandbox, kind: &str) -> Vec<Value> {
    sandbox.transcript_lines().into_iter().filter(|line| line["type"] == kind).collect()
}

/// A program that speaks the protocol.
pub struct Talk {
    child: Child,
    input: ChildStdin,
    lines: Receiver<Value>,
    numbers: u64,
}

impl Talk {
    /// Starts qodercli.
    pub fn start(sandbox: &Sandbox, server: &ScriptedServer, flags: &[&str]) -> Self {
        let mut command: Command = sandbox.command_with(BINARY, server);
        command.args(["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]);
        command.args(flags).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { input: child.stdin.take().unwrap(), child, lines, numbers: 0 }
    }

    /// Sends a line.
    pub fn send(&mut self, line: &Value) {
        writeln!(self.input, "{line}").unwrap();
        self.input.flush().unwrap();
    }

    /// Waits for a line; the minute is a guard against waiting for ever.
    pub fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(60)).unwrap();
            if wanted(&line) {
                return line;
            }
        }
    }

    /// Sends a request and answers with its response.
    pub fn request(&mut self, request: &Value) -> Value {
        self.numbers += 1;
        let id = format!("req_{}", self.numbers);
        self.send(&json!({ "type": "control_request", "request_id": id, "request": request }));
        self.until(|line| line["response"]["request_id"] == json!(id))["response"].clone()
    }

    /// Answers a request of the runtime.
    pub fn respond(&mut self, request: &Value, response: &Value) {
        let id = &request["request_id"];
        self.send(&json!({ "type": "control_response",
            "response": { "subtype": "success", "request_id": id, "response": response } }));
    }

    /// Sends a prompt.
    pub fn prompt(&mut self, text: &str) {
        self.send(&json!({ "type": "user", "message": { "role": "user", "content": text },
            "parent_tool_use_id": null, "session_id": "default" }));
    }

    /// The next request of the runtime of this kind.
    pub fn asked(&mut self, subtype: &str) -> Value {
        self.until(|line| line["type"] == "control_request" && line["request"]["subtype"] == subtype)
    }

    /// The next result.
    pub fn result(&mut self) -> Value {
        self.until(|line| line["type"] == "result")
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
