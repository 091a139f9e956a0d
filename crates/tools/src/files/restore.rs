//! Earlier states of files: handing one over before a change, looking at what is at a place now, and putting an earlier
//! state back. Nothing here follows a link: a place whose path leads through one is named as that and left alone.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use qoder_core::ports::{BeforeChange, ToolContext};

use crate::call::refusal::{Refusal, refusal};
use crate::files::atomic::Place;
use crate::files::open::{self, FileError};
use crate::files::paths::{self, ResolvedPath};

/// The permission bits of a file's mode.
const BITS: u32 = 0o7777;

/// What is at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Present {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Its content.
        bytes: Vec<u8>,
        /// Its permission bits.
        mode: u32,
    },
    /// A link, there or on the way there.
    Link,
    /// Something else, which no tool for files would have made.
    Other(&'static str),
}

/// Why a place could not be looked at or changed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RestoreError(FileError);

impl RestoreError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.code()
    }
}

/// Hands a file over before it is changed. The refusal means that it cannot be kept, and so must not be changed.
pub(crate) fn keep_before(
    context: &ToolContext,
    path: &ResolvedPath,
    file: Option<(&[u8], &Metadata)>,
    becomes: &[u8],
) -> Result<(), Refusal> {
    let Some(keep) = &context.keep_before else { return Ok(()) };
    let file = file.map(|(bytes, metadata)| (bytes, metadata.mode() & BITS));
    keep(&BeforeChange { path: &path.real, file, becomes }).map_err(|problem| {
        refusal(format!(
            "{} was not changed, because what is there now could not be kept as a checkpoint: {problem}",
            path.lexical.display()
        ))
    })
}

/// What is at the real path `path`.
///
/// # Errors
/// When it cannot be looked at.
pub fn present(path: &Path) -> Result<Present, RestoreError> {
    // Real paths lead to themselves; one that no longer does has got a link on its way.
    if paths::real(path).map_or(true, |real| real != path) {
        return Ok(Present::Link);
    }
    let read = open::open_regular(path, path).and_then(|(mut file, metadata)| {
        Ok((open::read_all(&mut file, &metadata, path)?, metadata.mode() & BITS))
    });
    match read {
        Ok((bytes, mode)) => Ok(Present::File { bytes, mode }),
        Err(FileError::NotFound(_)) => Ok(Present::Absent),
        Err(FileError::Changed(_)) => Ok(Present::Link),
        Err(FileError::Directory(_)) => Ok(Present::Other("a directory")),
        Err(FileError::NotRegular { kind, .. }) => Ok(Present::Other(kind)),
        Err(FileError::TooLarge { .. }) => Ok(Present::Other("a very large file")),
        Err(error @ (FileError::SystemTree(_) | FileError::Denied(_) | FileError::System { .. })) => {
            Err(RestoreError(error))
        }
    }
}

/// Puts a file back at the real path `path`, in one step, in place of the file that is there, if one is. Missing
/// directories are created.
///
/// # Errors
/// When it cannot be written, or something that is not a file is there.
pub fn put_back(path: &Path, bytes: &[u8], mode: u32) -> Result<(), RestoreError> {
    let put = || {
        let existing = match open::open_regular(path, path) {
            Ok((_, metadata)) => Some(metadata),
            Err(FileError::NotFound(_)) => None,
            Err(error) => return Err(error),
        };
        if let Some(parent) = path.parent().filter(|_| existing.is_none()) {
            std::fs::create_dir_all(parent).map_err(|error| FileError::from_system(parent, error))?;
        }
        Place::open(path, path)?.put(bytes, existing.as_ref(), Some(mode)).map(|_| ())
    };
    put().map_err(RestoreError)
}

/// Removes the file at the real path `path`.
///
/// # Errors
/// When it cannot be removed, or is no regular file.
pub fn remove(path: &Path) -> Result<(), RestoreError> {
    Place::open(path, path).and_then(|place| place.remove()).map_err(RestoreError)
}
