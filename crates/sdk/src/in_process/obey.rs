//! What the engine in process does when a session is told something: the runtime's desk answers, as it does behind a pipe.
//! What it has no way to do is refused by name; the same program then works with an external one that has it.

use qoder_runtime::live::{ControlError, Desk, Handle};
use serde_json::Value;

use super::servers::OwnInstances;
use crate::session::Control;
use crate::{Error, Result};

/// What is needed to obey.
pub(super) struct Obeying {
    desk: Desk,
    own: OwnInstances,
}

impl Obeying {
    pub(super) fn new(desk: Desk, own: OwnInstances) -> Self {
        Self { desk, own }
    }

    /// The session.
    pub(super) fn handle(&self) -> &Handle {
        self.desk.handle()
    }

    /// Does it. The answer has the shape that travels.
    pub(super) async fn obey(&self, control: Control) -> Result<Value> {
        let name = control.name();
        if is_missing(&control) {
            return Err(Error::unsupported(name));
        }
        if let Control::McpSetServers(servers) = &control {
            // What travels names them; the functions of their tools stay here.
            self.own.bring(servers);
        }
        let answer = self.desk.answer(control.wire()).await;
        answer.map_err(|message| {
            if message == ControlError::Ended.to_string() {
                return Error::Closed;
            }
            Error::ControlRequest { request: name.to_owned(), message }
        })
    }
}

/// True for what the engine in process cannot do.
fn is_missing(control: &Control) -> bool {
    match control {
        Control::SetGoalMaxTurns(_) => true,
        Control::Interrupt
        | Control::SetPermissionMode(_)
        | Control::SetModel(_)
        | Control::StopTask(_)
        | Control::RewindFiles { .. }
        | Control::Rewind { .. }
        | Control::ApplyFlagSettings(_)
        | Control::ContextUsage
        | Control::AvailableModels { .. }
        | Control::ByokConfig
        | Control::AccountInfo
        | Control::UsageInfo
        | Control::CancelAsyncMessage(_)
        | Control::BackgroundTasks(_)
        | Control::AddDirectories(_)
        | Control::GenerateSessionTitle { .. }
        | Control::ListPlugins
        | Control::ReloadPlugins
        | Control::McpStatus
        | Control::McpReconnect(_)
        | Control::McpToggle { .. }
        | Control::McpSetServers(_)
        | Control::McpAuthenticate { .. }
        | Control::McpSubmitCallback { .. }
        | Control::McpInjectToken { .. }
        | Control::McpClearAuth(_) => false,
    }
}
