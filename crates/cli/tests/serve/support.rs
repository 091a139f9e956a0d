//! A server under test: the real program on a free port with a scripted model, a client that speaks plain HTTP, and readers of
//! streams. Deadlines guard against hanging and nothing else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

/// A guard against hanging.
pub const PATIENCE: Duration = Duration::from_secs(30);
const PROGRAM: &str = env!("CARGO_BIN_EXE_qodercli");

/// A server that runs.
pub struct Server {
    pub sandbox: Sandbox,
    pub model: Option<ScriptedServer>,
    pub token: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    child: Child,
    address: String,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The JSON of a success.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// The type and message of an error, whose envelope has to be whole.
    #[track_caller]
    pub fn error(&self, status: u16) -> (String, String) {
        let body = self.json();
        assert_eq!(self.status, status, "{body}");
        assert_eq!(body["type"], "error", "{body}");
        assert_eq!(body["request_id"].as_str(), self.header("x-request-id"), "{body}");
        let text = |key: &str| body["error"][key].as_str().unwrap_or_else(|| panic!("{body}")).to_owned();
        (text("type"), text("message"))
    }
}

impl Server {
    /// A server whose model answers as the script says.
    pub fn scripted(script: Script) -> Self {
        Self::with(Some(script), &[], &[])
    }

    /// A server whose model gives these replies, by how many the conversation has already.
    pub fn replying(replies: Vec<Reply>) -> Self {
        Self::scripted(Script::by_assistant_count(replies))
    }

    /// A server with nothing configured.
    pub fn offline() -> Self {
        Self::with(None, &[], &[])
    }

    /// A server with further arguments and variables.
    pub fn with(script: Option<Script>, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let sandbox = Sandbox::new();
        let model = script.map(ScriptedServer::start);
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let environment: Vec<(String, String)> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let token = create_token(&sandbox, &["--user", "ana"]);
        let (child, address) = start(&sandbox, model.as_ref(), &arguments, &environment);
        Self { sandbox, model, token, arguments, environment, child, address }
    }

