//! Notebooks as text: where their cells are, and changing one of them without touching another byte.
//!
//! Programs write the same notebook in different manners: indentation, line ends, numbers such as `1e-05`. So a notebook
//! is never written anew: the text of one cell is cut out or put in, in the manner of the cells around it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::call::refusal::{Refusal, refusal};

/// A notebook and where its cells are.
#[derive(Debug)]
pub(crate) struct Notebook<'a> {
    text: &'a str,
    /// The list of cells with its brackets.
    list: &'a str,
    cells: Vec<&'a str>,
    /// Whether its version of the format gives cells an id.
    pub(crate) has_ids: bool,
    /// One level of indentation; `None` when everything is on one line.
    unit: Option<&'a str>,
}

/// The parts of a notebook that are looked at.
#[derive(Deserialize)]
struct Layout<'a> {
    #[serde(borrow, default)]
    cells: Option<&'a RawValue>,
    #[serde(default)]
    nbformat: Value,
    #[serde(default)]
    nbformat_minor: Value,
}

impl<'a> Notebook<'a> {
    /// Reads a notebook.
    pub(crate) fn parse(bytes: &'a [u8], shown: &Path) -> Result<Self, Refusal> {
        let invalid = |problem: String| {
            refusal(format!(
                "{} is no valid notebook: {problem}. Repair it with Bash, or replace it with Write.",
                shown.display()
            ))
        };
        let text = std::str::from_utf8(bytes).map_err(|error| invalid(error.to_string()))?;
        let layout: Layout<'a> = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
        let list = layout.cells.map(RawValue::get).unwrap_or_default();
        let Ok(cells) = serde_json::from_str::<Vec<&'a RawValue>>(list) else {
            return Err(refusal(format!("{} is no notebook: it has no cells.", shown.display())));
        };
        let version = |value: &Value| value.as_u64().unwrap_or(0);
        Ok(Self {
            text,
            list,
            cells: cells.into_iter().map(RawValue::get).collect(),
            // Ids came with the version 4.5 of the format.
            has_ids: (version(&layout.nbformat), version(&layout.nbformat_minor)) >= (4, 5),
            unit: indentation(text),
        })
    }

    /// How many cells there are.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// The ids of the cells that have one.
    pub(crate) fn ids(&self) -> impl Iterator<Item = (usize, String)> {
        #[derive(Deserialize)]
        struct Head {
            id: String,
        }
        let heads = self.cells.iter().map(|cell| serde_json::from_str::<Head>(cell).ok());
        heads.enumerate().filter_map(|(index, head)| Some((index, head?.id)))
    }

    /// The content of a cell.
    pub(crate) fn cell(&self, index: usize) -> Option<Value> {
        serde_json::from_str(self.cells.get(index)?).ok()
    }

    /// The text with another cell in the place of one.
    pub(crate) fn replaced(&self, index: usize, cell: &Value) -> String {
        let old = self.cells[index];
        self.spliced(self.start(old), self.end(old), &self.written(cell, old))
    }

    /// The text with a new cell that will have this index.
    pub(crate) fn inserted(&self, index: usize, cell: &Value) -> String {
        let (Some(first), Some(last)) = (self.cells.first(), self.cells.last()) else {
            return self.spliced(self.start(self.list), self.end(self.list), &self.only(cell));
        };
        // What is between two cells; around a single one, what is in front of it.
        let between = match self.cells.get(1) {
            Some(second) => self.text[self.end(first)..self.start(second)].to_owned(),
            None => format!(",{}", &self.text[self.start(self.list) + 1..self.start(first)]),
        };
        let written = self.written(cell, first);
        match self.cells.get(index) {
            Some(next) => self.spliced(self.start(next), self.start(next), &format!("{written}{between}")),
            None => self.spliced(self.end(last), self.end(last), &format!("{between}{written}")),
        }
    }

    /// The text without one cell.
    pub(crate) fn deleted(&self, index: usize) -> String {
        let cell = self.cells[index];
        match (index.checked_sub(1), self.cells.get(index + 1)) {
            (_, Some(next)) => self.spliced(self.start(cell), self.start(next), ""),
            (Some(before), None) => self.spliced(self.end(self.cells[before]), self.end(cell), ""),
            (None, None) => self.spliced(self.start(self.list), self.end(self.list), "[]"),
        }
    }

    /// A list of this cell alone.
    fn only(&self, cell: &Value) -> String {
        let Some(unit) = self.unit else { return format!("[{cell}]") };
        let (line_end, outer) = (self.line_end(), self.indentation_at(self.list));
        let inner = format!("{outer}{unit}");
        format!("[{line_end}{inner}{}{line_end}{outer}]", self.pretty(cell, unit, &inner))
    }

    /// A cell in the manner of another one.
    fn written(&self, cell: &Value, like: &str) -> String {
        match self.unit {
            Some(unit) if like.contains('\n') => self.pretty(cell, unit, self.indentation_at(like)),
            Some(_) | None => cell.to_string(),
        }
    }

    fn pretty(&self, cell: &Value, unit: &str, indentation: &str) -> String {
        let mut bytes = Vec::new();
        let mut serializer =
            Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(unit.as_bytes()));
        // Writing JSON into memory cannot fail; if it ever did, the short form says the same.
        let text = cell.serialize(&mut serializer).ok().and_then(|()| String::from_utf8(bytes).ok());
        // Line ends inside of JSON texts are escaped: every one found here is between tokens.
        let text = text.unwrap_or_else(|| cell.to_string());
        text.replace('\n', &format!("{}{indentation}", self.line_end()))
    }

    fn line_end(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// The blanks at the start of the line in which a part begins.
    fn indentation_at(&self, part: &str) -> &str {
        let line = self.text[..self.start(part)].rfind('\n').map_or(0, |at| at + 1);
        let rest = &self.text[line..];
        &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
    }

    /// Where a part of the text begins. Only parts that were cut out of the text are asked for.
    fn start(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }

    fn end(&self, part: &str) -> usize {
        self.start(part) + part.len()
    }

    fn spliced(&self, from: usize, to: usize, with: &str) -> String {
        [&self.text[..from], with, &self.text[to..]].concat()
    }
}

