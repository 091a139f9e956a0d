//! Requests of the host, from the JSON in which they travel to the session's typed ones and back.

use qoder_protocol::control::HostRequest;
use qoder_runtime::VERSION;
use qoder_runtime::checkpoints::RewindScope;
use qoder_runtime::sessions::requests::{
    self, AccountInfo, AddDirectories, ApplyFlagSettings, CancelInput, GenerateTitle, GetAvailableModels,
    GetByokConfig, GetContextUsage, GetUsageInfo, ListPlugins, McpAuthenticate, McpClearAuth, McpInjectToken,
    McpReconnect, McpSetServers, McpStatus, McpSubmitCallback, McpToggle, MoveToBackground, ReloadPlugins,
    Rewind, SetModel, SetPermissionMode, StopTask, SupportedAgents, SupportedCommands,
};
use qoder_runtime::sessions::{Request, SessionHandle};
use qoder_types::{Actor, PermissionMode};
use serde_json::Value;

/// Answers one request in the shape in which it travels.
pub async fn answer(session: &SessionHandle, request: Value) -> Result<Value, String> {
    match read(request)? {
        HostRequest::Initialize(_) => {
            Err("the session is initialized already; `initialize` comes once, first".to_owned())
        }
        HostRequest::Interrupt {} => ask(session, requests::Interrupt { by: Actor::Signal }).await,
        HostRequest::SetPermissionMode { mode } => {
            ask(session, SetPermissionMode { mode: mode_of(&mode)? }).await
        }
        HostRequest::SetModel { model } => ask(session, SetModel { model }).await,
        HostRequest::StopTask { task_id } => ask(session, StopTask { task_id }).await,
        HostRequest::BackgroundTasks { tool_use_id } => ask(session, MoveToBackground { tool_use_id }).await,
        HostRequest::CancelAsyncMessage { uuid } => ask(session, CancelInput { input_id: uuid }).await,
        HostRequest::AddDirectories { directories } => ask(session, AddDirectories { directories }).await,
        HostRequest::ApplyFlagSettings { settings } => ask(session, ApplyFlagSettings { settings }).await,
        HostRequest::RewindFiles { user_message_id, dry_run } => {
            let (scope, dry_run) = (RewindScope::Files, dry_run.unwrap_or(false));
            ask(session, Rewind { user_message_id, scope, dry_run }).await
        }
        HostRequest::Rewind { user_message_id, scope, dry_run } => {
            let (scope, dry_run) = (scope_of(scope.as_deref())?, dry_run.unwrap_or(false));
            ask(session, Rewind { user_message_id, scope, dry_run }).await
        }
        HostRequest::GetContextUsage {} => ask(session, GetContextUsage {}).await,
        HostRequest::GetAvailableModels { .. } => ask(session, GetAvailableModels {}).await,
        HostRequest::GetByokConfig {} => ask(session, GetByokConfig {}).await,
        HostRequest::SupportedAgents {} => ask(session, SupportedAgents {}).await,
        HostRequest::SupportedCommands {} => ask(session, SupportedCommands {}).await,
        HostRequest::AccountInfo {} => ask(session, AccountInfo {}).await,
        HostRequest::GetUsageInfo {} => ask(session, GetUsageInfo {}).await,
        HostRequest::ListPlugins {} => ask(session, ListPlugins {}).await,
        HostRequest::ReloadPlugins {} => ask(session, ReloadPlugins {}).await,
        HostRequest::GenerateSessionTitle { description, persist } => {
            ask(session, GenerateTitle { description, persist }).await
        }
        HostRequest::McpStatus {} => ask(session, McpStatus {}).await,
        HostRequest::McpSetServers { servers } => ask(session, McpSetServers { servers }).await,
        HostRequest::McpReconnect { server_name } => ask(session, McpReconnect { name: server_name }).await,
        HostRequest::McpToggle { server_name, enabled } => {
            ask(session, McpToggle { name: server_name, enabled }).await
        }
        HostRequest::McpAuthenticate { server_name, redirect_uri } => {
            ask(session, McpAuthenticate { name: server_name, redirect_uri }).await
        }
        HostRequest::McpSubmitOauthCallbackUrl { server_name, callback_url } => {
            ask(session, McpSubmitCallback { name: server_name, callback_url }).await
        }
        HostRequest::InjectMcpToken { server_name, token } => {
            ask(session, McpInjectToken { name: server_name, token }).await
        }
        HostRequest::McpClearAuth { server_name } => ask(session, McpClearAuth { name: server_name }).await,
    }
}

async fn ask<R: Request>(session: &SessionHandle, request: R) -> Result<Value, String> {
    let answer = session.request(request).await.map_err(|error| error.to_string())?;
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

fn mode_of(word: &str) -> Result<PermissionMode, String> {
    PermissionMode::parse(word).ok_or_else(|| {
        format!("`{word}` is not a permission mode; accepted are {}", PermissionMode::ACCEPTED)
    })
}

fn scope_of(word: Option<&str>) -> Result<RewindScope, String> {
    let word = word.unwrap_or("both");
    RewindScope::parse(word)
        .ok_or_else(|| format!("rewind: `{word}` is not a scope; accepted are {}", RewindScope::ACCEPTED))
}

/// Requests that are documented and not built; named apart from those that are not known.
const NOT_BUILT: [&str; 1] = ["set_goal_max_turns"];

fn read(request: Value) -> Result<HostRequest, String> {
    let Some(subtype) = request.get("subtype").and_then(Value::as_str).map(str::to_owned) else {
        return Err("the control request has no `subtype`".to_owned());
    };
    if NOT_BUILT.contains(&subtype.as_str()) {
        return Err(format!("{subtype} is not supported by qodercli {VERSION}"));
    }
    serde_json::from_value(request).map_err(|error| {
        let problem = error.to_string();
        if problem.starts_with("unknown variant") {
            format!("Unsupported control request subtype: {subtype}")
        } else {
            format!("{subtype}: {problem}")
        }
    })
}
