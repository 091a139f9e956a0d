//! What the engine in process does when a session is told something: the runtime's desk answers, as it does behind a pipe.
//! What it has no way to do is refused by name; the same program then works with an external one that has it.

use std::sync::Arc;

use qoder_runtime::live::{ControlError, Desk, Handle};
use serde_json::Value;

use super::status::Status;
use crate::session::Control;
use crate::{Error, Result};

/// What is needed to obey.
pub(super) struct Obeying {
    desk: Desk,
    status: Arc<Status>,
}

impl Obeying {
    pub(super) fn new(desk: Desk, status: Arc<Status>) -> Self {
        Self { desk, status }
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
        let answer = self.desk.answer(control.wire()).await;
        if matches!(control, Control::McpReconnect(_) | Control::McpToggle { .. }) {
            self.status.tell();
        }
        answer.map_err(|message| {
            if message == ControlError::Ended.to_string() {
                return Error::Closed;
            }
            Error::ControlRequest { request: name.to_owned(), message }
        })
    }
}

/// True for what the engine in process cannot do: most of it is not built, and servers that are named while a session runs
/// cannot bring the functions of their tools.
fn is_missing(control: &Control) -> bool {
    match control {
        Control::SetGoalMaxTurns(_)
        | Control::McpSetServers(_)
        | Control::McpAuthenticate { .. }
        | Control::McpSubmitCallback { .. }
        | Control::McpInjectToken { .. }
        | Control::McpClearAuth(_) => true,
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
        | Control::McpToggle { .. } => false,
    }
}