/// The blanks in front of the second line, when there is one.
fn indentation(text: &str) -> Option<&str> {
    let (_, rest) = text.trim_end().split_once('\n')?;
    Some(&rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()])
}

/// A source as notebooks keep it: a list of lines, each with its line end.
pub(crate) fn source_lines(source: &str) -> Value {
    Value::Array(source.split_inclusive('\n').map(|line| Value::String(line.to_owned())).collect())
}

/// A new cell, with its fields in the order in which Jupyter writes them.
pub(crate) fn new_cell(kind: &str, source: &str, id: Option<&str>) -> Value {
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

    fn notebook(text: &str) -> Notebook<'_> {
        Notebook::parse(text.as_bytes(), Path::new("x.ipynb")).unwrap()
    }

    #[test]
    fn every_manner_is_kept_and_a_cell_goes_in_and_out_again() {
        for text in [
            "{\n \"cells\": [\n  {\n   \"a\": 1\n  },\n  {\n   \"a\": 2\n  }\n ],\n \"x\": 1e-05\n}\n",
            "{\r\n  \"cells\": [\r\n    {\r\n      \"a\": 1\r\n    }\r\n  ]\r\n}",
            "{\n\t\"x\": 1E+2,\n\t\"cells\": [ {\"a\":1} , {\"a\":2} ]\n}\n",
            "{\"cells\":[{\"a\":1}],\"b\":{ }}\n",
        ] {
            for index in 0..=notebook(text).len() {
                let with = notebook(text).inserted(index, &json!({ "a": 1 }));
                assert_eq!(notebook(&with).len(), notebook(text).len() + 1, "{with}");
                assert_eq!(notebook(&with).cell(index), Some(json!({ "a": 1 })), "{with}");
                assert_eq!(notebook(&with).deleted(index), text, "{with}");
            }
            assert_eq!(notebook(text).replaced(0, &json!({ "a": 1 })), text);
        }
    }

    #[test]
    fn an_empty_list_gets_its_first_cell_and_loses_it() {
        let text = "{\n  \"cells\": [],\n  \"x\": 1\n}\n";
        let with = notebook(text).inserted(0, &json!({ "a": [] }));
        assert_eq!(with, "{\n  \"cells\": [\n    {\n      \"a\": []\n    }\n  ],\n  \"x\": 1\n}\n");
        assert_eq!(notebook(&with).deleted(0), text);
        assert_eq!(notebook("{\"cells\":[]}").inserted(0, &json!(1)), "{\"cells\":[1]}");
    }

    #[test]
    fn lines_keep_their_ends() {
        assert_eq!(source_lines("a\nb"), json!(["a\n", "b"]));
        assert_eq!(source_lines(""), json!([]));
    }
}
