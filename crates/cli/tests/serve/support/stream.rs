//! Reads streams of events.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::Value;

use super::PATIENCE;
use super::values::{id, kind};

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
    pub fn new(reader: BufReader<TcpStream>, headers: Vec<(String, String)>) -> Self {
        Self { reader, headers, buffer: String::new(), seen: Vec::new(), is_over: false }
    }

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
