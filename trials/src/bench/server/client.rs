//! A server that runs for a benchmark, and a client that keeps one connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use qoder_testkit::{PostgresServer, Sandbox, ScriptedServer};
use serde_json::Value;

use super::super::Bench;

/// Where a server finds a database that is not its own file.
const DATABASE: &str = "QODER_SERVE_DATABASE_URL";
/// No answer takes longer than this.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A server that runs.
pub(super) struct Served {
    child: Child,
    pub(super) address: String,
    pub(super) token: String,
    sandbox: Sandbox,
    pub(super) model: ScriptedServer,
    /// Its database, when that is not a file of its own. It ends after the server.
    database: Option<PostgresServer>,
}

impl Drop for Served {
    fn drop(&mut self) {
        // A server that has ended already needs nothing more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that is kept for one request after another.
pub(super) struct Client {
    reader: BufReader<TcpStream>,
    token: String,
}

fn serve(
    bench: &Bench,
    sandbox: &Sandbox,
    model: &ScriptedServer,
    database: Option<&PostgresServer>,
) -> Command {
    let mut command = sandbox.command_with(&bench.binary, model);
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    command.envs(database.map(|database| (DATABASE, database.url())));
    command
}

/// Starts a server and waits until it accepts.
fn spawn(mut command: Command) -> Result<(Child, String)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("the server has no output")?).read_line(&mut line)?;
    let address = line.trim().strip_prefix("listening on http://").map(str::to_owned);
    Ok((child, address.with_context(|| format!("the server does not start: {line:?}"))?))
}

impl Served {
    /// A server on SQLite in a folder of its own, in front of this model.
    pub(super) fn start(bench: &Bench, model: ScriptedServer) -> Result<Self> {
        Self::start_on(bench, model, None)
    }

    /// The same on this database.
    pub(super) fn start_on(
        bench: &Bench,
        model: ScriptedServer,
        database: Option<PostgresServer>,
    ) -> Result<Self> {
        let sandbox = Sandbox::new();
        let mut create = sandbox.command(&bench.binary);
        create.args(["serve", "token", "create", "--user", "bench"]);
        create.envs(database.as_ref().map(|database| (DATABASE, database.url())));
        let created = Sandbox::finish(create);
        let token = String::from_utf8(created.stdout)?.trim().to_owned();
        let (child, address) = spawn(serve(bench, &sandbox, &model, database.as_ref()))?;
        Ok(Self { child, address, token, sandbox, model, database })
    }

    /// Kills the server and starts another one on its folder. The clients of the first one are cut off.
    pub(super) fn kill_and_restart(&mut self, bench: &Bench) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        (self.child, self.address) = spawn(serve(bench, &self.sandbox, &self.model, self.database.as_ref()))?;
        Ok(())
    }

    pub(super) fn client(&self) -> Result<Client> {
        Client::connect(&self.address, &self.token)
    }

    /// A stream of a session's events, from now on or after an event.
    pub(super) fn stream(&self, session: &str, after: Option<&str>) -> Result<Client> {
        let mut client = self.client()?;
        let header = after
            .map(|id| {
                format!(
                    "last-event-id: {id}
"
                )
            })
            .unwrap_or_default();
        client.send_with("GET", &format!("/v1/sessions/{session}/events/stream"), &header, "")?;
        client.head()?;
        Ok(client)
    }

    /// Waits until the model has seen this many requests.
    pub(super) fn until_requests(&self, count: usize) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while self.model.requests().len() < count {
            if Instant::now() > until {
                bail!("the model never sees {count} requests");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory in bytes.
    pub(super) fn memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes: u64 = line.context("no VmRSS")?.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kibibytes * 1024)
    }
}

impl Client {
    pub(super) fn connect(address: &str, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { reader: BufReader::new(stream), token: token.to_owned() })
    }

    /// Sends a request to a whole path.
    fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        self.send_with(method, path, "", body)
    }

    /// The same with further header lines.
    fn send_with(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Result<()> {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n{headers}content-length: {length}\r\n\r\n{body}",
            self.token
        );
        Ok(self.reader.get_mut().write_all(request.as_bytes())?)
    }

    /// The length of the answer's body, when it has one.
    pub(super) fn head(&mut self) -> Result<Option<usize>> {
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

    pub(super) fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        self.send("POST", &format!("/v1/{path}"), &body.to_string())?;
        Ok(serde_json::from_slice(&self.body()?)?)
    }

    pub(super) fn get_text(&mut self, path: &str) -> Result<String> {
        self.send("GET", path, "")?;
        Ok(String::from_utf8(self.body()?)?)
    }

    fn body(&mut self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.head()?.context("an answer without a length")?];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Posts and answers with the ID of what was made.
    pub(super) fn make(&mut self, path: &str, body: &Value) -> Result<String> {
        let made = self.post(path, body)?;
        Ok(made["id"].as_str().context("an answer without an ID")?.to_owned())
    }

    /// Reads a stream up to a line with this text, and answers with that line.
    pub(super) fn until(&mut self, text: &str) -> Result<String> {
        let until = Instant::now() + PATIENCE;
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 || Instant::now() > until {
                bail!("the stream ends before {text}");
            }
        }
        Ok(line)
    }

    /// Waits until the server's metrics have all of these lines.
    pub(super) fn until_metrics(&mut self, lines: &[String]) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let metrics = self.get_text("/metrics")?;
            if lines.iter().all(|wanted| metrics.lines().any(|line| line == wanted)) {
                return Ok(());
            }
            if Instant::now() > until {
                bail!("the metrics never show {lines:?}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
