//! Requests in the form in which they travel: from a [`HostRequest`] to the typed request, and its answer back to JSON.

use qoder_protocol::RequestError;
use qoder_protocol::control::HostRequest;
use qoder_types::{Actor, PermissionMode};
use serde_json::Value;

use super::{
    AccountInfo, AddDirectories, ApplyFlagSettings, CancelInput, GenerateTitle, GetAvailableModels,
    GetByokConfig, GetContextUsage, GetUsageInfo, Interrupt, ListAgents, ListHooks, ListMemory,
    ListPermissionRules, ListPlugins, ListSkills, ListTools, McpAuthenticate, McpClearAuth, McpInjectToken,
    McpReconnect, McpReload, McpSetServers, McpStatus, McpSubmitCallback, McpToggle, MoveToBackground,
    ReloadPlugins, Request, RequestContext, Rewind, RunCommand, SetEffort, SetModel, SetPermissionMode,
    SetSessionTitle, StopTask, SupportedAgents, SupportedCommands, TaskOutput, UpdatePermissions,
};
use crate::checkpoints::RewindScope;

impl RequestContext {
    /// Serves a request; its answer is in the shape in which it travels.
    pub(in crate::sessions) async fn serve(&self, request: HostRequest) -> Result<Value, RequestError> {
        match request {
            HostRequest::Initialize(_) => Err(RequestError::refused(
                "the session is initialized already; `initialize` comes once, first",
            )),
            HostRequest::Interrupt {} => self.ask(Interrupt { by: Actor::Signal }).await,
            HostRequest::SetPermissionMode { mode } => {
                self.ask(SetPermissionMode { mode: mode_of(&mode)? }).await
            }
            HostRequest::SetModel { model } => self.ask(SetModel { model }).await,
            HostRequest::StopTask { task_id } => self.ask(StopTask { task_id }).await,
            HostRequest::BackgroundTasks { tool_use_id } => self.ask(MoveToBackground { tool_use_id }).await,
            HostRequest::CancelAsyncMessage { uuid } => self.ask(CancelInput { input_id: uuid }).await,
            HostRequest::AddDirectories { directories } => self.ask(AddDirectories { directories }).await,
            HostRequest::ApplyFlagSettings { settings } => self.ask(ApplyFlagSettings { settings }).await,
            HostRequest::RewindFiles { user_message_id, dry_run } => {
                let (scope, dry_run) = (RewindScope::Files, dry_run.unwrap_or(false));
                self.ask(Rewind { user_message_id, scope, dry_run }).await
            }
            HostRequest::Rewind { user_message_id, scope, dry_run } => {
                let (scope, dry_run) = (scope_of(scope.as_deref())?, dry_run.unwrap_or(false));
                self.ask(Rewind { user_message_id, scope, dry_run }).await
            }
            HostRequest::GetContextUsage {} => self.ask(GetContextUsage {}).await,
            HostRequest::GetAvailableModels { .. } => self.ask(GetAvailableModels {}).await,
            HostRequest::GetByokConfig {} => self.ask(GetByokConfig {}).await,
            HostRequest::SupportedAgents {} => self.ask(SupportedAgents {}).await,
            HostRequest::SupportedCommands {} => self.ask(SupportedCommands {}).await,
            HostRequest::AccountInfo {} => self.ask(AccountInfo {}).await,
            HostRequest::GetUsageInfo {} => self.ask(GetUsageInfo {}).await,
            HostRequest::ListPlugins {} => self.ask(ListPlugins {}).await,
            HostRequest::ReloadPlugins {} => self.ask(ReloadPlugins {}).await,
            HostRequest::GenerateSessionTitle { description, persist } => {
                self.ask(GenerateTitle { description, persist }).await
            }
            HostRequest::ListAgents {} => self.ask(ListAgents {}).await,
            HostRequest::ListHooks {} => self.ask(ListHooks {}).await,
            HostRequest::ListSkills {} => self.ask(ListSkills {}).await,
            HostRequest::ListMemory {} => self.ask(ListMemory {}).await,
            HostRequest::ListTools {} => self.ask(ListTools {}).await,
            HostRequest::TaskOutput { task_id } => self.ask(TaskOutput { task_id }).await,
            HostRequest::ListPermissionRules {} => self.ask(ListPermissionRules {}).await,
            HostRequest::UpdatePermissions { updates } => self.ask(UpdatePermissions { updates }).await,
            HostRequest::SetEffort { effort } => self.ask(SetEffort { effort }).await,
            HostRequest::SetSessionTitle { title } => self.ask(SetSessionTitle { title }).await,
            HostRequest::McpReload {} => self.ask(McpReload {}).await,
            HostRequest::RunCommand { command, uuid } => self.ask(RunCommand { command, uuid }).await,
            HostRequest::McpStatus {} => self.ask(McpStatus {}).await,
            HostRequest::McpSetServers { servers } => self.ask(McpSetServers { servers }).await,
            HostRequest::McpReconnect { server_name } => self.ask(McpReconnect { name: server_name }).await,
            HostRequest::McpToggle { server_name, enabled } => {
                self.ask(McpToggle { name: server_name, enabled }).await
            }
            HostRequest::McpAuthenticate { server_name, redirect_uri } => {
                self.ask(McpAuthenticate { name: server_name, redirect_uri }).await
            }
            HostRequest::McpSubmitOauthCallbackUrl { server_name, callback_url } => {
                self.ask(McpSubmitCallback { name: server_name, callback_url }).await
            }
            HostRequest::InjectMcpToken { server_name, token } => {
                self.ask(McpInjectToken { name: server_name, token }).await
            }
            HostRequest::McpClearAuth { server_name } => self.ask(McpClearAuth { name: server_name }).await,
        }
    }

    async fn ask<R: Request>(&self, request: R) -> Result<Value, RequestError> {
        let answer = request.serve(self).await?;
        serde_json::to_value(answer).map_err(RequestError::refused)
    }
}

fn mode_of(word: &str) -> Result<PermissionMode, RequestError> {
    PermissionMode::parse(word).ok_or_else(|| {
        RequestError::Refused(format!(
            "`{word}` is not a permission mode; accepted are {}",
            PermissionMode::ACCEPTED
        ))
    })
}

fn scope_of(word: Option<&str>) -> Result<RewindScope, RequestError> {
    let word = word.unwrap_or("both");
    RewindScope::parse(word).ok_or_else(|| {
        RequestError::Refused(format!(
            "rewind: `{word}` is not a scope; accepted are {}",
            RewindScope::ACCEPTED
        ))
    })
}
