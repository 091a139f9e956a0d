//! The index of a session's checkpoints (`manifest.jsonl`): which message was being worked on, and what each file was just before its
//! first change since. It is only ever appended to, and every line is on the disk before the change that it announces.

use std::collections::HashSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::CheckpointError;
use crate::layout::SessionPaths;
use crate::store::blob;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Line {
    /// A user's message is being worked on from here on.
    Message {
        /// The message.
        uuid: String,
    },
    /// A rewind changes files from here on.
    Rewind {
        /// The message that it goes back to.
        to: String,
    },
    /// A file is about to be changed, for the first time since the line above.
    File {
        /// Its real path.
        path: PathBuf,
        /// What is there.
        before: Before,
    },
    /// A file is about to get a content from a tool.
    Written {
        /// Its real path.
        path: PathBuf,
        /// The content's SHA-256. It is not kept.
        sha256: String,
    },
}

/// What was at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum Before {
    /// Nothing.
    Absent,
    /// A file; its content is in a blob.
    File {
        /// The blob's name: the content's SHA-256.
        sha256: String,
        /// Its permission bits.
        mode: u32,
    },
    /// A file whose content a rewind could not keep, for want of room.
    NotKept,
}

/// The folder of a session's checkpoints.
#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// The checkpoints inside the side folder of a session.
    pub(super) fn of_session(side: &Path) -> Self {
        Self(SessionPaths::of_side(side).checkpoints())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn index(&self) -> PathBuf {
        self.0.join("manifest.jsonl")
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.0.join("blobs")
    }

    /// When something was last kept.
    pub(super) fn newest(&self) -> Option<SystemTime> {
        self.index().metadata().and_then(|metadata| metadata.modified()).ok()
    }

    fn error(&self, what: &'static str, error: &std::io::Error) -> CheckpointError {
        CheckpointError::Io { what, folder: self.0.clone(), problem: error.to_string() }
    }

    /// All lines; `None` when there is no index. A last line without its end announced nothing and does not count.
    pub(super) fn lines(&self) -> Result<Option<Vec<Line>>, CheckpointError> {
        let text = match std::fs::read(self.index()) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.error("read", &error)),
        };
        let mut lines = Vec::new();
        for (number, text) in (1_u64..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
            // A cut-off line was closed with a newline of its own when the index was opened again.
            let Some(text) = text.strip_suffix(b"\n").filter(|text| !text.ends_with(TORN)) else { continue };
            let line = serde_json::from_slice(text).map_err(|error| CheckpointError::Damaged {
                folder: self.0.clone(),
                problem: format!("line {number} of manifest.jsonl: {error}"),
            })?;
            lines.push(line);
        }
        Ok(Some(lines))
    }

    /// The content of a blob, which is what its name says or nothing.
    pub(super) fn content(&self, sha256: &str) -> Result<Vec<u8>, CheckpointError> {
        let damaged = |problem: String| CheckpointError::Damaged { folder: self.0.clone(), problem };
        if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(damaged(format!("`{sha256}` is not the name of a blob")));
        }
        let content = std::fs::read(self.blobs().join(sha256))
            .map_err(|error| damaged(format!("blob {sha256}: {error}")))?;
        if blob_name(&content) == sha256 {
            Ok(content)
        } else {
            Err(damaged(format!("blob {sha256} has another content than it was made of")))
        }
    }
}

/// Marks a line that a crash left incomplete.
const TORN: &[u8] = b"\x18";

