//! Values that must not be arguments, because everybody on a machine can read those: settings and servers may hold
//! keys, and long texts do not fit. They go into files that only this user can read and that vanish with the session.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use qoder_runtime::session::new_id;

use crate::{Error, Result};

/// The longest text that is passed as an argument.
pub(super) const LONGEST_ARGUMENT: usize = 64 * 1024;

/// Files of one session.
#[derive(Default)]
pub(super) struct PrivateFiles {
    folder: Option<PathBuf>,
}

impl PrivateFiles {
    /// Writes a file and returns its path.
    pub(super) fn write(&mut self, name: &str, text: &str) -> Result<PathBuf> {
        let failed = |error: std::io::Error| Error::Io {
            what: format!("write {name} to the temporary folder"),
            problem: error.to_string(),
        };
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => {
                let folder = std::env::temp_dir().join(format!("qoder-sdk-{}", new_id()));
                std::fs::DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
                self.folder.insert(folder).clone()
            }
        };
        let path = folder.join(name);
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(path)
    }
}

impl Drop for PrivateFiles {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // What cannot be removed can still be read by this user alone.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
