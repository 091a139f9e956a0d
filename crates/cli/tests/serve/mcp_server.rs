//! An MCP server over HTTP with two tools, for tests: it answers in JSON and keeps what it was called with.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

pub struct McpServer {
    pub url: String,
    calls: Arc<Mutex<Vec<Value>>>,
}

impl McpServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let calls = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&calls);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        Self { url, calls }
    }

    /// What the tools were called with.
    pub fn calls(&self) -> Vec<Value> {
        self.calls.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, calls: &Mutex<Vec<Value>>) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let (status, answer) = match first.split(' ').next() {
            Some("POST") => answer(&serde_json::from_slice(&body).unwrap_or(Value::Null), calls),
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
