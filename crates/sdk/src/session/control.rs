//! What a session can be asked to do while it runs. One list for both kinds of sessions: the engine in process obeys
//! it directly, an external program gets it in the shape in which control requests travel.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::mcp::{McpServerConfig, OAuthToken};
use crate::options::permission::{PermissionMode, PermissionUpdate};

/// Something that a session must do.
#[derive(Debug, Clone)]
pub(crate) enum Control {
    Interrupt,
    SetPermissionMode(PermissionMode),
    SetModel(Option<String>),
    StopTask(String),
    ApplyFlagSettings(Map<String, Value>),
    RewindFiles { user_message_id: String, dry_run: bool },
    Rewind { user_message_id: String, scope: Option<String>, dry_run: bool },
    ContextUsage,
    AvailableModels { live: bool },
    ByokConfig,
    AccountInfo,
    UsageInfo,
    CancelAsyncMessage(String),
    BackgroundTasks(Option<String>),
    AddDirectories(Vec<String>),
    GenerateSessionTitle { description: String, persist: bool },
    SetGoalMaxTurns(Option<u64>),
    ListPlugins,
    ReloadPlugins,
    ListAgents,
    ListHooks,
    ListSkills,
    ListMemory,
    ListTools,
    ListPermissionRules,
    UpdatePermissions(Vec<PermissionUpdate>),
    SetEffort(Option<String>),
    SetSessionTitle(String),
    RunCommand(String),
    TaskOutput(String),
    McpReload,
    McpStatus,
    McpReconnect(String),
    McpToggle { name: String, enabled: bool },
    McpSetServers(BTreeMap<String, McpServerConfig>),
    McpAuthenticate { name: String, redirect_uri: Option<String> },
    McpSubmitCallback { name: String, callback_url: String },
    McpInjectToken { name: String, token: OAuthToken },
    McpClearAuth(String),
}