/// The name under which a content is kept.
pub(super) fn blob_name(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An index that is being written.
#[derive(Debug)]
pub(super) struct CheckpointIndex {
    pub(super) folder: Folder,
    file: File,
    /// The message whose changes are kept at the moment; `None` after a rewind.
    pub(super) message: Option<String>,
    /// Places that are kept since the last message or rewind.
    kept: HashSet<PathBuf>,
}

impl CheckpointIndex {
    /// Opens the index of a folder, creating both.
    pub(super) fn open(folder: &Folder) -> Result<Self, CheckpointError> {
        let known = folder.lines()?;
        let is_new = known.is_none();
        let open = || -> std::io::Result<File> {
            DirBuilder::new().recursive(true).mode(0o700).create(folder.path())?;
            let mut file =
                OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(folder.index())?;
            close_torn_line(&mut file, &folder.index())?;
            if is_new {
                sync_folder(folder.path())?;
            }
            Ok(file)
        };
        let file = open().map_err(|error| folder.error("open", &error))?;
        // The caller holds the session's lock.
        blob::sweep(&folder.blobs());
        let mut index = Self { folder: folder.clone(), file, message: None, kept: HashSet::new() };
        known.iter().flatten().for_each(|line| index.follow(line));
        Ok(index)
    }

    fn follow(&mut self, line: &Line) {
        match line {
            Line::Message { uuid } => {
                self.message = Some(uuid.clone());
                self.kept.clear();
            }
            Line::Rewind { .. } => {
                self.message = None;
                self.kept.clear();
            }
            Line::File { path, .. } => {
                self.kept.insert(path.clone());
            }
            Line::Written { .. } => {}
        }
    }

    /// True when the place is kept since the last message or rewind.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.kept.contains(path)
    }

    /// Appends lines in one write and waits until they are on the disk.
    pub(super) fn append(&mut self, lines: &[Line]) -> Result<(), CheckpointError> {
        self.note(lines)?;
        self.file.sync_data().map_err(|error| self.folder.error("write", &error))
    }

    /// Appends lines that nothing is lost without: they may still be on their way to the disk.
    pub(super) fn note(&mut self, lines: &[Line]) -> Result<(), CheckpointError> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)
                .map_err(|error| self.folder.error("write", &std::io::Error::other(error)))?;
            text.push(b'\n');
        }
        self.file.write_all(&text).map_err(|error| self.folder.error("write", &error))?;
        lines.iter().for_each(|line| self.follow(line));
        Ok(())
    }

    /// Keeps a content; its name is on the disk when this returns.
    pub(super) fn keep(&self, content: &[u8]) -> Result<String, CheckpointError> {
        let blobs = self.folder.blobs();
        let kept = blob::put(&blobs, content).and_then(|name| sync_folder(&blobs).map(|()| name));
        kept.map_err(|error| self.folder.error("write", &error))
    }
}

/// Ends a line that a crash left incomplete, so that it is known as such and the next one begins at a line's start.
fn close_torn_line(file: &mut File, path: &Path) -> std::io::Result<()> {
    let text = std::fs::read(path)?;
    if text.is_empty() || text.ends_with(b"\n") {
        return Ok(());
    }
    file.write_all(&[TORN, b"\n"].concat())
}

/// Makes names in a folder survive a loss of power.
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_a_crash_cut_off_announces_nothing() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::of_session(place.path());
        assert_eq!(folder.lines().unwrap(), None);
        let message = |uuid: &str| Line::Message { uuid: uuid.to_owned() };
        CheckpointIndex::open(&folder).unwrap().append(&[message("one")]).unwrap();
        let mut text = std::fs::read(folder.index()).unwrap();
        text.extend_from_slice(b"{\"type\":\"file\",\"path\":\"/a");
        std::fs::write(folder.index(), &text).unwrap();
        assert_eq!(folder.lines().unwrap().unwrap(), [message("one")]);
        let mut index = CheckpointIndex::open(&folder).unwrap();
        assert_eq!(index.message.as_deref(), Some("one"));
        index.append(&[message("two")]).unwrap();
        assert_eq!(folder.lines().unwrap().unwrap(), [message("one"), message("two")]);
    }

    #[test]
    fn a_damaged_line_is_not_passed_over() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::of_session(place.path());
        CheckpointIndex::open(&folder).unwrap();
        std::fs::write(folder.index(), "{\"type\":\"message\"}\n").unwrap();
        let error = folder.lines().unwrap_err();
        assert_eq!(error.code(), "checkpoint_damaged");
        assert!(error.to_string().contains("line 1"), "{error}");
    }

    #[test]
    fn a_blob_is_what_its_name_says_or_nothing() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::of_session(place.path());
        let index = CheckpointIndex::open(&folder).unwrap();
        let name = index.keep(b"content").unwrap();
        assert_eq!(folder.content(&name).unwrap(), b"content");
        std::fs::write(folder.blobs().join(&name), "other").unwrap();
        assert_eq!(folder.content(&name).unwrap_err().code(), "checkpoint_damaged");
        assert_eq!(folder.content("../manifest.jsonl").unwrap_err().code(), "checkpoint_damaged");
    }
}
