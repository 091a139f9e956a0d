//! Files of the environment that the caller reads, piece by piece.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags};

use super::lines::{Sender, encode};
use super::message::{FromHost, PIECE};
use super::serve::lock;

/// The most files that are open at a time.
const MOST_OPEN: usize = 64;

/// The files that are open.
pub(crate) struct OpenFiles {
    sender: Sender,
    open: Mutex<HashMap<u64, Arc<File>>>,
}

impl OpenFiles {
    pub(crate) fn new(sender: Sender) -> Self {
        Self { sender, open: Mutex::default() }
    }

    /// Opens a regular file; a link in its last part is not followed.
    pub(crate) async fn open(&self, file: u64, path: PathBuf) {
        let opened = tokio::task::spawn_blocking(move || open_regular(&path)).await;
        let opened = opened.unwrap_or_else(|error| Err(io::Error::other(error)));
        let mut open = lock(&self.open);
        match opened {
            Ok(_) if open.len() >= MOST_OPEN => self.fail(file, "too many files are open"),
            Ok((opened, size)) => {
                open.insert(file, Arc::new(opened));
                self.sender.send(&FromHost::FileOpened { file, size });
            }
            Err(error) => self.fail(file, &error.to_string()),
        }
    }

    /// Sends the next piece; an empty one at the end.
    pub(crate) async fn read(&self, file: u64) {
        let Some(opened) = lock(&self.open).get(&file).cloned() else {
            return self.fail(file, "the file is not open");
        };
        let read = tokio::task::spawn_blocking(move || -> io::Result<Vec<u8>> {
            let mut piece = vec![0; PIECE];
            let count = (&*opened).read(&mut piece)?;
            piece.truncate(count);
            Ok(piece)
        });
        match read.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(piece) => self.sender.send(&FromHost::FilePiece { file, data: encode(&piece) }),
            Err(error) => self.fail(file, &error.to_string()),
        }
    }

    pub(crate) fn close(&self, file: u64) {
        lock(&self.open).remove(&file);
    }

    fn fail(&self, file: u64, problem: &str) {
        self.sender.send(&FromHost::FileFailed { file, problem: problem.to_owned() });
    }
}

fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok((file, facts.len()))
}
