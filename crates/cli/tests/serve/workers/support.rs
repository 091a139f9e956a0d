//! An environment that workers serve, and a worker that speaks plain HTTP.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::serve::support::{Answer, Server, id};

/// A self-hosted environment.
pub fn self_hosted(server: &Server) -> String {
    let body = json!({ "name": "ours", "config": { "type": "self_hosted" } });
    id(&server.post("/v1/environments", &body).ok())
}

/// A session of an agent with these tools in a self-hosted environment.
pub fn session_in(server: &Server, environment: &str, tools: &Value) -> String {
    let body = json!({ "agent": server.agent(tools), "environment_id": environment });
    id(&server.post("/v1/sessions", &body).ok())
}

/// The result of a call that a worker ran.
pub fn tool_result(event: &str, text: &str) -> Value {
    json!({ "type": "user.tool_result", "tool_use_id": event, "content": [{ "type": "text", "text": text }] })
}

/// A request with some token, in the dialect of workers.
pub fn with_token(server: &Server, token: &str, method: &str, path: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("anthropic-version", "2023-06-01")];
    let body = if method == "GET" || body.is_null() { String::new() } else { body.to_string() };
    server.bare(method, path, &headers, body.as_bytes())
}

/// The token of an item that a poll gave.
pub fn token_of(item: &Value) -> String {
    let payload = URL_SAFE_NO_PAD.decode(item["secret"].as_str().unwrap()).unwrap();
    let payload: Value = serde_json::from_slice(&payload).unwrap();
    payload["sessions_token"].as_str().unwrap().to_owned()
}

/// The queue of an environment, with the environment's key.
pub struct Queue<'a> {
    pub server: &'a Server,
    pub key: String,
    pub path: String,
}

impl<'a> Queue<'a> {
    pub fn of(server: &'a Server, environment: &str) -> Self {
        let scopes = format!("environment:{environment}");
        let key = server.token(&["--user", "worker-1", "--tenant", "ana", "--scopes", &scopes]);
        Self { server, key, path: format!("/v1/environments/{environment}/work") }
    }

    pub fn get(&self, rest: &str) -> Answer {
        with_token(self.server, &self.key, "GET", &format!("{}{rest}", self.path), &Value::Null)
    }

    pub fn post(&self, rest: &str, body: &Value) -> Answer {
        with_token(self.server, &self.key, "POST", &format!("{}{rest}", self.path), body)
    }

    /// Polls until there is an item.
    pub fn next(&self) -> Value {
        for _ in 0..60 {
            let item = self.get("/poll?block_ms=999").ok();
            if !item.is_null() {
                return item;
            }
        }
        panic!("no item comes")
    }

    /// Polls until there is an item, and takes it.
    pub fn take(&self) -> Value {
        let item = self.next();
        self.post(&format!("/{}/ack", id(&item)), &Value::Null).ok();
        item
    }

    pub fn beat(&self, item: &Value, expected: &str, ttl: u32) -> Answer {
        let expected = expected.replace('+', "%2B");
        let rest =
            format!("/{}/heartbeat?expected_last_heartbeat={expected}&desired_ttl_seconds={ttl}", id(item));
        self.post(&rest, &Value::Null)
    }

    /// The states of all items, the newest first.
    pub fn states(&self) -> Vec<String> {
        let listed = self.get("").ok();
        let items = listed["data"].as_array().unwrap();
        items.iter().map(|item| item["state"].as_str().unwrap().to_owned()).collect()
    }
}
