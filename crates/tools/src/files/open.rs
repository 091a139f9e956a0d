//! Opening regular files safely, and the stamp by which a later change is noticed.
//!
//! A file is opened by its real path, without following any further link and without blocking, and is examined through
//! its descriptor: a pipe, a device or a socket is refused before a byte is read.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use qoder_core::ports::ToolOutcome;
use qoder_types::Observation;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::call::refusal::Refusal;
use crate::files::difference::likeness;

/// Larger files are not read at all.
pub(crate) const LARGEST_FILE: u64 = 100 * 1024 * 1024;

/// Why a file cannot be used. The text is for the model and ends with what to do.
#[derive(Debug, Error)]
pub(crate) enum FileError {
    #[error("File does not exist: {}", .0.display())]
    NotFound(PathBuf),
    #[error("{} is a directory, not a file. Use Glob to list files in it.", .0.display())]
    Directory(PathBuf),
    #[error("{} is {kind}, not a regular file, and cannot be used.", path.display())]
    NotRegular { path: PathBuf, kind: &'static str },
    #[error("{} belongs to a system file tree (/proc, /sys, /dev) that this tool does not touch. Use Bash if you need it.", .0.display())]
    SystemTree(PathBuf),
    #[error("{} is {size} bytes; files over {LARGEST_FILE} bytes are refused. Use Grep, or Bash with head, tail or sed.", path.display())]
    TooLarge { path: PathBuf, size: u64 },
    #[error("Permission denied: {}", .0.display())]
    Denied(PathBuf),
    #[error("{} changed while it was being used. Read it again and repeat the call.", .0.display())]
    Changed(PathBuf),
    #[error("Cannot use {}: {source}", path.display())]
    System { path: PathBuf, source: io::Error },
}

impl FileError {
    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "file_not_found",
            Self::Directory(_) => "file_is_directory",
            Self::NotRegular { .. } => "file_not_regular",
            Self::SystemTree(_) => "file_system_tree",
            Self::TooLarge { .. } => "file_too_large",
            Self::Denied(_) => "file_denied",
            Self::Changed(_) => "file_changed",
            Self::System { .. } => "file_system_error",
        }
    }

    /// What the system said about `path`.
    pub(crate) fn from_system(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound(path),
            io::ErrorKind::PermissionDenied => Self::Denied(path),
            io::ErrorKind::IsADirectory => Self::Directory(path),
            // A link where none was when the path was resolved.
            _ if source.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Self::Changed(path),
            _ => Self::System { path, source },
        }
    }

    /// The result for the model, boxed.
    pub(crate) fn refusal(&self) -> Refusal {
        Box::new(self.outcome())
    }

    /// The result for the model.
    pub(crate) fn outcome(&self) -> ToolOutcome {
        let mut outcome = ToolOutcome::failed(self.to_string());
        outcome.structured = serde_json::json!({ "error": self.to_string(), "code": self.code() });
        outcome
    }
}

/// Whether the path lies in a tree whose files are not files.
pub(crate) fn is_system_tree(real: &Path) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|tree| real.starts_with(tree)) && !real.starts_with("/dev/shm")
}

/// Opens the real path `real` without following any link.
pub(crate) fn open_real(real: &Path, flags: OFlags) -> Result<OwnedFd, FileError> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        match rustix::fs::openat2(CWD, real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            // Kernels and sandboxes without the call: the last component is still guarded below.
            Err(Errno::NOSYS | Errno::PERM) => {}
            Ok(descriptor) => return Ok(descriptor),
            Err(error) => return Err(FileError::from_system(real, error.into())),
        }
    }
    rustix::fs::openat(CWD, real, flags, Mode::empty())
        .map_err(|error| FileError::from_system(real, error.into()))
}

