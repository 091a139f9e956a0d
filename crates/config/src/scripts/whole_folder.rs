//! The state of everything in a folder that could be run, as one digest. It stands for what a command names only when it
//! runs: any change asks again. Made of names, sizes and the times of the last change, which no program can set.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use sha2::{Digest, Sha256};

/// How the list of bound files names it.
pub const WHOLE_FOLDER: &str = "every script in the folder";
/// The most entries that are looked at; a folder with more is another one each time it grows.
const MOST_ENTRIES: usize = 50_000;

/// The digest, where `is_script` says by its name whether a file could be run although it is not executable.
pub(super) fn digest(folder: &Path, is_script: impl Fn(&Path) -> bool) -> String {
    let mut hash = Sha256::new();
    let (mut waiting, mut seen) = (vec![folder.to_path_buf()], 0_usize);
    while let Some(place) = waiting.pop() {
        let entries = std::fs::read_dir(&place).into_iter().flatten().filter_map(Result::ok);
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            seen += 1;
            let Ok(metadata) = path.symlink_metadata() else { continue };
            let name = path.file_name().unwrap_or_default();
            if metadata.is_dir() {
                // Git's own files are protected as they are.
                if name != ".git" && seen < MOST_ENTRIES {
                    waiting.push(path);
                }
            } else if metadata.is_symlink() || metadata.permissions().mode() & 0o111 != 0 || is_script(&path)
            {
                hash.update(path.as_os_str().as_encoded_bytes());
                for number in [metadata.ino(), metadata.len(), metadata.ctime().unsigned_abs()] {
                    hash.update(number.to_le_bytes());
                }
                hash.update(metadata.ctime_nsec().to_le_bytes());
            }
        }
    }
    if seen > MOST_ENTRIES {
        hash.update(seen.to_le_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
