//! The inventory of a workspace. Paths are bytes, because file names are; those that are not text are escaped.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The version of inventories that this program writes and reads.
const VERSION: u32 = 1;

/// A path below the workspace, or the target of a link, as JSON can carry it: `%` and bytes that are not UTF-8 are escaped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PathText(String);

impl PathText {
    /// The text of a path.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let mut text = String::new();
        for chunk in path.as_os_str().as_bytes().utf8_chunks() {
            text.push_str(&chunk.valid().replace('%', "%25"));
            chunk.invalid().iter().for_each(|byte| text.push_str(&format!("%{byte:02X}")));
        }
        Self(text)
    }

    /// The path; `None` when the text is not one of ours.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        let mut bytes = Vec::with_capacity(self.0.len());
        let mut rest = self.0.as_bytes();
        while let Some((first, more)) = rest.split_first() {
            rest = more;
            if *first != b'%' {
                bytes.push(*first);
                continue;
            }
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        }
        Some(PathBuf::from(OsString::from_vec(bytes)))
    }

    /// The path when it is below the workspace: without `..`, and not absolute.
    #[must_use]
    pub fn below(&self) -> Option<PathBuf> {
        let path = self.path()?;
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        let has_zero = path.as_os_str().as_bytes().contains(&0);
        (is_plain && !has_zero && path.components().next().is_some()).then_some(path)
    }
}

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderEntry {
    /// Where it is.
    pub path: PathText,
    /// Its permissions.
    pub mode: u32,
    /// When its entries last changed, in nanoseconds since 1970.
    pub mtime: i64,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Where it is.
    pub path: PathText,
    /// Its permissions.
    pub mode: u32,
    /// When it last changed, in nanoseconds since 1970.
    pub mtime: i64,
    /// Its length.
    pub size: u64,
    /// The hash of its content.
    pub sha256: String,
    /// The object that has its content: the hash, and a name of the upload.
    pub object: String,
}

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEntry {
    /// Where it is.
    pub path: PathText,
    /// Where it points to, which is never looked at.
    pub target: PathText,
}

/// What a workspace contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    version: u32,
    /// Folders, those that contain others first.
    pub folders: Vec<FolderEntry>,
    /// Files.
    pub files: Vec<FileEntry>,
    /// Links.
    pub links: Vec<LinkEntry>,
}

impl Inventory {
    /// An inventory in the order of its paths.
    #[must_use]
    pub fn new(mut folders: Vec<FolderEntry>, mut files: Vec<FileEntry>, mut links: Vec<LinkEntry>) -> Self {
        folders.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        links.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Self { version: VERSION, folders, files, links }
    }

    /// Reads an inventory; `None` when it is of a later release, or not one.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Self>(bytes).ok().filter(|inventory| inventory.version == VERSION)
    }
}

/// By what a file is recognised as the one that was read. A command cannot set the time of the last change of an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Device and inode.
    pub place: (u64, u64),
    /// The length.
    pub size: u64,
    /// When the content last changed.
    pub mtime: i64,
    /// When the inode last changed.
    pub ctime: i64,
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn every_name_survives_and_no_path_leads_out() {
        for name in [&b"plain"[..], b"100%", b"%41", b"\xff\xfe/\xc3\xa4", "ä/\u{1F600}".as_bytes(), b"a\nb"]
        {
            let path = Path::new(OsStr::from_bytes(name));
            let text = serde_json::to_string(&PathText::of(path)).unwrap();
            let read: PathText = serde_json::from_str(&text).unwrap();
            assert_eq!(read.below().as_deref(), Some(path), "{text}");
        }
        for wrong in ["", "/etc/passwd", "../x", "a/../../x", "./a", "%", "%4", "%zz", "a%00b"] {
            assert_eq!(PathText(wrong.to_owned()).below(), None, "{wrong}");
        }
        assert_eq!(Inventory::read(br#"{"version":2,"folders":[],"files":[],"links":[]}"#), None);
        assert_eq!(Inventory::read(b"junk"), None);
    }
}
