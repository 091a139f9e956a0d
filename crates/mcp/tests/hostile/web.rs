//! A web server whose answers a test writes by hand, and a proxy that cuts or holds up what passes through it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub headers: String,
    pub body: serde_json::Value,
}

impl Seen {
    /// A header by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The method of the protocol.
    pub fn asks(&self) -> &str {
        self.body["method"].as_str().unwrap_or("")
    }
}

/// What is sent back: bytes, and whether the connection stays open behind them.
pub struct Reply {
    pub bytes: Vec<u8>,
    pub stay: bool,
}

impl Reply {
    pub fn new(status: &str, headers: &str, body: &str) -> Self {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n");
        Self { bytes: [head.as_bytes(), body.as_bytes()].concat(), stay: false }
    }

    pub fn json(body: &serde_json::Value) -> Self {
        Self::new("200 OK", "Content-Type: application/json\r\n", &body.to_string())
    }

    /// The answer to a request of the protocol.
    pub fn result(seen: &Seen, result: &serde_json::Value) -> Self {
        Self::json(&serde_json::json!({ "jsonrpc": "2.0", "id": seen.body["id"], "result": result }))
    }

    /// Events, and then nothing more.
    pub fn events(text: &str) -> Self {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        Self { bytes: [head.as_bytes(), text.as_bytes()].concat(), stay: true }
    }

    /// What a plain server answers: the handshake, one tool `echo`, and nothing else.
    pub fn usual(seen: &Seen) -> Self {
        use serde_json::json;
        match (seen.method.as_str(), seen.asks()) {
            ("POST", "initialize") => Self::result(
                seen,
                &json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                    "serverInfo": { "name": "web", "version": "1" } }),
            ),
            ("POST", "tools/list") => Self::result(seen, &json!({ "tools": [{ "name": "echo" }] })),
            ("POST", "tools/call") => {
                Self::result(seen, &json!({ "content": [{ "type": "text", "text": "said" }] }))
            }
            ("POST", _) => Self::new("202 Accepted", "", ""),
            _ => Self::new("405 Method Not Allowed", "", ""),
        }
    }
}

/// A web server with everything that it was asked.
pub struct Web {
    pub port: u16,
    pub seen: Arc<Mutex<Vec<Seen>>>,
    listening: AbortHandle,
}

impl Web {
    pub async fn start(reply: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (kept, reply) = (Arc::clone(&seen), Arc::new(reply));
        let listening = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, reply) = (Arc::clone(&kept), Arc::clone(&reply));
                connections.spawn(async move {
                    let _ = serve(stream, &kept, &*reply).await;
                });
            }
        });
        Self { port, seen, listening: listening.abort_handle() }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    kept: &Mutex<Vec<Seen>>,
    reply: &(impl Fn(&Seen) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    };
    let headers = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut body = bytes.split_off(head + 4);
    let mut words = headers.split_whitespace();
    let mut seen = Seen {
        method: words.next().unwrap_or_default().to_owned(),
        path: words.next().unwrap_or_default().to_owned(),
        headers: headers.clone(),
        body: serde_json::Value::Null,
    };
    let length = seen.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Ok(());
        }
    }
    seen.body = serde_json::from_slice(&body).unwrap_or_default();
    kept.lock().unwrap().push(seen.clone());
    let reply = reply(&seen);
    stream.write_all(&reply.bytes).await?;
    if reply.stay {
        // Until the other side has enough.
        while stream.read_buf(&mut bytes).await? > 0 {}
    }
    stream.shutdown().await
}

/// Passes everything on, and does something at the piece with one number: pauses, or cuts the connection it belongs to.
pub struct Proxy {
    pub port: u16,
    listening: AbortHandle,
}

impl Proxy {
    pub async fn start(target: u16, at: usize, pause: Option<Duration>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let count = Arc::new(Mutex::new(0_usize));
        let listening = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let count = Arc::clone(&count);
                connections.spawn(async move {
                    let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { return };
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    // Whichever side ends first takes the other one with it.
                    tokio::select! {
                        _ = carry(from_client, to_server, &count, at, pause) => {}
                        _ = carry(from_server, to_client, &count, at, pause) => {}
                    }
                });
            }
        });
        Self { port, listening: listening.abort_handle() }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn carry(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    count: &Mutex<usize>,
    at: usize,
    pause: Option<Duration>,
) -> std::io::Result<()> {
    let mut buffer = vec![0_u8; 64 * 1024];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let number = {
            let mut count = count.lock().unwrap();
            *count += 1;
            *count - 1
        };
        match (number == at, pause) {
            (true, None) => return Ok(()),
            (true, Some(pause)) => tokio::time::sleep(pause).await,
            (false, _) => {}
        }
        to.write_all(&buffer[..length]).await?;
    }
}
