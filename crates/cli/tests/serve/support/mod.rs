//! A server under test: the real program on a free port with a scripted model, and a client that speaks plain HTTP. Deadlines
//! guard against hanging and nothing else.

mod cluster;
mod containers;
mod document;
mod http;
mod stream;
mod values;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use qoder_testkit::{PostgresServer, Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

pub use cluster::Cluster;
pub use containers::Containers;
pub use http::Answer;
use http::{read_answer, read_body, read_head};
pub use stream::Stream;
pub use values::{bash, confirm, custom, id, kind, message, pending, result, result_text, toolset};

/// A guard against hanging.
pub const PATIENCE: Duration = Duration::from_secs(30);
const PROGRAM: &str = env!("CARGO_BIN_EXE_qodercli");
const ANY_PORT: &str = "127.0.0.1:0";

/// Where a server finds its database.
const DATABASE: &str = "QODER_SERVE_DATABASE_URL";
/// When it is set, every behaviour runs on PostgreSQL: `QODER_TEST_POSTGRES=1 cargo nextest run -p qodercli serve::`.
const ON_POSTGRES: &str = "QODER_TEST_POSTGRES";

/// A server that runs.
pub struct Server {
    pub sandbox: Sandbox,
    pub model: Option<Arc<ScriptedServer>>,
    pub token: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    child: Child,
    address: String,
    /// The database that is this server's alone; it ends after it.
    own_database: Option<PostgresServer>,
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
        let model = script.map(|script| Arc::new(ScriptedServer::start(script)));
        let is_given = environment.iter().any(|(name, _)| *name == DATABASE);
        if is_given || std::env::var_os(ON_POSTGRES).is_none() {
            return Self::node(model, None, arguments, environment);
        }
        let postgres = PostgresServer::start();
        let url = postgres.url();
        let environment = [environment, &[(DATABASE, &url)]].concat();
        let mut server = Self::node(model, None, arguments, &environment);
        server.own_database = Some(postgres);
        server
    }

    /// A server with a model that others use too, and a token that is there already.
    fn node(
        model: Option<Arc<ScriptedServer>>,
        token: Option<&str>,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let sandbox = Sandbox::new();
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let environment: Vec<(String, String)> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let token = match token {
            Some(token) => token.to_owned(),
            None => create_token(&sandbox, &environment, &["--user", "ana"]),
        };
        let (child, address) = start(&sandbox, model.as_deref(), ANY_PORT, &arguments, &environment);
        Self { sandbox, model, token, arguments, environment, child, address, own_database: None }
    }

    pub fn data(&self) -> PathBuf {
        self.sandbox.home().join("data")
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Another token for this server.
    pub fn token(&self, arguments: &[&str]) -> String {
        create_token(&self.sandbox, &self.environment, arguments)
    }

    /// Runs `qodercli serve` with these arguments to its end.
    pub fn operate(&self, arguments: &[&str]) -> std::process::Output {
        operate(&self.sandbox, &self.environment, arguments)
    }

    /// Kills the server, as a crash does.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts the server again, after it was killed or stopped.
    pub fn start_again(&mut self) {
        self.start_at(ANY_PORT);
    }

    /// The same with further arguments, now and later.
    pub fn start_with(&mut self, arguments: &[&str]) {
        self.arguments.extend(arguments.iter().map(|text| (*text).to_owned()));
        self.start_again();
    }

    /// The same, where its clients know it.
    pub fn start_at_the_same_address(&mut self) {
        self.start_at(&self.address.clone());
    }

    fn start_at(&mut self, listen: &str) {
        let (model, arguments) = (self.model.as_deref(), &self.arguments);
        (self.child, self.address) = start(&self.sandbox, model, listen, arguments, &self.environment);
    }

    /// Asks the server to stop, and waits for it.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(rustix::process::Signal::TERM);
        wait(&mut self.child)
    }

    /// Sends a signal to the server.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
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
        let answer = read_answer(&mut BufReader::new(stream));
        document::check(method, path, &answer);
        answer
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
    pub fn agent(&self, tools: &Value) -> String {
        let body = json!({ "name": "helper", "model": "auto", "tools": tools });
        id(&self.post("/v1/agents", &body).ok())
    }

    pub fn environment(&self) -> String {
        id(&self.post("/v1/environments", &json!({ "name": "here" })).ok())
    }

    /// A session of an agent with these tools.
    pub fn session(&self, tools: &Value) -> String {
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
        Ok(Stream::new(reader, headers))
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

fn start(
    sandbox: &Sandbox,
    model: Option<&ScriptedServer>,
    listen: &str,
    arguments: &[String],
    environment: &[(String, String)],
) -> (Child, String) {
    let mut command = match model {
        Some(model) => sandbox.command_with(PROGRAM, model),
        None => sandbox.command(PROGRAM),
    };
    command.args(["serve", "--listen", listen, "--data-dir"]).arg(sandbox.home().join("data"));
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

fn operate(sandbox: &Sandbox, environment: &[(String, String)], arguments: &[&str]) -> std::process::Output {
    let mut command: Command = sandbox.command(PROGRAM);
    command.envs(environment.iter().cloned());
    command.arg("serve").args(arguments).arg("--data-dir").arg(sandbox.home().join("data"));
    Sandbox::finish(command)
}

fn create_token(sandbox: &Sandbox, environment: &[(String, String)], arguments: &[&str]) -> String {
    let output = operate(sandbox, environment, &[&["token", "create"], arguments].concat());
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
