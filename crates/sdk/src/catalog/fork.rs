//! Copies of sessions: whole, or up to a message. The original is only read; the copy has an id of its own and can be
//! resumed like any other.

use qoder_runtime::catalog;
use qoder_runtime::sessions::new_id;

use super::{SessionPlace, append, title_entry};
use crate::error::{Error, Result};

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
        Some(message) => {
            if !catalog::fork_up_to(&from, session_id, message, &to, &id)? {
                return Err(Error::option(
                    "up_to_message_id",
                    format!("session {session_id} has no message {message}"),
                    "get_session_messages() shows them",
                ));
            }
        }
    }
    if let Some(name) = name {
        append(&to.log, &name)?;
    }
    Ok(id)
}
