//! Folder trust. Until someone vouches for a folder nothing in it is interpreted: no settings, no memory files, no
//! rules. Trust is the user's own record, keyed by the real path of the folder; nothing inside a folder can grant it.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::SessionError;
use crate::layout;
use crate::settings::Settings;

/// Why a folder is trusted, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Nobody vouched for it.
    No,
    /// A flag or environment variable says so for this run.
    ThisRun,
    /// It is on the user's list.
    Listed,
    /// The user switched folder trust off.
    SwitchedOff,
}

impl Trust {
    /// True unless nobody vouched for the folder.
    #[must_use]
    pub fn is_trusted(self) -> bool {
        self != Self::No
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFile {
    folders: Vec<PathBuf>,
}

fn file(config_root: &Path) -> PathBuf {
    config_root.join("trusted-folders.json")
}

/// Looks up whether `project_root` is trusted. `user` are the user's own settings alone.
#[must_use]
pub fn lookup(
    project_root: &Path,
    cwd: &Path,
    user: &Settings,
    config_root: &Path,
    environment: &BTreeMap<String, String>,
    flag: bool,
) -> Trust {
    if !user.flag("security.folderTrust.enabled", true) {
        return Trust::SwitchedOff;
    }
    let asked = environment.get("QODER_TRUST").is_some_and(|value| matches!(value.as_str(), "1" | "true"));
    if flag || asked {
        return Trust::ThisRun;
    }
    let home = real(layout::home(environment));
    if project_root == Path::new("/") || project_root == home {
        return Trust::No;
    }
    let configured = user.list("permissions.trustDirectories").into_iter().map(|folder| {
        folder.strip_prefix("~/").map_or_else(|| PathBuf::from(&folder), |rest| home.join(rest))
    });
    let listed = configured.chain(stored(config_root)).any(|folder| {
        let folder = real(folder);
        folder == project_root || folder == cwd
    });
    if listed { Trust::Listed } else { Trust::No }
}

/// The path with links resolved; one that does not exist stays as it is.
fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

fn stored(config_root: &Path) -> Vec<PathBuf> {
    // An unreadable list trusts nothing.
    let text = std::fs::read(file(config_root)).unwrap_or_default();
    serde_json::from_slice::<TrustFile>(&text).unwrap_or_default().folders
}

/// Puts a folder on the user's list.
pub fn add(folder: &Path, config_root: &Path, home: &Path) -> Result<PathBuf, SessionError> {
    let real = folder.canonicalize().map_err(|error| SessionError::io("trust", folder, &error))?;
    if real == Path::new("/") || real == self::real(home.to_path_buf()) {
        let refusal = std::io::Error::other("the root and the home directory cannot be trusted as a whole");
        return Err(SessionError::io("trust", &real, &refusal));
    }
    let path = file(config_root);
    let mut folders = stored(config_root);
    if !folders.contains(&real) {
        folders.push(real.clone());
    }
    let save = || -> std::io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(config_root)?;
        let temporary = path.with_extension(format!("{}", std::process::id()));
        let mut out = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        serde_json::to_writer_pretty(&mut out, &TrustFile { folders })?;
        out.write_all(b"\n")?;
        out.sync_data()?;
        std::fs::rename(&temporary, &path)
    };
    save().map_err(|error| SessionError::io("write", &path, &error))?;
    Ok(real)
}

/// The root of the project that `cwd` is in: the nearest folder upwards with a version-control entry, else `cwd`. Only
/// looks at names; runs nothing and follows nothing.
#[must_use]
pub fn project_root(cwd: &Path) -> PathBuf {
    cwd.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok()).unwrap_or(cwd).to_path_buf()
}
