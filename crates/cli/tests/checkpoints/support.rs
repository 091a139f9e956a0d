//! A session with checkpoints and a model that does what its prompts say: a prompt is a list of steps, a step is a list of
//! calls, and after the last step the model says `done`. It decides by the request alone, so that a process that was
//! killed is answered like the next one.

use std::path::{Path, PathBuf};
use std::process::Command;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::checkpoints::host::{Host, QODERCLI};

/// What a prompt with steps begins with.
const STEPS: &str = "STEPS ";
/// The session of a test.
pub const SESSION: &str = "5e550000-0000-4000-8000-000000000000";
/// Tools that run unasked.
const TOOLS: &str = "Read,Edit,Write,NotebookEdit,Bash,Agent";
/// Switches checkpoints on, as SDKs do.
pub const ON: (&str, &str) = ("QODER_ENABLE_SDK_FILE_CHECKPOINTING", "true");

/// The uuid of a test's message.
pub fn id(number: u32) -> String {
    format!("c0ffee00-0000-4000-8000-{number:012}")
}

/// A prompt that makes the model call tools, one step after the other.
pub fn steps(steps: &[(&str, Value)]) -> String {
    let steps: Vec<Value> = steps.iter().map(|(name, input)| json!([name, input])).collect();
    format!("{STEPS}{}", Value::Array(steps))
}

fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("")
        }
        _ => String::new(),
    }
}

/// The model.
fn model() -> ScriptedServer {
    ScriptedServer::start(Script::by(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let is_prompt = |message: &Value| message["role"] == "user" && text_of(message).starts_with(STEPS);
        let Some(place) = messages.iter().rposition(is_prompt) else { return Reply::text("done") };
        let steps: Vec<(String, Value)> =
            serde_json::from_str(text_of(&messages[place]).trim_start_matches(STEPS)).unwrap();
        let done = messages[place..].iter().filter(|message| message["role"] == "assistant").count();
        match steps.into_iter().nth(done) {
            Some((name, input)) => Reply::tool(name, input),
            None => Reply::text("done"),
        }
    }))
}

/// A place with a model, and the processes in it.
pub struct Place {
    pub sandbox: Sandbox,
    pub server: ScriptedServer,
}

impl Place {
    pub fn new() -> Self {
        Self { sandbox: Sandbox::new(), server: model() }
    }

    /// A file of the project.
    pub fn path(&self, name: &str) -> PathBuf {
        self.sandbox.project().canonicalize().unwrap().join(name)
    }

    /// The same as text.
    pub fn shown(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        self.sandbox.write(name, text)
    }

    /// The content of a file; `None` when it cannot be read.
    pub fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }

    /// The folder beside the session's log.
    pub fn side(&self) -> PathBuf {
        let logs = self.sandbox.session_files();
        logs.into_iter().find(|log| log.to_string_lossy().contains(SESSION)).unwrap().with_extension("")
    }

    /// The program over its pipes.
    pub fn command(&self, flags: &[&str]) -> Command {
        let mut command = self.sandbox.command_with(QODERCLI, &self.server);
        command.args(["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]);
        command.args(["--allowed-tools", TOOLS]).args(flags);
        command
    }

    /// A new session with checkpoints.
    pub fn start(&self) -> Process {
        self.start_with(&["--session-id", SESSION], &[ON])
    }

    /// The session in another process, with checkpoints.
    pub fn resume(&self) -> Process {
        self.start_with(&["--resume", SESSION], &[ON])
    }

    /// A process with these flags and variables.
    pub fn start_with(&self, flags: &[&str], environment: &[(&str, &str)]) -> Process {
        let mut command = self.command(flags);
        command.envs(environment.iter().copied());
        let mut host = Host::spawn(command);
        host.initialize(json!({}));
        Process { host }
    }

    /// Texts of the messages of the last request.
    pub fn last_request(&self) -> Vec<String> {
        let body = self.server.requests().pop().unwrap().body;
        let request: Value = serde_json::from_slice(&body).unwrap();
        request["messages"].as_array().unwrap().iter().map(text_of).collect()
    }

    /// The records of the session of one kind.
    pub fn records(&self, kind: &str) -> Vec<Value> {
        self.sandbox.transcript_lines().into_iter().filter(|line| line["type"] == kind).collect()
    }
}

/// A running process.
pub struct Process {
    pub host: Host,
}

impl Process {
    /// Sends a message without waiting.
    pub fn send(&mut self, number: u32, prompt: &str) {
        self.host.send(&json!({ "type": "user", "uuid": id(number), "session_id": "default",
            "message": { "role": "user", "content": prompt }, "parent_tool_use_id": null }));
    }

    /// Sends a message and waits until it is worked off; answers with the texts of tool results.
    pub fn turn(&mut self, number: u32, prompt: &str) -> Vec<String> {
        self.send(number, prompt);
        let mut results = Vec::new();
        loop {
            let line = self.host.until(|line| line["type"] == "result" || line["type"] == "user");
            if line["type"] == "result" {
                assert_eq!(line["result"], "done", "{line:#}");
                return results;
            }
            results.push(line["message"]["content"][0]["content"].as_str().unwrap_or_default().to_owned());
        }
    }

    /// Rewinds files to a message.
    pub fn rewind_files(&mut self, number: u32) -> Result<Value, String> {
        self.host.request(&json!({ "subtype": "rewind_files", "user_message_id": id(number) }))
    }

    /// What that would change.
    pub fn preview(&mut self, number: u32) -> Value {
        let request = json!({ "subtype": "rewind_files", "user_message_id": id(number), "dry_run": true });
        self.host.request(&request).unwrap()
    }

    /// Rewinds with a scope.
    pub fn rewind(&mut self, number: u32, scope: &str) -> Result<Value, String> {
        self.host.request(&json!({ "subtype": "rewind", "user_message_id": id(number), "scope": scope }))
    }

    /// Ends it as a host does.
    pub fn end(self) {
        assert_eq!(self.host.end().0, 0);
    }
}

/// A call that reads.
pub fn read(file: &str) -> (&'static str, Value) {
    ("Read", json!({ "file_path": file }))
}

/// A call that edits.
pub fn edit(file: &str, old: &str, new: &str) -> (&'static str, Value) {
    ("Edit", json!({ "file_path": file, "old_string": old, "new_string": new }))
}

/// A call that writes.
pub fn write(file: &str, content: &str) -> (&'static str, Value) {
    ("Write", json!({ "file_path": file, "content": content }))
}

/// A call that runs a command.
pub fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({ "command": command }))
}

/// The permission bits of a file.
pub fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().unwrap().permissions().mode() & 0o7777
}

/// Sets them.
pub fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
