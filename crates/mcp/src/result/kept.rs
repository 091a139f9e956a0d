//! What a server sends that is too long or too foreign for the model: kept in a file of the session, named in the result.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use qoder_core::ports::Outputs;
use qoder_process::output;
use thiserror::Error;

/// `text` when it fits into `limit` characters; otherwise its ends, with the whole in a file, without secrets.
pub(crate) fn bounded(
    text: String,
    limit: usize,
    outputs: &Outputs,
    stem: &str,
) -> (String, Option<PathBuf>) {
    output::bounded(text, limit, &outputs.directory, stem, |text| outputs.redactor.text(text).into_owned())
}

/// Keeps what a server sent as base64 in a new file of `directory`; the path and the number of bytes.
///
/// # Errors
/// When it is not base64 or cannot be kept.
pub(crate) fn keep_base64(data: &str, directory: &Path, stem: &str) -> Result<(PathBuf, usize), KeepError> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(data.trim_ascii())?;
    let path = output::store(directory, stem, &bytes).ok_or(KeepError::NotKept)?;
    Ok((path, bytes.len()))
}

/// Why content that a server sent is not in a file.
#[derive(Debug, Error)]
pub(crate) enum KeepError {
    /// The server sent something else.
    #[error("it is not base64: {0}")]
    NotBase64(#[from] base64::DecodeError),
    /// The system refused the file.
    #[error("it cannot be kept in a file")]
    NotKept,
}
