//! Folders of what must survive a loss of power: a synced file whose name is lost with its folder is lost too.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folders that get a new entry when `folder` is made with everything above it that is missing.
pub fn above_missing(folder: &Path) -> BTreeSet<PathBuf> {
    let missing = folder.ancestors().take_while(|ancestor| !ancestor.exists());
    missing.filter_map(|ancestor| ancestor.parent().map(Path::to_path_buf)).collect()
}

/// Makes the names in a folder survive a loss of power.
pub fn sync(folder: &Path) -> std::io::Result<()> {
    // A relative path of one name has an empty parent.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

/// Makes a private folder with everything above it that is missing, so that it survives a loss of power.
pub fn create(folder: &Path) -> std::io::Result<()> {
    let changed = above_missing(folder);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    changed.iter().try_for_each(|folder| sync(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_that_gets_an_entry_is_named() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b/c");
        let expected = [root.path().to_path_buf(), root.path().join("a"), root.path().join("a/b")];
        assert_eq!(above_missing(&folder), BTreeSet::from(expected));
        create(&folder).unwrap();
        assert!(folder.is_dir() && above_missing(&folder).is_empty());
    }
}