impl Control {
    /// The word on the wire, which also names the request in errors.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::SetPermissionMode(_) => "set_permission_mode",
            Self::SetModel(_) => "set_model",
            Self::StopTask(_) => "stop_task",
            Self::ApplyFlagSettings(_) => "apply_flag_settings",
            Self::RewindFiles { .. } => "rewind_files",
            Self::Rewind { .. } => "rewind",
            Self::ContextUsage => "get_context_usage",
            Self::AvailableModels { .. } => "get_available_models",
            Self::ByokConfig => "get_byok_config",
            Self::AccountInfo => "account_info",
            Self::UsageInfo => "get_usage_info",
            Self::CancelAsyncMessage(_) => "cancel_async_message",
            Self::BackgroundTasks(_) => "background_tasks",
            Self::AddDirectories(_) => "add_directories",
            Self::GenerateSessionTitle { .. } => "generate_session_title",
            Self::SetGoalMaxTurns(_) => "set_goal_max_turns",
            Self::ListPlugins => "list_plugins",
            Self::ReloadPlugins => "reload_plugins",
            Self::ListAgents => "list_agents",
            Self::ListHooks => "list_hooks",
            Self::ListSkills => "list_skills",
            Self::ListMemory => "list_memory",
            Self::ListTools => "list_tools",
            Self::ListPermissionRules => "list_permission_rules",
            Self::UpdatePermissions(_) => "update_permissions",
            Self::SetEffort(_) => "set_effort",
            Self::SetSessionTitle(_) => "set_session_title",
            Self::RunCommand(_) => "run_command",
            Self::TaskOutput(_) => "task_output",
            Self::McpReload => "mcp_reload",
            Self::McpStatus => "mcp_status",
            Self::McpReconnect(_) => "mcp_reconnect",
            Self::McpToggle { .. } => "mcp_toggle",
            Self::McpSetServers(_) => "mcp_set_servers",
            Self::McpAuthenticate { .. } => "mcp_authenticate",
            Self::McpSubmitCallback { .. } => "mcp_submit_oauth_callback_url",
            Self::McpInjectToken { .. } => "inject_mcp_token",
            Self::McpClearAuth(_) => "mcp_clear_auth",
        }
    }

    /// The request as it travels.
    pub(crate) fn wire(&self) -> Value {
        let mut wire = match self {
            Self::Interrupt
            | Self::ContextUsage
            | Self::ByokConfig
            | Self::AccountInfo
            | Self::UsageInfo
            | Self::ListPlugins
            | Self::ReloadPlugins
            | Self::ListAgents
            | Self::ListHooks
            | Self::ListSkills
            | Self::ListMemory
            | Self::ListTools
            | Self::ListPermissionRules
            | Self::McpReload
            | Self::McpStatus => json!({}),
            Self::UpdatePermissions(updates) => json!({ "updates": updates }),
            Self::SetEffort(effort) => json!({ "effort": effort }),
            Self::SetSessionTitle(title) => json!({ "title": title }),
            Self::RunCommand(command) => json!({ "command": command }),
            Self::TaskOutput(id) => json!({ "task_id": id }),
            Self::SetPermissionMode(mode) => json!({ "mode": mode }),
            Self::SetModel(model) => json!({ "model": model }),
            Self::StopTask(id) => json!({ "task_id": id }),
            Self::ApplyFlagSettings(settings) => json!({ "settings": settings }),
            Self::RewindFiles { user_message_id, dry_run } => {
                json!({ "user_message_id": user_message_id, "dry_run": dry_run })
            }
            Self::Rewind { user_message_id, scope, dry_run } => {
                json!({ "user_message_id": user_message_id, "scope": scope, "dry_run": dry_run })
            }
            Self::AvailableModels { live } => json!({ "fetchStrategy": live.then_some("live") }),
            Self::CancelAsyncMessage(uuid) => json!({ "uuid": uuid }),
            Self::BackgroundTasks(id) => json!({ "tool_use_id": id }),
            Self::AddDirectories(directories) => json!({ "directories": directories }),
            Self::GenerateSessionTitle { description, persist } => {
                json!({ "description": description, "persist": persist })
            }
            Self::SetGoalMaxTurns(turns) => json!({ "maxTurns": turns }),
            Self::McpReconnect(name) | Self::McpClearAuth(name) => json!({ "serverName": name }),
            Self::McpToggle { name, enabled } => json!({ "serverName": name, "enabled": enabled }),
            Self::McpSetServers(servers) => json!({ "servers": servers }),
            Self::McpAuthenticate { name, redirect_uri } => {
                json!({ "serverName": name, "redirectUri": redirect_uri })
            }
            Self::McpSubmitCallback { name, callback_url } => {
                json!({ "serverName": name, "callbackUrl": callback_url })
            }
            Self::McpInjectToken { name, token } => json!({ "serverName": name, "token": token }),
        };
        // What was not given does not travel, except where null has a meaning.
        if let Some(fields) = wire.as_object_mut() {
            fields.retain(|key, value| {
                matches!(key.as_str(), "model" | "maxTurns" | "effort") || !value.is_null()
            });
        }
        wire["subtype"] = json!(self.name());
        wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_documented_shape() {
        let cases = [
            (Control::Interrupt, json!({ "subtype": "interrupt" })),
            (Control::SetModel(None), json!({ "subtype": "set_model", "model": null })),
            (Control::AvailableModels { live: false }, json!({ "subtype": "get_available_models" })),
            (Control::SetGoalMaxTurns(None), json!({ "subtype": "set_goal_max_turns", "maxTurns": null })),
            (
                Control::McpToggle { name: "kb".to_owned(), enabled: false },
                json!({ "subtype": "mcp_toggle", "serverName": "kb", "enabled": false }),
            ),
        ];
        for (control, wire) in cases {
            assert_eq!(control.wire(), wire);
        }
    }
}