    pub fn data(&self) -> PathBuf {
        self.sandbox.home().join("data")
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Another token for this server.
    pub fn token(&self, arguments: &[&str]) -> String {
        create_token(&self.sandbox, arguments)
    }

    /// Runs `qodercli serve` with these arguments to its end.
    pub fn operate(&self, arguments: &[&str]) -> std::process::Output {
        operate(&self.sandbox, arguments)
    }

    /// Kills the server, as a crash does.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts the server again, after it was killed or stopped.
    pub fn start_again(&mut self) {
        let (child, address) = start(&self.sandbox, self.model.as_ref(), &self.arguments, &self.environment);
        (self.child, self.address) = (child, address);
    }

    /// Asks the server to stop, and waits for it.
    pub fn stop(&mut self) -> ExitStatus {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        wait(&mut self.child)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], b"")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.request("POST", path, &[], body.to_string().as_bytes())
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.request("DELETE", path, &[], b"")
    }

    /// A request with the server's token.
    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![("authorization", bearer.as_str())];
        all.extend_from_slice(headers);
        self.bare(method, path, &all, body)
    }

    /// A request of a client of the Claude dialect.
    pub fn claude(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        self.request(method, path, &[("anthropic-version", "2023-06-01")], body.as_bytes())
    }

    /// A request with exactly these headers.
    pub fn bare(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str("host: localhost\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(b"\r\n").unwrap();
        // A server that refuses a body does not read all of it.
        let _ = stream.write_all(body);
        read_answer(&mut BufReader::new(stream))
    }

    /// Sends bytes and reads everything that comes back.
    pub fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// An agent with these tools.
    pub fn agent(&self, tools: Value) -> String {
        let body = json!({ "name": "helper", "model": "auto", "tools": tools });
        id(&self.post("/v1/agents", &body).ok())
    }

    pub fn environment(&self) -> String {
        id(&self.post("/v1/environments", &json!({ "name": "here" })).ok())
    }

    /// A session of an agent with these tools.
    pub fn session(&self, tools: Value) -> String {
        let body = json!({ "agent": self.agent(tools), "environment_id": self.environment() });
        id(&self.post("/v1/sessions", &body).ok())
    }

    pub fn send(&self, session: &str, events: &Value) -> Answer {
        self.post(&format!("/v1/sessions/{session}/events"), &json!({ "events": events }))
    }

    /// Sends a message and waits until the session is idle; answers with the event that says so.
    pub fn ask(&self, session: &str, text: &str) -> Value {
        let mut stream = self.stream(session, None);
        self.send(session, &json!([message(text)])).ok();
        stream.until("session.status_idle")
    }

    /// Every event of a session.
    pub fn events(&self, session: &str) -> Vec<Value> {
        let listed = self.get(&format!("/v1/sessions/{session}/events?limit=1000")).ok();
        listed["data"].as_array().unwrap().clone()
    }

    /// The types of the events of a session.
    pub fn kinds(&self, session: &str) -> Vec<String> {
        self.events(session).iter().map(kind).collect()
    }

    pub fn status(&self, session: &str) -> String {
        self.get(&format!("/v1/sessions/{session}")).ok()["status"].as_str().unwrap().to_owned()
    }

    /// Watches a session, behind an event when one is given.
    pub fn stream(&self, session: &str, after: Option<&str>) -> Stream {
        self.stream_with(session, after, "")
    }

    pub fn stream_with(&self, session: &str, after: Option<&str>, query: &str) -> Stream {
        let mut headers = vec![("authorization", format!("Bearer {}", self.token))];
        headers.extend(after.map(|id| ("last-event-id", id.to_owned())));
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let stream = self.open_stream(&format!("/v1/sessions/{session}/events/stream{query}"), &headers);
        stream.unwrap_or_else(|answer| panic!("{answer:?}"))
    }

    /// Opens a stream, or answers with why it cannot be.
    pub fn open_stream(&self, path: &str, headers: &[(&str, &str)]) -> Result<Stream, Answer> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader);
        if status != 200 {
            let body = read_body(&mut reader, &headers);
            return Err(Answer { status, headers, body });
        }
        Ok(Stream { reader, headers, buffer: String::new(), seen: Vec::new(), is_over: false })
    }

    /// The workspace of a session.
    pub fn workspace(&self, session: &str) -> PathBuf {
        self.data().join("workspaces").join(session.trim_start_matches("sess_")).join("workspace")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A stream of events that is read as it comes.
pub struct Stream {
    reader: BufReader<TcpStream>,
    pub headers: Vec<(String, String)>,
    buffer: String,
    /// Every event that was read.
    pub seen: Vec<Value>,
    pub is_over: bool,
}

impl Stream {
    /// The next frame's data; `None` at the end of the stream.
    pub fn next(&mut self) -> Option<Value> {
        let until = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < until, "nothing follows {:?}", self.kinds());
            while let Some(end) = self.buffer.find("\n\n") {
                let frame: String = self.buffer.drain(..end + 2).collect();
                let field =
                    |name: &str| frame.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
                let Some(data) = field("data: ") else { continue };
                let event: Value = serde_json::from_str(&data).unwrap();
                assert_eq!(field("event: ").as_deref(), event["type"].as_str(), "{frame}");
                if event["id"].is_string() {
                    assert_eq!(field("id: ").as_deref(), event["id"].as_str(), "{frame}");
                }
                self.seen.push(event.clone());
                return Some(event);
            }
            let Some(piece) = self.chunk() else {
                self.is_over = true;
                return None;
            };
            self.buffer.push_str(&String::from_utf8(piece).unwrap());
        }
    }

    fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut size = String::new();
        if self.reader.read_line(&mut size).ok()? == 0 {
            return None;
        }
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut piece = vec![0; size + 2];
        self.reader.read_exact(&mut piece).ok()?;
        piece.truncate(size);
        (size > 0).then_some(piece)
    }

    /// Reads until an event of this type; answers with it.
    #[track_caller]
    pub fn until(&mut self, wanted: &str) -> Value {
        while let Some(event) = self.next() {
            if kind(&event) == wanted {
                return event;
            }
        }
        panic!("no {wanted} among {:?}", self.kinds());
    }

    /// Reads until the session is idle and waits for nothing.
    #[track_caller]
    pub fn until_end_of_turn(&mut self) -> Value {
        loop {
            let idle = self.until("session.status_idle");
            if idle["stop_reason"]["type"] != "requires_action" {
                return idle;
            }
        }
    }

    pub fn kinds(&self) -> Vec<String> {
        self.seen.iter().map(kind).collect()
    }

    pub fn ids(&self) -> Vec<String> {
        self.seen.iter().map(id).collect()
    }
}

