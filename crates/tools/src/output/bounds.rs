//! Bounds results: what fits goes to the model, the whole goes into a private file, without secrets.

use std::path::PathBuf;

use qoder_core::ports::Outputs;
use qoder_process::output;

/// The most characters a tool result has unless the tool declares less.
pub(crate) const RESULT_CHARACTERS: usize = 50_000;

/// `text` when it fits into `limit` characters; otherwise its ends, with the whole in a file, without secrets.
#[must_use]
pub(crate) fn bounded(
    text: String,
    limit: usize,
    outputs: &Outputs,
    stem: &str,
) -> (String, Option<PathBuf>) {
    output::bounded(text, limit, &outputs.directory, stem, |text| outputs.redactor.text(text).into_owned())
}

/// `text` within what a result may have; otherwise its ends, with the whole in a file.
#[must_use]
pub fn bounded_text(text: String, outputs: &Outputs, stem: &str) -> (String, Option<PathBuf>) {
    bounded(text, RESULT_CHARACTERS, outputs, stem)
}
