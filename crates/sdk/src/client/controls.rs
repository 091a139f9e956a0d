//! What a running session can be asked to do or to report. What a runtime cannot do is an error that says so.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::QoderSdkClient;
use crate::error::{Error, Result};
use crate::mcp::{McpAuthenticateResult, McpServerConfig, McpServerStatus, McpSetServersResult, OAuthToken};
use crate::options::agents::AgentInfo;
use crate::options::model_policy::{ByokProviderInfo, ModelInfo};
use crate::options::permission::PermissionMode;
use crate::session::Control;

/// What an interrupt left and took: ids of messages that were waiting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterruptReceipt {
    /// They still wait.
    pub still_queued: Vec<String>,
    /// They were dropped.
    pub cancelled: Vec<String>,
}

/// What rewinding files would change, or has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RewindResult {
    /// False when there is nothing to go back to.
    pub can_rewind: bool,
    /// Why not.
    pub error: Option<String>,
    /// The files.
    pub files_changed: Vec<String>,
    /// Lines that come back.
    pub insertions: u64,
    /// Lines that go.
    pub deletions: u64,
    /// Places that are left alone because a link leads elsewhere by now.
    pub skipped_links: Vec<String>,
    /// Files that something else than a file tool has changed as well; that goes too.
    pub changed_elsewhere: Vec<String>,
    /// Messages that are no longer part of the conversation.
    pub messages_removed: u64,
}

