//! A folder of texts that the server and a session share, such as a memory store that is mounted. The session may put links and
//! other things there at any time, so no link is followed, and what is not a regular file is only named.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, mkdirat, open, openat, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::mounts::MountPoint;

/// The most things of a folder that are looked at.
const MOST_ENTRIES: usize = 10_000;
const DEEPEST: usize = 20;

/// Says whether a file is the one that was seen before: the kernel sets `changed` with every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    size: i64,
    changed: (i64, u64),
    inode: u64,
}

impl Stamp {
    fn of(stat: &Stat) -> Self {
        #[expect(clippy::useless_conversion, reason = "the types of these fields differ between systems")]
        Self {
            size: stat.st_size.into(),
            changed: (stat.st_ctime.into(), u64::try_from(stat.st_ctime_nsec).unwrap_or(0)),
            inode: stat.st_ino.into(),
        }
    }
}

/// Something in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundText {
    /// The way to it from the folder, with a slash at its beginning.
    pub path: String,
    /// What it is now.
    pub stamp: Stamp,
    /// False for links, sockets and the like, and for names that are not UTF-8.
    pub is_text: bool,
}

/// A folder of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFolder {
    root: PathBuf,
    below: PathBuf,
    mode: u32,
}

impl TextFolder {
    /// The folder `below` a folder that the session cannot replace. The session may write what is in it when `is_open`.
    #[must_use]
    pub fn new(root: &Path, below: &str, is_open: bool) -> Self {
        let mode = if is_open { 0o600 } else { 0o400 };
        Self { root: root.to_path_buf(), below: PathBuf::from(below), mode }
    }

    /// Its path on this machine.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.below)
    }

    /// Where a text of it is; paths come from the store, which has no `..` in them.
    fn point(&self, path: &str) -> MountPoint {
        MountPoint { root: self.root.clone(), below: self.below.join(path.trim_start_matches('/')) }
    }

    /// Opens the folder, and makes it when it is not there.
    fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = open(&self.root, flags, Mode::empty())?;
        for part in self.below.iter() {
            match mkdirat(&folder, part, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            folder = openat(&folder, part, flags, Mode::empty())?;
        }
        Ok(folder)
    }

    /// Everything in the folder but folders, by path.
    ///
    /// # Errors
    /// When the folder is a link or cannot be read, or has too much in it.
    pub fn scan(&self) -> io::Result<Vec<FoundText>> {
        let mut found = Vec::new();
        scan(&self.open()?, "", DEEPEST, &mut found)?;
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    /// The content of a text, and what it was when it was read. `None` when it has more than `most` bytes or is not UTF-8.
    ///
    /// # Errors
    /// When it is not a regular file or cannot be read.
    pub fn read(&self, path: &str, most: u64) -> io::Result<(Option<String>, Stamp)> {
        let point = self.point(path);
        let (folder, name) = point.folder(false)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&folder, name, flags, Mode::empty())?);
        let stat = fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut content = Vec::new();
        file.take(most + 1).read_to_end(&mut content)?;
        let content = if content.len() as u64 > most { None } else { String::from_utf8(content).ok() };
        Ok((content, Stamp::of(&stat)))
    }

    /// Writes a text; what was there is gone.
    ///
    /// # Errors
    /// When a folder on the way is a link or a file, or cannot be written.
    pub fn write(&self, path: &str, content: &str) -> io::Result<Stamp> {
        let mut file = self.point(path).create_as(self.mode)?;
        file.write_all(content.as_bytes())?;
        Ok(Stamp::of(&fstat(&file)?))
    }

    /// Removes a text, if it is there.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        self.point(path).remove()
    }
}

fn scan(folder: &OwnedFd, path: &str, deepest: usize, found: &mut Vec<FoundText>) -> io::Result<()> {
    for entry in Dir::read_from(folder.as_fd())? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            stat => stat?,
        };
        let path = format!("{path}/{}", name.to_string_lossy());
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Directory && deepest > 1 {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(folder, name, flags, Mode::empty()) {
                // It was removed or replaced meanwhile.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                inner => scan(&inner?, &path, deepest - 1, found)?,
            }
            continue;
        }
        let is_text = kind == FileType::RegularFile && name.to_str().is_ok();
        found.push(FoundText { path, stamp: Stamp::of(&stat), is_text });
        if found.len() > MOST_ENTRIES {
            return Err(io::Error::other(format!("it has more than {MOST_ENTRIES} files")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "secret").unwrap();
        let folder = TextFolder::new(root.path(), "memory/notes", true);
        assert!(folder.scan().unwrap().is_empty(), "it is made");
        let stamp = folder.write("/a/b.md", "one").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        let found = folder.scan().unwrap();
        let seen: Vec<(&str, bool)> = found.iter().map(|text| (text.path.as_str(), text.is_text)).collect();
        assert_eq!(seen, [("/a/b.md", true), ("/link", false)]);
        assert_eq!(found[0].stamp, stamp);
        assert_eq!(folder.read("/a/b.md", 3).unwrap(), (Some("one".to_owned()), stamp));
        assert_eq!(folder.read("/a/b.md", 2).unwrap().0, None, "too long");
        assert!(folder.read("/link/secret", 9).is_err() && folder.write("/link/x", "x").is_err());
        std::fs::write(folder.path().join("a/b.md"), "two").unwrap();
        assert_ne!(folder.scan().unwrap()[0].stamp, stamp, "a change of the same length is noticed");
        folder.remove("/a/b.md").unwrap();
        std::fs::remove_file(link).unwrap();
        assert!(folder.scan().unwrap().is_empty());
        std::fs::remove_dir_all(root.path().join("memory")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("memory")).unwrap();
        assert!(folder.scan().is_err(), "a link on the way");
        assert!(!outside.path().join("notes").exists());
    }
}
