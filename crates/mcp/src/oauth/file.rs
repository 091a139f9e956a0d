//! Tokens in one file that only its owner can read: mode 0600 in a folder of mode 0700, owner checked, links refused,
//! replaced as a whole. A file that is not ours or cannot be read is an error; it is never silently written anew.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use serde::{Deserialize, Serialize};

use super::lock::LockFolder;
use super::store::{Entry, StoreError, TokenStore};

/// Larger ones are not ours.
const LARGEST: u64 = 4 * 1024 * 1024;
/// Others hold this lock only while they write.
const PATIENCE: Duration = Duration::from_secs(10);
const FILE_NAME: &str = "mcp-oauth-tokens.json";

/// The file `mcp-oauth-tokens.json` of a configuration folder.
#[derive(Debug, Clone)]
pub struct FileStore {
    folder: PathBuf,
    locks: LockFolder,
}

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    entries: Vec<Entry>,
}

impl FileStore {
    /// The file of this configuration folder; neither is touched yet.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        let locks = LockFolder::new(lock_folder(folder), PATIENCE);
        Self { folder: folder.to_owned(), locks }
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(FILE_NAME)
    }

    fn read(&self) -> Result<Vec<Entry>, StoreError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::open(self.path(), flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(Vec::new()),
            Err(rustix::io::Errno::LOOP) => return Err(self.problem("is a link")),
            Err(error) => return Err(self.problem(&format!("cannot be opened: {error}"))),
        };
        let facts = rustix::fs::fstat(&file)
            .map_err(|error| self.problem(&format!("cannot be looked at: {error}")))?;
        self.check(&facts)?;
        let mut text = Vec::new();
        file.take(LARGEST)
            .read_to_end(&mut text)
            .map_err(|error| self.problem(&format!("cannot be read: {error}")))?;
        // The parser's own words may quote what it stumbled over.
        let content: Content = serde_json::from_slice(&text).map_err(|error| {
            self.problem(&format!("is not readable (line {}, column {})", error.line(), error.column()))
        })?;
        if content.version != 1 {
            return Err(
                self.problem(&format!("has version {}, which this program does not know", content.version))
            );
        }
        Ok(content.entries)
    }

    fn check(&self, facts: &Stat) -> Result<(), StoreError> {
        if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
            return Err(self.problem("is not a file"));
        }
        if facts.st_uid != rustix::process::geteuid().as_raw() {
            return Err(self.problem("belongs to another user"));
        }
        if facts.st_mode & 0o077 != 0 {
            return Err(self.problem("can be read or written by others; set its mode to 600"));
        }
        if facts.st_nlink != 1 {
            return Err(self.problem("has a second name (a hard link)"));
        }
        if u64::try_from(facts.st_size).unwrap_or(u64::MAX) >= LARGEST {
            return Err(self.problem("is too large"));
        }
        Ok(())
    }

    fn write(&self, entries: Vec<Entry>) -> Result<(), StoreError> {
        let text = serde_json::to_vec_pretty(&Content { version: 1, entries })
            .map_err(|_| self.problem("cannot be put together"))?;
        let folder = private_folder(&self.folder)?;
        let temporary = format!(".mcp-oauth-{}.tmp", uuid::Uuid::new_v4().simple());
        let written = (|| -> std::io::Result<()> {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR;
            let mut file = File::from(rustix::fs::openat(folder.as_fd(), temporary.as_str(), flags, mode)?);
            file.write_all(&text)?;
            file.sync_all()?;
            rustix::fs::renameat(folder.as_fd(), temporary.as_str(), folder.as_fd(), FILE_NAME)?;
            rustix::fs::fsync(folder.as_fd())?;
            Ok(())
        })();
        written.map_err(|error| {
            // Often it is not there at all.
            let _ = rustix::fs::unlinkat(folder.as_fd(), temporary.as_str(), AtFlags::empty());
            self.problem(&format!("cannot be written: {error}"))
        })
    }

    fn problem(&self, what: &str) -> StoreError {
        StoreError(format!("{} {what}", self.path().display()))
    }
}

impl TokenStore for FileStore {
    fn entries(&self, server: &str) -> Result<Vec<Entry>, StoreError> {
        let mut entries = self.read()?;
        entries.retain(|entry| entry.server == server);
        Ok(entries)
    }

    fn replace(&self, server: &str, entries: &[Entry]) -> Result<(), StoreError> {
        let _locked = self.locks.lock_blocking(FILE_NAME)?;
        let mut all = self.read()?;
        let before = all.len();
        all.retain(|entry| entry.server != server);
        if entries.is_empty() && all.len() == before {
            return Ok(());
        }
        all.extend(entries.iter().cloned());
        self.write(all)
    }
}

/// Where the locks of a configuration folder are.
pub(super) fn lock_folder(folder: &Path) -> PathBuf {
    folder.join("mcp-oauth-locks")
}

/// Opens a folder that only its owner may enter; makes it when it is not there.
pub(super) fn private_folder(path: &Path) -> Result<OwnedFd, StoreError> {
    use std::os::unix::fs::DirBuilderExt as _;

    let problem = |what: String| StoreError(format!("the folder {} {what}", path.display()));
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| problem(format!("cannot be made: {error}")))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|error| problem(format!("cannot be opened: {error}")))?;
    let facts =
        rustix::fs::fstat(&folder).map_err(|error| problem(format!("cannot be looked at: {error}")))?;
    if facts.st_uid != rustix::process::geteuid().as_raw() {
        return Err(problem("belongs to another user".to_owned()));
    }
    if facts.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(&folder, Mode::RWXU)
            .map_err(|error| problem(format!("cannot be made private: {error}")))?;
    }
    Ok(folder)
}
