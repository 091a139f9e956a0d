//! The inbox of a session: what other processes leave for the one that drives it, in order of arrival, and what became of
//! it. [`leave`], [`withdraw`] and [`Ticket`] are for those others, [`Inbox`] is for the holder of the lease.
//!
//! An entry stays until it is settled, which its taker does after the record is durable; so a crash in between loses
//! nothing, and ids tell that an entry was taken before.

mod error;
mod files;

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use qoder_types::{InboxEntry, InboxReply};

pub use error::InboxError;
pub use files::{Inbox, leave, withdraw};

/// The most bytes of an entry.
pub const LARGEST_ENTRY: u64 = 1024 * 1024;
/// The most entries that may wait.
pub const MOST_WAITING: usize = 1_000;

/// The shortest and longest pause between two looks for a reply.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(25);

/// What was found in an inbox.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// An entry, to be settled.
    Entry(InboxEntry),
    /// Something that is not an entry. It is out of the way; there is nothing to settle.
    Refused {
        /// How it was named.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// The inbox of a session, for the holder of its lease.
pub trait SessionInbox: Send {
    /// What arrived since the last call, in order; each entry once.
    fn take(&mut self) -> Vec<Item>;
    /// Says what became of an entry and removes it. To be called after what it led to is durable, unless it
    /// [settles with the log](Self::settles_with_log).
    fn settle(&mut self, reply: InboxReply) -> Result<(), InboxError>;
    /// Completes when something may have arrived. Dropping it loses nothing.
    fn arrived(&self) -> BoxFuture<'static, ()>;
    /// True when a settled entry is removed by the commit that makes durable what it led to.
    fn settles_with_log(&self) -> bool {
        false
    }
}

/// Waits for what becomes of an entry.
pub struct Ticket {
    look: Box<dyn FnMut() -> Option<InboxReply> + Send>,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Ticket").finish_non_exhaustive()
    }
}

impl Ticket {
    /// A ticket of a store; `look` takes the reply if it is there.
    pub fn new(look: impl FnMut() -> Option<InboxReply> + Send + 'static) -> Self {
        Self { look: Box::new(look) }
    }

    /// The reply, if it is there.
    pub fn look(&mut self) -> Option<InboxReply> {
        (self.look)()
    }

    /// Waits for the reply. Blocks the thread.
    pub fn wait(&mut self, timeout: Duration) -> Option<InboxReply> {
        let until = Instant::now() + timeout;
        let mut pause = SHORTEST_PAUSE;
        loop {
            let reply = self.look();
            let left = until.saturating_duration_since(Instant::now());
            if reply.is_some() || left.is_zero() {
                return reply;
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// True for an id that can be part of a file's name: 1 to 128 letters, digits, `-` and `_`.
#[must_use]
pub fn is_plain_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=128).contains(&id.len()) && id.bytes().all(is_plain)
}

/// The text of an entry that may be left.
pub(crate) fn checked(entry: &InboxEntry) -> Result<Vec<u8>, InboxError> {
    if !is_plain_id(&entry.id) {
        return Err(InboxError::BadId { id: entry.id.clone() });
    }
    let text =
        serde_json::to_vec(entry).map_err(|error| InboxError::Unwritable { problem: error.to_string() })?;
    let size = text.len() as u64;
    if size > LARGEST_ENTRY {
        return Err(InboxError::TooLarge { size, most: LARGEST_ENTRY });
    }
    Ok(text)
}
