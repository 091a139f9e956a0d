//! The scripted model server: a real HTTP server on a free port of the loopback address. One thread accepts, each
//! connection has a thread of its own, so that it works from any test without a runtime. It remembers every request
//! with the moment it was complete and the moment the last byte of its answer was written.

pub(crate) mod http;
mod render;

use std::io::{BufReader, BufWriter, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{ImageCall, Reply, Script};
use render::{Answer, Protocol};

/// A request that the server received.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// The path, with its query.
    pub path: String,
    /// The headers, as sent.
    pub headers: Vec<(String, String)>,
    /// The body; empty if the script forgets bodies.
    pub body: Vec<u8>,
    /// When the request was complete.
    pub at: Instant,
    /// When the last byte of the answer had been written; equal to `at` until then.
    pub answered: Instant,
}

impl ReceivedRequest {
    /// The body as JSON; null when it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The value of a header, by its name in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct State {
    requests: Vec<ReceivedRequest>,
    connections: usize,
    /// The open connections, to be closed at the end.
    open: Vec<TcpStream>,
    stopping: bool,
}

struct Shared {
    script: Script,
    state: Mutex<State>,
    stopped: Condvar,
}

impl Shared {
    /// A test that panicked while it held the lock has failed already; its server may still answer.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, but not longer than the server lives.
    fn pause(&self, duration: Duration) {
        let guard = self.state();
        drop(self.stopped.wait_timeout_while(guard, duration, |state| !state.stopping));
    }
}

/// A model server that answers as its script says. It stops when it is dropped.
///
/// ```
/// use qoder_testkit::{Reply, Script, ScriptedServer};
///
/// let server = ScriptedServer::start(Script::list(vec![Reply::text("hello")]));
/// assert!(server.base_url().starts_with("http://127.0.0.1:"));
/// assert!(server.requests().is_empty());
/// ```
pub struct ScriptedServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl ScriptedServer {
    /// Starts a server on a free port.
    ///
    /// # Panics
    /// When the loopback address has no free port.
    #[expect(clippy::expect_used, reason = "a test without a server cannot continue")]
    #[must_use]
    pub fn start(script: Script) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the loopback address has a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared =
            Arc::new(Shared { script, state: Mutex::new(State::default()), stopped: Condvar::new() });
        let for_acceptor = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || accept(&listener, &for_acceptor));
        Self { address, shared, acceptor: Some(acceptor) }
    }

    /// The address without a path, such as `http://127.0.0.1:40123`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in the order in which they were complete.
    #[must_use]
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.state().requests.clone()
    }

    /// How many connections were opened so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.state().connections
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.stopping = true;
            for connection in state.open.drain(..) {
                // It may be closed already.
                connection.shutdown(Shutdown::Both).ok();
            }
        }
        self.shared.stopped.notify_all();
        // Wakes the acceptor, which then sees that the server stops.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            // A panic of the acceptor must not become a second one here.
            acceptor.join().ok();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for connection in listener.incoming() {
        let mut state = shared.state();
        if state.stopping {
            return;
        }
        let Ok(connection) = connection else { continue };
        let Ok(handle) = connection.try_clone() else { continue };
        state.connections += 1;
        state.open.push(handle);
        drop(state);
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // A client that goes away in the middle is part of what is tested.
            serve(&connection, &shared).ok();
        });
    }
}

fn serve(connection: &TcpStream, shared: &Shared) -> Result<()> {
    connection.set_nodelay(true)?;
    let mut writer = BufWriter::with_capacity(16 * 1024, connection.try_clone()?);
    let mut reader = BufReader::with_capacity(64 * 1024, connection.try_clone()?);
    while let Some(request) = http::read_request(&mut reader)? {
        let at = Instant::now();
        let closes = request.closes();
        let http::Request { method, path, headers, body } = request;
        let kind = header(&headers, "content-type").to_owned();
        let kept = if shared.script.keeps_bodies { body.clone() } else { Vec::new() };
        let received = ReceivedRequest { path: path.clone(), headers, body: kept, at, answered: at };
        let (index, number) = {
            let mut state = shared.state();
            let is_alike = |other: &str| match wants_pictures(&path) {
                true => wants_pictures(other),
                false => Protocol::of(other).is_some(),
            };
            let number = state.requests.iter().filter(|request| is_alike(&request.path)).count();
            state.requests.push(received);
            (state.requests.len() - 1, number)
        };
        let goes_on = match (method.as_str(), Protocol::of(&path)) {
            ("POST", Some(protocol)) => {
                let request = ModelCall::new(protocol, &body, &shared.script, number);
                drop(body);
                request.answer(&mut writer, shared)?
            }
            ("POST", None) if wants_pictures(&path) => {
                let call = ImageCall::read(&path, &kind, &body);
                answer_pictures(&mut writer, shared, &call, number)?;
                true
            }
            ("GET", None) if shared.script.served(&path).is_some() => {
                if let Some((_, kind, bytes)) = shared.script.served(&path) {
                    http::write_answer(&mut writer, 200, &[], kind, bytes)?;
                }
                true
            }
            ("GET", None) if path.split('?').next().is_some_and(|path| path.ends_with("/models")) => {
                let body = render::models().to_string();
                http::write_answer(&mut writer, 200, &[], "application/json", body.as_bytes())?;
                true
            }
            (_, Some(_) | None) => {
                http::write_answer(&mut writer, 404, &[], "application/json", NO_SUCH_PATH)?;
                true
            }
        };
        shared.state().requests[index].answered = Instant::now();
        if closes || !goes_on {
            break;
        }
    }
    connection.shutdown(Shutdown::Both)
}

