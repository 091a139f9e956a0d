//! Where sessions are kept: their logs, leases, inboxes and blobs, what is listed of them and how long they stay.
//! [`SessionStore`] is the port; [`MemorySessions`] and [`JsonlSessions`] are its kinds here.

pub mod catalog;
mod error;
pub mod follow;
pub mod inbox;
pub mod jsonl;
pub mod layout;
pub mod lease;
mod location;
pub mod memory;
mod port;
mod private_folder;
pub mod retention;
mod sessions;
mod watch;

pub use error::StoreError;
pub use jsonl::line::{VERSION, timestamp};
pub use jsonl::{Scan, blob, folders, line, notes, scan};
pub use location::SessionLocation;
pub use memory::MemorySessions;
pub use port::{OpenSession, SessionKey, SessionStore, StoredSession, Take};
/// Nouns of what is kept.
pub use qoder_types::{Record, RecordBody};
pub use sessions::JsonlSessions;
