//! What the approval of a server covers: its description, and the files inside the project that its command line names, by
//! their content. A change of either asks again.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::scripts;
use crate::sources::digest;

/// The command line of a server that is a program.
fn command_line(value: &Value) -> Vec<&str> {
    let Some(command) = value.get("command").and_then(Value::as_str) else { return Vec::new() };
    let args = value.get("args").and_then(Value::as_array).into_iter().flatten();
    std::iter::once(command).chain(args.filter_map(Value::as_str)).collect()
}

/// The files that an approval is bound to, by their paths in the project, with their digests.
#[must_use]
pub fn bound_files(value: &Value, project: &Path) -> BTreeMap<String, String> {
    let texts = command_line(value);
    if texts.is_empty() {
        return BTreeMap::new();
    }
    let directory = value
        .get("cwd")
        .and_then(Value::as_str)
        .map_or_else(|| project.to_path_buf(), |cwd| project.join(cwd));
    scripts::digests([texts], project, &directory)
}

/// Parts of the command line that no approval can be bound to: known only when the server starts.
#[must_use]
pub fn unbound_parts(value: &Value, project: &Path) -> Vec<String> {
    scripts::unbound(&command_line(value), project)
}

/// What an approval is kept under: a digest of the description and of the files that it names.
#[must_use]
pub fn bound_digest(name: &str, value: &Value, project: &Path) -> String {
    let files = bound_files(value, project);
    if files.is_empty() {
        return digest(name, value);
    }
    digest(name, &json!([value, files]))
}
