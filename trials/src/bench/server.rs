//! `qodercli serve` on SQLite with a scripted model that answers at once: memory of an idle server and of sessions that wait,
//! sessions created a second, and the time from a message to the end of its turn. Each turn is followed on one stream, as
//! clients do it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use super::Bench;
use super::measure::median;
use super::table::{Row, size as megabytes, time};

/// No answer takes longer than this.
const PATIENCE: Duration = Duration::from_secs(60);
/// Clients that create sessions at the same time.
const CLIENTS: usize = 64;

/// A server that runs.
struct Served {
    child: Child,
    address: String,
    token: String,
    _sandbox: Sandbox,
    model: ScriptedServer,
}

impl Drop for Served {
    fn drop(&mut self) {
        // A server that has ended already needs nothing more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that is kept for one request after another.
struct Client {
    reader: BufReader<TcpStream>,
    token: String,
}

impl Served {
    fn start(bench: &Bench) -> Result<Self> {
        let (sandbox, model) = (Sandbox::new(), ScriptedServer::start(script().forget_bodies()));
        let created = sandbox.run(&bench.binary, &["serve", "token", "create", "--user", "bench"]);
        let token = String::from_utf8(created.stdout)?.trim().to_owned();
        let mut command = sandbox.command_with(&bench.binary, &model);
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("the server has no output")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on http://").map(str::to_owned);
        let mut served = Self { child, address: String::new(), token, _sandbox: sandbox, model };
        served.address = address.with_context(|| format!("the server does not start: {line:?}"))?;
        Ok(served)
    }

    fn client(&self) -> Result<Client> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Client { reader: BufReader::new(stream), token: self.token.clone() })
    }

    /// Resident memory in bytes.
    fn memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes: u64 = line.context("no VmRSS")?.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kibibytes * 1024)
    }
}

/// A call that waits for the client, or one call when the message asks for one, or a text.
fn script() -> Script {
    Script::by(|request, _| {
        let messages = request["messages"].to_string();
        let asks = messages.matches("use a tool").count();
        let calls = messages.matches("\"tool_use\"").count();
        if messages.contains("wait for me") {
            return Reply::tool("wait", json!({}));
        }
        if asks > calls {
            return Reply::tool("Glob", json!({ "pattern": "*" }));
        }
        Reply::text("done")
    })
}

impl Client {
    /// Sends a request to a whole path.
    fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-length: {length}\r\n\r\n{body}",
            self.token
        );
        Ok(self.reader.get_mut().write_all(request.as_bytes())?)
    }

    /// The length of the answer's body, when it has one.
    fn head(&mut self) -> Result<Option<usize>> {
        let (mut first, mut length) = (String::new(), None);
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line)? == 0 {
                bail!("the server closed the connection");
            }
            if first.is_empty() {
                first.clone_from(&line);
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse()?);
            }
        }
        if !first.contains(" 200 ") {
            bail!("the server answers {first:?}");
        }
        Ok(length)
    }

    fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        self.send("POST", &format!("/v1/{path}"), &body.to_string())?;
        Ok(serde_json::from_slice(&self.body()?)?)
    }

    fn get_text(&mut self, path: &str) -> Result<String> {
        self.send("GET", path, "")?;
        Ok(String::from_utf8(self.body()?)?)
    }

    fn body(&mut self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.head()?.context("an answer without a length")?];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Posts and answers with the ID of what was made.
    fn make(&mut self, path: &str, body: &Value) -> Result<String> {
        let made = self.post(path, body)?;
        Ok(made["id"].as_str().context("an answer without an ID")?.to_owned())
    }

    /// Reads a stream up to a line with this text.
    fn until(&mut self, text: &str) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 || Instant::now() > until {
                bail!("the stream ends before {text}");
            }
        }
        Ok(())
    }
}

