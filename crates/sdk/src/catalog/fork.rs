//! Copies of sessions: whole, or up to a message. The original is only read; the copy has an id of its own and can be
//! resumed like any other.

use qoder_core::ports::LogStore;
use qoder_runtime::error::SessionError;
use qoder_runtime::layout::SessionPaths;
use qoder_runtime::session::{new_id, timestamp};
use qoder_runtime::store::jsonl::{Durability, JsonlStore, scan};
use qoder_runtime::store::line::Line;
use qoder_runtime::{VERSION, catalog};
use qoder_types::record::SessionStarted;
use qoder_types::{Record, RecordBody};

use super::{SessionPlace, append, title_entry};
use crate::{Error, Result};

/// Copies a session, up to and including a message when one is named, and gives the copy a title when one is given.
/// Returns the copy's id.
///
/// # Errors
/// When the session or the message does not exist, or the copy cannot be written.
pub fn fork_session(
    session_id: &str,
    up_to_message_id: Option<&str>,
    title: Option<&str>,
    place: &SessionPlace,
) -> Result<String> {
    let from = place.find(session_id)?;
    let id = new_id();
    let name = title.map(|title| title_entry(&id, title)).transpose()?;
    let to = from.beside(&id);
    match up_to_message_id {
        None => catalog::fork(&from, session_id, &to, &id)?,
        Some(message) => copy_up_to(&from, session_id, message, &to, &id)?,
    }
    if let Some(name) = name {
        append(&to.log, &name)?;
    }
    Ok(id)
}

fn copy_up_to(
    from: &SessionPaths,
    from_id: &str,
    message: &str,
    to: &SessionPaths,
    to_id: &str,
) -> Result<()> {
    let started = SessionStarted {
        cwd: String::new(),
        version: VERSION.to_owned(),
        forked_from: Some(from_id.to_owned()),
    };
    let mut bodies = vec![RecordBody::SessionStarted(started)];
    let mut found = false;
    scan(from, |line| {
        let body = match line {
            Line::Record(record) => record.body,
            Line::Foreign(body) => body,
        };
        if found {
            return;
        }
        found = is_message(&body, message);
        match (body, &mut bodies[0]) {
            (RecordBody::SessionStarted(original), RecordBody::SessionStarted(copy)) => {
                copy.cwd = original.cwd
            }
            // Titles and marks of other programs belong to the original.
            (RecordBody::Unknown(_), _) => {}
            (body, _) => bodies.push(body),
        }
    })?;
    if !found {
        return Err(Error::option(
            "up_to_message_id",
            format!("session {from_id} has no message {message}"),
            "get_session_messages() shows them",
        ));
    }
    let mut store = JsonlStore::open(to, to_id, Durability::Process, |_| ())?;
    let stamp = timestamp();
    let records: Vec<Record> =
        (1..).zip(bodies).map(|(seq, body)| Record { seq, timestamp: stamp.clone(), body }).collect();
    store.append(&records).map_err(SessionError::Store)?;
    store.sync().map_err(SessionError::Store)?;
    Ok(())
}

fn is_message(body: &RecordBody, message: &str) -> bool {
    if let RecordBody::User(entry) = body {
        return entry.uuid == message;
    }
    matches!(body, RecordBody::Assistant(entry) if entry.uuid == message)
}
