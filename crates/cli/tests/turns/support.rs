//! Runs the program and reads what it said. A run has an empty input unless a test gives one, and is killed when it
//! does not end in a minute; no test depends on how long anything takes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use qoder_testkit::{Reply, Sandbox, ScriptedServer};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");
const HANG_LIMIT: Duration = Duration::from_secs(60);
/// The model that the scripted server plays.
pub const MODEL: &str = "scripted-large";

/// A wire protocol, chosen through the environment as a person would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    Messages,
    Chat,
    Responses,
}

impl Wire {
    pub const ALL: [Self; 3] = [Self::Messages, Self::Chat, Self::Responses];
}

/// The program with the server as its model.
pub fn command(sandbox: &Sandbox, server: &ScriptedServer, wire: Wire) -> Command {
    command_at(sandbox, &server.base_url(), wire)
}

/// The program with its model at an address.
pub fn command_at(sandbox: &Sandbox, address: &str, wire: Wire) -> Command {
    let mut command = sandbox.command(BINARY);
    command.env("QODER_RETRY_BASE_MS", "1");
    match wire {
        Wire::Messages => {
            command.env("ANTHROPIC_BASE_URL", address).env("ANTHROPIC_API_KEY", "key-of-the-test");
            command.env("ANTHROPIC_MODEL", MODEL);
        }
        Wire::Chat | Wire::Responses => {
            command.env("OPENAI_BASE_URL", address).env("OPENAI_API_KEY", "key-of-the-test");
            command.env("OPENAI_MODEL", MODEL);
        }
    }
    if wire == Wire::Responses {
        command.env("QODER_OPENAI_API", "responses");
    }
    command
}

/// What a run left behind.
#[derive(Debug)]
pub struct Finished {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Every line of the output, which must be JSON.
    pub fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}; {}", self.stderr))
        };
        self.stdout.lines().map(parse).collect()
    }

    /// The messages of one type.
    pub fn of(&self, kind: &str) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["type"] == kind).collect()
    }

    /// The system messages of one subtype.
    pub fn system(&self, subtype: &str) -> Vec<Value> {
        self.of("system").into_iter().filter(|line| line["subtype"] == subtype).collect()
    }

    /// The one result.
    pub fn result(&self) -> Value {
        let results = self.of("result");
        assert_eq!(results.len(), 1, "{}\n{}", self.stdout, self.stderr);
        results.into_iter().next().unwrap()
    }

    /// The one result of a run that went well.
    pub fn success(&self) -> Value {
        let result = self.result();
        assert_eq!(result["subtype"], "success", "{result:#}");
        assert_eq!(result["is_error"], false, "{result:#}");
        assert_eq!(self.code, 0, "{}", self.stderr);
        result
    }

    /// Type and subtype of every line, such as `system/init`.
    pub fn shape(&self) -> Vec<String> {
        let name = |line: &Value| match (&line["type"], &line["subtype"]) {
            (Value::String(kind), Value::String(subtype)) if kind == "system" => format!("{kind}/{subtype}"),
            (kind, _) => kind.as_str().unwrap_or("?").to_owned(),
        };
        self.lines().iter().map(name).collect()
    }
}

/// Runs a command to its end with empty input.
pub fn run(command: Command) -> Finished {
    Live::start(command).finish()
}

/// Runs a command to its end with this input.
pub fn feed(command: Command, input: &str) -> Finished {
    Live::start_with(command, input).finish()
}

/// Runs `-p` with stream-json over Anthropic Messages.
pub fn stream(sandbox: &Sandbox, server: &ScriptedServer, arguments: &[&str]) -> Finished {
    let mut command = command(sandbox, server, Wire::Messages);
    command.args(["-p", "--output-format", "stream-json"]).args(arguments);
    run(command)
}

/// A program that is running.
pub struct Live {
    child: Child,
    lines: Receiver<String>,
    stdout: String,
    stderr: Option<JoinHandle<String>>,
}

