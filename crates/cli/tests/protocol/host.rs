//! A program that starts qodercli and speaks its protocol, for tests: lines in both directions, requests with their
//! answers, and a guard against waiting for ever.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

/// No test depends on how long this is.
const HANG_LIMIT: Duration = Duration::from_secs(60);

/// The program under test.
pub const QODERCLI: &str = env!("CARGO_BIN_EXE_qodercli");

/// A running qodercli and both ends of its pipes.
pub struct Host {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    numbers: u64,
}

impl Host {
    /// Starts it with a playbook as the model.
    pub fn start(sandbox: &Sandbox, replies: &Value, flags: &[&str]) -> Self {
        Self::spawn(Self::command(sandbox, replies, flags))
    }

    /// The command of [`Host::start`], to be changed before it runs.
    pub fn command(sandbox: &Sandbox, replies: &Value, flags: &[&str]) -> Command {
        let playbook = sandbox.write("../playbook.json", json!({ "replies": replies }).to_string());
        let mut command = sandbox.command(QODERCLI);
        command.args(["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]);
        command.args(["--model", &format!("scripted:{}", playbook.display())]).args(flags);
        command
    }

    /// Starts a command.
    pub fn spawn(mut command: Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                let line = line.unwrap();
                assert!(line.len() < 1024 * 1024, "a line of {} bytes stops real readers", line.len());
                let value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        Self { input: child.stdin.take(), child, lines, numbers: 0 }
    }

    /// Starts it and shakes hands.
    pub fn connect(sandbox: &Sandbox, replies: &Value, flags: &[&str], declared: Value) -> Self {
        let mut host = Self::start(sandbox, replies, flags);
        host.initialize(declared);
        host
    }

    /// Shakes hands; answers with what the runtime says of itself.
    pub fn initialize(&mut self, mut declared: Value) -> Value {
        declared["subtype"] = json!("initialize");
        self.request(&declared).unwrap()
    }

    /// Sends a line.
    pub fn send(&mut self, line: &Value) {
        let mut text = line.to_string();
        text.push('\n');
        self.send_text(text.as_bytes());
    }

    /// Sends bytes as they are.
    pub fn send_text(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    /// Sends a prompt.
    pub fn prompt(&mut self, text: &str) {
        self.send(&json!({ "type": "user", "message": { "role": "user", "content": text },
            "parent_tool_use_id": null, "session_id": "default" }));
    }

    /// Sends a request without waiting; answers with its id.
    pub fn ask(&mut self, request: &Value) -> String {
        self.numbers += 1;
        let id = format!("req_{}_00000000", self.numbers);
        self.send(&json!({ "type": "control_request", "request_id": id, "request": request }));
        id
    }

    /// Sends a request and waits for its answer; lines between them are passed over.
    pub fn request(&mut self, request: &Value) -> Result<Value, String> {
        let id = self.ask(request);
        self.answer_to(&id)
    }

    /// Waits for the answer to a request.
    pub fn answer_to(&mut self, id: &str) -> Result<Value, String> {
        let line = self.until(|line| line["response"]["request_id"] == id);
        let response = &line["response"];
        match response["subtype"].as_str() {
            Some("success") => Ok(response["response"].clone()),
            _ => Err(response["error"].as_str().unwrap().to_owned()),
        }
    }

    /// Answers a request of the runtime.
    pub fn respond(&mut self, request: &Value, response: &Value) {
        let id = &request["request_id"];
        self.send(&json!({ "type": "control_response",
            "response": { "subtype": "success", "request_id": id, "response": response } }));
    }

    /// Answers a request of the runtime with an error.
    pub fn respond_error(&mut self, request: &Value, error: &str) {
        let id = &request["request_id"];
        self.send(&json!({ "type": "control_response",
            "response": { "subtype": "error", "request_id": id, "error": error } }));
    }

    /// The next line; `None` at the end.
    pub fn next(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(HANG_LIMIT) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing was said for {HANG_LIMIT:?}"),
        }
    }

    /// The next line of which `wanted` is true.
    pub fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut passed = Vec::new();
        while let Some(line) = self.next() {
            if wanted(&line) {
                return line;
            }
            passed.push(line);
        }
        panic!("the output ended; what came: {passed:#?}");
    }

    /// The next request of this kind.
    pub fn asked(&mut self, subtype: &str) -> Value {
        self.until(|line| line["type"] == "control_request" && line["request"]["subtype"] == subtype)
    }

    /// The next result.
    pub fn result(&mut self) -> Value {
        self.until(|line| line["type"] == "result")
    }

    /// The next tool result, as text.
    pub fn tool_result(&mut self) -> String {
        let line = self.until(|line| line["type"] == "user");
        line["message"]["content"][0]["content"].as_str().unwrap_or_default().to_owned()
    }

    /// Closes its stdin.
    pub fn close(&mut self) {
        self.input = None;
    }

    /// Closes its stdin and waits for its end; answers with the exit code and what was still said.
    pub fn end(mut self) -> (i32, Vec<Value>) {
        self.close();
        let mut rest = Vec::new();
        while let Some(line) = self.next() {
            rest.push(line);
        }
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code().unwrap_or(-1), rest);
            }
            assert!(start.elapsed() < HANG_LIMIT, "it did not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Host {
    /// Killed before its input closes, so that it cannot finish anything on the way.
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Settings under which nothing that a test sends fills the context.
pub const ROOMY: &str = r#"{"model":{"contextWindows":{"scripted":100000000}}}"#;

/// A reply that calls a tool.
pub fn call(turn: u64, name: &str, input: &Value) -> Value {
    json!({ "when": { "turn": turn }, "toolCalls": [{ "name": name, "input": input, "id": format!("toolu_{turn}") }] })
}

/// A reply of text.
pub fn say(text: &str) -> Value {
    json!({ "text": text, "repeat": true })
}

/// What a host declares, together with its name.
pub fn named(mut declared: Value) -> Value {
    declared["sdk"] = json!({ "name": "test", "version": "0.0.0" });
    declared
}