fn start(
    sandbox: &Sandbox,
    model: Option<&ScriptedServer>,
    arguments: &[String],
    environment: &[(String, String)],
) -> (Child, String) {
    let mut command = match model {
        Some(model) => sandbox.command_with(PROGRAM, model),
        None => sandbox.command(PROGRAM),
    };
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(sandbox.home().join("data"));
    command.args(arguments).envs(environment.iter().cloned());
    let log =
        std::fs::OpenOptions::new().create(true).append(true).open(sandbox.home().join("serve.log")).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let Some(address) = line.trim().strip_prefix("listening on http://") else {
        let log = std::fs::read_to_string(sandbox.home().join("serve.log")).unwrap_or_default();
        panic!("the server does not start: {line:?} {log}");
    };
    (child, address.to_owned())
}

fn operate(sandbox: &Sandbox, arguments: &[&str]) -> std::process::Output {
    let mut command: Command = sandbox.command(PROGRAM);
    command.arg("serve").args(arguments).arg("--data-dir").arg(sandbox.home().join("data"));
    Sandbox::finish(command)
}

fn create_token(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = operate(sandbox, &[&["token", "create"], arguments].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    text.split_whitespace().last().unwrap().to_owned()
}

/// Waits for a process to end.
pub fn wait(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < until, "the process does not end");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn read_head(reader: &mut impl BufRead) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status =
        line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{line:?}"));
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { return (status, headers) };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
}

fn read_body(reader: &mut impl BufRead, headers: &[(String, String)]) -> Vec<u8> {
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let mut body = Vec::new();
    match length.and_then(|(_, value)| value.parse::<usize>().ok()) {
        Some(length) => {
            body.resize(length, 0);
            reader.read_exact(&mut body).unwrap();
        }
        None => drop(reader.read_to_end(&mut body)),
    }
    body
}

fn read_answer(reader: &mut impl BufRead) -> Answer {
    let (status, headers) = read_head(reader);
    let body = read_body(reader, &headers);
    Answer { status, headers, body }
}

/// The id of a thing.
#[track_caller]
pub fn id(thing: &Value) -> String {
    thing["id"].as_str().unwrap_or_else(|| panic!("{thing}")).to_owned()
}

/// The type of an event.
pub fn kind(event: &Value) -> String {
    event["type"].as_str().unwrap_or_default().to_owned()
}

/// The events that wait for answers.
#[track_caller]
pub fn pending(idle: &Value) -> Vec<String> {
    assert_eq!(idle["stop_reason"]["type"], "requires_action", "{idle}");
    let ids = idle["stop_reason"]["event_ids"].as_array().unwrap();
    ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// A message of the user.
pub fn message(text: &str) -> Value {
    json!({ "type": "user.message", "content": [{ "type": "text", "text": text }] })
}

/// An answer to an ask.
pub fn confirm(event: &str, result: &str) -> Value {
    json!({ "type": "user.tool_confirmation", "tool_use_id": event, "result": result })
}

/// The result of a tool that the client runs.
pub fn result(event: &str, content: impl Into<Value>) -> Value {
    json!({ "type": "user.custom_tool_result", "custom_tool_use_id": event, "content": content.into() })
}

/// The built-in toolset with these policies.
pub fn toolset(policies: &[(&str, &str)]) -> Value {
    let configs: Vec<Value> = policies
        .iter()
        .map(|(name, policy)| json!({ "name": name, "permission_policy": { "type": policy } }))
        .collect();
    json!({ "type": "agent_toolset_20260401", "configs": configs })
}

/// A tool that the client runs.
pub fn custom(name: &str) -> Value {
    json!({ "type": "custom", "name": name, "description": "A tool of the client.",
        "input_schema": { "type": "object", "properties": { "city": { "type": "string" } } } })
}

/// A call of Bash.
pub fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({ "command": command }))
}

/// The text of a tool's result.
pub fn result_text(event: &Value) -> String {
    let blocks = event["content"].as_array().unwrap_or_else(|| panic!("{event}"));
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}
