//! As small an HTTP client as the tests of the server need: one request,
//! the whole answer with its chunks joined, and whether the answer was
//! complete.

#![expect(clippy::expect_used, reason = "a test whose helper fails has failed")]

use std::io::{Read, Write};
use std::net::TcpStream;

use qoder_testkit::ScriptedServer;
use serde_json::Value;

/// What came back.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
    /// False when the stream ended without its last chunk.
    pub complete: bool,
}

impl Answer {
    /// The data of every event of the stream, except the word that ends a chat stream.
    pub fn events(&self) -> Vec<Value> {
        self.body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).expect("an event is JSON"))
            .collect()
    }
}

/// Posts JSON on a connection of its own.
pub fn post(server: &ScriptedServer, path: &str, body: &Value) -> Answer {
    let body = body.to_string();
    let head = format!("POST {path} HTTP/1.1\r\nHost: test\r\nconnection: close\r\n");
    exchange(server, &format!("{head}content-length: {}\r\n\r\n{body}", body.len()))
}

/// Sends raw bytes and reads until the connection closes.
pub fn exchange(server: &ScriptedServer, request: &str) -> Answer {
    let address = server.base_url().replace("http://", "");
    let mut connection = TcpStream::connect(address).expect("the server listens");
    connection.write_all(request.as_bytes()).expect("the request is sent");
    let mut bytes = Vec::new();
    connection.read_to_end(&mut bytes).expect("the answer is read");
    let text = String::from_utf8(bytes).expect("the answer is text");
    let (head, body) = text.split_once("\r\n\r\n").expect("the answer has a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("the answer has a status");
    let (body, complete) =
        if head.contains("transfer-encoding: chunked") { join_chunks(body) } else { (body.to_owned(), true) };
    Answer { status, head: head.to_owned(), body, complete }
}

fn join_chunks(mut rest: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((size, data)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk has a size");
        if size == 0 {
            return (body, true);
        }
        body.push_str(&data[..size]);
        rest = &data[size + 2..];
    }
    (body, false)
}
