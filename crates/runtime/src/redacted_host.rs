//! The host of an engine behind its redactor: warnings, and what servers say of themselves, come from many places and leave
//! without secrets. Records and pieces of replies are clean before they get here.

use std::sync::Arc;

use futures::future::BoxFuture;
use qoder_core::redact::{Redactor, Secrets};
use qoder_types::wire::{StreamMessage, SystemMessage};

use crate::events::{Answer, Event, Host, PermissionQuestion};

/// A host that hears no secrets.
pub(crate) struct RedactedHost {
    host: Arc<dyn Host>,
    redactor: Redactor,
}

impl RedactedHost {
    /// A host that passes on to `host`.
    pub(crate) fn in_front_of(host: Arc<dyn Host>, redactor: Redactor) -> Arc<dyn Host> {
        Arc::new(Self { host, redactor })
    }
}

impl Host for RedactedHost {
    fn wants_partial(&self) -> bool {
        self.host.wants_partial()
    }

    fn wants_tool_output(&self) -> bool {
        self.host.wants_tool_output()
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        self.host.ready()
    }

    fn is_ready(&self) -> bool {
        self.host.is_ready()
    }

    fn emit(&self, event: Event<'_>) -> std::io::Result<()> {
        match event {
            Event::Warning(text) => self.host.emit(Event::Warning(&self.redactor.text(text))),
            Event::Message(StreamMessage::System(SystemMessage::McpStatusChange {
                servers,
                uuid,
                session_id,
            })) => {
                let mut servers = servers.to_vec();
                for row in &mut servers {
                    self.redactor.json(row, Secrets::All);
                }
                let message = SystemMessage::McpStatusChange { servers: &servers, uuid, session_id };
                self.host.emit(Event::Message(&StreamMessage::System(message)))
            }
            event @ (Event::Message(_) | Event::Partial { .. } | Event::ToolOutput { .. }) => {
                self.host.emit(event)
            }
        }
    }

    fn end(&self) -> std::io::Result<()> {
        self.host.end()
    }

    fn wants_session_state(&self) -> bool {
        self.host.wants_session_state()
    }

    fn wants_hook_events(&self) -> bool {
        self.host.wants_hook_events()
    }

    fn answers(&self) -> bool {
        self.host.answers()
    }

    fn ask(&self, question: PermissionQuestion) -> BoxFuture<'static, Option<Answer>> {
        self.host.ask(question)
    }
}
