//! What the engine in process does when a session is asked for something: the session's own requests, as behind a pipe. What
//! it has no way to do is refused by name; the same program then works with an external one that has it.

use qoder_protocol::Actor;
use qoder_runtime::sessions::requests::RewindScope;
use qoder_runtime::sessions::requests::{
    self, AccountInfo, AddDirectories, ApplyFlagSettings, CancelInput, GenerateTitle, GetAvailableModels,
    GetByokConfig, GetContextUsage, GetUsageInfo, ListAgents, ListHooks, ListMemory, ListPermissionRules,
    ListPlugins, ListSkills, ListTools, McpAuthenticate, McpClearAuth, McpInjectToken, McpReconnect,
    McpReload, McpSetServers, McpStatus, McpSubmitCallback, McpToggle, MoveToBackground, ReloadPlugins,
    Rewind, RunCommand, SetEffort, SetModel, SetPermissionMode, SetSessionTitle, StopTask, TaskOutput,
    UpdatePermissions,
};
use qoder_runtime::sessions::{Request, RequestError, SessionHandle};
use serde_json::{Map, Value};

use super::servers::OwnInstances;
use crate::error::{Error, Result};
use crate::session::Control;

/// What is needed to obey.
pub(super) struct Obeying {
    session: SessionHandle,
    own: OwnInstances,
}

impl Obeying {
    pub(super) fn new(session: SessionHandle, own: OwnInstances) -> Self {
        Self { session, own }
    }

    /// The session.
    pub(super) fn handle(&self) -> &SessionHandle {
        &self.session
    }

    /// Does it. The answer has the shape that travels.
    pub(super) async fn obey(&self, control: Control) -> Result<Value> {
        let name = control.name();
        let failed = |message: String| Error::ControlRequest { request: name.to_owned(), message };
        let answer = match control {
            Control::SetGoalMaxTurns(_) => return Err(Error::unsupported(name)),
            Control::Interrupt => self.ask(requests::Interrupt { by: Actor::Signal }).await,
            Control::SetPermissionMode(mode) => self.ask(SetPermissionMode { mode }).await,
            Control::SetModel(model) => self.ask(SetModel { model }).await,
            Control::StopTask(task_id) => self.ask(StopTask { task_id }).await,
            Control::ApplyFlagSettings(settings) => self.ask(ApplyFlagSettings { settings }).await,
            Control::RewindFiles { user_message_id, dry_run } => {
                self.ask(Rewind { user_message_id, scope: RewindScope::Files, dry_run }).await
            }
            Control::Rewind { user_message_id, scope, dry_run } => {
                let scope = scope_of(scope.as_deref()).map_err(failed)?;
                self.ask(Rewind { user_message_id, scope, dry_run }).await
            }
            Control::ContextUsage => self.ask(GetContextUsage {}).await,
            Control::AvailableModels { .. } => self.ask(GetAvailableModels {}).await,
            Control::ByokConfig => self.ask(GetByokConfig {}).await,
            Control::AccountInfo => self.ask(AccountInfo {}).await,
            Control::UsageInfo => self.ask(GetUsageInfo {}).await,
            Control::CancelAsyncMessage(input_id) => self.ask(CancelInput { input_id }).await,
            Control::BackgroundTasks(tool_use_id) => self.ask(MoveToBackground { tool_use_id }).await,
            Control::AddDirectories(directories) => self.ask(AddDirectories { directories }).await,
            Control::GenerateSessionTitle { description, persist } => {
                self.ask(GenerateTitle { description, persist }).await
            }
            Control::ListPlugins => self.ask(ListPlugins {}).await,
            Control::ReloadPlugins => self.ask(ReloadPlugins {}).await,
            Control::ListAgents => self.ask(ListAgents {}).await,
            Control::ListHooks => self.ask(ListHooks {}).await,
            Control::ListSkills => self.ask(ListSkills {}).await,
            Control::ListMemory => self.ask(ListMemory {}).await,
            Control::ListTools => self.ask(ListTools {}).await,
            Control::ListPermissionRules => self.ask(ListPermissionRules {}).await,
            Control::UpdatePermissions(updates) => self.ask(UpdatePermissions { updates }).await,
            Control::SetEffort(effort) => self.ask(SetEffort { effort }).await,
            Control::SetSessionTitle(title) => self.ask(SetSessionTitle { title }).await,
            Control::RunCommand(command) => self.ask(RunCommand { command, uuid: None }).await,
            Control::TaskOutput(task_id) => self.ask(TaskOutput { task_id }).await,
            Control::McpReload => self.ask(McpReload {}).await,
            Control::McpStatus => self.ask(McpStatus {}).await,
            Control::McpReconnect(name) => self.ask(McpReconnect { name }).await,
            Control::McpToggle { name, enabled } => self.ask(McpToggle { name, enabled }).await,
            Control::McpSetServers(servers) => {
                // What travels names them; the functions of their tools stay here.
                self.own.bring(&servers);
                let servers = as_map(&servers).map_err(failed)?;
                self.ask(McpSetServers { servers }).await
            }
            Control::McpAuthenticate { name, redirect_uri } => {
                self.ask(McpAuthenticate { name, redirect_uri }).await
            }
            Control::McpSubmitCallback { name, callback_url } => {
                self.ask(McpSubmitCallback { name, callback_url }).await
            }
            Control::McpInjectToken { name, token } => {
                let token = as_map(&token).and_then(|token| read(Value::Object(token))).map_err(failed)?;
                self.ask(McpInjectToken { name, token }).await
            }
            Control::McpClearAuth(name) => self.ask(McpClearAuth { name }).await,
        };
        answer.map_err(|error| match error {
            RequestError::Ended => Error::Closed,
            RequestError::Refused(message) => failed(message),
            RequestError::Input(problem) => failed(problem.to_string()),
        })
    }

    async fn ask<R: Request>(&self, request: R) -> std::result::Result<Value, RequestError> {
        let answer = self.session.request(request).await?;
        serde_json::to_value(answer).map_err(|error| RequestError::Refused(error.to_string()))
    }
}

fn scope_of(word: Option<&str>) -> std::result::Result<RewindScope, String> {
    let word = word.unwrap_or("both");
    RewindScope::parse(word)
        .ok_or_else(|| format!("rewind: `{word}` is not a scope; accepted are {}", RewindScope::ACCEPTED))
}

fn as_map(value: &impl serde::Serialize) -> std::result::Result<Map<String, Value>, String> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("it is not an object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> std::result::Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}
