//! What the program asks: permissions, hooks, messages for servers of this process, models and credentials. Each
//! question is answered on a task of its own; one that is taken back is dropped without an answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::wire::Wire;
use crate::callback::{CancellationToken, guarded};
use crate::hooks::HookCallback;
use crate::mcp::{McpServerConfig, McpServerStatus, McpServers};
use crate::options::QoderAgentOptions;
use crate::options::permission::{PermissionResult, PermissionUpdate, ToolPermissionContext};
use crate::session::MessageSender;
use crate::tools::RpcServer;
use crate::transport::callbacks::{call_hook, decide, resolve_model};

/// Answers what the program asks.
pub(super) struct Incoming {
    options: Arc<QoderAgentOptions>,
    hooks: Arc<[HookCallback]>,
    servers: Mutex<BTreeMap<String, Arc<RpcServer>>>,
    messages: MessageSender,
    wire: Wire,
    running: Mutex<HashMap<String, AbortHandle>>,
}

impl Incoming {
    pub(super) fn new(
        options: &Arc<QoderAgentOptions>,
        hooks: Arc<[HookCallback]>,
        messages: MessageSender,
        wire: &Wire,
    ) -> Self {
        let (options, wire) = (Arc::clone(options), wire.clone());
        let incoming =
            Self { options, hooks, servers: Mutex::default(), messages, wire, running: Mutex::default() };
        if let McpServers::Map(servers) = &incoming.options.mcp_servers {
            incoming.bring(servers);
        }
        incoming
    }

