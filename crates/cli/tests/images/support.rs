//! A project with an image model: one scripted server that is the model of the turn and the images endpoint, and short
//! ways to run a turn in which the model calls ImageGen.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use qoder_testkit::{ImageCall, ImageReply, ReceivedRequest, Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

pub const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");
/// A picture of one pixel.
pub const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// The image model's name at its provider.
pub const PAINTER: &str = "painter";
/// The start of every PNG file.
pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// What a turn came to.
pub struct Turn {
    pub lines: Vec<Value>,
    pub code: i32,
    pub stderr: String,
}

impl Turn {
    pub fn result(&self) -> &Value {
        self.lines.iter().find(|line| line["type"] == "result").unwrap_or_else(|| panic!("{}", self.stderr))
    }

    pub fn init(&self) -> &Value {
        self.lines.iter().find(|line| line["subtype"] == "init").unwrap()
    }

    pub fn offers(&self, tool: &str) -> bool {
        self.init()["tools"].as_array().unwrap().iter().any(|name| name == tool)
    }

    /// The typed output of the only call.
    pub fn output(&self) -> Value {
        let results: Vec<&Value> =
            self.lines.iter().filter(|line| !line["tool_use_result"].is_null()).collect();
        assert_eq!(results.len(), 1, "{:#?}", self.lines);
        results[0]["tool_use_result"].clone()
    }
}

/// A project, a model and an images endpoint.
pub struct Studio {
    pub sandbox: Sandbox,
    pub server: ScriptedServer,
}

/// A model of the turn that calls tools, one after the other, and then is done.
pub fn calling(calls: Vec<(&'static str, Value)>) -> Script {
    let calls: Vec<Reply> = calls.into_iter().map(|(name, input)| Reply::tool(name, input)).collect();
    Script::by(move |request, _| {
        let done = qoder_testkit::assistant_count(request);
        calls.get(done).cloned().unwrap_or_else(|| Reply::text("done"))
    })
}

/// As many pictures of one pixel as are asked for.
pub fn pixels(call: &ImageCall) -> ImageReply {
    let count = match &call.fields["n"] {
        Value::String(text) => text.parse().unwrap(),
        number => usize::try_from(number.as_u64().unwrap()).unwrap(),
    };
    ImageReply::Base64(vec![PIXEL.to_owned(); count])
}

impl Studio {
    pub fn new(script: Script) -> Self {
        let studio = Self { sandbox: Sandbox::new(), server: ScriptedServer::start(script) };
        studio.settle(&json!({}));
        studio
    }

    /// One call of ImageGen, answered with pixels.
    pub fn drawing(input: Value) -> Self {
        Self::new(calling(vec![("ImageGen", input)]).images(|call, _| pixels(call)))
    }

    /// The settings with the image model, and more of them.
    pub fn settle(&self, more: &Value) {
        let mut settings = json!({
            "model": { "name": "anthropic/scripted-large", "image": format!("pictures/{PAINTER}"),
                "prices": { PAINTER: { "input": 10.0, "output": 40.0, "image": 0.02 } } },
            "providers": { "pictures": { "protocol": "openai", "baseUrl": self.server.base_url(),
                "apiKey": "key-of-the-painter" } },
            "permissions": { "trustDirectories": [self.sandbox.project()] },
        });
        for (group, value) in more.as_object().unwrap() {
            match settings[group].as_object_mut() {
                Some(existing) => existing.extend(value.as_object().unwrap().clone()),
                None => settings[group] = value.clone(),
            }
        }
        self.sandbox.write(self.sandbox.config().join("settings.json"), settings.to_string());
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(BINARY);
        command.env("QODER_RETRY_BASE_MS", "1").env("ANTHROPIC_BASE_URL", self.server.base_url());
        command.env("ANTHROPIC_API_KEY", "key-of-the-test").stdin(Stdio::null());
        command.args(["-p", "--output-format", "stream-json"]).args(arguments);
        command
    }

    /// Runs a turn.
    pub fn turn(&self, arguments: &[&str]) -> Turn {
        let Output { status, stdout, stderr } =
            self.command(&[&["draw"], arguments].concat()).output().unwrap();
        let text = String::from_utf8(stdout).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        Turn { lines, code: status.code().unwrap_or(-1), stderr }
    }

    /// Runs a turn in which files of the project may be written.
    pub fn accepting(&self) -> Turn {
        self.turn(&["--permission-mode", "acceptEdits"])
    }

    /// The requests for pictures.
    pub fn painted(&self) -> Vec<ReceivedRequest> {
        self.server.requests().into_iter().filter(|request| request.path.contains("/images/")).collect()
    }

    /// What the model was shown of the last call: its blocks, and whether it is an error.
    pub fn shown(&self) -> (Vec<Value>, bool) {
        let requests = self.server.requests();
        let last = requests.iter().rfind(|request| request.path.ends_with("/messages")).unwrap().json();
        let block = last["messages"].as_array().unwrap().last().unwrap()["content"][0].clone();
        let content = match &block["content"] {
            Value::Array(blocks) => blocks.clone(),
            text => vec![json!({ "type": "text", "text": text })],
        };
        (content, block["is_error"] == true)
    }

    /// The text of the last result, which must be a failure.
    pub fn failure(&self) -> String {
        let (blocks, is_error) = self.shown();
        assert!(is_error, "{blocks:?}");
        blocks[0]["text"].as_str().unwrap().to_owned()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.sandbox.project().join(name)
    }

    /// The bytes of a file of the project.
    pub fn file(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path(name)).ok()
    }

    /// The records of one kind in the log.
    pub fn records(&self, kind: &str) -> Vec<Value> {
        self.sandbox.transcript_lines().into_iter().filter(|line| line["type"] == kind).collect()
    }
}
