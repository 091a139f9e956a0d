//! A Markdown file with a head of YAML between two lines of `---`: how agents, skills and commands are written. Reading
//! is bounded, and an error in the head is reported with its line.

use std::collections::BTreeMap;

use std::path::{Path, PathBuf};

use qoder_files::read_regular;
use serde_json::{Map, Value};

use super::{Origin, Problem};

/// The most bytes of a file.
const LARGEST: u64 = 1024 * 1024;

/// A file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Where it lies.
    pub path: PathBuf,
    /// Who wrote it.
    pub origin: Origin,
    /// The fields of the head; empty without a head.
    pub head: Map<String, Value>,
    /// Everything below the head.
    pub body: String,
    lines: BTreeMap<String, u64>,
}

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is too large, or its head is no YAML object.
    pub fn read(path: &Path, origin: &Origin) -> Result<Self, Problem> {
        let problem =
            |text: String| Problem { path: path.to_path_buf(), line: None, text, origin: origin.clone() };
        let (bytes, is_cut) =
            read_regular(path, None, LARGEST).map_err(|error| problem(format!("cannot be read: {error}")))?;
        if is_cut {
            return Err(problem(format!("is larger than {LARGEST} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|_| problem("is not UTF-8 text".to_owned()))?;
        Self::parse(&text, path, origin)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// When the head is no YAML object or does not end.
    pub fn parse(text: &str, path: &Path, origin: &Origin) -> Result<Self, Problem> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let document = |head, body: &str, lines| Self {
            path: path.to_path_buf(),
            origin: origin.clone(),
            head,
            body: body.to_owned(),
            lines,
        };
        let problem = |line, text| Problem { path: path.to_path_buf(), line, text, origin: origin.clone() };
        let is_mark = |line: &str| line.trim_end() == "---";
        let mut lines = text.split_inclusive('\n');
        if !lines.next().is_some_and(is_mark) {
            return Ok(document(Map::new(), &text, BTreeMap::new()));
        }
        let above = text.find('\n').map_or(text.len(), |end| end + 1);
        let mut end = above;
        let mut closed = None;
        for line in lines {
            if is_mark(line) {
                closed = Some(end + line.len());
                break;
            }
            end += line.len();
        }
        let Some(below) = closed else {
            return Err(problem(Some(1), "its head begins with `---` and never ends".to_owned()));
        };
        let head = &text[above..end];
        let value: Value = if head.trim().is_empty() {
            Value::Object(Map::new())
        } else {
            serde_saphyr::from_str_with_options(head, bounds()).map_err(|error| {
                let line = error.location().map(|location| location.line() + 1);
                problem(line, format!("its head is not valid YAML: {}", reason(&error.to_string())))
            })?
        };
        match value {
            Value::Object(fields) => Ok(document(fields, &text[below..], lines_of(head))),
            Value::Null => Ok(document(Map::new(), &text[below..], BTreeMap::new())),
            _ => Err(problem(Some(2), "its head has to be a list of `field: value` lines".to_owned())),
        }
    }

    /// A problem with a field of the head, at its line; of the file as a whole when there is no such field.
    #[must_use]
    pub fn problem(&self, field: &str, text: impl Into<String>) -> Problem {
        let line = self.lines.get(field).copied();
        Problem { path: self.path.clone(), line, text: text.into(), origin: self.origin.clone() }
    }
}

/// A head is a few lines that a person wrote; one that refers to itself in order to grow is stopped early.
fn bounds() -> serde_saphyr::Options {
    let budget = serde_saphyr::budget! { max_events: 20_000, max_nodes: 10_000, max_aliases: 100, max_anchors: 100,
    max_recorded_anchor_events: 20_000, max_depth: 32 };
    serde_saphyr::options! { budget: budget }
}

/// Where the fields of a head begin, counted in the whole file.
fn lines_of(head: &str) -> BTreeMap<String, u64> {
    let mut lines = BTreeMap::new();
    for (number, line) in (2..).zip(head.lines()) {
        if let Some((name, _)) = line.split_once(':')
            && !line.starts_with([' ', '\t', '#', '-'])
        {
            lines.entry(name.trim().trim_matches(['"', '\'']).to_owned()).or_insert(number);
        }
    }
    lines
}

/// What is wrong, without the place: that is counted in the head, and a reader counts in the file. Nor does a reader care
/// how the library that reads YAML could be made lenient.
fn reason(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let placed = line.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
    let reason = placed.map_or(line, |(_, reason)| reason);
    reason.split_once(", set ").map_or(reason, |(reason, _)| reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Document, Problem> {
        Document::parse(text, Path::new("a.md"), &Origin::User)
    }

    #[test]
    fn a_head_and_a_body_come_apart() {
        let document = parse("---\nname: a\ntools:\n  - Read\n---\n\nBody\n---\nmore").unwrap();
        assert_eq!(Value::Object(document.head), serde_json::json!({ "name": "a", "tools": ["Read"] }));
        assert_eq!(document.body, "\nBody\n---\nmore");
    }

    #[test]
    fn a_file_without_a_head_is_all_body() {
        for text in ["", "Body", "# ---\n---\n", "--- x\n"] {
            let document = parse(text).unwrap();
            assert!(document.head.is_empty() && document.body == text, "{text}");
        }
        assert_eq!(parse("---\r\nname: a\r\n---\r\nBody").unwrap().body, "Body");
        assert_eq!(parse("\u{feff}---\n---\nBody").unwrap().body, "Body");
    }

    #[test]
    fn what_is_wrong_with_a_head_has_its_line() {
        let problem = parse("---\nname: a\ntools: [Read\n---\n").unwrap_err();
        assert!(problem.to_string().starts_with("a.md:"), "{problem}");
        assert!(problem.line.is_some_and(|line| line >= 3), "{problem}");
        assert_eq!(parse("---\nname: a\n").unwrap_err().line, Some(1));
        assert_eq!(parse("---\n- a\n---\n").unwrap_err().line, Some(2));
        let document = parse("---\n# note\nname: a\neffort: x\n---\n").unwrap();
        assert_eq!(document.problem("effort", "bad").to_string(), "a.md:4: bad");
        assert_eq!(document.problem("absent", "bad").to_string(), "a.md: bad");
    }

    #[test]
    fn a_head_that_grows_without_end_is_refused() {
        let mut bomb = "---\na: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (one, two) in "abcdefghijk".chars().zip("bcdefghijkl".chars()) {
            bomb.push_str(&format!("{two}: &{two} [{}]\n", vec![format!("*{one}"); 9].join(",")));
        }
        assert!(parse(&format!("{bomb}---\n")).is_err());
    }
}
