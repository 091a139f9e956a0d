//! Passes what is reported of hooks on to the session's hosts, as messages in their documented shape.

use std::io;
use std::sync::Arc;

use qoder_config::hooks::HookEvent;
use qoder_hooks::{HookOutlet, RunReport};
use qoder_protocol::messages::{StreamMessage, SystemMessage};

use crate::events::{Event, Outlet};
use crate::session::new_id;

/// The outlet of a driver, as its hooks see it.
pub(crate) struct SessionHookOutlet {
    /// Where events of the driver leave.
    pub(crate) outlet: Arc<dyn Outlet>,
    /// The session that messages name.
    pub(crate) session_id: String,
}

impl HookOutlet for SessionHookOutlet {
    fn wants_runs(&self) -> bool {
        self.outlet.wants().hook_events
    }

    fn warn(&self, text: &str) -> io::Result<()> {
        self.outlet.emit(Event::Warning(text))
    }

    fn report(&self, id: &str, hook: &str, event: HookEvent, report: RunReport) -> io::Result<()> {
        let (hook_id, hook_name, hook_event) = (id.to_owned(), hook.to_owned(), event.as_str().to_owned());
        let (uuid, session_id) = (new_id(), self.session_id.clone());
        let message = match report {
            RunReport::Started => {
                SystemMessage::HookStarted { hook_id, hook_name, hook_event, uuid, session_id }
            }
            RunReport::Progress { stdout, stderr } => {
                // One piece comes from one of the two.
                let output = format!("{stdout}{stderr}");
                SystemMessage::HookProgress {
                    hook_id,
                    hook_name,
                    hook_event,
                    stdout,
                    stderr,
                    output,
                    uuid,
                    session_id,
                }
            }
            RunReport::Ended { output, stdout, stderr, exit_code, outcome } => SystemMessage::HookResponse {
                hook_id,
                hook_name,
                hook_event,
                output,
                stdout,
                stderr,
                exit_code,
                outcome,
                uuid,
                session_id,
            },
        };
        self.outlet.emit(Event::Message(&StreamMessage::System(message)))
    }
}
