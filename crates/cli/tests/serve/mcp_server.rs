//! An MCP server over HTTP with two tools, for tests: it answers in JSON and keeps what it was called with. It can want a token, and
//! then has a token endpoint, where each refresh token works once.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

pub struct McpServer {
    pub url: String,
    calls: Arc<Mutex<Vec<Value>>>,
    guard: Arc<Mutex<Guard>>,
}

/// What a server wants of those who call it.
#[derive(Debug, Default)]
struct Guard {
    token: Option<String>,
    refresh_token: String,
    renewals: usize,
    handshakes: usize,
}

impl McpServer {
    pub fn start() -> Self {
        Self::guarded_by(Guard::default())
    }

    /// A server that answers no one without this token, and renews it for this refresh token.
    pub fn guarded(token: &str, refresh_token: &str) -> Self {
        Self::guarded_by(Guard {
            token: Some(token.to_owned()),
            refresh_token: refresh_token.to_owned(),
            ..Guard::default()
        })
    }

    /// Where its tokens are renewed.
    pub fn token_endpoint(&self) -> String {
        self.url.replace("/mcp", "/token")
    }

    /// How often its token was renewed.
    pub fn renewals(&self) -> usize {
        self.guard.lock().unwrap().renewals
    }

    /// How many connections were begun.
    pub fn handshakes(&self) -> usize {
        self.guard.lock().unwrap().handshakes
    }

    fn guarded_by(guard: Guard) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let calls = Arc::new(Mutex::new(Vec::new()));
        let guard = Arc::new(Mutex::new(guard));
        let (kept, guarded) = (Arc::clone(&calls), Arc::clone(&guard));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, guarded) = (Arc::clone(&kept), Arc::clone(&guarded));
                std::thread::spawn(move || serve(stream, &kept, &guarded));
            }
        });
        Self { url, calls, guard }
    }

    /// What the tools were called with.
    pub fn calls(&self) -> Vec<Value> {
        self.calls.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, calls: &Mutex<Vec<Value>>, guard: &Mutex<Guard>) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let (mut length, mut bearer) = (0, String::new());
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if lower.starts_with("authorization: bearer ") {
                bearer = line["authorization: bearer ".len()..].trim().to_owned();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let mut words = first.split(' ');
        let is_unknown = guard.lock().unwrap().token.as_ref().is_some_and(|token| *token != bearer);
        let (status, answer) = match (words.next(), words.next()) {
            (Some("POST"), Some("/token")) => renew(&String::from_utf8(body).unwrap(), guard),
            (Some("POST"), _) if is_unknown => {
                ("401 Unauthorized", Some(json!({ "error": "invalid_token", "got": bearer })))
            }
            (Some("POST"), _) => {
                let request = serde_json::from_slice(&body).unwrap_or(Value::Null);
                guard.lock().unwrap().handshakes += usize::from(request["method"] == "initialize");
                answer(&request, calls)
            }
            _ => ("405 Method Not Allowed", None),
        };
        let text = answer.map(|answer| answer.to_string()).unwrap_or_default();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        );
        if writer.write_all(head.as_bytes()).is_err() {
            return;
        }
    }
}

/// The token endpoint.
fn renew(form: &str, guard: &Mutex<Guard>) -> (&'static str, Option<Value>) {
    let mut guard = guard.lock().unwrap();
    let good = form.contains(&format!("refresh_token={}", guard.refresh_token))
        && form.contains("client_secret=cs-secret-1");
    if !good {
        return ("400 Bad Request", Some(json!({ "error": "invalid_grant" })));
    }
    guard.renewals += 1;
    let (token, next) =
        (format!("renewed-token-{}", guard.renewals), format!("next-refresh-{}", guard.renewals));
    (guard.token, guard.refresh_token) = (Some(token.clone()), next.clone());
    (
        "200 OK",
        Some(
            json!({ "access_token": token, "refresh_token": next, "expires_in": 3600, "token_type": "Bearer" }),
        ),
    )
}

fn answer(request: &Value, calls: &Mutex<Vec<Value>>) -> (&'static str, Option<Value>) {
    let Some(id) = request.get("id") else { return ("202 Accepted", None) };
    let tool = |name: &str| json!({ "name": name, "description": name, "inputSchema": { "type": "object" } });
    let result = match request["method"].as_str() {
        Some("initialize") => json!({ "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": { "tools": {} }, "serverInfo": { "name": "weather", "version": "1" } }),
        Some("tools/list") => json!({ "tools": [tool("get_forecast"), tool("set_alarm"), tool("old.tool")] }),
        Some("tools/call") => {
            calls.lock().unwrap().push(request["params"].clone());
            json!({ "content": [{ "type": "text", "text": "sunny in MCP" }] })
        }
        _ => {
            let error = json!({ "code": -32601, "message": "no such method" });
            return ("200 OK", Some(json!({ "jsonrpc": "2.0", "id": id, "error": error })));
        }
    };
    ("200 OK", Some(json!({ "jsonrpc": "2.0", "id": id, "result": result })))
}
