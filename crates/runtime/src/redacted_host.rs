//! The host of an engine behind its redactor: warnings, and what servers say of themselves, come from many places and leave
//! without secrets. Warnings also become notices on the message stream, after the `init` message that readers expect first.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use qoder_core::redact::{Redactor, Secrets};
use qoder_types::wire::{StreamMessage, SystemMessage};

use crate::events::{Answer, Event, Host, PermissionQuestion};
use crate::notice::Notice;
use crate::session::new_id;

/// A host that hears no secrets.
pub(crate) struct RedactedHost {
    host: Arc<dyn Host>,
    redactor: Redactor,
    notices: Mutex<Notices>,
}

/// Notices wait until the stream has begun.
struct Notices {
    /// The session that `init` named.
    session_id: Option<String>,
    waiting: Vec<Notice>,
}

impl RedactedHost {
    /// A host that passes on to `host`, and has these notices for the stream.
    pub(crate) fn in_front_of(host: Arc<dyn Host>, redactor: Redactor, notices: &[Notice]) -> Arc<Self> {
        let waiting = Notices { session_id: None, waiting: notices.to_vec() };
        Arc::new(Self { host, redactor, notices: Mutex::new(waiting) })
    }

    /// Puts notices onto the stream when it begins. Whoever calls this has them on stderr already.
    pub(crate) fn hold(&self, notices: impl IntoIterator<Item = Notice>) {
        self.lock().waiting.extend(notices);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Notices> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Emits what waits, unless the stream has not begun.
    fn emit_notices(&self) -> std::io::Result<()> {
        let (session_id, notices) = {
            let mut state = self.lock();
            let Some(session_id) = state.session_id.clone() else { return Ok(()) };
            (session_id, std::mem::take(&mut state.waiting))
        };
        notices.iter().try_for_each(|notice| {
            let clean = |text: &str| self.redactor.text(text).into_owned();
            let files: Vec<String> =
                notice.files.iter().map(|path| clean(&path.display().to_string())).collect();
            let message = SystemMessage::Notice {
                level: "warning",
                kind: notice.kind.as_str(),
                message: &clean(&notice.text),
                files: &files,
                uuid: &new_id(),
                session_id: &session_id,
            };
            self.host.emit(Event::Message(&StreamMessage::System(message)))
        })
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
            Event::Warning(text) => {
                let text = self.redactor.text(text);
                self.host.emit(Event::Warning(&text))?;
                self.hold([Notice::from(text.into_owned())]);
                self.emit_notices()
            }
            Event::Message(message @ StreamMessage::System(SystemMessage::Init(init))) => {
                self.host.emit(Event::Message(message))?;
                self.lock().session_id = Some(init.session_id.to_owned());
                self.emit_notices()
            }
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
