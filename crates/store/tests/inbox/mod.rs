//! The inbox in files: what is left arrives once, in order, whatever process dies meanwhile; what is not an entry is
//! refused and never fatal.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod arrival;
mod crashes;
mod refusals;

use qoder_store::inbox::{Inbox, Item};
use qoder_store::layout::SessionPaths;
use qoder_types::record::InputOrigin;
use qoder_types::{InboxBody, InboxEntry, InboxOutcome, InboxReply, Message};
use serde_json::Value;

/// A session's files, in a folder of their own.
pub(crate) struct Place {
    pub(crate) paths: SessionPaths,
    _folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let paths = SessionPaths::new(folder.path(), "s");
        std::fs::create_dir(&paths.side).unwrap();
        std::fs::write(&paths.log, "").unwrap();
        Self { paths, _folder: folder }
    }

    pub(crate) fn leave(&self, id: &str) {
        qoder_store::inbox::leave(&self.paths, &entry(id)).unwrap();
    }

    /// The names of the files that wait.
    pub(crate) fn waiting(&self) -> Vec<String> {
        self.names("")
    }

    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.paths.inbox().join(folder)).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file() || !folder.is_empty());
        let mut names: Vec<String> =
            files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

pub(crate) fn entry(id: &str) -> InboxEntry {
    let body = InboxBody::Input { message: Message::user("hello"), origin: InputOrigin::User };
    InboxEntry { id: id.to_owned(), at: qoder_store::timestamp(), by: "a test".to_owned(), body }
}

pub(crate) fn reply(id: &str) -> InboxReply {
    let message = "on record".to_owned();
    InboxReply { id: id.to_owned(), outcome: InboxOutcome::Accepted, message, details: Value::Null }
}

pub(crate) fn taken_ids(inbox: &mut Inbox) -> Vec<String> {
    let id = |item: Item| match item {
        Item::Entry(entry) => entry.id,
        Item::Refused { name, reason } => panic!("{name}: {reason}"),
    };
    inbox.take().into_iter().map(id).collect()
}
