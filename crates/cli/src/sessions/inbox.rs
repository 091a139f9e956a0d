//! Speaking to a session that another process drives: a message, an interrupt or an answer is left in the session's inbox,
//! and the process that holds the session says what became of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use qoder_runtime::layout::SessionPaths;
use qoder_runtime::sessions::new_id;
use qoder_store::inbox::{InboxError, Ticket, leave, withdraw};
use qoder_store::{lease, timestamp};
use qoder_types::record::InputOrigin;
use qoder_types::{Actor, InboxBody, InboxEntry, InboxOutcome, InboxReply, Message, Place};

use super::locate;
use crate::exit::{Exit, Fault};
use crate::screen::print_line;

/// How long the process that drives the session may take to reply.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether that process still lives.
const GLANCE: Duration = Duration::from_millis(100);

/// An entry that was left for the process that drives the session.
pub struct Letter {
    paths: SessionPaths,
    id: String,
    ticket: Ticket,
}

impl Letter {
    /// Leaves an entry.
    pub fn leave(paths: &SessionPaths, by: String, body: InboxBody) -> Result<Self, Fault> {
        Self::leave_as(new_id(), paths, by, body)
    }

    /// Leaves an entry of a known id: the same id again is the same entry again.
    pub fn leave_as(id: String, paths: &SessionPaths, by: String, body: InboxBody) -> Result<Self, Fault> {
        let entry = InboxEntry { id, at: timestamp(), by, body };
        let ticket = leave(paths, &entry).map_err(|error| fault(&error))?;
        Ok(Self { paths: paths.clone(), id: entry.id, ticket })
    }

    /// Waits for what becomes of it. `None` when no process drives the session now.
    pub fn wait(&mut self) -> Result<Option<InboxReply>, Fault> {
        self.wait_for(PATIENCE)
    }

    /// The same, for this long at most.
    pub fn wait_for(&mut self, patience: Duration) -> Result<Option<InboxReply>, Fault> {
        let until = Instant::now() + patience;
        while Instant::now() < until {
            if let Some(reply) = self.ticket.wait(GLANCE) {
                return Ok(Some(reply));
            }
            if lease::holder(&self.paths).is_none() {
                // It may have replied with its last breath.
                return Ok(self.ticket.look());
            }
        }
        let seconds = patience.as_secs();
        Err(Fault {
            exit: Exit::Session,
            message: format!("the process that drives the session did not reply within {seconds} s"),
            hint: "it stays in the session's inbox; `qodercli sessions watch` shows when it is taken"
                .to_owned(),
        })
    }

    /// Takes it back, or gives the reply that has come meanwhile. The lease is held by this process.
    pub fn take_back(&mut self) -> Result<Option<InboxReply>, Fault> {
        let reply = self.ticket.look();
        if reply.is_none() {
            withdraw(&self.paths, &self.id).map_err(|error| fault(&error))?;
        }
        Ok(reply)
    }
}

/// Leaves an entry for the process that drives the session, and waits for its reply. `None` when no process drives it.
fn deliver(paths: &SessionPaths, by: String, body: InboxBody) -> Result<Option<InboxReply>, Fault> {
    if lease::holder(paths).is_none() {
        return Ok(None);
    }
    let reply = Letter::leave(paths, by, body)?.wait()?;
    reply.map(Some).ok_or_else(|| Fault {
        exit: Exit::Session,
        message: "the process that drove the session ended before it took this".to_owned(),
        hint: "it stays in the session's inbox; the next process that resumes the session takes it"
            .to_owned(),
    })
}

fn fault(error: &InboxError) -> Fault {
    Fault { exit: Exit::Session, message: error.to_string(), hint: error.hint().to_owned() }
}

/// The user, as records name a person at another terminal.
pub fn user(environment: &BTreeMap<String, String>) -> Actor {
    let name = environment.get("USER").or_else(|| environment.get("LOGNAME"));
    let name = name.cloned().unwrap_or_else(|| "the user".to_owned());
    Actor::Person { name, place: Place::CommandLine }
}

/// Sends a message to a session that another process drives.
pub fn send(
    environment: &BTreeMap<String, String>,
    id: &str,
    text: Option<&str>,
    resume: bool,
) -> Result<Exit, Fault> {
    let (id, paths) = locate(environment, id)?;
    let text = crate::run::input::prompt(text, false)?.ok_or_else(|| {
        Fault::input("there is no message", "give one: qodercli sessions send SESSION \"…\"")
    })?;
    let body = InboxBody::Input { message: Message::user(text.clone()), origin: InputOrigin::User };
    match deliver(&paths, user(environment).to_string(), body)? {
        Some(reply) => finish(&reply, &format!("sent to {id}")),
        None if resume => super::resume(environment, &id, &text),
        None => Err(Fault {
            exit: Exit::Session,
            message: format!("no process drives session {id}"),
            hint: format!("`qodercli sessions send --resume {id} …` resumes it here with the message"),
        }),
    }
}

/// Stops the turn of a session that another process drives.
pub fn interrupt(environment: &BTreeMap<String, String>, id: &str) -> Result<Exit, Fault> {
    let (id, paths) = locate(environment, id)?;
    match deliver(&paths, user(environment).to_string(), InboxBody::Interrupt {})? {
        Some(reply) => finish(&reply, &format!("interrupted {id}")),
        None => Err(Fault {
            exit: Exit::Session,
            message: format!("no process drives session {id}; there is nothing to interrupt"),
            hint: "`qodercli sessions list` shows which sessions run".to_owned(),
        }),
    }
}

fn finish(reply: &InboxReply, done: &str) -> Result<Exit, Fault> {
    match reply.outcome {
        InboxOutcome::Accepted => {
            print_line(done)?;
            Ok(Exit::Success)
        }
        InboxOutcome::Lost | InboxOutcome::Refused => {
            Err(Fault::input(reply.message.clone(), "`qodercli sessions watch` shows what the session does"))
        }
    }
}
