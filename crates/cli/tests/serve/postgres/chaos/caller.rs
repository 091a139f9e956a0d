//! Requests to nodes that may be dead, frozen or cut off: another one is asked until one answers. A key makes each count once.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long a node may take; a frozen one takes longer.
const ANSWER: Duration = Duration::from_secs(5);
/// A guard against hanging: longer than others wait before they take a session over, and longer than a quarantine's last pause.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// Set when no further fault can be made: clients wait for nothing then.
pub static GIVEN_UP: AtomicBool = AtomicBool::new(false);
const PAUSE: Duration = Duration::from_millis(20);

/// Asks one of several nodes.
pub struct Caller {
    addresses: Vec<String>,
    token: String,
    next: usize,
}

impl Caller {
    pub fn new(addresses: &[String], token: &str, first: usize) -> Self {
        Self { addresses: addresses.to_vec(), token: token.to_owned(), next: first }
    }

    fn address(&mut self) -> &str {
        self.next += 1;
        &self.addresses[self.next % self.addresses.len()]
    }

    /// Asks until a node answers with something else than that it cannot at the moment.
    pub fn post(&mut self, path: &str, key: &str, body: &Value) -> (u16, Value) {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.try_post(path, key, body) {
                Some((503, _)) | None => {}
                Some(answer) => return answer,
            }
            assert!(Instant::now() < until && !GIVEN_UP.load(Ordering::SeqCst), "no node answers {path}");
            std::thread::sleep(PAUSE);
        }
    }

    fn try_post(&mut self, path: &str, key: &str, body: &Value) -> Option<(u16, Value)> {
        let body = body.to_string();
        let headers = format!("idempotency-key: {key}\r\ncontent-length: {}\r\n", body.len());
        let (status, mut reader) = self.open("POST", path, &headers, &body)?;
        let mut answer = Vec::new();
        reader.read_to_end(&mut answer).ok()?;
        Some((status, serde_json::from_slice(&answer).ok()?))
    }

    /// The stream of a session behind an event, at whichever node answers; `None` when the one that was asked does not.
    pub fn stream(&mut self, session: &str, after: &str) -> Option<BufReader<TcpStream>> {
        let path = format!("/v1/sessions/{session}/events/stream");
        let (status, reader) = self.open("GET", &path, &format!("last-event-id: {after}\r\n"), "")?;
        assert_ne!(status, 404, "{session}: the event {after} was shown and is gone");
        (status == 200).then_some(reader)
    }

    fn open(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Option<(u16, BufReader<TcpStream>)> {
        let token = self.token.clone();
        let mut stream = TcpStream::connect(self.address()).ok()?;
        stream.set_read_timeout(Some(ANSWER)).ok()?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {token}\r\n{headers}\r\n{body}"
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let status = line.split(' ').nth(1)?.parse().ok()?;
        while line.trim() != "" {
            line.clear();
            reader.read_line(&mut line).ok()?;
        }
        Some((status, reader))
    }
}