    /// Makes servers of this process known, under the names that the program knows them by.
    pub(super) fn bring(&self, servers: &BTreeMap<String, McpServerConfig>) {
        let mut known = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, server) in servers {
            match server {
                McpServerConfig::Sdk(server) => {
                    known.insert(name.clone(), Arc::new(RpcServer::new(Arc::clone(&server.instance))));
                }
                McpServerConfig::Stdio(_) | McpServerConfig::Sse(_) | McpServerConfig::Http(_) => {}
            }
        }
    }

    /// Takes a question.
    pub(super) fn take(this: &Arc<Self>, mut message: Value) {
        let Some(id) = message["request_id"].as_str().map(str::to_owned) else { return };
        let request = message.get_mut("request").map(Value::take).unwrap_or_default();
        let (incoming, name) = (Arc::clone(this), id.clone());
        let task = tokio::spawn(async move {
            let answer = incoming.answer(request).await;
            if incoming.lock().remove(&name).is_some() {
                incoming.wire.answer(&name, answer);
            }
        });
        // The task cannot have begun: this thread is the only one that runs tasks.
        this.lock().insert(id, task.abort_handle());
    }

    /// Drops a question that was taken back.
    pub(super) fn cancel(&self, message: &Value) {
        let id = message["request_id"].as_str().unwrap_or_default();
        if let Some(task) = self.lock().remove(id) {
            task.abort();
        }
    }

    /// Drops everything.
    pub(super) fn stop(&self) {
        for (_, task) in self.lock().drain() {
            task.abort();
        }
    }

    /// Calls `on_mcp_status_change` with the servers that changed.
    pub(super) fn status_changed(&self, message: &Value) {
        let Some(hear) = &self.options.on_mcp_status_change else { return };
        let rows = message["servers"].as_array().into_iter().flatten();
        let rows: Vec<McpServerStatus> =
            rows.filter_map(|row| serde_json::from_value(row.clone()).ok()).collect();
        // A listener that panics must not end the session.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hear(rows)));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Value) -> Result<Value, String> {
        match request["subtype"].as_str().unwrap_or_default() {
            "can_use_tool" => self.can_use_tool(&request).await,
            "hook_callback" => self.hook(&request).await,
            "mcp_message" => self.mcp_message(&request).await,
            "get_model_policy" => self.model_policy(request).await,
            "elicitation" => self.elicitation(request).await,
            "mcp_oauth_required" => self.oauth(request).await,
            "auth_expired" => self.auth_expired(&request).await,
            other => Err(format!("Unsupported control request subtype: {other}")),
        }
    }

    async fn can_use_tool(&self, request: &Value) -> Result<Value, String> {
        let Some(decider) = &self.options.can_use_tool else {
            return Err("there is no can_use_tool callback".to_owned());
        };
        let Some(name) = request["tool_name"].as_str().map(str::to_owned) else {
            return Err("can_use_tool needs a tool_name".to_owned());
        };
        let input = request["input"].clone();
        let result = decide(decider, name, input.clone(), |signal| context(request, signal)).await;
        let mut answer = serde_json::to_value(&result).map_err(|error| error.to_string())?;
        if matches!(result, PermissionResult::Allow { updated_input: None, .. }) {
            answer["updatedInput"] = input;
        }
        if let Some(id) = request.get("tool_use_id").filter(|id| id.is_string()) {
            answer["toolUseID"] = id.clone();
        }
        Ok(answer)
    }

    async fn hook(&self, request: &Value) -> Result<Value, String> {
        let id = request["callback_id"].as_str().unwrap_or_default();
        let number = id.strip_prefix("hook_").and_then(|number| number.parse::<usize>().ok());
        let hook = number.and_then(|number| self.hooks.get(number));
        let Some(hook) = hook else { return Err(format!("there is no hook `{id}`")) };
        let tool_use_id = request["tool_use_id"].as_str().map(str::to_owned);
        call_hook(hook, request["input"].clone(), tool_use_id).await
    }

    async fn mcp_message(&self, request: &Value) -> Result<Value, String> {
        let name = request["server_name"].as_str().unwrap_or_default();
        let message = &request["message"];
        let server = self.servers.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let response = match server {
            Some(server) => server.answer(message).await,
            None => json!({ "jsonrpc": "2.0", "id": message["id"], "error": {
                "code": -32601, "message": format!("there is no server named `{name}` in this process") } }),
        };
        Ok(json!({ "mcp_response": response }))
    }

    async fn model_policy(&self, mut request: Value) -> Result<Value, String> {
        let Some(provider) = &self.options.resolve_model else {
            return Err("there is no resolve_model callback".to_owned());
        };
        if let Some(fields) = request.as_object_mut() {
            fields.remove("subtype");
        }
        resolve_model(provider, request, self.options.resolve_model_timeout_ms, &self.messages).await
    }

    async fn elicitation(&self, request: Value) -> Result<Value, String> {
        let cancel = json!({ "action": "cancel" });
        let Some(answer) = &self.options.on_elicitation else { return Ok(cancel) };
        let Ok(request) = Deserialize::deserialize(request) else { return Ok(cancel) };
        let answered = guarded("on_elicitation", async { answer(request).await }).await;
        Ok(answered.ok().and_then(|answer| serde_json::to_value(answer).ok()).unwrap_or(cancel))
    }

    async fn oauth(&self, request: Value) -> Result<Value, String> {
        let Some(get) = &self.options.on_mcp_oauth_required else { return Ok(Value::Null) };
        let request =
            Deserialize::deserialize(request).map_err(|error: serde_json::Error| error.to_string())?;
        let resolution = guarded("on_mcp_oauth_required", async { get(request).await }).await?;
        serde_json::to_value(resolution).map_err(|error| error.to_string())
    }

    async fn auth_expired(&self, request: &Value) -> Result<Value, String> {
        if let Some(hear) = &self.options.on_auth_expired {
            let reason = request["reason"].as_str().unwrap_or_default().to_owned();
            guarded("on_auth_expired", async { hear(reason).await }).await?;
        }
        Ok(json!({}))
    }
}

fn context(request: &Value, signal: CancellationToken) -> ToolPermissionContext {
    let text = |key: &str| request[key].as_str().map(str::to_owned);
    let suggestions = request["permission_suggestions"].as_array().into_iter().flatten();
    ToolPermissionContext {
        signal,
        // One that this version does not know could not be answered with either.
        suggestions: suggestions.filter_map(|each| PermissionUpdate::deserialize(each).ok()).collect(),
        blocked_path: text("blocked_path"),
        decision_reason: text("decision_reason"),
        decision_reason_type: text("decision_reason_type"),
        classifier_approvable: request["classifier_approvable"].as_bool(),
        title: text("title"),
        display_name: text("display_name"),
        description: text("description"),
        tool_use_id: text("tool_use_id"),
        agent_id: text("agent_id"),
        exit_plan_mode: request.get("exit_plan_mode").filter(|plan| !plan.is_null()).cloned(),
    }
}
