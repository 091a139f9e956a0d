//! Notebooks: their cells with the text of their outputs.
//!
//! Both generations of the format are plain JSON; only the fields that matter to a reader are looked at, and whatever is
//! missing or of another type is skipped.

use std::path::Path;

use qoder_core::ports::ToolOutcome;
use serde_json::{Value, json};

use qoder_process::output::first_characters;

/// The most characters of one output.
const OUTPUT_CHARACTERS: usize = 10_000;
/// The most characters of the whole notebook.
const TEXT_CHARACTERS: usize = 256 * 1024;

/// The cells of the notebook.
pub(crate) fn read(bytes: &[u8], shown: &Path) -> ToolOutcome {
    let notebook: Value = match serde_json::from_slice(bytes) {
        Ok(notebook) => notebook,
        Err(error) => {
            return ToolOutcome::failed(format!(
                "{} is no valid notebook: {error}. Use Bash to look at it as text.",
                shown.display()
            ));
        }
    };
    let Some(cells) = notebook.get("cells").and_then(Value::as_array) else {
        return ToolOutcome::failed(format!("{} is no notebook: it has no cells.", shown.display()));
    };
    let mut text = String::new();
    let mut listed = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let kind = match cell.get("cell_type").and_then(Value::as_str) {
            Some(kind @ ("markdown" | "raw")) => kind,
            Some(_) | None => "code",
        };
        let source = joined(cell.get("source"));
        let outputs: Vec<String> =
            cell.get("outputs").and_then(Value::as_array).into_iter().flatten().map(output_text).collect();
        let id = cell.get("id").and_then(Value::as_str);
        let shown_id = id.map(|id| format!(", id {id}")).unwrap_or_default();
        text.push_str(&format!("--- Cell {} ({kind}{shown_id}) ---\n{source}\n", index + 1));
        for output in &outputs {
            text.push_str(&format!("--- Output of cell {} ---\n{output}\n", index + 1));
        }
        let mut entry = json!({ "cell_number": index + 1, "cell_type": kind, "source": source });
        if let Some(id) = id {
            entry["cell_id"] = json!(id);
        }
        if !outputs.is_empty() {
            entry["outputs"] = json!(outputs);
        }
        if text.len() <= TEXT_CHARACTERS {
            listed.push(entry);
        }
    }
    if cells.is_empty() {
        text.push_str("The notebook has no cells.");
    }
    let (shown_text, cut) = first_characters(&text, TEXT_CHARACTERS);
    let mut shown_text = shown_text.to_owned();
    if cut {
        shown_text.push_str("\n[The notebook is longer; use jq in Bash to see further cells.]\n");
    }
    ToolOutcome::completed(shown_text, json!({ "type": "notebook", "cells": listed, "file_path": shown }))
}

/// The text of one output; pictures are named, not shown.
fn output_text(output: &Value) -> String {
    let mut text = match output.get("output_type").and_then(Value::as_str) {
        Some("stream") => joined(output.get("text")),
        Some("error") => {
            let part = |name| output.get(name).and_then(Value::as_str).unwrap_or_default();
            format!("{}: {}\n{}", part("ename"), part("evalue"), joined(output.get("traceback")))
        }
        Some(_) | None => joined(output.get("data").and_then(|data| data.get("text/plain"))),
    };
    let pictures = output.get("data").and_then(Value::as_object).into_iter().flatten();
    for (kind, _) in pictures.filter(|(kind, _)| kind.starts_with("image/")) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("[{kind} not shown]"));
    }
    let (short, cut) = first_characters(&text, OUTPUT_CHARACTERS);
    if cut { format!("{short}\n[output cut]") } else { text }
}

/// Text that may be stored as one string or as a list of lines.
fn joined(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => String::new(),
    }
}
