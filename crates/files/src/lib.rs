//! The one way to open a file that others put there: only a regular one, without waiting, and where a folder bounds it
//! only inside that folder. A pipe, a device or a link that leads out is refused before it is opened.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// A larger file was not written for us; it is not even opened.
const LARGEST: u64 = 64 << 20;

/// Opens a regular file of a bounded size; `within` is the folder that links must not lead out of.
///
/// # Errors
/// When it is not there, is something else than a regular file, or is not inside.
pub fn open_regular(path: &Path, within: Option<&Path>) -> io::Result<File> {
    let real = path.canonicalize()?;
    let root = within.map(Path::canonicalize).transpose()?;
    if root.as_ref().is_some_and(|root| !real.starts_with(root)) {
        return Err(io::Error::other("it leads out of the folder it belongs to"));
    }
    // Looked at by name first: opening alone would wake a pipe's writer or move a device.
    let facts = std::fs::symlink_metadata(&real)?;
    if facts.is_dir() {
        return Err(io::Error::other("it is a directory, not a file"));
    }
    if !facts.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if facts.len() > LARGEST {
        return Err(io::Error::other(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(open(&real, root.as_deref(), flags)?);
    // What was swapped in meanwhile is not what was looked at.
    let opened = file.metadata()?;
    if !opened.is_file() || (opened.dev(), opened.ino()) != (facts.dev(), facts.ino()) {
        return Err(io::Error::other("it changed while it was opened"));
    }
    Ok(file)
}

#[cfg(target_os = "linux")]
fn open(real: &Path, root: Option<&Path>, flags: OFlags) -> io::Result<rustix::fd::OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    use rustix::io::Errno;
    if let Some(root) = root
        && let Ok(inside) = real.strip_prefix(root)
    {
        let folder =
            rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(folder, inside, flags, Mode::empty(), resolve) {
            // An older kernel, or one that is configured not to: the check by name has to do.
            Err(Errno::NOSYS | Errno::PERM) => {}
            other => return Ok(other?),
        }
    }
    Ok(rustix::fs::open(real, flags, Mode::empty())?)
}

#[cfg(not(target_os = "linux"))]
fn open(real: &Path, _: Option<&Path>, flags: OFlags) -> io::Result<rustix::fd::OwnedFd> {
    Ok(rustix::fs::open(real, flags, Mode::empty())?)
}

/// The beginning of a regular file, and whether there is more than `most` bytes.
///
/// # Errors
/// As [`open_regular`], and when it cannot be read.
pub fn read_regular(path: &Path, within: Option<&Path>, most: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    open_regular(path, within)?.take(most + 1).read_to_end(&mut bytes)?;
    let is_cut = bytes.len() as u64 > most;
    bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    Ok((bytes, is_cut))
}

/// Files that say what to ignore, as the walk reads them by itself.
const IGNORE_FILES: [&str; 4] = [".gitignore", ".ignore", ".git/info/exclude", ".git"];
/// A longer one was not written by hand.
const LARGEST_IGNORE_FILE: u64 = 4 * 1024 * 1024;

/// True when a folder has an ignore file that must not be opened: a pipe would hold the search up for ever.
#[must_use]
pub fn has_unreadable_ignore_file(folder: &Path) -> bool {
    IGNORE_FILES.iter().map(|name| folder.join(name)).any(|path| match path.symlink_metadata() {
        Ok(facts) if facts.is_dir() => false,
        Ok(facts) if facts.is_file() => facts.len() > LARGEST_IGNORE_FILE,
        Ok(_) => open_regular(&path, Some(folder)).is_err() && !path.is_dir(),
        Err(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_inside_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::write(root.join("plain"), "text").unwrap();
        std::fs::create_dir(root.join("folder")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("pipe"),
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        std::fs::write(outside.path().join("secret"), "secret").unwrap();
        symlink("plain", root.join("link")).unwrap();
        symlink(outside.path().join("secret"), root.join("out")).unwrap();
        symlink("/dev/zero", root.join("device")).unwrap();
        symlink("/proc/self/environ", root.join("process")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink(outside.path(), root.join("elsewhere")).unwrap();
        for name in ["plain", "link"] {
            assert_eq!(read_regular(&root.join(name), Some(root), 100).unwrap(), (b"text".to_vec(), false));
        }
        assert_eq!(read_regular(&root.join("plain"), Some(root), 3).unwrap(), (b"tex".to_vec(), true));
        for name in ["folder", "pipe", "out", "device", "process", "loop", "elsewhere/secret", "none"] {
            assert!(open_regular(&root.join(name), Some(root)).is_err(), "{name}");
        }
        for name in ["folder", "pipe", "device", "loop", "none"] {
            assert!(open_regular(&root.join(name), None).is_err(), "{name}");
        }
        assert!(open_regular(&root.join("out"), None).is_ok());
    }
}
