//! What the engine in process does when a session is told something. What it has no way to do is refused by name; the
//! same program then works with an external one that has it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use qoder_core::ports::Model;
use qoder_runtime::VERSION;
use qoder_runtime::agent;
use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::driver::CAPABILITIES;
use qoder_runtime::live::{ContextUsage, ControlError, Handle};
use qoder_runtime::model_policy;
use qoder_runtime::setup::Setup;
use qoder_types::{PermissionUpdate, UpdateDestination};
use serde_json::{Map, Value, json};

use super::status::Status;
use crate::session::Control;
use crate::{Error, Result};

/// What is needed to obey.
pub(super) struct Obeying {
    pub(super) handle: Handle,
    /// Replaced when settings are laid on top.
    setup: Mutex<Arc<Setup>>,
    callbacks: Callbacks,
    status: Arc<Status>,
}

impl Obeying {
    pub(super) fn new(handle: Handle, setup: Arc<Setup>, callbacks: Callbacks, status: Arc<Status>) -> Self {
        Self { handle, setup: Mutex::new(setup), callbacks, status }
    }

    fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.lock().unwrap_or_else(PoisonError::into_inner))
    }

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
                self.handle.set_model(self.setup().model(model.as_deref(), &self.callbacks)?);
                Ok(json!({}))
            }
            Control::StopTask(id) => {
                self.handle.stop_task(&id).await.map_err(refused)?;
                Ok(json!({}))
            }
            Control::ApplyFlagSettings(settings) => self.apply_flag_settings(settings).await.map_err(refused),
            Control::ContextUsage => {
                let usage = self.handle.run(|driver| Ok(ContextUsage::of(driver))).await.map_err(refused)?;
                serde_json::to_value(usage).map_err(|error| refused_text(error.to_string()))
            }
            Control::AvailableModels { .. } => {
                let setup = self.setup();
                Ok(json!({ "models": model_policy::list(setup.model_options()).await }))
            }
            Control::ByokConfig => Ok(json!({ "providers": self.setup().provider_catalog() })),
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
            Control::AddDirectories(directories) => self.add_directories(directories).await.map_err(refused),
            Control::McpStatus => Ok(json!({ "mcpServers": servers.rows() })),
            Control::McpReconnect(server) => {
                let outcome = servers.reconnect(&server).await;
                self.status.tell();
                outcome.map_err(refused_text)?;
                Ok(json!({}))
            }
            Control::McpToggle { name: server, enabled } => {
                let outcome = servers.toggle(&server, enabled).await;
                self.status.tell();
                outcome.map_err(refused_text)?;
                Ok(json!({}))
            }
            Control::ListPlugins => Ok(json!({ "plugins": [] })),
            Control::ReloadPlugins => Ok(json!({
                "commands": [], "agents": agents(&self.handle), "plugins": [],
                "mcpServers": servers.summary(), "error_count": 0,
            })),
            Control::RewindFiles { .. }
            | Control::Rewind { .. }
            | Control::GenerateSessionTitle { .. }
            | Control::SetGoalMaxTurns(_)
            | Control::McpSetServers(_)
            | Control::McpAuthenticate { .. }
            | Control::McpSubmitCallback { .. }
            | Control::McpInjectToken { .. }
            | Control::McpClearAuth(_) => Err(Error::unsupported(name)),
        }
    }

    async fn add_directories(&self, directories: Vec<String>) -> Result<Value, ControlError> {
        if let Some(folder) = directories.iter().find(|folder| !Path::new(folder).is_dir()) {
            return Err(ControlError::Refused(format!("{folder} is not a directory")));
        }
        let added = json!({ "added": directories });
        let destination = UpdateDestination::Session;
        let update = PermissionUpdate::AddDirectories { directories, destination };
        self.handle.change_permissions(vec![update]).await?;
        Ok(added)
    }

    /// Lays settings on top. What can change while a session runs takes effect at once: rules, mode and model.
    async fn apply_flag_settings(&self, settings: Map<String, Value>) -> Result<Value, ControlError> {
        let wrong = |error: qoder_runtime::setup::SetupError| {
            ControlError::Refused(format!("{error}. {}", error.hint()))
        };
        let before = self.setup();
        let after = before.with_flag_settings(&Value::Object(settings)).map_err(wrong)?;
        if after.names_another_model(&before) {
            self.handle.set_model(after.model(None, &self.callbacks).map_err(wrong)?);
        }
        self.handle.engine().gate.replace_rules(after.rules().clone());
        if after.mode() != before.mode() {
            self.handle.set_permission_mode(after.mode()).await?;
        }
        *self.setup.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(after);
        Ok(json!({}))
    }
}

fn agents(handle: &Handle) -> Vec<Value> {
    if handle.engine().toolbox.get(agent::NAME).is_none() {
        return Vec::new();
    }
    handle.engine().agents.rows()
}

/// What a session says of itself when it is ready.
pub(super) fn server_info(handle: &Handle) -> Value {
    json!({
        "commands": [], "agents": agents(handle), "models": [], "account": {}, "output_style": "default",
        "skills": [], "plugins": [], "protocol_version": 1, "qodercli_version": VERSION,
        "capabilities": CAPABILITIES, "session_id": handle.session_id(),
        "pid": std::process::id(), "hook_on_failure_supported": true, "hooks_applied": true,
    })
}