/// What is answered at a path that nothing is at.
const NO_SUCH_PATH: &[u8] =
    br#"{"type":"error","error":{"type":"not_found_error","message":"no such path"}}"#;

fn header<'a>(headers: &'a [(String, String)], name: &str) -> &'a str {
    headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
}

/// True for the paths of the images endpoint.
fn wants_pictures(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.ends_with("/images/generations") || path.ends_with("/images/edits")
}

fn answer_pictures(
    writer: &mut BufWriter<TcpStream>,
    shared: &Shared,
    call: &ImageCall,
    number: usize,
) -> Result<()> {
    let Some(reply) = shared.script.image_reply(call, number) else {
        return http::write_answer(writer, 404, &[], "application/json", NO_SUCH_PATH);
    };
    let (ms, status, body) = reply.rendered();
    if ms > 0 {
        shared.pause(Duration::from_millis(ms));
    }
    http::write_answer(writer, status, &[], "application/json", body.as_bytes())
}

/// One call of the model, with the reply the script chose.
struct ModelCall {
    protocol: Protocol,
    model: String,
    mark: String,
    streams: bool,
    reply: Reply,
}

impl ModelCall {
    fn new(protocol: Protocol, body: &[u8], script: &Script, number: usize) -> Self {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let reply = script.reply(&request, number);
        Self {
            protocol,
            model: request["model"].as_str().unwrap_or("scripted-large").to_owned(),
            mark: mark(&request),
            streams: request["stream"] == true,
            reply,
        }
    }

    /// Writes the answer; false when the connection has to be closed.
    fn answer(&self, writer: &mut BufWriter<TcpStream>, shared: &Shared) -> Result<bool> {
        let mut reply = &self.reply;
        let mut cut = None;
        let mut stall = None;
        let mut pace = None;
        loop {
            match reply {
                Reply::SlowFirstByte { ms, reply: inner } => {
                    shared.pause(Duration::from_millis(*ms));
                    reply = inner;
                }
                Reply::CutStream { after_events, reply: inner } => {
                    cut = Some(*after_events);
                    reply = inner;
                }
                Reply::StalledStream { after_events, ms, reply: inner } => {
                    stall = Some((*after_events, Duration::from_millis(*ms)));
                    reply = inner;
                }
                Reply::PacedStream { events, ms, reply: inner } => {
                    pace = Some(((*events).max(1), Duration::from_millis(*ms)));
                    reply = inner;
                }
                Reply::HttpError { status, headers, body } => {
                    http::write_answer(writer, *status, headers, "application/json", body.as_bytes())?;
                    return Ok(true);
                }
                Reply::Html(page) => {
                    http::write_answer(writer, 200, &[], "text/html", page.as_bytes())?;
                    return Ok(true);
                }
                Reply::Malformed => {
                    http::write_stream_head(writer, &self.request_id())?;
                    http::write_chunk(writer, "event: message_start\ndata: {\"type\": \"mess\n\n")?;
                    http::write_end(writer)?;
                    return Ok(true);
                }
                Reply::Text(_) | Reply::ToolCalls(_) | Reply::Blocks { .. } | Reply::Deltas { .. } => break,
            }
        }
        let Some(answer) = Answer::of(reply, &self.model, &self.mark) else { return Ok(false) };
        if !self.streams && cut.is_none() && stall.is_none() {
            let document = self.protocol.document(&answer).to_string();
            let headers = [("request-id".to_owned(), self.request_id())];
            http::write_answer(writer, 200, &headers, "application/json", document.as_bytes())?;
            return Ok(true);
        }
        http::write_stream_head(writer, &self.request_id())?;
        for (index, event) in self.protocol.events(&answer).iter().enumerate() {
            if cut == Some(index) {
                break;
            }
            if let Some((_, duration)) = stall.filter(|(after, _)| *after == index) {
                writer.flush()?;
                shared.pause(duration);
            }
            if let Some((_, duration)) = pace.filter(|(events, _)| index > 0 && index.is_multiple_of(*events))
            {
                writer.flush()?;
                shared.pause(duration);
            }
            http::write_chunk(writer, event)?;
        }
        if cut.is_some() {
            writer.flush()?;
            return Ok(false);
        }
        http::write_end(writer)?;
        Ok(true)
    }

    fn request_id(&self) -> String {
        format!("req_{}", self.mark)
    }
}

/// A word for the ids of an answer. It depends on the request alone, so that a repeated request gets the same ids, and
/// on the length of the conversation and its ends only, so that long conversations cost nothing extra.
fn mark(request: &Value) -> String {
    let list = request["messages"].as_array().or_else(|| request["input"].as_array());
    let messages = list.map_or(&[][..], Vec::as_slice);
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |text: &str| {
        for byte in text.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    mix(&messages.len().to_string());
    for message in messages.first().into_iter().chain(messages.last()) {
        mix(&message.to_string());
    }
    format!("{hash:016x}")
}
