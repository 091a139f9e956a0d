//! What the gate learns about the paths of this machine: metadata and names, never content. Where protected names are
//! links is kept as long as their folder does not change, because every edit asks for it.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use qoder_policy::{FileSystem, PlaceError};

/// Path metadata of this machine.
#[derive(Debug, Clone, Copy)]
pub struct LocalFiles;

impl FileSystem for LocalFiles {
    fn real(&self, path: &Path) -> Result<PathBuf, PlaceError> {
        path.to_str().ok_or(PlaceError::NotUnicode)?;
        qoder_tools::paths::real(path).map_err(|error| PlaceError::Unresolved(error.to_string()))
    }

    fn names(&self, directory: &Path, most: usize) -> Option<Vec<OsString>> {
        let mut names = Vec::new();
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            // In what is no folder there are no names.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Some(names);
            }
            Err(_) => return None,
        };
        for entry in entries {
            if names.len() == most {
                return None;
            }
            names.push(entry.ok()?.file_name());
        }
        Some(names)
    }

    fn has_other_names(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok_and(|metadata| metadata.is_file() && metadata.nlink() > 1)
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn links_named(&self, folder: &Path, wanted: fn(&OsStr) -> bool) -> Vec<PathBuf> {
        kept_links(folder, wanted)
    }
}

/// The links of folders, each as of the last change of its folder.
type KeptLinks = HashMap<PathBuf, (SystemTime, Vec<PathBuf>)>;

/// Where the wanted links of a folder lead. The folder is listed again only after it has changed.
fn kept_links(folder: &Path, wanted: fn(&OsStr) -> bool) -> Vec<PathBuf> {
    static KEPT: Mutex<Option<KeptLinks>> = Mutex::new(None);
    let Ok(changed) = folder.metadata().and_then(|metadata| metadata.modified()) else { return Vec::new() };
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = kept.get_or_insert_default();
    if let Some((as_of, links)) = kept.get(folder)
        && *as_of == changed
    {
        return links.clone();
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let links: Vec<PathBuf> = entries
        .filter(|entry| wanted(&entry.file_name()))
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .filter_map(|entry| qoder_tools::paths::real(&entry.path()).ok())
        .collect();
    kept.insert(folder.to_path_buf(), (changed, links.clone()));
    links
}