/// The body of a session that can be created again and again.
fn session_body(client: &mut Client) -> Result<Value> {
    let tools = json!([{ "type": "agent_toolset_20260401" }, { "type": "custom", "name": "wait", "description": "",
        "input_schema": { "type": "object" } }]);
    let agent = client.make("agents", &json!({ "name": "bench", "model": "auto", "tools": tools }))?;
    let environment = client.make("environments", &json!({ "name": "bench" }))?;
    Ok(json!({ "agent": agent, "environment_id": environment }))
}

/// The time from a message to the end of its turn, in one session. Each turn makes this many requests to the model.
fn turns(served: &Served, body: &Value, (text, requests): (&str, usize), count: usize) -> Result<Duration> {
    let before = served.model.requests().len();
    let (mut client, mut stream) = (served.client()?, served.client()?);
    let session = client.make("sessions", body)?;
    stream.send("GET", &format!("/v1/sessions/{session}/events/stream"), "")?;
    stream.head()?;
    let message = json!({ "events": [{ "type": "user.message", "content": text }] });
    let mut took = Vec::new();
    // The first turn opens the session and is not counted.
    for number in 0..=count {
        let begun = Instant::now();
        client.post(&format!("sessions/{session}/events"), &message)?;
        stream.until("\"stop_reason\":{\"type\":\"end_turn\"}")?;
        if number > 0 {
            took.push(begun.elapsed());
        }
    }
    let made = served.model.requests().len() - before;
    if made != requests * (count + 1) {
        bail!("{} turns made {made} requests", count + 1);
    }
    median(took.into_iter()).context("nothing was measured")
}

/// Sessions created a second by clients at the same time.
fn creations(served: &Served, body: &Value, each: usize) -> Result<f64> {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let create = || -> Result<()> {
            let mut client = served.client()?;
            (0..each).try_for_each(|_| client.make("sessions", body).map(drop))
        };
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(create)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a client panicked")))
        })
    })?;
    Ok((CLIENTS * each) as f64 / begun.elapsed().as_secs_f64())
}

/// Memory that sessions cost whose calls wait for the client, once nothing of them is open.
fn parked(bench: &Bench, count: usize) -> Result<u64> {
    let served = Served::start(bench)?;
    let mut client = served.client()?;
    let mut body = session_body(&mut client)?;
    let before = served.memory()?;
    body["initial_events"] = json!([{ "type": "user.message", "content": "wait for me" }]);
    for _ in 0..count {
        client.make("sessions", &body)?;
    }
    let (waiting, open) = (format!("qoder_sessions{{status=\"pending\"}} {count}\n"), "qoder_seats_warm 0\n");
    let until = Instant::now() + PATIENCE;
    loop {
        let metrics = client.get_text("/metrics")?;
        if metrics.contains(&waiting) && metrics.contains(open) {
            return Ok(served.memory()?.saturating_sub(before));
        }
        if Instant::now() > until {
            bail!("not all of {count} sessions wait");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Everything about the server.
pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let served = Served::start(bench)?;
    let mut client = served.client()?;
    let body = session_body(&mut client)?;
    let idle = served.memory()?;
    let created = creations(&served, &body, if bench.quick { 20 } else { 100 })?;
    let text = turns(&served, &body, ("hello", 1), bench.many())?;
    let tool = turns(&served, &body, ("use a tool", 2), bench.many())?;
    let many = if bench.quick { 100 } else { 1_000 };
    let waiting = parked(bench, many)?;
    Ok(vec![
        Row::new("an idle server, memory", megabytes(idle), "at most 30 MiB"),
        Row::new(
            format!("sessions created a second, {CLIENTS} clients, SQLite"),
            format!("{created:.0}"),
            "at least 2,000",
        ),
        Row::new("a text turn on the server, from message to idle", time(text), "at most 8 ms and 3 syncs"),
        Row::new(
            "added by one tool call on the server",
            time(tool.saturating_sub(text)),
            "at most 4 ms and 2 syncs",
        ),
        Row::new(
            format!("{many} sessions that wait, memory above idle"),
            megabytes(waiting),
            "at most 5 MiB",
        ),
    ])
}
