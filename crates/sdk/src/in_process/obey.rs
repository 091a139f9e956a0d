//! What the engine in process does when a session is told something. What it has no way to do is refused by name; the
//! same program then works with an external one that has it.

use std::sync::Arc;

use qoder_core::ports::Model;
use qoder_runtime::VERSION;
use qoder_runtime::agent;
use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::live::{ControlError, Handle};
use qoder_runtime::model_policy;
use qoder_runtime::setup::Setup;
use qoder_types::{PermissionUpdate, UpdateDestination};
use serde_json::{Value, json};

use crate::session::Control;
use crate::{Error, Result};

/// What is needed to obey.
pub(super) struct Obeying {
    pub(super) handle: Handle,
    pub(super) setup: Arc<Setup>,
    pub(super) callbacks: Callbacks,
}

impl Obeying {
    /// Does it. The answer has the shape that travels.
    pub(super) async fn obey(&self, control: Control) -> Result<Value> {
        let name = control.name();
        let refused = |error: ControlError| match error {
            ControlError::Ended => Error::Closed,
            ControlError::Refused(message) => Error::ControlRequest { request: name.to_owned(), message },
        };
        let refused_text = |message: String| Error::ControlRequest { request: name.to_owned(), message };
        let servers = self.handle.engine().toolbox.servers();
        match control {
            Control::Interrupt => {
                let receipt = self.handle.interrupt().await.map_err(refused)?;
                Ok(json!({ "still_queued": receipt.still_queued, "cancelled": receipt.cancelled }))
            }
            Control::SetPermissionMode(mode) => {
                self.handle.set_permission_mode(mode).await.map_err(refused)?;
                Ok(json!({}))
            }
            Control::SetModel(model) => {
                self.handle.set_model(self.setup.model(model.as_deref(), &self.callbacks)?);
                Ok(json!({}))
            }
            Control::StopTask(id) => {
                self.handle.stop_task(&id).await.map_err(refused)?;
                Ok(json!({}))
            }
            Control::ContextUsage => self.context_usage().await.map_err(refused),
            Control::AvailableModels { .. } => {
                Ok(json!({ "models": model_policy::list(self.setup.model_options()).await }))
            }
            Control::SupportedAgents => Ok(json!({ "agents": agents(&self.handle) })),
            Control::SupportedCommands => Ok(json!({ "commands": [] })),
            Control::AccountInfo => {
                let source = self.handle.engine().model.facts().key_source;
                Ok(json!({ "account": { "apiKeySource": source } }))
            }
            Control::UsageInfo => Ok(json!({ "usageInfo": null })),
            Control::CancelAsyncMessage(uuid) => {
                Ok(json!({ "cancelled": self.handle.cancel_input(uuid).await.map_err(refused)? }))
            }
            Control::BackgroundTasks(id) => {
                Ok(json!({ "moved": self.handle.move_to_background(id.as_deref()) }))
            }
            Control::AddDirectories(directories) => {
                let destination = UpdateDestination::Session;
                let update = PermissionUpdate::AddDirectories { directories: directories.clone(), destination };
                self.handle.change_permissions(vec![update]).await.map_err(refused)?;
                Ok(json!({ "added": directories }))
            }
            Control::McpStatus => Ok(json!({ "mcpServers": servers.rows() })),
            Control::McpReconnect(server) => {
                servers.reconnect(&server).await.map_err(refused_text)?;
                Ok(json!({}))
            }
            Control::McpToggle { name: server, enabled } => {
                servers.toggle(&server, enabled).await.map_err(refused_text)?;
                Ok(json!({}))
            }
            Control::ListPlugins => Ok(json!({ "plugins": [] })),
            Control::ApplyFlagSettings(_)
            | Control::RewindFiles { .. }
            | Control::Rewind { .. }
            | Control::ByokConfig
            | Control::GenerateSessionTitle { .. }
            | Control::SetGoalMaxTurns(_)
            | Control::ReloadPlugins
            | Control::McpSetServers(_)
            | Control::McpAuthenticate { .. }
            | Control::McpSubmitCallback { .. }
            | Control::McpInjectToken { .. }
            | Control::McpClearAuth(_) => Err(Error::unsupported(name)),
        }
    }

    async fn context_usage(&self) -> Result<Value, ControlError> {
        let used = self.handle.run(|driver| Ok(driver.session().state.context.tokens())).await?;
        let facts = self.handle.engine().model.facts();
        let window = facts.context_window;
        let percentage = if window == 0 { 0 } else { used.saturating_mul(100) / window };
        Ok(json!({
            "categories": [{ "name": "Conversation", "tokens": used, "color": "default" }],
            "totalTokens": used, "maxTokens": window, "rawMaxTokens": window, "percentage": percentage,
            "model": facts.name, "isAutoCompactEnabled": true,
            "memoryFiles": [], "mcpTools": [], "agents": [], "gridRows": [],
        }))
    }
}

fn agents(handle: &Handle) -> Vec<Value> {
    if handle.engine().toolbox.get(agent::NAME).is_none() {
        return Vec::new();
    }
    let row = |name: &&str| json!({ "name": name, "description": "Works on a task of its own and reports back." });
    agent::AGENTS.iter().map(row).collect()
}

/// What a session says of itself when it is ready.
pub(super) fn server_info(handle: &Handle) -> Value {
    json!({
        "commands": [], "agents": agents(handle), "models": [], "account": {}, "output_style": "default",
        "skills": [], "plugins": [], "protocol_version": 1, "qodercli_version": VERSION,
        "capabilities": ["interrupt_receipt_v1"], "session_id": handle.session_id(),
        "pid": std::process::id(), "hook_on_failure_supported": true, "hooks_applied": true,
    })
}
