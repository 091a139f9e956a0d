//! A project whose files try to get more than they were given: definitions, a model that plays along, and whether
//! it came to anything. What an attempt would do is to make the file `made`.

use std::path::PathBuf;
use std::process::Output;

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

/// The program under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");

/// A project, and who vouches for it.
pub struct Case {
    pub sandbox: Sandbox,
}

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    pub lines: Vec<Value>,
    pub stderr: String,
}

impl Case {
    /// A project that is not trusted, with these settings of the person.
    pub fn untrusted(settings: &Value) -> Self {
        let case = Self { sandbox: Sandbox::new() };
        case.sandbox.write(case.sandbox.config().join("settings.json"), settings.to_string());
        case
    }

    /// A project that the person trusts, with these settings.
    pub fn trusted(settings: &Value) -> Self {
        let case = Self::untrusted(settings);
        let mut settings = settings.clone();
        settings["permissions"]["trustDirectories"] = json!([case.sandbox.project()]);
        case.sandbox.write(case.sandbox.config().join("settings.json"), settings.to_string());
        case
    }

    /// Writes a file of the project.
    pub fn file(&self, path: &str, text: &str) -> PathBuf {
        self.sandbox.write(path, text)
    }

    /// Writes a file of the person's configuration.
    pub fn own(&self, path: &str, text: &str) -> PathBuf {
        self.sandbox.write(self.sandbox.config().join(path), text)
    }

    /// Makes a link in the project.
    pub fn link(&self, path: &str, target: impl AsRef<std::path::Path>) {
        let path = self.sandbox.project().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    /// Runs a turn with a model that gives these replies.
    pub fn run(&self, prompt: &str, replies: &Value, flags: &[&str]) -> Ran {
        let playbook = self.sandbox.write("../playbook.json", json!({ "replies": replies }).to_string());
        let mut command = self.sandbox.command(BINARY);
        command.args(["-p", prompt, "--output-format", "stream-json", "--verbose"]);
        command.args(["--model", &format!("scripted:{}", playbook.display())]).args(flags);
        // Servers start slowly on a machine that runs many tests.
        command.env("QODER_MCP_START_WAIT_MS", "60000");
        Ran::of(&Sandbox::finish(command))
    }

    /// True when there is a file of this name in the project.
    pub fn has(&self, name: &str) -> bool {
        self.sandbox.project().join(name).exists()
    }

    /// True when the attempt came to something.
    pub fn made(&self) -> bool {
        self.has("made")
    }
}

impl Ran {
    fn of(output: &Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let text = String::from_utf8_lossy(&output.stdout);
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        Self { lines: text.lines().map(parse).collect(), stderr }
    }

    /// The result of the turn.
    #[track_caller]
    pub fn result(&self) -> &Value {
        self.lines.iter().find(|line| line["type"] == "result").unwrap_or_else(|| panic!("{self:#?}"))
    }

    /// Everything that came back to the model.
    pub fn told(&self) -> String {
        let users = self.lines.iter().filter(|line| line["type"] == "user");
        users.map(|line| line["message"]["content"].to_string()).collect()
    }

    /// Everything that the program said.
    pub fn all(&self) -> String {
        let lines: String = self.lines.iter().map(Value::to_string).collect();
        format!("{lines}\n{}", self.stderr)
    }
}

/// A reply with a call.
pub fn call(tool: &str, input: &Value) -> Value {
    json!({ "toolCalls": [{ "name": tool, "input": input }] })
}

/// A reply that tries to make the file.
pub fn touch() -> Value {
    call("Bash", &json!({ "command": "touch made" }))
}

/// A reply that ends any further call of the model.
pub fn done() -> Value {
    json!({ "text": "done", "repeat": true })
}

/// A reply of an agent.
pub fn of_agent(mut reply: Value, turn: u64) -> Value {
    reply["when"] = json!({ "purpose": "subagent", "turn": turn });
    reply
}

/// A reply that hands a task to an agent.
pub fn delegate(name: &str) -> Value {
    call("Agent", &json!({ "prompt": "do it", "description": "x", "subagent_type": name }))
}

/// A family in which the agent tries to make the file.
pub fn agent_touches(name: &str) -> Value {
    let child = of_agent(touch(), 1);
    let end = json!({ "when": { "purpose": "subagent" }, "text": "child is done", "repeat": true });
    json!([delegate(name), child, end, done()])
}

/// The text of an agent's file.
pub fn agent(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: Does it.\n{more}\n---\nYou do it.\n")
}

/// The text of a skill's file.
pub fn skill(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: Knows {name}.\n{more}\n---\nUse it.\n")
}

/// A hook that prints this answer for an event.
pub fn answering(event: &str, part: &Value) -> Value {
    let mut part = part.clone();
    part["hookEventName"] = json!(event);
    let output = json!({ "hookSpecificOutput": part });
    json!({ event: [{ "hooks": [{ "type": "command", "command": format!("cat > /dev/null; printf '%s' '{output}'") }] }] })
}
