//! Short ways to run the program, to kill it at a chosen point, and to read its log. A child that does not end within
//! a minute is killed and fails its test; nothing else here depends on time.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

/// Session ids for tests.
pub const ID: &str = "11111111-1111-4111-8111-111111111111";
/// Another one.
pub const OTHER_ID: &str = "22222222-2222-4222-8222-222222222222";

const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");
const HANG_LIMIT: Duration = Duration::from_secs(60);

/// What a run came to.
#[derive(Debug)]
pub struct Run {
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Run {
    /// Checks the exit code, and shows everything when it is another.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// The only JSON object on standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }

    /// Every JSON line of standard output.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Checks that standard error has every one of these texts.
    #[track_caller]
    pub fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "`{text}` is not in: {}", self.stderr);
        }
        self
    }
}

/// A server with these replies, picked by how far the conversation is.
pub fn server(replies: Vec<Reply>) -> ScriptedServer {
    ScriptedServer::start(Script::by_assistant_count(replies))
}

/// The program with the offline model.
pub fn offline(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = sandbox.command(BINARY);
    command.env("QODER_RETRY_BASE_MS", "1").args(arguments).stdin(Stdio::null());
    command
}

/// The program with a scripted server.
pub fn online(sandbox: &Sandbox, server: &ScriptedServer, arguments: &[&str]) -> Command {
    let mut command = sandbox.command_with(BINARY, server);
    command.env("QODER_RETRY_BASE_MS", "1").args(arguments).stdin(Stdio::null());
    command
}

/// Runs the offline model to the end.
pub fn run(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    finish(offline(sandbox, arguments))
}

/// Runs with a scripted server to the end.
pub fn run_with(sandbox: &Sandbox, server: &ScriptedServer, arguments: &[&str]) -> Run {
    finish(online(sandbox, server, arguments))
}

/// Runs a command to its end.
pub fn finish(mut command: Command) -> Run {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    end(command.spawn().unwrap())
}

/// Runs a command with these bytes on its standard input.
pub fn feed(mut command: Command, bytes: &[u8]) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    // A program that refuses its input early closes the pipe; that is its right.
    let writer = std::thread::spawn(move || stdin.write_all(&bytes).ok());
    let run = end(child);
    writer.join().unwrap();
    run
}

/// Waits for a started child.
pub fn end(mut child: Child) -> Run {
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > HANG_LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the program did not end: {} {}", stdout.join().unwrap(), stderr.join().unwrap());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    Run { code: status.code(), stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).ok();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits until `condition` holds.
#[track_caller]
pub fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < HANG_LIMIT, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Starts a command whose output goes nowhere.
pub fn start(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Starts a command, waits for a moment and kills it with SIGKILL.
pub fn kill_when(command: Command, what: &str, condition: impl Fn() -> bool) {
    let mut child = start(command);
    wait_for(what, condition);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A reply that does not come while a test runs.
pub fn stalled() -> Reply {
    Reply::SlowFirstByte { ms: 20_000, reply: Box::new(Reply::text("late")) }
}

/// The file of a session of the sandbox's project.
pub fn log_of(sandbox: &Sandbox, id: &str) -> PathBuf {
    let files = sandbox.session_files();
    let name = format!("{id}.jsonl");
    let found = files.iter().find(|file| file.file_name().is_some_and(|file| file == name.as_str()));
    found.unwrap_or_else(|| panic!("no log of {id} in {files:?}")).clone()
}

/// The folder beside the log of a session.
pub fn side_of(sandbox: &Sandbox, id: &str) -> PathBuf {
    log_of(sandbox, id).with_extension("")
}

/// The text of a session's log.
pub fn log_text(sandbox: &Sandbox, id: &str) -> String {
    std::fs::read_to_string(log_of(sandbox, id)).unwrap()
}

/// The records of a session.
pub fn records(sandbox: &Sandbox, id: &str) -> Vec<Value> {
    log_text(sandbox, id).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The types of a session's records, in order.
pub fn kinds(sandbox: &Sandbox, id: &str) -> Vec<String> {
    records(sandbox, id).iter().map(|record| record["type"].as_str().unwrap().to_owned()).collect()
}

/// True when the session's log has this text by now.
pub fn log_has(sandbox: &Sandbox, text: &str) -> bool {
    let has = |file: &PathBuf| std::fs::read_to_string(file).is_ok_and(|log| log.contains(text));
    sandbox.session_files().iter().any(has)
}

/// The results of tools in a session's log: outcome and text.
pub fn tool_results(sandbox: &Sandbox, id: &str) -> Vec<(String, String)> {
    let results = records(sandbox, id).into_iter().filter(|record| record["origin"] == "tool_result");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    results
        .map(|record| (text(&record["outcome"]), text(&record["message"]["content"][0]["content"])))
        .collect()
}

/// The system prompt of a request, as text.
pub fn system_of(request: &Value) -> String {
    match &request["system"] {
        Value::String(text) => text.clone(),
        blocks => {
            let texts = blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// The system prompt of a fresh session with these arguments.
pub fn system_prompt(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let server = server(vec![Reply::text("ok")]);
    run_with(sandbox, &server, &[&["-p", "hello"], arguments].concat()).exits(0);
    system_of(&server.requests()[0].json())
}

/// CRC-32 as records have it.
pub fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

/// A record's line with its checksum, from its JSON without one.
pub fn sealed(record: &Value) -> String {
    let text = record.to_string();
    let open = text.strip_suffix('}').unwrap();
    format!("{open},\"crc\":\"{:08x}\"}}\n", checksum(open.as_bytes()))
}

/// Appends text to a session's log in one write.
pub fn append(sandbox: &Sandbox, id: &str, text: &str) {
    let mut log = std::fs::OpenOptions::new().append(true).open(log_of(sandbox, id)).unwrap();
    log.write_all(text.as_bytes()).unwrap();
}

/// Checks the documented shape of a successful result message.
#[track_caller]
pub fn assert_success(message: &Value, id: &str, text: &str) {
    let expected = json!({"type": "result", "subtype": "success", "is_error": false, "session_id": id,
        "result": text, "stop_reason": "end_turn", "terminal_reason": "completed", "permission_denials": []});
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&message[key], value, "{key} of {message}");
    }
    for key in ["duration_ms", "duration_api_ms", "num_turns"] {
        assert!(message[key].is_u64(), "{key} of {message}");
    }
    assert!(message["total_cost_usd"].is_f64() && message["usage"]["input_tokens"].is_u64(), "{message}");
    assert!(message["modelUsage"].is_object() && message["uuid"].as_str().is_some_and(|id| id.len() == 36));
}

/// Checks the documented shape of an error's result message: no `result`, and its reason in `errors`.
#[track_caller]
pub fn assert_failure(message: &Value, reason: &str) {
    assert_eq!(message["type"], "result", "{message}");
    assert_eq!(message["subtype"], "error_during_execution", "{message}");
    assert_eq!(message["is_error"], true, "{message}");
    assert!(message.get("result").is_none(), "{message}");
    assert!(message["errors"][0].as_str().is_some_and(|error| error.contains(reason)), "{message}");
    for key in ["duration_ms", "duration_api_ms", "num_turns"] {
        assert!(message[key].is_u64(), "{key} of {message}");
    }
    assert!(message["session_id"].is_string() && message["uuid"].is_string(), "{message}");
}
