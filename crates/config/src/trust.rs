//! Folder trust. Until someone vouches for a folder nothing in it is interpreted: no settings, no memory files, no
//! rules. Trust is the user's own record, keyed by the real path of the folder; nothing inside a folder can grant it.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::home;
use crate::hooks::{Vouched, agent_digests_of_folder, digest_of_folder, script_digests_of_folder};
use crate::settings::Settings;

/// Why a folder is trusted, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// It is not trusted.
    No,
    /// A flag or environment variable says so for this run.
    ThisRun,
    /// The program that drives the session listed the folder's files in `setting_sources`.
    Host,
    /// It is on the user's list.
    Listed,
    /// The user's settings name it.
    Configured,
    /// The user switched folder trust off.
    SwitchedOff,
}

impl Trust {
    /// True for a trusted folder.
    #[must_use]
    pub fn is_trusted(self) -> bool {
        self != Self::No
    }
}

/// A folder that could not be put on the user's list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {what} {}: {problem}", path.display())]
pub struct TrustError {
    /// What was tried.
    pub what: &'static str,
    /// With which file or folder.
    pub path: PathBuf,
    /// What the system said.
    pub problem: String,
}

impl TrustError {
    fn new(what: &'static str, path: &Path, error: &std::io::Error) -> Self {
        Self { what, path: path.to_path_buf(), problem: error.to_string() }
    }

    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "trust_io"
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        "Check that the folder exists and that the configuration root is writable"
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFile {
    folders: Vec<PathBuf>,
    /// Digests of the hooks that a folder had when it was put on the list.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    hooks: BTreeMap<PathBuf, String>,
    /// Digests of the hooks that its agents brought.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    agents: BTreeMap<PathBuf, Vec<String>>,
    /// Digests of the scripts that all these hooks run, by their paths in the folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    scripts: BTreeMap<PathBuf, BTreeMap<String, String>>,
}

fn file(config_root: &Path) -> PathBuf {
    config_root.join("trusted-folders.json")
}

/// Looks up whether `cwd` is trusted, and as part of which folder: the one whose files count. Trust of a folder inside a
/// repository does not reach the repository's own files. `user` are the user's own settings alone; `for_this_run` is who
/// vouches for this run, if anyone does.
#[must_use]
pub fn lookup(
    cwd: &Path,
    user: &Settings,
    config_root: &Path,
    environment: &BTreeMap<String, String>,
    for_this_run: Option<Trust>,
) -> (Trust, PathBuf) {
    let home = real(home::home(environment));
    let repository = project_root(cwd);
    // No way of trusting reaches these two, so they are taken out before any is looked at.
    let mut candidates = vec![repository.clone(), cwd.to_path_buf()];
    candidates.retain(|folder| !is_too_wide(folder, &home));
    let Some(widest) = candidates.first().cloned() else { return (Trust::No, repository) };
    if !user.flag("security.folderTrust.enabled", true) {
        return (Trust::SwitchedOff, widest);
    }
    let asked = environment.get("QODER_TRUST").is_some_and(|value| matches!(value.as_str(), "1" | "true"));
    if let Some(trust) = asked.then_some(Trust::ThisRun).or(for_this_run) {
        return (trust, widest);
    }
    let configured = user.list("permissions.trustDirectories");
    let configured = configured.iter().map(|folder| home::expand_home(folder, environment));
    let configured: Vec<PathBuf> = configured.map(real).collect();
    let listed: Vec<PathBuf> = stored(config_root).folders.into_iter().map(real).collect();
    for folder in candidates {
        if configured.contains(&folder) {
            return (Trust::Configured, folder);
        }
        if listed.contains(&folder) {
            return (Trust::Listed, folder);
        }
    }
    (Trust::No, repository)
}

/// True for folders that hold everything a person has: trust must not cover all of that.
pub fn is_too_wide(folder: &Path, home: &Path) -> bool {
    folder == Path::new("/") || folder == home
}

/// The path with links resolved; one that does not exist stays as it is.
fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

fn stored(config_root: &Path) -> TrustFile {
    // An unreadable list trusts nothing.
    let text = std::fs::read(file(config_root)).unwrap_or_default();
    serde_json::from_slice::<TrustFile>(&text).unwrap_or_default()
}

/// The hooks that a listed folder had when it was put on the list.
pub fn vouched_hooks(folder: &Path, config_root: &Path) -> Vouched {
    let mut list = stored(config_root);
    Vouched::Then {
        settings: list.hooks.remove(folder),
        agents: list.agents.remove(folder).unwrap_or_default(),
        scripts: list.scripts.remove(folder).unwrap_or_default(),
    }
}

/// Puts a folder on the user's list, with its hooks and the scripts that they run as they are.
pub fn add(folder: &Path, config_root: &Path, home: &Path) -> Result<PathBuf, TrustError> {
    let real = folder.canonicalize().map_err(|error| TrustError::new("trust", folder, &error))?;
    if is_too_wide(&real, &self::real(home.to_path_buf())) {
        let refusal = std::io::Error::other("the root and the home directory cannot be trusted as a whole");
        return Err(TrustError::new("trust", &real, &refusal));
    }
    let path = file(config_root);
    let mut list = stored(config_root);
    if !list.folders.contains(&real) {
        list.folders.push(real.clone());
    }
    match digest_of_folder(&real) {
        Some(digest) => list.hooks.insert(real.clone(), digest),
        None => list.hooks.remove(&real),
    };
    list.agents.insert(real.clone(), agent_digests_of_folder(&real));
    list.agents.retain(|_, digests| !digests.is_empty());
    list.scripts.insert(real.clone(), script_digests_of_folder(&real));
    list.scripts.retain(|_, digests| !digests.is_empty());
    let save = || -> std::io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(config_root)?;
        let temporary = path.with_extension(format!("{}", std::process::id()));
        let mut out = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        serde_json::to_writer_pretty(&mut out, &list)?;
        out.write_all(b"\n")?;
        out.sync_data()?;
        std::fs::rename(&temporary, &path)
    };
    save().map_err(|error| TrustError::new("write", &path, &error))?;
    Ok(real)
}

/// The root of the project that `cwd` is in: the nearest folder upwards with a version-control entry, else `cwd`. Only
/// looks at names; runs nothing and follows nothing.
#[must_use]
pub fn project_root(cwd: &Path) -> PathBuf {
    cwd.ancestors().find(|folder| is_repository(folder)).unwrap_or(cwd).to_path_buf()
}

/// True when a folder has a version-control entry, be it a folder, a file or a link.
#[must_use]
pub fn is_repository(folder: &Path) -> bool {
    folder.join(".git").symlink_metadata().is_ok()
}
