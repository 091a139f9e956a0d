//! The record of a rewind of files. It stands in the log before the first file is touched; a rewind that was cut off is
//! repeated and comes to the same files. What was said stays as it is: a rewind of the conversation is a cut.

use serde::{Deserialize, Serialize};

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
    /// What asked for it, for people.
    pub by: String,
}
