//! From what a server sent to text: HTML as Markdown, PDF by its pages, every kind of text in its encoding.
//!
//! The content type decides; without one the first bytes do. What is no text is refused with its type and size.

use std::path::Path;

use encoding_rs::Encoding;
use qoder_core::ports::Outputs;
use qoder_types::CallOutcome;
use url::Url;

use crate::files::encoding;
use crate::files::read::pdf;
use crate::web::error::WebError;
use crate::web::html;

/// Pages of a PDF document that are read.
const PDF_PAGES: &str = "1-20";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Pdf,
    Text,
    Other,
}

/// The text of a body. Takes long for large ones: not for an async thread.
pub(crate) fn to_text(
    content_type: &str,
    bytes: &[u8],
    url: &Url,
    outputs: &Outputs,
) -> Result<String, WebError> {
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind(&media_type, bytes) {
        Kind::Html => html::to_markdown(&decode(content_type, bytes, true), url),
        Kind::Pdf => pdf(bytes, url, outputs),
        Kind::Text => Ok(decode(content_type, bytes, false)),
        Kind::Other => {
            let hint = match media_type.split('/').next() {
                Some("image" | "audio" | "video") => " Save it with Bash if you need it.",
                Some(_) | None => " Look for another form of it.",
            };
            let media_type = if media_type.is_empty() { "unknown".to_owned() } else { media_type };
            Err(WebError::Unsupported { media_type, bytes: bytes.len(), hint })
        }
    }
}

fn kind(media_type: &str, bytes: &[u8]) -> Kind {
    match media_type {
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "application/pdf" | "application/x-pdf" => Kind::Pdf,
        "" | "application/octet-stream" | "binary/octet-stream" | "application/unknown" => sniffed(bytes),
        other if is_text(other) => Kind::Text,
        _ => Kind::Other,
    }
}

fn is_text(media_type: &str) -> bool {
    let Some((family, name)) = media_type.split_once('/') else { return false };
    if family == "text" || name.ends_with("+json") || name.ends_with("+xml") {
        return !matches!(media_type, "image/svg+xml");
    }
    family == "application"
        && matches!(
            name,
            "json"
                | "xml"
                | "javascript"
                | "x-javascript"
                | "ecmascript"
                | "ndjson"
                | "x-ndjson"
                | "jsonl"
                | "json5"
                | "yaml"
                | "x-yaml"
                | "toml"
                | "graphql"
                | "sql"
                | "x-sh"
                | "x-tex"
                | "x-www-form-urlencoded"
                | "rtf"
        )
}

fn sniffed(bytes: &[u8]) -> Kind {
    if bytes.starts_with(b"%PDF-") {
        return Kind::Pdf;
    }
    let start = bytes.trim_ascii_start();
    let starts_with =
        |mark: &[u8]| start.get(..mark.len()).is_some_and(|head| head.eq_ignore_ascii_case(mark));
    if starts_with(b"<!doctype html") || starts_with(b"<html") {
        Kind::Html
    } else if encoding::decode(bytes).is_some() {
        Kind::Text
    } else {
        Kind::Other
    }
}

/// The text in the encoding that the mark, the header or the page names; otherwise UTF-8 if it is that, and
/// windows-1252 if not. Bytes that mean nothing become replacement characters.
fn decode(content_type: &str, bytes: &[u8], html: bool) -> String {
    let named = charset(content_type.as_bytes())
        .or_else(|| html.then(|| charset(&bytes[..bytes.len().min(1_024)])).flatten());
    let rules = named.unwrap_or_else(|| match std::str::from_utf8(bytes) {
        Ok(_) => encoding_rs::UTF_8,
        Err(_) => encoding_rs::WINDOWS_1252,
    });
    rules.decode(bytes).0.into_owned()
}

/// The encoding behind `charset=`.
fn charset(text: &[u8]) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let at = memchr::memmem::find(&lower, b"charset=")? + b"charset=".len();
    let value = lower[at..].trim_ascii_start();
    let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
    let end = value.iter().position(|byte| matches!(byte, b'"' | b'\'' | b';' | b'>' | b'/' | b' '));
    Encoding::for_label(&value[..end.unwrap_or(value.len())])
}

fn pdf(bytes: &[u8], url: &Url, outputs: &Outputs) -> Result<String, WebError> {
    let outcome = pdf::read(bytes, Some(PDF_PAGES), Path::new(url.path()), outputs);
    let text = outcome.content.to_text();
    match outcome.outcome {
        CallOutcome::Completed => Ok(text),
        CallOutcome::Failed
        | CallOutcome::Denied
        | CallOutcome::Interrupted
        | CallOutcome::NotRun
        | CallOutcome::Unknown => Err(WebError::Damaged { problem: text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content_type: &str, bytes: &[u8]) -> Result<String, WebError> {
        to_text(content_type, bytes, &Url::parse("https://a.example/x").unwrap(), &Outputs::default())
    }

    #[test]
    fn encodings_come_from_header_page_mark_or_content() {
        assert_eq!(text("text/plain; charset=ISO-8859-1", b"caf\xE9").unwrap(), "café");
        assert_eq!(text("text/plain; charset=\"shift_jis\"", b"\x93\xFA").unwrap(), "日");
        assert_eq!(text("text/plain", "café".as_bytes()).unwrap(), "café");
        assert_eq!(text("text/plain", b"caf\xE9").unwrap(), "café");
        assert_eq!(text("text/plain", &[0xFF, 0xFE, b'h', 0, b'i', 0]).unwrap(), "hi");
        assert_eq!(text("text/plain; charset=utf-8", b"a\xFFb").unwrap(), "a\u{FFFD}b");
        let page = b"<html><meta charset='windows-1251'><p>\xCF\xF0";
        assert_eq!(text("text/html", page).unwrap(), "Пр");
    }

    #[test]
    fn types_decide_and_bytes_help_where_there_is_none() {
        assert_eq!(text("application/ld+json", b"{}").unwrap(), "{}");
        assert_eq!(text("", b"<!DOCTYPE html><b>x</b>").unwrap(), "**x**");
        assert_eq!(text("application/octet-stream", b"plain").unwrap(), "plain");
        let refused = text("image/png", b"\x89PNG").unwrap_err();
        assert!(refused.to_string().contains("image/png (4 bytes)"), "{refused}");
        assert!(text("", b"a\0b").unwrap_err().to_string().contains("unknown (3 bytes)"));
        assert!(matches!(text("application/pdf", b"%PDF-nothing"), Err(WebError::Damaged { .. })));
    }
}
