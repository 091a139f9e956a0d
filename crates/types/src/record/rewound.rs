//! The records of checkpoints. One says that a file was kept as it was before a call changed it; it is for readers of the
//! log, and going back does not depend on it. The other is appended before a rewind touches the first file; a rewind
//! that was cut off is repeated and comes to the same files. What was said stays as it is: a rewind of the conversation is
//! a cut.

use serde::{Deserialize, Serialize};

use crate::actor::Actor;

/// A file was kept as it was before a call changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileKept {
    /// The call that changes it.
    pub tool_use_id: String,
    /// The user's message that the change belongs to.
    pub message: String,
    /// Its real path.
    pub path: String,
    /// The content's SHA-256, under which it is kept; none when there was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Its permission bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

/// Files are about to go back to what they were before a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesRewound {
    /// The user's message.
    pub to: String,
    /// The files that change.
    pub files: Vec<String>,
    /// Places that are left alone because a link leads elsewhere by now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_links: Vec<String>,
    /// Files that something else than a file tool has changed as well; that goes too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_elsewhere: Vec<String>,
    /// What asked for it, for people.
    pub by: Actor,
}
