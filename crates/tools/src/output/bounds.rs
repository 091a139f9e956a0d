//! The one mechanism that bounds results: what fits goes to the model, the whole goes into a private file, without
//! secrets.

use std::path::PathBuf;

use qoder_core::ports::Outputs;

use qoder_process::output::{clip, join_clipped, store};

/// The most characters a tool result has unless the tool declares less.
pub(crate) const RESULT_CHARACTERS: usize = 50_000;
/// `text` when it fits into `limit` characters; otherwise its ends, with the whole in a file. Secrets are taken out before
/// anything is cut or kept: half of one would no longer be recognised.
#[must_use]
pub fn bounded(text: String, limit: usize, outputs: &Outputs, stem: &str) -> (String, Option<PathBuf>) {
    if clip(&text, limit).is_none() {
        return (text, None);
    }
    let text = outputs.redactor.text(&text).into_owned();
    let Some(clipped) = clip(&text, limit) else { return (text, None) };
    let file = store(&outputs.directory, stem, text.as_bytes());
    (join_clipped(&clipped, text.len() as u64, file.as_deref()), file)
}

/// `text` within what a result may have; otherwise its ends, with the whole in a file.
#[must_use]
pub fn bounded_text(text: String, outputs: &Outputs, stem: &str) -> (String, Option<PathBuf>) {
    bounded(text, RESULT_CHARACTERS, outputs, stem)
}
