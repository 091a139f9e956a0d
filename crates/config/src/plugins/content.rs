//! The files of a plugin as a whole: a digest of them, and a copy. Both are bounded; a copy has no links, and the digest
//! sees every file, whether it can be run, and every link that is put there later.

use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use qoder_files::open_regular;
use sha2::{Digest, Sha256};

use super::error::PluginError;

/// The most files and folders of a plugin.
const MOST_ENTRIES: usize = 5_000;
/// The most bytes of a plugin.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// The deepest folder.
const DEEPEST: usize = 24;
/// What is left out of a copy: history, which nothing in a session reads.
const LEFT_OUT: &str = ".git";

/// Something in a plugin's folder.
struct Entry {
    path: PathBuf,
    kind: EntryKind,
}

enum EntryKind {
    Folder,
    File { executable: bool },
    Link,
}

fn too_large(root: &Path, limit: String) -> PluginError {
    PluginError::TooLarge { path: root.to_path_buf(), limit }
}

/// Everything below a folder, in a fixed order.
fn walk(root: &Path, left_out: Option<&str>) -> Result<Vec<Entry>, PluginError> {
    let mut entries = Vec::new();
    let mut folders = vec![(root.to_path_buf(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        if depth > DEEPEST {
            return Err(too_large(root, format!("its folders nest deeper than {DEEPEST}")));
        }
        let read = std::fs::read_dir(&folder).map_err(|error| PluginError::io("read", &folder, &error))?;
        for entry in read {
            let entry = entry.map_err(|error| PluginError::io("read", &folder, &error))?;
            let path = entry.path();
            if left_out.is_some_and(|name| entry.file_name() == name) {
                continue;
            }
            if entries.len() >= MOST_ENTRIES {
                return Err(too_large(root, format!("it has more than {MOST_ENTRIES} files and folders")));
            }
            let facts = path.symlink_metadata().map_err(|error| PluginError::io("read", &path, &error))?;
            let kind = if facts.is_symlink() {
                EntryKind::Link
            } else if facts.is_dir() {
                folders.push((path.clone(), depth + 1));
                EntryKind::Folder
            } else if facts.is_file() {
                EntryKind::File { executable: facts.permissions().mode() & 0o111 != 0 }
            } else {
                return Err(PluginError::Special(path));
            };
            entries.push(Entry { path, kind });
        }
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}

/// Reads a file piece by piece; `left` is what all files together may still have.
fn pieces(
    root: &Path,
    path: &Path,
    left: &mut u64,
    mut take: impl FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<(), PluginError> {
    let fail = |error: &std::io::Error| PluginError::io("read", path, error);
    let mut file = open_regular(path, Some(root)).map_err(|error| fail(&error))?;
    let mut piece = vec![0; 64 * 1024];
    loop {
        let length = file.read(&mut piece).map_err(|error| fail(&error))?;
        if length == 0 {
            return Ok(());
        }
        let Some(rest) = left.checked_sub(length as u64) else {
            return Err(too_large(root, format!("it has more than {MOST_BYTES} bytes")));
        };
        *left = rest;
        take(&piece[..length]).map_err(|error| PluginError::io("copy", path, &error))?;
    }
}

/// A digest of everything in a folder.
pub(super) fn digest(root: &Path) -> Result<String, PluginError> {
    let mut whole = Sha256::new();
    let mut left = MOST_BYTES;
    for entry in walk(root, None)? {
        let mut one = Sha256::new();
        let mark = match entry.kind {
            EntryKind::Folder => continue,
            EntryKind::File { executable } => {
                pieces(root, &entry.path, &mut left, |piece| {
                    one.update(piece);
                    Ok(())
                })?;
                if executable { "x" } else { "f" }
            }
            EntryKind::Link => {
                let target = std::fs::read_link(&entry.path);
                let target = target.map_err(|error| PluginError::io("read", &entry.path, &error))?;
                one.update(target.as_os_str().as_bytes());
                "l"
            }
        };
        let name = entry.path.strip_prefix(root).unwrap_or(&entry.path).as_os_str().as_bytes();
        // The length keeps names from running into what follows them.
        whole.update(mark);
        whole.update((name.len() as u64).to_le_bytes());
        whole.update(name);
        whole.update(one.finalize());
    }
    Ok(whole.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Copies a folder. A link to a file of the plugin becomes that file; any other is refused.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), PluginError> {
    let create = |path: &Path| {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| PluginError::io("create", path, &error))
    };
    create(to)?;
    let mut left = MOST_BYTES;
    for entry in walk(from, Some(LEFT_OUT))? {
        let target = to.join(entry.path.strip_prefix(from).unwrap_or(&entry.path));
        let executable = match entry.kind {
            EntryKind::Folder => {
                create(&target)?;
                continue;
            }
            EntryKind::File { executable } => executable,
            EntryKind::Link => linked(from, &entry.path)?,
        };
        let mode = if executable { 0o700 } else { 0o600 };
        let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&target);
        let mut file = made.map_err(|error| PluginError::io("create", &target, &error))?;
        pieces(from, &entry.path, &mut left, |piece| file.write_all(piece))?;
    }
    Ok(())
}

/// Whether the file behind a link can be run.
fn linked(root: &Path, link: &Path) -> Result<bool, PluginError> {
    let refused = |problem: &str| PluginError::Link { path: link.to_path_buf(), problem: problem.to_owned() };
    let real = link.canonicalize().map_err(|_| refused("it leads nowhere"))?;
    if !real.starts_with(root) {
        return Err(refused("it leads out of the plugin"));
    }
    let facts = real.metadata().map_err(|error| PluginError::io("read", &real, &error))?;
    if !facts.is_file() {
        return Err(refused("it leads to a folder"));
    }
    Ok(facts.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn root() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("p");
        std::fs::create_dir_all(root.join("commands")).unwrap();
        std::fs::write(root.join("commands/a.md"), "a").unwrap();
        (folder, root)
    }

    #[test]
    fn every_change_changes_the_digest() {
        let (_folder, root) = root();
        let mut seen = vec![digest(&root).unwrap()];
        assert_eq!(digest(&root).unwrap(), seen[0]);
        let changes: [&dyn Fn(); 4] = [
            &|| std::fs::write(root.join("commands/a.md"), "b").unwrap(),
            &|| {
                std::fs::set_permissions(root.join("commands/a.md"), PermissionsExt::from_mode(0o755))
                    .unwrap()
            },
            &|| std::fs::rename(root.join("commands/a.md"), root.join("commands/b.md")).unwrap(),
            &|| symlink("/etc/hostname", root.join("c")).unwrap(),
        ];
        for change in changes {
            change();
            let now = digest(&root).unwrap();
            assert!(!seen.contains(&now));
            seen.push(now);
        }
    }

    #[test]
    fn a_copy_has_no_links_and_no_history_and_the_same_digest_wherever_it_lies() {
        let (folder, root) = root();
        std::fs::create_dir(root.join(".git")).unwrap();
        std::fs::write(root.join(".git/config"), "x").unwrap();
        symlink("commands/a.md", root.join("same.md")).unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        copy(&root, &one).unwrap();
        copy(&root, &two).unwrap();
        assert!(!one.join(".git").exists());
        assert!(one.join("same.md").symlink_metadata().unwrap().is_file());
        assert_eq!(digest(&one).unwrap(), digest(&two).unwrap());
    }

    #[test]
    fn links_out_of_the_plugin_and_pipes_are_refused() {
        for (target, code) in
            [("/etc/hostname", "plugin_link"), ("nowhere", "plugin_link"), ("commands", "plugin_link")]
        {
            let (folder, root) = root();
            symlink(target, root.join("x")).unwrap();
            assert_eq!(copy(&root, &folder.path().join("to")).unwrap_err().code(), code, "{target}");
        }
        let (folder, root) = root();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("s")).unwrap();
        assert_eq!(copy(&root, &folder.path().join("to")).unwrap_err().code(), "plugin_special_file");
    }
}