impl Live {
    /// Starts a command with empty input.
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null());
        Self::start_as_set(command)
    }

    /// Starts a command with this input and then its end.
    pub fn start_with(mut command: Command, input: &str) -> Self {
        command.stdin(Stdio::piped());
        let mut live = Self::start_as_set(command);
        let mut stdin = live.take_stdin();
        let input = input.to_owned();
        // On a thread of its own, because a program that stops reading must not stop the test.
        std::thread::spawn(move || stdin.write_all(input.as_bytes()).ok());
        live
    }

    /// Starts a command whose input is set already.
    pub fn start_as_set(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let mut line = String::new();
            while stdout.read_line(&mut line).is_ok_and(|length| length > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).ok();
            text
        });
        Self { child, lines, stdout: String::new(), stderr: Some(reader) }
    }

    /// The input of a command that was started with a pipe.
    pub fn take_stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Waits for a line of the output.
    pub fn until(&mut self, found: impl Fn(&Value) -> bool) {
        loop {
            match self.lines.recv_timeout(HANG_LIMIT) {
                Ok(line) => {
                    self.stdout.push_str(&line);
                    if found(&serde_json::from_str(&line).unwrap()) {
                        return;
                    }
                }
                Err(error) => panic!("{error}; the output so far is {}", self.stdout),
            }
        }
    }

    /// Sends SIGINT.
    pub fn interrupt(&self) {
        self.signal(rustix::process::Signal::INT);
    }

    /// Sends a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, signal).unwrap();
    }

    /// Waits for the end.
    pub fn finish(mut self) -> Finished {
        loop {
            match self.lines.recv_timeout(HANG_LIMIT) {
                Ok(line) => self.stdout.push_str(&line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end; {}", self.stdout),
            }
        }
        wait_until("the program ends", || self.child.try_wait().unwrap().is_some());
        let status = self.child.wait().unwrap();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        Finished { code: status.code().unwrap_or(-1), stdout: std::mem::take(&mut self.stdout), stderr }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // After a good end there is nothing to kill; after a panic there may be.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Waits for a condition of the world outside.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < HANG_LIMIT, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A reply of text alone, with a stop reason.
pub fn stopped(text: &str, stop_reason: &str) -> Reply {
    Reply::Blocks {
        thinking: None,
        text: Some(text.to_owned()),
        tools: Vec::new(),
        stop_reason: Some(stop_reason.to_owned()),
        usage: None,
    }
}

/// A reply of calls alone, as id, name and arguments.
pub fn calls(calls: &[(&str, &str, Value)]) -> Reply {
    let tools =
        calls.iter().map(|(id, name, input)| ((*id).to_owned(), (*name).to_owned(), input.clone())).collect();
    Reply::Blocks { thinking: None, text: None, tools, stop_reason: None, usage: None }
}

/// A reply of text with token counts.
pub fn counted(text: &str, usage: Value) -> Reply {
    Reply::Blocks {
        thinking: None,
        text: Some(text.to_owned()),
        tools: Vec::new(),
        stop_reason: None,
        usage: Some(usage),
    }
}

/// An answer that is an error, in the words of Anthropic Messages.
pub fn fault(status: u16, kind: &str, message: &str) -> Reply {
    let body = serde_json::json!({ "type": "error", "error": { "type": kind, "message": message } });
    Reply::HttpError { status, headers: Vec::new(), body: body.to_string() }
}

/// The bodies of all requests for replies.
pub fn bodies(server: &ScriptedServer) -> Vec<Value> {
    server.requests().iter().map(qoder_testkit::ReceivedRequest::json).collect()
}

/// The tool results of a request's last message (Anthropic Messages): id, text, and whether it is an error.
pub fn results_in(request: &Value) -> Vec<(String, String, bool)> {
    let last = request["messages"].as_array().unwrap().last().unwrap();
    let blocks = last["content"].as_array().unwrap();
    let result = |block: &Value| {
        assert_eq!(block["type"], "tool_result", "{block}");
        let text = match &block["content"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        (block["tool_use_id"].as_str().unwrap().to_owned(), text, block["is_error"] == true)
    };
    blocks.iter().map(result).collect()
}

/// The records of one type in the transcript.
pub fn records(sandbox: &Sandbox, kind: &str) -> Vec<Value> {
    sandbox.transcript_lines().into_iter().filter(|line| line["type"] == kind).collect()
}

/// The names of an object's fields, sorted.
pub fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// No call is without a result, and no call ran without an allowing decision before it.
pub fn assert_calls_in_order(sandbox: &Sandbox) {
    let lines = sandbox.transcript_lines();
    let mut open: Vec<String> = Vec::new();
    let mut allowed: Vec<String> = Vec::new();
    for line in &lines {
        let content = line["message"]["content"].as_array().map_or(&[][..], Vec::as_slice);
        for block in content {
            match block["type"].as_str() {
                Some("tool_use") => open.push(block["id"].as_str().unwrap().to_owned()),
                Some("tool_result") => {
                    let id = block["tool_use_id"].as_str().unwrap();
                    let place = open.iter().position(|open| open == id);
                    open.remove(place.unwrap_or_else(|| panic!("{id} has no call or two results")));
                }
                _ => {}
            }
        }
        match line["type"].as_str() {
            Some("decision") if line["decision"]["behavior"] == "allow" => {
                allowed.push(line["toolUseId"].as_str().unwrap().to_owned());
            }
            Some("tool-start") => {
                let id = line["toolUseId"].as_str().unwrap();
                assert!(allowed.iter().any(|allowed| allowed == id), "{id} ran without being allowed");
            }
            _ => {}
        }
    }
    assert_eq!(open, Vec::<String>::new(), "calls without a result");
}
