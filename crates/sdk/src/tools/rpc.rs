//! A server of this process as JSON-RPC, for an external program that reaches it through messages: the handshake, the
//! list of tools and calls. A call can be cancelled by its number; a method that does not exist is said to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use qoder_runtime::Interrupt;
use serde_json::{Value, json};

use super::server::Instance;

/// Versions of MCP that are spoken; the first is offered to those who want another.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// One server for one connection.
pub(crate) struct RpcServer {
    instance: Arc<Instance>,
    running: Mutex<BTreeMap<String, Interrupt>>,
}

impl RpcServer {
    pub(crate) fn new(instance: Arc<Instance>) -> Self {
        Self { instance, running: Mutex::default() }
    }

    /// The answer to a message; a notification is acknowledged with an empty one.
    pub(crate) async fn answer(&self, message: &Value) -> Value {
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        let parameters = message.get("params").cloned().unwrap_or_else(|| json!({}));
        let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
            if method == "notifications/cancelled" {
                self.cancel(&parameters);
            }
            return json!({ "jsonrpc": "2.0", "result": {} });
        };
        match method {
            "initialize" => reply(id, &self.greeting(&parameters)),
            "ping" => reply(id, &json!({})),
            "tools/list" => reply(id, &json!({ "tools": self.instance.listed() })),
            "tools/call" => self.call(id, &parameters).await,
            other => refuse(id, -32601, &format!("Method not found: {other}")),
        }
    }

    fn greeting(&self, parameters: &Value) -> Value {
        let wanted = parameters.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let version = VERSIONS.iter().find(|version| **version == wanted).unwrap_or(&VERSIONS[0]);
        json!({
            "protocolVersion": version,
            "capabilities": { "tools": { "listChanged": false } },
            "serverInfo": self.instance.server_info(),
        })
    }

    async fn call(&self, id: &Value, parameters: &Value) -> Value {
        let Some(name) = parameters.get("name").and_then(Value::as_str) else {
            return refuse(id, -32602, "tools/call needs a name");
        };
        let arguments = parameters.get("arguments").filter(|arguments| !arguments.is_null());
        let interrupt = Interrupt::default();
        self.lock().insert(id.to_string(), interrupt.clone());
        let signal = interrupt.cancelled();
        let run =
            self.instance.run(name, arguments.cloned().unwrap_or_else(|| json!({})), signal.clone().into());
        let answer = tokio::select! {
            result = run => reply(id, &result.wire()),
            () = signal => refuse(id, -32800, "Request cancelled"),
        };
        self.lock().remove(&id.to_string());
        answer
    }

    fn cancel(&self, parameters: &Value) {
        let id = parameters.get("requestId").map(Value::to_string).unwrap_or_default();
        if let Some(interrupt) = self.lock().get(&id) {
            interrupt.trigger();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Interrupt>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reply(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn refuse(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}
