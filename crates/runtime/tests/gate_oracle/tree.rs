//! The tree that a script works in: a workspace with ordinary files, links that lead around in it and out of it, files
//! that rules deny, and beside it a home and a folder outside. Snapshots tell what was read and what changed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A text that only files outside hold.
pub const OUTSIDE: &str = "OUTSIDESECRET";
/// A text that only a denied file holds.
pub const DENIED: &str = "DENIEDSECRET";
/// The value of a variable that must not be printed.
pub const TOKEN: &str = "TOKENVALUE";

const FOLDERS: &[&str] = &[
    "ws/src",
    "ws/sub/deep/er",
    "ws/locked",
    "ws/.git/hooks",
    "ws/first",
    "ws/second",
    "home/.ssh",
    "outside/folder",
    "effects",
    "tools",
];
const FILES: &[&str] = &[
    "ws/a.txt",
    "ws/b.md",
    "ws/src/main.rs",
    "ws/src/lib.rs",
    "ws/sub/x.txt",
    "ws/sub/deep/y.txt",
    "ws/sub/deep/er/z.txt",
    "ws/locked/file",
    "ws/.git/HEAD",
    "ws/.git/config",
    "ws/.envrc",
    "ws/first/same",
    "ws/first/leak",
    "ws/second/same",
];
const SECRETS: &[&str] = &[
    "secret.txt",
    "x.txt",
    "a.txt",
    "home/secret.txt",
    "home/.bashrc",
    "home/.ssh/id",
    "outside/secret.txt",
    "outside/x.txt",
    "outside/a.txt",
    "outside/folder/inner.txt",
];
const LINKS: &[(&str, &str)] = &[
    ("ws/out", "../outside"),
    ("ws/near", "sub/deep/er"),
    ("ws/leak.txt", "../outside/secret.txt"),
    ("ws/second/leak", "../../outside/secret.txt"),
    ("ws/sub/home", "../../home"),
    ("ws/dotenv", ".env"),
    ("ws/hooks", ".git/hooks"),
    ("ws/first/up", "../.."),
];

/// The tree on disk.
pub struct Tree {
    folder: tempfile::TempDir,
}

/// What a file was like.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    content: Vec<u8>,
    mode: u32,
    read_at: i64,
}

/// The files of the tree.
pub type Snapshot = BTreeMap<PathBuf, Entry>;

impl Tree {
    pub fn new() -> Self {
        let tree = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(tree.root()).unwrap();
        tree.reset();
        tree
    }

    /// The same without the links.
    pub fn without_links() -> Self {
        let tree = Self::new();
        for (link, _) in LINKS {
            fs::remove_file(tree.root().join(link)).unwrap();
        }
        tree
    }

    /// The folder that holds everything. Its path has no links.
    /// It is not the temporary folder itself, which programs that clean up or look around may list.
    pub fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("tree")
    }

    pub fn workspace(&self) -> PathBuf {
        self.root().join("ws")
    }

    /// Makes the tree anew.
    pub fn reset(&self) {
        let root = self.root();
        for entry in fs::read_dir(&root).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            }
            .unwrap();
        }
        for folder in FOLDERS {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in FILES {
            fs::write(root.join(file), format!("text of {file}\n")).unwrap();
        }
        for file in SECRETS {
            fs::write(root.join(file), format!("{OUTSIDE} {file}\n")).unwrap();
        }
        fs::write(root.join("ws/.env"), format!("{DENIED}\n")).unwrap();
        for (link, target) in LINKS {
            symlink(target, root.join(link)).unwrap();
        }
        let canary = root.join("tools/canary");
        fs::write(&canary, format!("#!/bin/sh\necho ran >> {}/effects/canary\n", root.display())).unwrap();
        fs::set_permissions(&canary, fs::Permissions::from_mode(0o755)).unwrap();
        forget_reads(&root);
    }

    /// What the tree is like now.
    pub fn snapshot(&self) -> Snapshot {
        let root = self.root();
        let mut snapshot = Snapshot::new();
        let mut open = vec![root.clone()];
        while let Some(folder) = open.pop() {
            let read_at = fs::metadata(&folder).unwrap().atime();
            let relative = |path: &Path| path.strip_prefix(&root).unwrap().to_path_buf();
            snapshot.insert(relative(&folder), Entry { content: Vec::new(), mode: 0, read_at });
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let metadata = path.symlink_metadata().unwrap();
                if metadata.is_dir() {
                    open.push(path);
                    continue;
                }
                let read_at = if metadata.is_file() { metadata.atime() } else { 0 };
                let content = if metadata.is_file() {
                    fs::read(&path).unwrap_or_default()
                } else {
                    fs::read_link(&path)
                        .map(|target| target.into_os_string().into_encoded_bytes())
                        .unwrap_or_default()
                };
                snapshot.insert(relative(&path), Entry { content, mode: metadata.mode(), read_at });
            }
        }
        forget_reads(&root);
        snapshot
    }
}

/// Puts the times of the last read back to the beginning, so that the next read moves them.
fn forget_reads(folder: &Path) {
    let times = fs::FileTimes::new().set_accessed(SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    let mut open = vec![folder.to_path_buf()];
    let mut seen = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap().file_type();
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                seen.push(path);
            }
        }
        seen.push(folder);
    }
    for path in seen {
        // A file that a script made unreadable was not read either.
        if let Ok(file) = fs::File::open(path) {
            file.set_times(times).unwrap();
        }
    }
}

/// What happened between two snapshots: the files read and the files changed, made or removed.
pub fn differences(before: &Snapshot, after: &Snapshot) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut read, mut changed) = (Vec::new(), Vec::new());
    for (path, entry) in before {
        match after.get(path) {
            None => changed.push(path.clone()),
            Some(now) => {
                if (&now.content, now.mode) != (&entry.content, entry.mode) {
                    changed.push(path.clone());
                }
                if now.read_at > 1 {
                    read.push(path.clone());
                }
            }
        }
    }
    changed.extend(after.keys().filter(|path| !before.contains_key(*path)).cloned());
    (read, changed)
}
