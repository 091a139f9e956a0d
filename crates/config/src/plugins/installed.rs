//! Installed plugins: copies in the configuration root, and the person's approval of each, bound to a digest of the whole
//! copy. One whose files are not those that were approved is not used. A list that cannot be read approves nothing.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::{NotApproved, PluginError};
use super::{Plugin, content, manifest};
use crate::settings::{WriteError, replace_file};
use crate::sources::Problem;

/// What follows the name in the identifier of a plugin that was installed from a folder.
pub const MARKET: &str = "@local";
/// The most bytes of the list.
const LONGEST: u64 = 4 * 1024 * 1024;
/// How the names of folders begin that are on their way in.
const STAGING: &str = ".staging-";
/// How the names of folders begin that are on their way out.
const REMOVED: &str = ".removed-";
/// How long such a folder may be at work.
const LEFT_OVER: Duration = Duration::from_secs(24 * 60 * 60);

/// A plugin that the person has approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Approved {
    name: String,
    digest: String,
}

/// The installed plugins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    plugins: Vec<Approved>,
}

/// The folder of an installed plugin.
#[must_use]
pub fn folder_of(config_root: &Path, name: &str) -> PathBuf {
    config_root.join("plugins").join("local").join(name)
}

fn list(config_root: &Path) -> PathBuf {
    config_root.join("plugins").join("installed.json")
}

