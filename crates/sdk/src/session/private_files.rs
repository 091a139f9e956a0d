//! Private files of a session: values that must not be arguments, because every user of a machine
//! can read those, and logs that came from a store. Only this user can read them, and they vanish with the session.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use qoder_runtime::sessions::new_id;

use crate::error::{Error, Result};

/// The longest text that is passed as an argument.
pub(crate) const LONGEST_ARGUMENT: usize = 64 * 1024;

/// Files of one session.
#[derive(Default)]
pub(crate) struct PrivateFiles {
    root: Option<PathBuf>,
}

impl PrivateFiles {
    /// Writes a file and returns its path.
    pub(crate) fn write(&mut self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.root()?.join(name);
        write_private(&path, text.as_bytes())?;
        Ok(path)
    }

    /// Makes a folder and returns its path.
    pub(crate) fn folder(&mut self, name: &str) -> Result<PathBuf> {
        let path = self.root()?.join(name);
        make(&path, false)?;
        Ok(path)
    }

    fn root(&mut self) -> Result<PathBuf> {
        match &self.root {
            Some(root) => Ok(root.clone()),
            None => {
                let root = std::env::temp_dir().join(format!("qoder-sdk-{}", new_id()));
                make(&root, false)?;
                Ok(self.root.insert(root).clone())
            }
        }
    }
}

impl Drop for PrivateFiles {
    fn drop(&mut self) {
        if let Some(root) = &self.root {
            // What cannot be removed can still be read by this user alone.
            let _ = std::fs::remove_dir_all(root);
        }
    }
}

/// Writes a new file that only this user can read, with the folders above it.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        make(folder, true)?;
    }
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| failed("write", path, &error))
}

fn make(folder: &Path, with_parents: bool) -> Result<()> {
    let made = std::fs::DirBuilder::new().mode(0o700).recursive(with_parents).create(folder);
    made.map_err(|error| failed("make", folder, &error))
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Error::Io { what: format!("{what} {name} in the temporary folder"), problem: error.to_string() }
}
