//! Runs print mode with a playbook as the model and hooks in settings files, and reads what they got. Hooks note
//! their input in a file beside the project; no test depends on how long anything takes.

use std::path::PathBuf;
use std::process::{Command, Output};

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

/// The program under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");
/// A command that notes its input.
pub const NOTE: &str = "input=$(cat); printf '%s\\n' \"$input\" >> ../seen";

/// A project with hooks in the user's settings.
pub struct Stage {
    pub sandbox: Sandbox,
}

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    pub lines: Vec<Value>,
    pub stderr: String,
}

impl Stage {
    /// A project and these hooks.
    pub fn new(hooks: &Value) -> Self {
        Self::with(&json!({ "hooks": hooks }))
    }

    /// A project and these user settings.
    pub fn with(settings: &Value) -> Self {
        let sandbox = Sandbox::new();
        sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
        Self { sandbox }
    }

    /// One hook that is a command.
    pub fn command(event: &str, command: &str) -> Self {
        Self::new(&json!({ event: [entry(command)] }))
    }

    /// The command of a run, to be changed before it runs.
    pub fn prepared(&self, replies: &Value, flags: &[&str]) -> Command {
        let playbook = self.sandbox.write("../playbook.json", json!({ "replies": replies }).to_string());
        let mut command = self.sandbox.command(BINARY);
        command.args(["-p", "go", "--output-format", "stream-json", "--verbose"]);
        command.args(["--model", &format!("scripted:{}", playbook.display())]).args(flags);
        command
    }

    /// Runs one turn with these replies.
    pub fn run(&self, replies: &Value, flags: &[&str]) -> Ran {
        Ran::of(&Sandbox::finish(self.prepared(replies, flags)))
    }

    /// Runs a Bash call of the model that is allowed otherwise; true when it ran.
    pub fn bash(&self) -> (bool, Ran) {
        let replies = json!([call(1, "Bash", &json!({ "command": "touch made" })), say("done")]);
        let ran = self.run(&replies, &["--allowedTools", "Bash"]);
        (self.sandbox.project().join("made").exists(), ran)
    }

    /// What the hooks that note got.
    pub fn seen(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.beside("seen")).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }

    /// A path beside the project.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.sandbox.project().parent().unwrap().join(name)
    }

    /// The records of hooks in the log.
    pub fn records(&self) -> Vec<Value> {
        self.sandbox.transcript_lines().into_iter().filter(|line| line["type"] == "hook").collect()
    }
}

impl Ran {
    pub fn of(output: &Output) -> Self {
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}\n{stderr}"))
        };
        Self { lines: stdout.lines().map(parse).collect(), stderr }
    }

    /// The result of the turn.
    pub fn result(&self) -> &Value {
        self.lines.iter().find(|line| line["type"] == "result").unwrap_or_else(|| panic!("{self:#?}"))
    }

    /// The last words of a turn that went well.
    #[track_caller]
    pub fn said(&self) -> &str {
        assert_eq!(self.result()["is_error"], false, "{:#}\n{}", self.result(), self.stderr);
        self.result()["result"].as_str().unwrap()
    }

    /// The texts of tool results, joined.
    pub fn tool_results(&self) -> String {
        let users = self.lines.iter().filter(|line| line["type"] == "user");
        users.map(|line| line["message"]["content"].to_string()).collect()
    }

    /// System messages of one subtype.
    pub fn system(&self, subtype: &str) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["type"] == "system" && line["subtype"] == subtype).collect()
    }
}

/// A group with one command for everything.
pub fn entry(command: &str) -> Value {
    json!({ "hooks": [{ "type": "command", "command": command }] })
}

/// A group with one command and more fields.
pub fn entry_with(command: &str, more: &Value) -> Value {
    let mut hook = json!({ "type": "command", "command": command });
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "hooks": [hook] })
}

/// A command that prints this JSON.
pub fn print(output: &Value) -> String {
    format!("cat > /dev/null; printf '%s' '{output}'")
}

/// What is special for an event.
pub fn specific(event: &str, part: &Value) -> Value {
    let mut part = part.clone();
    part["hookEventName"] = json!(event);
    json!({ "hookSpecificOutput": part })
}

/// A reply with a call.
pub fn call(number: u32, tool: &str, input: &Value) -> Value {
    json!({ "toolCalls": [{ "name": tool, "id": format!("toolu_{number}"), "input": input }] })
}

/// A reply with words.
pub fn say(text: &str) -> Value {
    json!({ "text": text })
}

/// A reply that fits only when the model reads this.
pub fn say_when(contains: &str, text: &str) -> Value {
    json!({ "when": { "contains": contains }, "text": text })
}