/// Opens a regular file for reading. `shown` is the path as the model wrote it, for messages.
pub(crate) fn open_regular(real: &Path, shown: &Path) -> Result<(File, Metadata), FileError> {
    if is_system_tree(real) {
        return Err(FileError::SystemTree(shown.to_path_buf()));
    }
    let descriptor = match open_real(real, OFlags::RDONLY) {
        Ok(descriptor) => descriptor,
        // Opening a socket fails before it could be examined.
        Err(FileError::System { source, .. })
            if source.raw_os_error() == Some(Errno::NXIO.raw_os_error()) =>
        {
            return Err(FileError::NotRegular { path: shown.to_path_buf(), kind: "a socket or a device" });
        }
        Err(error) => return Err(error),
    };
    let file = File::from(descriptor);
    let metadata = file.metadata().map_err(|error| FileError::from_system(shown, error))?;
    require_regular(&metadata, shown)?;
    Ok((file, metadata))
}

/// Refuses everything but a regular file of bearable size.
pub(crate) fn require_regular(metadata: &Metadata, shown: &Path) -> Result<(), FileError> {
    let kind = metadata.file_type();
    let path = shown.to_path_buf();
    if kind.is_file() {
        if metadata.len() > LARGEST_FILE {
            return Err(FileError::TooLarge { path, size: metadata.len() });
        }
        return Ok(());
    }
    Err(if kind.is_dir() {
        FileError::Directory(path)
    } else {
        let kind = if kind.is_fifo() {
            "a named pipe"
        } else if kind.is_socket() {
            "a socket"
        } else if kind.is_char_device() || kind.is_block_device() {
            "a device"
        } else {
            "a special file"
        };
        FileError::NotRegular { path, kind }
    })
}

/// Reads all of an open file, refusing one that grows past the limit while it is read.
pub(crate) fn read_all(file: &mut File, metadata: &Metadata, shown: &Path) -> Result<Vec<u8>, FileError> {
    let expected = usize::try_from(metadata.len()).unwrap_or(0);
    let mut bytes = Vec::with_capacity(expected + 1);
    file.take(LARGEST_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| FileError::from_system(shown, error))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(FileError::TooLarge { path: shown.to_path_buf(), size: bytes.len() as u64 });
    }
    Ok(bytes)
}

/// The size of the file, 0 without one: for deciding where to work, not for the work itself.
pub(crate) fn size_hint(cwd: &Path, path: &str) -> u64 {
    std::fs::metadata(cwd.join(path)).map_or(0, |metadata| metadata.len())
}

/// Modification time in nanoseconds since the epoch.
pub(crate) fn modified_ns(metadata: &Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

/// Hex SHA-256 of `bytes`.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// What was seen of a file.
pub(crate) fn observation(real: &Path, metadata: &Metadata, size: u64, sha256: String) -> Observation {
    Observation {
        path: real.to_string_lossy().into_owned(),
        size,
        sha256,
        modified_ns: modified_ns(metadata),
        partial: false,
        range: None,
    }
}

/// Whether the stamp says that the file is as it was observed, without looking at its content.
pub(crate) fn same_stamp(metadata: &Metadata, observed: &Observation) -> bool {
    metadata.len() == observed.size && modified_ns(metadata) == observed.modified_ns
}

/// A file in the folder of `path` whose name is like the one asked for.
pub(crate) fn similar_name(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    let wanted = path.file_name()?.to_string_lossy().to_lowercase();
    let wanted_stem = Path::new(&wanted).file_stem()?.to_string_lossy().into_owned();
    let mut best: Option<(f32, PathBuf)> = None;
    for entry in std::fs::read_dir(folder).ok()?.take(2_000).flatten() {
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let same_stem =
            Path::new(&name).file_stem().is_some_and(|stem| stem.to_string_lossy() == wanted_stem);
        let ratio = likeness(&wanted, &name);
        let score = if same_stem { ratio + 1.0 } else { ratio };
        if score >= 0.7 && best.as_ref().is_none_or(|(known, _)| score > *known) {
            best = Some((score, entry.path()));
        }
    }
    best.map(|(_, path)| path)
}
