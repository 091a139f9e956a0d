//! Agents of files: Markdown with a head, one agent a file. A file that cannot be used is a problem with its line, and
//! the others count all the same; nothing is read that lies outside of where it may come from.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::fields::{Fields, Writing};
use super::{AgentDefinition, name_problem};
use crate::sources::{Document, Origin, Place, Problem};

/// The most files of a folder.
const MOST_FILES: usize = 500;
/// The most entries of a folder that are looked at.
const MOST_ENTRIES: usize = 10_000;

/// The agents of a folder, or of a single file. `inside` is the folder that links may not lead out of.
pub fn read_place(
    place: &Place,
    inside: Option<&Path>,
    problems: &mut Vec<Problem>,
) -> Vec<(String, AgentDefinition)> {
    let mut found = Vec::new();
    for path in files(place, inside, problems) {
        match read_file(&path, &place.origin, inside) {
            Ok(agent) => found.push(agent),
            Err(problem) => problems.push(problem),
        }
    }
    found
}

/// The files in the order of their names, so that it never matters in which order a system lists them.
fn files(place: &Place, inside: Option<&Path>, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let mut report = |text: String| {
        problems.push(Problem { path: place.path.clone(), line: None, text, origin: place.origin.clone() });
    };
    let real = match place.path.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            report(format!("cannot be read: {error}"));
            return Vec::new();
        }
    };
    if real.is_file() {
        return vec![place.path.clone()];
    }
    if inside.is_some_and(|root| !is_inside(&real, root)) {
        report("leads out of the folder it belongs to; it is not read".to_owned());
        return Vec::new();
    }
    let entries = match std::fs::read_dir(&place.path) {
        Ok(entries) => entries,
        Err(error) => {
            report(format!("cannot be read: {error}"));
            return Vec::new();
        }
    };
    let is_definition = |path: &PathBuf| {
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        !hidden && path.extension().is_some_and(|extension| extension == "md")
    };
    let mut paths: Vec<PathBuf> =
        entries.take(MOST_ENTRIES).flatten().map(|entry| entry.path()).filter(is_definition).collect();
    paths.sort();
    if paths.len() > MOST_FILES {
        report(format!("has {} files; those after the first {MOST_FILES} are left out", paths.len()));
        paths.truncate(MOST_FILES);
    }
    paths
}

fn is_inside(real: &Path, root: &Path) -> bool {
    root.canonicalize().is_ok_and(|root| real.starts_with(root))
}

fn read_file(
    path: &Path,
    origin: &Origin,
    inside: Option<&Path>,
) -> Result<(String, AgentDefinition), Problem> {
    let problem =
        |text: String| Problem { path: path.to_path_buf(), line: None, text, origin: origin.clone() };
    let real = path.canonicalize().map_err(|error| problem(format!("cannot be read: {error}")))?;
    if inside.is_some_and(|root| !is_inside(&real, root)) {
        return Err(problem("leads out of the folder it belongs to; it is not read".to_owned()));
    }
    // The checked place is what is read, under the name that people know.
    let known = |problem: Problem| Problem { path: path.to_path_buf(), ..problem };
    let mut document = Document::read(&real, origin).map_err(known)?;
    document.path = path.to_path_buf();
    read_document(&document)
}

/// The agent that a document defines.
fn read_document(document: &Document) -> Result<(String, AgentDefinition), Problem> {
    let missing =
        |field: &str| document.problem(field, format!("`{field}` is missing in its head; an agent needs it"));
    let name = match document.head.get("name") {
        None | Some(Value::Null) => return Err(missing("name")),
        Some(Value::String(name)) => name.trim().to_owned(),
        Some(_) => return Err(document.problem("name", "`name` has to be a text; put it into quotes")),
    };
    if let Some(text) = name_problem(&name) {
        return Err(document.problem("name", text));
    }
    let fields = Fields {
        object: &document.head,
        writing: Writing::File,
        origin: document.origin.clone(),
        path: Some(&document.path),
    };
    match fields.definition(Some(&document.body)) {
        Ok(definition) => Ok((name, definition)),
        Err(wrong) if wrong.field == "description" && !document.head.contains_key("description") => {
            Err(missing("description"))
        }
        Err(wrong) if wrong.field == "prompt" => Err(document.problem("prompt", wrong.text)),
        Err(wrong) => {
            let joint =
                if ["is ", "has "].iter().any(|verb| wrong.text.starts_with(verb)) { "" } else { ":" };
            Err(document.problem(&wrong.field, format!("`{}`{joint} {}", wrong.field, wrong.text)))
        }
    }
}

#[cfg(test)]
mod tests;
