//! The text of PDF pages.
//!
//! The format is large and its files are often broken, so the reader runs behind a guard: a panic inside it becomes an
//! ordinary error. Decompression is bounded per stream.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use lopdf::{Document, LoadOptions};
use qoder_core::ports::{Outputs, ToolOutcome};
use qoder_process::output::first_characters;
use serde_json::{Value, json};

use crate::output::bounds;

/// Documents with more pages need `pages`.
const PAGES_UNASKED: usize = 10;
/// The most pages of one call.
const PAGES_PER_CALL: usize = 20;
/// The most bytes one stream may unfold to.
const STREAM_BYTES: usize = 64 * 1024 * 1024;
/// The most characters of all pages together.
const TEXT_CHARACTERS: usize = 256 * 1024;

/// The pages `pages` of the document, or all of a short one.
pub(crate) fn read(bytes: &[u8], pages: Option<&str>, shown: &Path, outputs: &Outputs) -> ToolOutcome {
    match catch_unwind(AssertUnwindSafe(|| extract(bytes, pages))) {
        Ok(Ok((total, contents))) => outcome(total, &contents, shown, outputs),
        Ok(Err(reason)) => ToolOutcome::failed(format!("Cannot read {}: {reason}", shown.display())),
        Err(_) => ToolOutcome::failed(format!(
            "Cannot read {}: its structure is damaged. Try pdftotext in Bash.",
            shown.display()
        )),
    }
}

/// A page number and its text.
type Page = (u32, String);

fn extract(bytes: &[u8], pages: Option<&str>) -> Result<(usize, Vec<Page>), String> {
    let options = LoadOptions { max_decompressed_size: Some(STREAM_BYTES), ..LoadOptions::default() };
    let document = Document::load_mem_with_options(bytes, options)
        .map_err(|error| format!("no valid PDF ({error})."))?;
    if document.is_encrypted() {
        return Err("it is protected by a password.".to_owned());
    }
    let total = document.get_pages().len();
    if total == 0 {
        return Err("it has no pages; it may be damaged.".to_owned());
    }
    let wanted = match pages {
        Some(text) => parse_pages(text, total)?,
        None if total > PAGES_UNASKED => {
            return Err(format!(
                "it has {total} pages. Give `pages`, for example \"1-{PAGES_UNASKED}\"; at most {PAGES_PER_CALL} per call."
            ));
        }
        None => (1..=u32::try_from(total).unwrap_or(u32::MAX)).collect(),
    };
    let contents = wanted
        .into_iter()
        .map(|number| {
            let text = document.extract_text_with_limit(&[number], STREAM_BYTES).unwrap_or_default();
            (number, text.trim().to_owned())
        })
        .collect();
    Ok((total, contents))
}

/// The pages that `text` names: numbers and ranges, separated by commas.
fn parse_pages(text: &str, total: usize) -> Result<BTreeSet<u32>, String> {
    let mut pages = BTreeSet::new();
    let last_page = u32::try_from(total).unwrap_or(u32::MAX);
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number > 0);
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(format!("`pages` is {text:?}; expected something like \"3\" or \"1-5\"."));
        };
        if first > last || first > last_page {
            return Err(format!("`pages` is {text:?} but the document has the pages 1 to {total}."));
        }
        let last = last.min(last_page);
        if (last - first) as usize >= PAGES_PER_CALL || pages.len() > PAGES_PER_CALL {
            return Err(format!("`pages` is {text:?}; at most {PAGES_PER_CALL} pages can be read per call."));
        }
        pages.extend(first..=last);
    }
    if pages.len() > PAGES_PER_CALL {
        return Err(format!("`pages` is {text:?}; at most {PAGES_PER_CALL} pages can be read per call."));
    }
    Ok(pages)
}

fn outcome(total: usize, pages: &[Page], shown: &Path, outputs: &Outputs) -> ToolOutcome {
    let mut text = String::new();
    let mut listed = Vec::new();
    for (number, content) in pages {
        text.push_str(&format!("--- Page {number} of {total} ---\n"));
        text.push_str(if content.is_empty() {
            "(This page has no text; it may be a picture.)"
        } else {
            content
        });
        text.push_str("\n\n");
        let (content, _) = first_characters(content, TEXT_CHARACTERS / PAGES_PER_CALL);
        listed.push(json!({ "page_number": number, "content": content }));
    }
    let (text, _) = bounds::bounded(text, TEXT_CHARACTERS, outputs, "pdf");
    let structured =
        json!({ "type": "pdf", "pages": Value::Array(listed), "file_path": shown, "totalPages": total });
    ToolOutcome::completed(text, structured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_ranges_are_read_and_bounded() {
        assert_eq!(parse_pages("2", 9).unwrap().into_iter().collect::<Vec<_>>(), [2]);
        assert_eq!(parse_pages("1, 3-4", 9).unwrap().into_iter().collect::<Vec<_>>(), [1, 3, 4]);
        assert_eq!(parse_pages("8-99", 9).unwrap().into_iter().collect::<Vec<_>>(), [8, 9]);
        for bad in ["", "0", "x", "3-1", "10", "1-4294967296"] {
            assert!(parse_pages(bad, 9).is_err(), "{bad}");
        }
        assert!(parse_pages("1-21", 100).unwrap_err().contains("at most 20"));
        assert!(parse_pages("1-15,20-35", 100).unwrap_err().contains("at most 20"));
    }
}
