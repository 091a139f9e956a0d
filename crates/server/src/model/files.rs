//! Files: what is kept of one, how it is named, and how clients read it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ids::{FileId, SessionId};
use super::metadata::{self, Metadata};
use super::problem::Problem;
use super::time::Time;

/// The longest name.
const LONGEST_NAME: usize = 500;
/// How long a file may be kept that has an end, in seconds.
const LIFETIME: std::ops::RangeInclusive<u64> = 3_600..=7_776_000;
/// What files with an extension are, when their sender does not say.
const MEDIA_TYPES: [(&str, &str); 20] = [
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("py", "text/x-python"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("txt", "text/plain"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("zip", "application/zip"),
];
const UNKNOWN: &str = "application/octet-stream";

/// What a row keeps of a file beside its columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileBody {
    /// Its name, without folders.
    pub filename: String,
    /// Its media type.
    pub media_type: String,
    /// Its length.
    pub size: u64,
    /// What the owner wrote on it.
    #[serde(default)]
    pub metadata: Metadata,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The file.
    pub id: FileId,
    /// What is kept of it.
    pub body: FileBody,
    /// The session that made it.
    pub session: Option<SessionId>,
    /// The blob that holds its content.
    pub blob: String,
    /// When it was created.
    pub created_at: Time,
    /// When it ends.
    pub expires_at: Option<Time>,
}

impl File {
    /// As clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        let scope = self.session.map(|id| json!({ "type": "session", "id": id }));
        json!({
            "id": self.id, "type": "file", "filename": self.body.filename, "mime_type": self.body.media_type,
            "size_bytes": self.body.size, "created_at": self.created_at, "expires_at": self.expires_at,
            "downloadable": true, "scope": scope, "metadata": self.body.metadata, "status": "ready",
        })
    }

    /// The name of the blob of a file.
    #[must_use]
    pub fn blob_name(id: FileId) -> String {
        id.to_string()
    }
}

/// A file that was given to a message by its id, as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFile {
    /// Its name.
    pub filename: String,
    /// Its media type.
    pub media_type: String,
    /// Its content.
    pub content: Vec<u8>,
}

/// Files that a request names, by their ids.
pub type GivenFiles = std::collections::HashMap<String, GivenFile>;

/// What a sender says about a file beside its content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileFields {
    /// `name`.
    pub name: Option<String>,
    /// `metadata`, a JSON object.
    pub metadata: Option<String>,
    /// `expires_in_seconds`.
    pub expires_in_seconds: Option<String>,
}

impl FileFields {
    /// Takes a field of a form; false when a file has no such field.
    pub fn take(&mut self, name: &str, value: String) -> bool {
        let place = match name {
            "name" => &mut self.name,
            "metadata" => &mut self.metadata,
            "expires_in_seconds" => &mut self.expires_in_seconds,
            _ => return false,
        };
        *place = Some(value);
        true
    }

    /// What the owner wrote on the file.
    ///
    /// # Errors
    /// When it is not an object of texts.
    pub fn metadata(&self) -> Result<Metadata, Problem> {
        let Some(text) = self.metadata.as_deref().filter(|text| !text.trim().is_empty()) else {
            return Ok(Metadata::default());
        };
        let value: Value =
            serde_json::from_str(text).map_err(|_| Problem::field("metadata", "must be a JSON object"))?;
        metadata::read(&value)
    }

    /// When the file ends.
    ///
    /// # Errors
    /// When it would end too soon or too late.
    pub fn expires_at(&self, now: Time) -> Result<Option<Time>, Problem> {
        let Some(text) = self.expires_in_seconds.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let seconds = text.parse().ok().filter(|seconds| LIFETIME.contains(seconds));
        let seconds: u64 = seconds.ok_or_else(|| {
            let (least, most) = LIFETIME.into_inner();
            Problem::field("expires_in_seconds", format!("must be a whole number, {least} to {most}"))
        })?;
        Ok(Some(now.after(i64::try_from(seconds * 1000).unwrap_or(i64::MAX))))
    }
}

/// The name of a file: the last part of what its sender wrote.
#[must_use]
pub fn file_name(sent: &str, media_type: &str) -> String {
    let last = sent.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last.chars().filter(|each| !each.is_control()).take(LONGEST_NAME).collect();
    if !plain.trim().is_empty() && !matches!(plain.trim(), "." | "..") {
        return plain;
    }
    let extension = MEDIA_TYPES.iter().find(|(_, known)| *known == media_type);
    extension.map_or_else(|| "unnamed".to_owned(), |(extension, _)| format!("unnamed.{extension}"))
}

/// The media type of a file: what its sender says, else what its name says.
#[must_use]
pub fn media_type(sent: Option<&str>, name: &str) -> String {
    let plain = |text: &&str| {
        let (kind, rest) = text.split_once('/').unwrap_or_default();
        let is_word = |word: &str| {
            !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
        };
        is_word(kind) && is_word(rest)
    };
    let bare = sent.map(|text| text.split(';').next().unwrap_or_default().trim());
    if let Some(known) = bare.filter(plain).filter(|text| *text != UNKNOWN) {
        return known.to_ascii_lowercase();
    }
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let known = MEDIA_TYPES.iter().find(|(known, _)| Some(*known) == extension.as_deref());
    known.map_or(UNKNOWN, |(_, media_type)| media_type).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_part_of_a_name_is_kept() {
        for (sent, kept) in [
            ("report.csv", "report.csv"),
            ("/etc/passwd", "passwd"),
            ("..\\..\\boot.ini", "boot.ini"),
            ("a/..", "unnamed.pdf"),
            ("", "unnamed.pdf"),
            ("a\0\nb.txt", "ab.txt"),
            ("Übersicht.pdf", "Übersicht.pdf"),
        ] {
            assert_eq!(file_name(sent, "application/pdf"), kept, "{sent}");
        }
        assert_eq!(file_name("", "application/x-unknown"), "unnamed");
    }

    #[test]
    fn the_sender_says_what_a_file_is_or_its_name_does() {
        for (sent, name, known) in [
            (Some("text/csv; charset=utf-8"), "a", "text/csv"),
            (None, "a.PNG", "image/png"),
            (Some("application/octet-stream"), "a.json", "application/json"),
            (Some("nonsense"), "a", UNKNOWN),
            (Some("text/\r\nx"), "a", UNKNOWN),
        ] {
            assert_eq!(media_type(sent, name), known, "{sent:?} {name}");
        }
    }

    #[test]
    fn fields_of_a_form_are_checked() {
        let fields = |metadata: &str, seconds: &str| FileFields {
            name: None,
            metadata: Some(metadata.to_owned()),
            expires_in_seconds: Some(seconds.to_owned()),
        };
        let good = fields("{\"k\":\"v\"}", "3600");
        assert_eq!(good.expires_at(Time(0)).unwrap(), Some(Time(3_600_000_000)));
        assert_eq!(good.metadata().unwrap()["k"], "v");
        for (metadata, seconds) in [("[", "60"), ("[]", "x"), ("{\"k\":1}", "7776001")] {
            let bad = fields(metadata, seconds);
            assert_eq!(
                bad.metadata().unwrap_err().field.as_deref().map(|field| field.starts_with("metadata")),
                Some(true)
            );
            assert_eq!(bad.expires_at(Time(0)).unwrap_err().field.as_deref(), Some("expires_in_seconds"));
        }
    }
}
