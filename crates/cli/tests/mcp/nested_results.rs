//! A result that is nested without end: refused as soon as it is there, over pipes and over HTTP, and the server can be
//! used again.

use qoder_testkit::Reply;
use serde_json::{Value, json};

use crate::mcp::support::{bodies, model, results_in, trusted, turn};

/// A server with the standard library alone: `deep` answers with a result nested two million levels, `plain` with a word.
const SERVER: &str = r#"
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

def answer(message):
    method = message["method"]
    result = {}
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "nested", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("deep", "plain")]}
    elif method == "tools/call" and message["params"]["name"] == "deep":
        levels = 2000000
        return '{"jsonrpc":"2.0","id":%s,"result":{"content":%s%s}}' % (json.dumps(message["id"]), "[" * levels, "]" * levels)
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "still here"}]}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})

class Handler(BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass
    def do_GET(self):
        self.send_response(405)
        self.end_headers()
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message:
            self.send_response(202)
            self.end_headers()
            return
        body = answer(message)
        kind = "application/json"
        if sys.argv[1] == "events":
            body, kind = "data: " + body + "\n\n", "text/event-stream"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

if sys.argv[1] == "pipes":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            print(answer(message), flush=True)
else:
    server = HTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
"#;

/// Calls both tools of the server and answers with what the model got.
fn called(server: &Value) -> Vec<(Value, bool)> {
    let sandbox = trusted(&json!({ "mcpServers": { "nested": server } }));
    let call = |tool: &str| Reply::tool(format!("mcp__nested__{tool}"), json!({}));
    let model = model(vec![call("deep"), call("plain"), Reply::text("done")]);
    turn(&sandbox, &model, &["--yolo", "hello"]).ok();
    let requests = bodies(&model);
    requests.iter().skip(1).flat_map(results_in).collect()
}

fn assert_refused(results: &[(Value, bool)]) {
    assert_eq!(results.len(), 2, "{results:?}");
    assert!(results[0].1 && results[0].0.to_string().contains("cannot be read"), "{results:?}");
    assert_eq!(results[1], (json!("still here"), false));
}

#[test]
fn over_pipes() {
    assert_refused(&called(&json!({ "command": "python3", "args": ["-c", SERVER, "pipes"] })));
}

#[test]
fn over_http_and_in_events() {
    for kind in ["json", "events"] {
        let mut server = std::process::Command::new("python3")
            .args(["-c", SERVER, kind])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let mut output = std::io::BufReader::new(server.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut port).unwrap();
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        let results = called(&json!({ "type": "http", "url": url }));
        server.kill().unwrap();
        server.wait().unwrap();
        assert_refused(&results);
    }
}
