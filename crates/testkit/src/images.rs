//! The images endpoint of the scripted server: what a request for pictures holds, as JSON or as a form, and what the
//! server answers to it.

use serde_json::{Map, Value, json};

/// A file of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormFile {
    /// The field's name.
    pub field: String,
    /// The file's name.
    pub file_name: String,
    /// Its content type.
    pub content_type: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A request for pictures.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImageCall {
    /// True for `/images/edits`.
    pub edits: bool,
    /// The fields; those of a form are all texts.
    pub fields: Map<String, Value>,
    /// The files of a form.
    pub files: Vec<FormFile>,
}

/// One answer of the images endpoint.
#[derive(Debug, Clone)]
pub enum ImageReply {
    /// These pictures, already in base64.
    Base64(Vec<String>),
    /// Addresses of pictures.
    Urls(Vec<String>),
    /// A body with status 200, as it is.
    Body(String),
    /// An answer with this status.
    HttpError {
        /// The HTTP status.
        status: u16,
        /// The body, usually JSON.
        body: String,
    },
    /// Nothing arrives for a while, and then the reply.
    Slow {
        /// How long nothing arrives.
        ms: u64,
        /// The reply that comes late.
        reply: Box<ImageReply>,
    },
}

impl ImageReply {
    /// How long nothing arrives, the status and the body.
    pub(crate) fn rendered(&self) -> (u64, u16, String) {
        let answer = |entries: Vec<Value>| {
            let usage = json!({ "input_tokens": 7, "output_tokens": 100, "total_tokens": 107 });
            json!({ "created": 1_700_000_000, "data": entries, "usage": usage }).to_string()
        };
        match self {
            Self::Base64(texts) => {
                (0, 200, answer(texts.iter().map(|text| json!({ "b64_json": text })).collect()))
            }
            Self::Urls(urls) => (0, 200, answer(urls.iter().map(|url| json!({ "url": url })).collect())),
            Self::Body(body) => (0, 200, body.clone()),
            Self::HttpError { status, body } => (0, *status, body.clone()),
            Self::Slow { ms, reply } => {
                let (more, status, body) = reply.rendered();
                (ms + more, status, body)
            }
        }
    }
}

impl ImageCall {
    /// Reads a request; what cannot be read is left out.
    pub(crate) fn read(path: &str, content_type: &str, body: &[u8]) -> Self {
        let edits = path.split('?').next().is_some_and(|path| path.ends_with("/images/edits"));
        let Some((_, boundary)) = content_type.split_once("boundary=") else {
            let fields = serde_json::from_slice(body).unwrap_or_default();
            return Self { edits, fields, files: Vec::new() };
        };
        let mut call = Self { edits, ..Self::default() };
        let edge = format!("--{}", boundary.trim_matches('"'));
        for part in split(body, edge.as_bytes()) {
            call.add(part);
        }
        call
    }

    fn add(&mut self, part: &[u8]) {
        let Some(end) = find(part, b"\r\n\r\n") else { return };
        let head = String::from_utf8_lossy(&part[..end]).into_owned();
        let value = part[end + 4..].strip_suffix(b"\r\n").unwrap_or(&part[end + 4..]);
        let quoted = |name: &str| {
            let (_, rest) = head.split_once(&format!(" {name}=\""))?;
            rest.split_once('"').map(|(value, _)| value.to_owned())
        };
        let Some(field) = quoted("name") else { return };
        match quoted("filename") {
            Some(file_name) => {
                let mut lines = head.lines();
                let content_type = lines.find_map(|line| line.strip_prefix("content-type: "));
                let content_type = content_type.unwrap_or_default().to_owned();
                self.files.push(FormFile { field, file_name, content_type, bytes: value.to_vec() });
            }
            None => drop(self.fields.insert(field, json!(String::from_utf8_lossy(value)))),
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// The parts between the edges.
fn split<'a>(mut bytes: &'a [u8], edge: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while let Some(at) = find(bytes, edge) {
        parts.push(&bytes[..at]);
        bytes = &bytes[at + edge.len()..];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read() {
        let body = b"--x\r\ncontent-disposition: form-data; name=\"n\"\r\n\r\n2\r\n--x\r\ncontent-disposition: form-data; \
                     name=\"image\"; filename=\"a.png\"\r\ncontent-type: image/png\r\n\r\n\x89P\r\nG\r\n--x--\r\n";
        let call = ImageCall::read("/v1/images/edits", "multipart/form-data; boundary=x", body);
        assert!(call.edits);
        assert_eq!(call.fields["n"], "2");
        assert_eq!(
            (call.files[0].file_name.as_str(), call.files[0].bytes.as_slice()),
            ("a.png", &b"\x89P\r\nG"[..])
        );
    }
}