/// How full the context is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContextUsage {
    /// Tokens in use.
    pub total_tokens: u64,
    /// The window.
    pub max_tokens: u64,
    /// Of the window, 0 to 100.
    pub percentage: f64,
    /// The model.
    pub model: String,
    /// All other fields, such as `categories`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl QoderSdkClient {
    /// Stops the reply or tool that runs. The session continues; the turn ends with a result.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn interrupt(&self) -> Result<InterruptReceipt> {
        self.ask(Control::Interrupt).await
    }

    /// Another model, from the next call of one on; `None` is the default. Without effect when `resolve_model` chooses.
    ///
    /// # Errors
    /// When the model does not exist or the session has ended.
    pub async fn set_model(&self, model: Option<&str>) -> Result<()> {
        self.control(Control::SetModel(model.map(str::to_owned))).await
    }

    /// Another permission mode, from the next decision on.
    ///
    /// # Errors
    /// When the settings forbid it, when it skips permissions and the options do not allow that, or when the session
    /// has ended.
    pub async fn set_permission_mode(&self, mode: PermissionMode) -> Result<()> {
        if mode == PermissionMode::BypassPermissions && !self.options.allow_dangerously_skip_permissions {
            return Err(Error::option(
                "permission_mode",
                "bypassPermissions runs every call without a question",
                "say that you mean it with allow_dangerously_skip_permissions = true",
            ));
        }
        self.control(Control::SetPermissionMode(mode)).await
    }

    /// Stops a background task.
    ///
    /// # Errors
    /// When there is no such task.
    pub async fn stop_task(&self, task_id: &str) -> Result<()> {
        self.control(Control::StopTask(task_id.to_owned())).await
    }

    /// Lays settings over those of the session; the last call wins per key.
    ///
    /// # Errors
    /// When a setting cannot be used or the runtime has no such thing.
    pub async fn apply_flag_settings(&self, settings: Map<String, Value>) -> Result<()> {
        self.control(Control::ApplyFlagSettings(settings)).await
    }

    /// The agents that the session has, as of the handshake or the last [`Self::reload_plugins`]; empty before it is
    /// connected.
    #[must_use]
    pub fn supported_agents(&self) -> Vec<AgentInfo> {
        self.of_info("agents")
    }

    /// The slash commands that the session has, as of the handshake or the last [`Self::reload_plugins`].
    #[must_use]
    pub fn supported_commands(&self) -> Vec<Value> {
        self.of_info("commands")
    }

    fn of_info<T: DeserializeOwned>(&self, key: &str) -> Vec<T> {
        let Some(connected) = &self.connected else { return Vec::new() };
        let reloaded = connected.reloaded.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = reloaded.get(key).or_else(|| connected.info.get(key)).and_then(Value::as_array);
        let read = |value: &Value| serde_json::from_value(value.clone()).ok();
        listed.into_iter().flatten().filter_map(read).collect()
    }

    /// How the MCP servers are doing.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn get_mcp_status(&self) -> Result<Vec<McpServerStatus>> {
        self.part(Control::McpStatus, "mcpServers").await
    }

    /// Replaces the MCP servers by these.
    ///
    /// # Errors
    /// When the runtime cannot.
    pub async fn set_mcp_servers(
        &self,
        servers: &BTreeMap<String, McpServerConfig>,
    ) -> Result<McpSetServersResult> {
        self.ask(Control::McpSetServers(servers.clone())).await
    }

    /// Connects an MCP server again.
    ///
    /// # Errors
    /// When there is no such server or it fails again.
    pub async fn reconnect_mcp_server(&self, name: &str) -> Result<()> {
        self.control(Control::McpReconnect(name.to_owned())).await
    }

    /// Switches an MCP server off, or on again.
    ///
    /// # Errors
    /// When there is no such server.
    pub async fn toggle_mcp_server(&self, name: &str, enabled: bool) -> Result<()> {
        self.control(Control::McpToggle { name: name.to_owned(), enabled }).await
    }

    /// Starts the authentication of an MCP server.
    ///
    /// # Errors
    /// When the runtime cannot.
    pub async fn mcp_authenticate(
        &self,
        name: &str,
        redirect_uri: Option<&str>,
    ) -> Result<McpAuthenticateResult> {
        let redirect_uri = redirect_uri.map(str::to_owned);
        self.ask(Control::McpAuthenticate { name: name.to_owned(), redirect_uri }).await
    }

    /// Hands over the address to which a person was sent back after authenticating.
    ///
    /// # Errors
    /// When it does not belong to the request, or the runtime cannot.
    pub async fn mcp_submit_oauth_callback_url(&self, name: &str, callback_url: &str) -> Result<()> {
        let callback_url = callback_url.to_owned();
        self.control(Control::McpSubmitCallback { name: name.to_owned(), callback_url }).await
    }

    /// Hands over credentials for an MCP server.
    ///
    /// # Errors
    /// When the runtime cannot.
    pub async fn inject_mcp_token(&self, name: &str, token: OAuthToken) -> Result<()> {
        self.control(Control::McpInjectToken { name: name.to_owned(), token }).await
    }

    /// Forgets the credentials of an MCP server.
    ///
    /// # Errors
    /// When the runtime cannot.
    pub async fn mcp_clear_auth(&self, name: &str) -> Result<()> {
        self.control(Control::McpClearAuth(name.to_owned())).await
    }

    /// The models that can be chosen now; empty when they are unknown.
    pub async fn get_available_models(&self) -> Vec<ModelInfo> {
        self.part(Control::AvailableModels { live: true }, "models").await.unwrap_or_default()
    }

    /// The providers for keys of your own; `None` when the runtime has no such catalogue.
    pub async fn list_byok_providers(&self) -> Option<Vec<ByokProviderInfo>> {
        self.part(Control::ByokConfig, "providers").await.ok()
    }

    /// How full the context is.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn get_context_usage(&self) -> Result<ContextUsage> {
        self.ask(Control::ContextUsage).await
    }

    /// Usage of the account; `None` when it is unknown.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn get_usage_info(&self) -> Result<Option<Value>> {
        self.part(Control::UsageInfo, "usageInfo").await
    }

    /// What is known about the account.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn account_info(&self) -> Result<Value> {
        self.part(Control::AccountInfo, "account").await
    }

    /// Brings files back to what they were when a message was sent; with `dry_run` only says what would change.
    ///
    /// # Errors
    /// When there is nothing to go back to, or the runtime cannot.
    pub async fn rewind_files(&self, user_message_id: &str, dry_run: bool) -> Result<RewindResult> {
        self.ask(Control::RewindFiles { user_message_id: user_message_id.to_owned(), dry_run }).await
    }

    /// Goes back to a message: `both`, `conversation` or `files`.
    ///
    /// # Errors
    /// When there is nothing to go back to, or the runtime cannot.
    pub async fn rewind(&self, user_message_id: &str, scope: Option<&str>, dry_run: bool) -> Result<Value> {
        let (user_message_id, scope) = (user_message_id.to_owned(), scope.map(str::to_owned));
        self.ask(Control::Rewind { user_message_id, scope, dry_run }).await
    }

    /// Takes a message back that waits for its turn; false when it is too late.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn cancel_async_message(&self, uuid: &str) -> Result<bool> {
        self.part(Control::CancelAsyncMessage(uuid.to_owned()), "cancelled").await
    }

    /// Moves running commands to the background, or the one of a call; false when there was none.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn background_tasks(&self, tool_use_id: Option<&str>) -> Result<bool> {
        self.part(Control::BackgroundTasks(tool_use_id.map(str::to_owned)), "moved").await
    }

    /// More directories to work in, for this session.
    ///
    /// # Errors
    /// When one cannot be used.
    pub async fn add_directories(&self, directories: &[&str]) -> Result<Vec<String>> {
        let directories = directories.iter().map(|folder| (*folder).to_owned()).collect();
        self.part(Control::AddDirectories(directories), "added").await
    }

    /// A title for a session about this; `None` when the model has none.
    ///
    /// # Errors
    /// When the runtime cannot.
    pub async fn generate_session_title(&self, description: &str, persist: bool) -> Result<Option<String>> {
        let description = description.to_owned();
        self.part(Control::GenerateSessionTitle { description, persist }, "title").await
    }

    /// Turns of a running goal; `None` is unlimited.
    ///
    /// # Errors
    /// When the runtime cannot.
    pub async fn set_goal_max_turns(&self, turns: Option<u64>) -> Result<()> {
        self.control(Control::SetGoalMaxTurns(turns)).await
    }

    /// The plugins of the session.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn list_plugins(&self) -> Result<Vec<Value>> {
        self.part(Control::ListPlugins, "plugins").await
    }

    /// Reads plugins anew; the answer has `error_count`.
    ///
    /// # Errors
    /// When the runtime cannot.
    pub async fn reload_plugins(&self) -> Result<Value> {
        let answer: Value = self.ask(Control::ReloadPlugins).await?;
        if let Some(connected) = &self.connected {
            let mut reloaded = connected.reloaded.lock().unwrap_or_else(PoisonError::into_inner);
            reloaded.clone_from(&answer);
        }
        Ok(answer)
    }

    pub(super) async fn control(&self, control: Control) -> Result<()> {
        self.link()?.request(control).await.map(drop)
    }

    pub(super) async fn ask<T: DeserializeOwned>(&self, control: Control) -> Result<T> {
        let name = control.name();
        let answer = self.link()?.request(control).await?;
        read(name, answer)
    }

    pub(super) async fn part<T: DeserializeOwned>(&self, control: Control, key: &str) -> Result<T> {
        let name = control.name();
        let mut answer = self.link()?.request(control).await?;
        read(name, answer.get_mut(key).map(Value::take).unwrap_or_default())
    }
}

fn read<T: DeserializeOwned>(name: &str, answer: Value) -> Result<T> {
    serde_json::from_value(answer)
        .map_err(|error| Error::Protocol(format!("the answer to {name} has another shape: {error}")))
}
