//! The private temporary folder of a sandboxed session: what commands see as `/tmp` and `/dev/shm`, and the empty files
//! that cover what they must not see.
//!
//! Made with the first confined command, readable for its owner only, removed when the session lets it go.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::Digest;

/// A private temporary folder; removed with everything in it when dropped.
#[derive(Debug)]
pub struct Scratch {
    root: PathBuf,
}

impl Scratch {
    /// Makes one in the system's temporary folder.
    pub fn create() -> io::Result<Self> {
        let base = std::env::temp_dir().canonicalize()?;
        let root = base.join(format!("qoder-sandbox-{}", uuid::Uuid::new_v4().simple()));
        let mut folder = DirBuilder::new();
        folder.mode(0o700);
        folder.create(&root)?;
        let scratch = Self { root };
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
    pub(super) fn empty(&self) -> PathBuf {
        self.root.join("empty")
    }

    /// A file that its owner cannot read.
    pub(super) fn unreadable(&self) -> PathBuf {
        self.root.join("unreadable")
    }

    /// Keeps `content` in a file; the same content in the same file.
    pub(super) fn keep(&self, content: &[u8]) -> io::Result<PathBuf> {
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
