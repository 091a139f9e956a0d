//! Locks between processes: files of a private folder, held by the kernel and freed by it when the holder dies. Waiting
//! is bounded; not getting a lock is an error and never a reason to continue without it.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use sha2::{Digest, Sha256};

use super::file::private_folder;
use super::store::StoreError;

/// How often a lock that is held is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub struct Locked {
    _file: File,
}

/// The folder of the lock files.
#[derive(Debug, Clone)]
pub struct LockFolder {
    path: PathBuf,
    patience: Duration,
}

impl LockFolder {
    /// A folder, and how long a lock is waited for.
    #[must_use]
    pub fn new(path: PathBuf, patience: Duration) -> Self {
        Self { path, patience }
    }

    /// Waits another time.
    #[must_use]
    pub(super) fn patient(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Waits for the lock of a name.
    pub async fn lock(&self, name: &str) -> Result<Locked, StoreError> {
        let (folder, name) = (self.path.clone(), file_name(name));
        let file = tokio::task::spawn_blocking(move || open(&folder, &name))
            .await
            .map_err(|error| StoreError(format!("the lock cannot be opened: {error}")))??;
        let deadline = Instant::now() + self.patience;
        loop {
            if held(&file)? {
                return Ok(Locked { _file: file });
            }
            if Instant::now() >= deadline {
                return Err(self.late());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The same where blocking is allowed.
    pub(super) fn lock_blocking(&self, name: &str) -> Result<Locked, StoreError> {
        let file = open(&self.path, &file_name(name))?;
        let deadline = Instant::now() + self.patience;
        while !held(&file)? {
            if Instant::now() >= deadline {
                return Err(self.late());
            }
            std::thread::sleep(LOOK);
        }
        Ok(Locked { _file: file })
    }

    fn late(&self) -> StoreError {
        StoreError(format!(
            "another process holds the lock in {} for more than {} ms",
            self.path.display(),
            self.patience.as_millis()
        ))
    }
}

/// Addresses may be long and hold any character.
fn file_name(name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    let hex: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{hex}.lock")
}

fn open(folder: &Path, name: &str) -> Result<File, StoreError> {
    let directory = private_folder(folder)?;
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory.as_fd(), name, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|error| StoreError(format!("a lock in {} cannot be opened: {error}", folder.display())))?;
    Ok(File::from(file))
}

fn held(file: &File) -> Result<bool, StoreError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(StoreError(format!("the lock cannot be taken: {error}"))),
    }
}