impl Installed {
    /// Reads the list.
    #[must_use]
    pub fn load(config_root: &Path) -> Self {
        let mut bytes = Vec::new();
        let read = std::fs::File::open(list(config_root))
            .and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
        read.ok().and_then(|_| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// The names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.plugins.iter().map(|one| one.name.clone()).collect();
        names.sort();
        names
    }

    /// Whether the files are those that were approved.
    ///
    /// # Errors
    /// When it is not installed, was changed, or cannot be read.
    pub fn check(&self, name: &str, folder: &Path) -> Result<(), NotApproved> {
        let Some(approved) = self.plugins.iter().find(|one| one.name == name) else {
            return Err(NotApproved::NotInstalled);
        };
        match content::digest(folder) {
            Ok(digest) if digest == approved.digest => Ok(()),
            Ok(_) => Err(NotApproved::Changed { name: name.to_owned(), folder: folder.to_path_buf() }),
            Err(error) => Err(error.into()),
        }
    }

    fn change(config_root: &Path, name: &str, approved: Option<Approved>) -> Result<(), WriteError> {
        replace_file(&list(config_root), || {
            let mut all = Self::load(config_root);
            all.plugins.retain(|one| one.name != name);
            all.plugins.extend(approved);
            let mut bytes = serde_json::to_vec_pretty(&all).map_err(|error| error.to_string())?;
            bytes.push(b'\n');
            Ok(bytes)
        })
    }
}

/// A copy that is ready to be installed, and what it holds. It is removed again unless it is installed.
#[derive(Debug)]
pub struct Staged {
    /// The plugin, as it lies in the copy.
    pub plugin: Plugin,
    /// What is wrong with parts of it.
    pub problems: Vec<Problem>,
    config_root: PathBuf,
    staging: PathBuf,
    digest: String,
}

/// Copies a plugin's folder to where it can be looked at and installed: what is shown is what will be used.
///
/// # Errors
/// When it cannot be a plugin, or cannot be copied.
pub fn stage(config_root: &Path, folder: &Path) -> Result<Staged, PluginError> {
    let read = |folder: &Path, problems: &mut Vec<Problem>| {
        let source = |name: &str| format!("{name}{MARKET}");
        manifest::read(folder, source, config_root, problems).map_err(PluginError::Unusable)
    };
    let named = read(folder, &mut Vec::new())?;
    if named.parts.is_empty() && named.notes.is_empty() {
        return Err(PluginError::NoParts(folder.to_path_buf()));
    }
    remove_left_overs(config_root);
    let staging = config_root.join("plugins").join(format!("{STAGING}{}", uuid::Uuid::new_v4().simple()));
    let mut staged = Staged {
        plugin: named.clone(),
        problems: Vec::new(),
        config_root: config_root.to_path_buf(),
        staging: staging.clone(),
        digest: String::new(),
    };
    // A plugin without a manifest has the name of its folder.
    let copy = staging.join(&named.name);
    content::copy(&named.root, &copy)?;
    staged.plugin = read(&copy, &mut staged.problems)?;
    staged.digest = content::digest(&copy)?;
    Ok(staged)
}

/// Removes what installations left behind that were killed; one that is under way is younger than that.
fn remove_left_overs(config_root: &Path) {
    let is_old = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let changed = entry.metadata().and_then(|facts| facts.modified());
        [STAGING, REMOVED].iter().any(|start| name.as_encoded_bytes().starts_with(start.as_bytes()))
            && changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > LEFT_OVER))
    };
    let entries = std::fs::read_dir(config_root.join("plugins"));
    for entry in entries.into_iter().flatten().flatten().filter(is_old) {
        // It is as harmless as before when that fails.
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

impl Staged {
    /// Puts the copy in its place, approved as it is. An earlier one of the same name goes.
    ///
    /// # Errors
    /// When the configuration cannot be changed.
    pub fn install(self) -> Result<PathBuf, PluginError> {
        let name = self.plugin.name.clone();
        let folder = folder_of(&self.config_root, &name);
        let parent = folder.parent().unwrap_or(&self.config_root);
        std::fs::create_dir_all(parent).map_err(|error| PluginError::io("create", parent, &error))?;
        // Whatever happens from here on, what lies there without an approval of its own is not used.
        remove_aside(&folder, &self.staging.join(".before"))?;
        let moved = std::fs::rename(&self.plugin.root, &folder);
        moved.map_err(|error| PluginError::io("create", &folder, &error))?;
        let approved = Approved { name: name.clone(), digest: self.digest.clone() };
        Installed::change(&self.config_root, &name, Some(approved))?;
        Ok(folder)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Left-overs are harmless: nothing looks into folders of this name.
        let _ = std::fs::remove_dir_all(&self.staging);
    }
}

/// Moves a folder away in one step; the owner of the place it went to removes it.
fn remove_aside(folder: &Path, aside: &Path) -> Result<(), PluginError> {
    match std::fs::rename(folder, aside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(PluginError::io("remove", folder, &error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn require(config_root: &Path, name: &str) -> Result<(), PluginError> {
    let known = Installed::load(config_root).names();
    if known.iter().any(|one| one == name) {
        return Ok(());
    }
    Err(PluginError::NotInstalled { name: name.to_owned(), known })
}

/// Approves an installed plugin as it lies there now.
///
/// # Errors
/// When no plugin has this name, or its files cannot be read.
pub fn approve(config_root: &Path, name: &str) -> Result<(), PluginError> {
    require(config_root, name)?;
    let digest = content::digest(&folder_of(config_root, name))?;
    Ok(Installed::change(config_root, name, Some(Approved { name: name.to_owned(), digest }))?)
}

/// Removes an installed plugin. What it wrote into its data folder stays.
///
/// # Errors
/// When no plugin has this name, or it cannot be removed.
pub fn uninstall(config_root: &Path, name: &str) -> Result<(), PluginError> {
    require(config_root, name)?;
    Installed::change(config_root, name, None)?;
    let folder = folder_of(config_root, name);
    let aside = config_root.join("plugins").join(format!("{REMOVED}{}", uuid::Uuid::new_v4().simple()));
    remove_aside(&folder, &aside)?;
    match std::fs::remove_dir_all(&aside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(PluginError::io("remove", &aside, &error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (root, from) = (folder.path().join("c"), folder.path().join("demo"));
        std::fs::create_dir_all(from.join("commands")).unwrap();
        std::fs::write(from.join("commands/a.md"), "a").unwrap();
        (folder, root, from)
    }

    #[test]
    fn an_installed_plugin_counts_as_long_as_its_files_are_those_that_were_approved() {
        let (_folder, root, from) = source();
        let folder = stage(&root, &from).unwrap().install().unwrap();
        let check = || Installed::load(&root).check("demo", &folder);
        check().unwrap();
        std::fs::write(folder.join("commands/b.md"), "b").unwrap();
        assert!(check().unwrap_err().to_string().contains("qodercli plugins approve demo"));
        approve(&root, "demo").unwrap();
        check().unwrap();
        std::fs::write(list(&root), "{").unwrap();
        assert!(check().unwrap_err().to_string().contains("not installed"));
    }

    #[test]
    fn installing_again_replaces_and_uninstalling_leaves_nothing() {
        let (_folder, root, from) = source();
        let folder = stage(&root, &from).unwrap().install().unwrap();
        std::fs::write(from.join("commands/a.md"), "new").unwrap();
        stage(&root, &from).unwrap().install().unwrap();
        assert_eq!(std::fs::read_to_string(folder.join("commands/a.md")).unwrap(), "new");
        assert_eq!(Installed::load(&root).names(), ["demo"]);
        uninstall(&root, "demo").unwrap();
        assert!(!folder.exists());
        assert_eq!(uninstall(&root, "demo").unwrap_err().code(), "plugin_not_installed");
        let left: Vec<_> =
            std::fs::read_dir(root.join("plugins")).unwrap().map(|one| one.unwrap().file_name()).collect();
        assert!(
            left.iter().all(|name| !name.to_string_lossy().starts_with(".st")
                && !name.to_string_lossy().starts_with(".r")),
            "{left:?}"
        );
    }

    #[test]
    fn what_a_killed_installation_left_behind_is_removed_by_a_later_one() {
        let (_folder, root, from) = source();
        let left = |name: &str, hours: u64| {
            let path = root.join("plugins").join(name);
            std::fs::create_dir_all(&path).unwrap();
            let at = std::time::SystemTime::now() - Duration::from_secs(hours * 60 * 60);
            std::fs::File::open(&path).unwrap().set_modified(at).unwrap();
            path
        };
        let (old, gone) = (left(".staging-old", 25), left(".removed-old", 25));
        let (young, data) = (left(".staging-young", 1), left("data", 25));
        stage(&root, &from).unwrap();
        assert_eq!([old, gone, young, data].map(|path| path.exists()), [false, false, true, true]);
    }

    #[test]
    fn a_folder_without_any_part_is_no_plugin() {
        let (_folder, root, from) = source();
        std::fs::remove_dir_all(from.join("commands")).unwrap();
        assert_eq!(stage(&root, &from).unwrap_err().code(), "plugin_without_parts");
        assert_eq!(stage(&root, &from.join("absent")).unwrap_err().code(), "plugin_unusable");
    }
}
