//! A server that lives in the front's process: JSON-RPC messages go there one at a time through a function, and each
//! brings its answer back. Used for servers behind the control protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::{CallToolResult, Greeting, ListedTool, McpPeer, PeerError, PeerEvents, ToolCall};

/// Pages of a tool list that are read; a server that always promises more must not hold the session up.
const MOST_PAGES: usize = 100;
/// The version of MCP that is spoken.
const PROTOCOL_VERSION: &str = "2025-06-18";

/// Carries one JSON-RPC message to the server; the answer to a notification has no meaning.
pub type TunnelSend = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// A server behind a function.
#[derive(Clone)]
pub struct Tunnel {
    send: TunnelSend,
    numbers: Arc<AtomicU64>,
}

impl Tunnel {
    /// A server that is reached through `send`.
    #[must_use]
    pub fn new(send: TunnelSend) -> Self {
        Self { send, numbers: Arc::default() }
    }

    async fn ask(&self, id: u64, method: &str, params: Value) -> Result<Value, PeerError> {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut answer = (self.send)(message).await?;
        if let Some(error) = answer.get("error") {
            let text = error.get("message").and_then(Value::as_str).unwrap_or("no message");
            let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
            return Err(PeerError::Refused { code, message: format!("{method}: {text}") });
        }
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(PeerError::Failed(format!("{method}: the answer has neither a result nor an error"))),
        }
    }

    async fn notify(&self, method: &str, params: Value) {
        // Nothing depends on whether a notification arrived.
        let _ = (self.send)(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    async fn greet(&self) -> Result<Greeting, PeerError> {
        let hello = json!({
            "protocolVersion": PROTOCOL_VERSION, "capabilities": {},
            "clientInfo": { "name": "qodercli", "version": crate::VERSION },
        });
        let mut answer = self.ask(self.number(), "initialize", hello).await?;
        self.notify("notifications/initialized", json!({})).await;
        Ok(Greeting {
            server_info: answer.get("serverInfo").cloned(),
            capabilities: answer.get_mut("capabilities").map(Value::take).unwrap_or_default(),
            instructions: answer.get("instructions").and_then(Value::as_str).map(str::to_owned),
            tools: self.tools().await?,
        })
    }

    async fn tools(&self) -> Result<Vec<ListedTool>, PeerError> {
        let mut tools = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let page = self.ask(self.number(), "tools/list", params).await?;
            let listed = page.get("tools").cloned().unwrap_or_else(|| json!([]));
            let listed: Vec<ListedTool> = serde_json::from_value(listed)
                .map_err(|error| PeerError::Failed(format!("tools/list: a tool cannot be read: {error}")))?;
            tools.extend(listed);
            cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        Ok(tools)
    }
}

impl McpPeer for Tunnel {
    fn connect(&self, _: PeerEvents) -> BoxFuture<'static, Result<Greeting, PeerError>> {
        let tunnel = self.clone();
        async move { tunnel.greet().await }.boxed()
    }

    fn list_tools(&self) -> BoxFuture<'static, Result<Vec<ListedTool>, PeerError>> {
        let tunnel = self.clone();
        async move { tunnel.tools().await }.boxed()
    }

    fn request(&self, method: &'static str, params: Value) -> BoxFuture<'static, Result<Value, PeerError>> {
        let tunnel = self.clone();
        async move { tunnel.ask(tunnel.number(), method, params).await }.boxed()
    }

    /// The server belongs to the front and lives as long as that.
    fn close(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<CallToolResult, PeerError>> {
        let tunnel = self.clone();
        async move {
            let id = tunnel.number();
            let params = json!({ "name": call.tool, "arguments": call.arguments });
            let answer = tokio::select! {
                answer = tunnel.ask(id, "tools/call", params) => answer?,
                () = call.cancelled => {
                    let reason = json!({ "requestId": id, "reason": "the call was interrupted" });
                    tunnel.notify("notifications/cancelled", reason).await;
                    return Err(PeerError::Failed("the call was interrupted".to_owned()));
                }
            };
            serde_json::from_value(answer)
                .map_err(|error| PeerError::Failed(format!("the result cannot be read: {error}")))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    use qoder_core::ports::Cancelled;

    fn never() -> Cancelled {
        std::future::pending().boxed().shared()
    }

    fn server(answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> (Tunnel, Arc<Mutex<Vec<Value>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&seen);
        let send: TunnelSend = Arc::new(move |message: Value| {
            heard.lock().unwrap().push(message.clone());
            std::future::ready(Ok(answer(&message))).boxed()
        });
        (Tunnel::new(send), seen)
    }

    #[tokio::test]
    async fn the_handshake_reads_all_pages_of_tools() {
        let (tunnel, seen) = server(|message| {
            let page = message["params"]["cursor"].as_str();
            match (message["method"].as_str().unwrap(), page) {
                ("initialize", _) => json!({ "result": { "serverInfo": { "name": "kb", "version": "1" } } }),
                ("tools/list", None) => {
                    json!({ "result": { "tools": [{ "name": "a" }], "nextCursor": "2" } })
                }
                ("tools/list", Some(_)) => {
                    json!({ "result": { "tools": [{ "name": "b", "inputSchema": {} }] } })
                }
                _ => json!({ "result": {} }),
            }
        });
        let greeting = tunnel.connect(Arc::new(|_| {})).await.unwrap();
        assert_eq!(greeting.server_info, Some(json!({ "name": "kb", "version": "1" })));
        let names: Vec<&str> = greeting.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let methods: Vec<String> = seen
            .lock()
            .unwrap()
            .iter()
            .map(|message| message["method"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(methods, ["initialize", "notifications/initialized", "tools/list", "tools/list"]);
    }

    #[tokio::test]
    async fn an_error_of_the_server_names_what_was_asked() {
        let (tunnel, _) = server(|_| json!({ "error": { "code": -32601, "message": "no such thing" } }));
        let problem = tunnel.call(ToolCall::new("x", json!({}), never())).await.unwrap_err();
        assert_eq!(problem.to_string(), "tools/call: no such thing (-32601)");
    }

    #[tokio::test]
    async fn a_call_that_is_interrupted_tells_the_server() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&seen);
        let send: TunnelSend = Arc::new(move |message: Value| {
            let is_call = message["method"] == "tools/call";
            heard.lock().unwrap().push(message);
            if is_call { std::future::pending().boxed() } else { std::future::ready(Ok(json!({}))).boxed() }
        });
        let cancelled = std::future::ready(()).boxed().shared();
        let problem = Tunnel::new(send).call(ToolCall::new("x", json!({}), cancelled)).await.unwrap_err();
        assert_eq!(problem.to_string(), "the call was interrupted");
        let last = seen.lock().unwrap().last().cloned().unwrap();
        assert_eq!(last["method"], "notifications/cancelled");
        assert_eq!(last["params"]["requestId"], 1);
    }
}
