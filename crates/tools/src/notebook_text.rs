//! Notebooks as text: reading one for a change and writing it back in its own manner.
//!
//! Jupyter writes JSON with one blank per level, other programs write two or four or none. Whatever the file has is
//! kept, with its line end at the end of the file, so that a change shows up as that change alone.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Value, json};

use crate::work::{Refusal, refusal};

/// A notebook and how it is written.
#[derive(Debug)]
pub(crate) struct Notebook {
    /// The content.
    pub(crate) value: Value,
    /// One level of indentation; `None` when everything stands on one line.
    indentation: Option<Vec<u8>>,
    windows: bool,
    /// What follows the last brace.
    end: Vec<u8>,
}

/// Reads a notebook.
pub(crate) fn parse(bytes: &[u8], shown: &Path) -> Result<Notebook, Refusal> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        refusal(format!(
            "{} is no valid notebook: {error}. Repair it with Bash, or replace it with Write.",
            shown.display()
        ))
    })?;
    let body = bytes.trim_ascii_end();
    let first_line = bytes.iter().position(|byte| *byte == b'\n');
    let indentation = first_line.filter(|at| *at < body.len()).map(|at| {
        let line = &bytes[at + 1..];
        let length = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        line[..length].to_vec()
    });
    let windows = first_line.is_some_and(|at| at > 0 && bytes[at - 1] == b'\r');
    Ok(Notebook { value, indentation, windows, end: bytes[body.len()..].to_vec() })
}

/// The bytes of a notebook, in its own manner.
pub(crate) fn write(notebook: &Notebook) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match &notebook.indentation {
        Some(indentation) => {
            let formatter = PrettyFormatter::with_indent(indentation);
            notebook.value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter))?;
        }
        None => serde_json::to_writer(&mut bytes, &notebook.value)?,
    }
    if notebook.windows {
        // Line ends inside of JSON texts are escaped: every one found here is between tokens.
        let mut with_returns = Vec::with_capacity(bytes.len() + bytes.len() / 16);
        for byte in bytes {
            if byte == b'\n' {
                with_returns.push(b'\r');
            }
            with_returns.push(byte);
        }
        bytes = with_returns;
    }
    bytes.extend_from_slice(&notebook.end);
    Ok(bytes)
}

/// A source as notebooks keep it: a list of lines, each with its line end.
pub(crate) fn source_lines(source: &str) -> Value {
    Value::Array(source.split_inclusive('\n').map(|line| Value::String(line.to_owned())).collect())
}

/// A new cell, with its fields in the order in which Jupyter writes them.
pub(crate) fn cell(kind: &str, source: &str, id: Option<&str>) -> Value {
    let mut fields = serde_json::Map::new();
    fields.insert("cell_type".to_owned(), json!(kind));
    if kind == "code" {
        fields.insert("execution_count".to_owned(), Value::Null);
    }
    if let Some(id) = id {
        fields.insert("id".to_owned(), json!(id));
    }
    fields.insert("metadata".to_owned(), json!({}));
    if kind == "code" {
        fields.insert("outputs".to_owned(), json!([]));
    }
    fields.insert("source".to_owned(), source_lines(source));
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_manner_comes_back_as_it_was() {
        for text in [
            "{\n \"a\": [\n  1,\n  {}\n ],\n \"b\": \"x\\ny\"\n}\n",
            "{\r\n  \"a\": [],\r\n  \"b\": 1.5\r\n}\r\n",
            "{\n\t\"z\": null,\n\t\"a\": true\n}",
            "{\"cells\":[],\"b\":{}}\n",
        ] {
            let notebook = parse(text.as_bytes(), Path::new("x.ipynb")).unwrap();
            assert_eq!(String::from_utf8(write(&notebook).unwrap()).unwrap(), text);
        }
    }

    #[test]
    fn lines_keep_their_ends() {
        assert_eq!(source_lines("a\nb"), json!(["a\n", "b"]));
        assert_eq!(source_lines(""), json!([]));
    }
}
