//! The private temporary folder of a sandboxed session: what commands see as `/tmp` and `/dev/shm`, and the empty files
//! that cover what they must not see.
//!
//! Made with the first confined command, readable for its owner only, removed when the session lets it go. The owner of one
//! holds a lock in it, so that those of sessions that were killed can be told from others and are removed by the next.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::Digest;

const PREFIX: &str = "qoder-sandbox-";
/// The name of the file that its owner keeps locked.
const LOCK: &str = "lock";
/// Younger ones may not be locked yet.
const YOUNG: Duration = Duration::from_secs(60);

/// A private temporary folder; removed with everything in it when dropped.
#[derive(Debug)]
pub struct Scratch {
    root: PathBuf,
    /// Held for its lock.
    _lock: File,
}

impl Scratch {
    /// Makes one in the system's temporary folder.
    pub fn create() -> io::Result<Self> {
        let base = std::env::temp_dir().canonicalize()?;
        remove_abandoned(&base);
        let root = base.join(format!("{PREFIX}{}", uuid::Uuid::new_v4().simple()));
        let mut folder = DirBuilder::new();
        folder.mode(0o700);
        folder.create(&root)?;
        let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(root.join(LOCK))?;
        lock.try_lock()?;
        let scratch = Self { root, _lock: lock };
        for name in ["tmp", "shm"] {
            folder.create(scratch.root.join(name))?;
        }
        for (path, mode) in [(scratch.empty(), 0o444), (scratch.unreadable(), 0o000)] {
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            std::fs::set_permissions(&path, Permissions::from_mode(mode))?;
        }
        Ok(scratch)
    }

    /// The temporary files of commands.
    #[must_use]
    pub fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// The shared memory of commands.
    #[must_use]
    pub fn shared_memory(&self) -> PathBuf {
        self.root.join("shm")
    }

    /// An empty file.
    pub(crate) fn empty(&self) -> PathBuf {
        self.root.join("empty")
    }

    /// A file that its owner cannot read.
    pub(crate) fn unreadable(&self) -> PathBuf {
        self.root.join("unreadable")
    }

    /// Keeps `content` in a file; the same content in the same file.
    pub(crate) fn keep(&self, content: &[u8]) -> io::Result<PathBuf> {
        let digest = sha2::Sha256::digest(content);
        let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = self.root.join(name);
        if !path.exists() {
            // Another command may look for it at this moment: it comes into being whole.
            let draft = self.root.join(uuid::Uuid::new_v4().simple().to_string());
            std::fs::write(&draft, content)?;
            std::fs::rename(&draft, &path)?;
        }
        Ok(path)
    }

    /// The folder that holds all of it.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A command may have taken its own permissions away; what then stays is private and in the temporary folder.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// Removes what killed sessions of this user left behind.
fn remove_abandoned(base: &Path) {
    let entries = std::fs::read_dir(base).into_iter().flatten().filter_map(Result::ok);
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let path = entry.path();
        if is_abandoned(&path) {
            // Another session may be at it.
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

fn is_abandoned(path: &Path) -> bool {
    let Ok(metadata) = path.symlink_metadata() else { return false };
    let is_ours = metadata.is_dir() && metadata.uid() == rustix::process::getuid().as_raw();
    let is_young =
        metadata.modified().ok().and_then(|time| time.elapsed().ok()).is_none_or(|age| age < YOUNG);
    if !is_ours || is_young {
        return false;
    }
    let lock = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(path.join(LOCK));
    lock.is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_session_left_is_removed_by_the_next() {
        let base = tempfile::tempdir().unwrap();
        let old = std::time::SystemTime::now() - Duration::from_secs(600);
        let made = |name: &str, has_lock: bool| {
            let path = base.path().join(name);
            std::fs::create_dir(&path).unwrap();
            let lock = has_lock.then(|| File::create(path.join(LOCK)).unwrap());
            File::open(&path).unwrap().set_modified(old).unwrap();
            (path, lock)
        };
        let (held, lock) = made("qoder-sandbox-held", true);
        lock.as_ref().unwrap().try_lock().unwrap();
        let (left, _) = made("qoder-sandbox-left", true);
        let (foreign, _) = made("qoder-sandbox-of-something-else", false);
        let (other, _) = made("other", true);
        let young = base.path().join("qoder-sandbox-young");
        std::fs::create_dir(&young).unwrap();
        File::create(young.join(LOCK)).unwrap();
        remove_abandoned(base.path());
        assert!(!left.exists());
        assert!(held.exists() && foreign.exists() && other.exists() && young.exists());
    }
}
