//! Tells the host of the run of one hook, if it wants to know: that it began, what a program writes meanwhile, and how it
//! ended, also when it is withdrawn.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use qoder_core::redact::Secrets;
use qoder_tools::{CapturedListener, CapturedStream};
use qoder_types::wire::{StreamMessage, SystemMessage};
use std::sync::PoisonError;

use super::HookEvent;
use super::run::Firing;
use crate::events::Event;
use crate::session::new_id;

/// The shortest time between two messages about what a program writes.
const PACE: Duration = Duration::from_millis(200);
/// The most such messages of one run.
const MOST_MESSAGES: u32 = 100;
/// The most bytes of one.
const LONGEST_PIECE: usize = 16 * 1024;

/// What the host is told at the end.
#[derive(Debug, Default)]
pub(super) struct Response<'a> {
    pub(super) output: &'a str,
    pub(super) stdout: &'a str,
    pub(super) stderr: &'a str,
    pub(super) exit_code: Option<i32>,
    pub(super) outcome: &'a str,
}

/// The run of one hook, as the host hears of it.
pub(super) struct Announcement {
    told: Option<Arc<Told>>,
}

struct Told {
    firing: Firing,
    event: HookEvent,
    hook: String,
    id: String,
}

impl Announcement {
    pub(super) fn new(firing: &Firing, hook: &str, event: HookEvent) -> std::io::Result<Self> {
        let wanted = firing.host.wants_hook_events() || event == HookEvent::SessionStart;
        let told = wanted
            .then(|| Arc::new(Told { firing: firing.clone(), event, hook: hook.to_owned(), id: new_id() }));
        if let Some(told) = &told {
            let uuid = new_id();
            let message = SystemMessage::HookStarted {
                hook_id: &told.id,
                hook_name: &told.hook,
                hook_event: event.as_str(),
                uuid: &uuid,
                session_id: &firing.session_id,
            };
            firing.host.emit(Event::Message(&StreamMessage::System(message)))?;
        }
        Ok(Self { told })
    }

    /// Passes on what a program writes, at a bounded pace. What is left out comes with the response.
    pub(super) fn listener(&self) -> Option<CapturedListener> {
        let told = Arc::clone(self.told.as_ref()?);
        let streams = [(); 2].map(|()| told.firing.redactor.stream(Secrets::All));
        let state = Mutex::new((None::<Instant>, 0_u32, streams));
        Some(Arc::new(move |stream, text| {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let (last, count, [output, errors]) = &mut *state;
            // Everything passes the redactor, also what is left out: a secret may begin in it.
            let text = match stream {
                CapturedStream::Output => output.push_text(text),
                CapturedStream::Errors => errors.push_text(text),
            };
            let late = last.is_none_or(|last| last.elapsed() >= PACE);
            if *count >= MOST_MESSAGES || !late || text.is_empty() {
                return;
            }
            *last = Some(Instant::now());
            *count += 1;
            told.progress(stream, &text);
        }))
    }

    pub(super) fn end(mut self, response: &Response<'_>) -> std::io::Result<()> {
        match self.told.take() {
            Some(told) => told.respond(response),
            None => Ok(()),
        }
    }
}

impl Told {
    fn progress(&self, stream: CapturedStream, text: &str) {
        let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= LONGEST_PIECE).unwrap_or(text.len());
        let text = &text[..end];
        let (stdout, stderr) = match stream {
            CapturedStream::Output => (text, ""),
            CapturedStream::Errors => ("", text),
        };
        let uuid = new_id();
        let message = SystemMessage::HookProgress {
            hook_id: &self.id,
            hook_name: &self.hook,
            hook_event: self.event.as_str(),
            stdout,
            stderr,
            output: text,
            uuid: &uuid,
            session_id: &self.firing.session_id,
        };
        // A host that is gone is met again by the next message of the turn.
        let _ = self.firing.host.emit(Event::Message(&StreamMessage::System(message)));
    }

    fn respond(&self, response: &Response<'_>) -> std::io::Result<()> {
        let uuid = new_id();
        let redactor = &self.firing.redactor;
        let (output, stdout, stderr) =
            (redactor.text(response.output), redactor.text(response.stdout), redactor.text(response.stderr));
        let message = SystemMessage::HookResponse {
            hook_id: &self.id,
            hook_name: &self.hook,
            hook_event: self.event.as_str(),
            output: &output,
            stdout: &stdout,
            stderr: &stderr,
            exit_code: response.exit_code,
            outcome: response.outcome,
            uuid: &uuid,
            session_id: &self.firing.session_id,
        };
        self.firing.host.emit(Event::Message(&StreamMessage::System(message)))
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        if let Some(told) = self.told.take() {
            // A host that is gone is met again by the next message of the turn.
            let _ = told.respond(&Response { outcome: "cancelled", ..Response::default() });
        }
    }
}
