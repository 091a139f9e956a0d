//! Changing a settings file: one value, or the entries of a list, with comments and layout kept. The file is replaced as
//! a whole, under a lock, and only when what comes out can be read again.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use rustix::fs::FlockOperation;
use serde_json::Value;

use super::parse;

/// A change of one key, named by its dotted path.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Sets a value.
    Set(Value),
    /// Removes the key.
    Remove,
    /// Adds entries to a list; those that are in it stay once.
    AddToList(Vec<String>),
    /// Replaces a list.
    ReplaceList(Vec<String>),
    /// Takes entries out of a list.
    RemoveFromList(Vec<String>),
}

/// A settings file that could not be changed.
#[derive(Debug, thiserror::Error)]
#[error("cannot change the settings file {}: {problem}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: String,
}

/// Changes one key of a file; the file and its folder are created when they are missing.
pub fn change(path: &Path, key: &str, change: &Change) -> Result<(), WriteError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    change_under(folder, path, key, change)
}

/// Changes one key of a file while the lock of another folder is held: for files in places where ours has no business.
pub fn change_under(locked: &Path, path: &Path, key: &str, change: &Change) -> Result<(), WriteError> {
    let fail = |problem: String| WriteError { path: path.to_path_buf(), problem };
    let folder = path.parent().ok_or_else(|| fail("it has no folder".to_owned()))?;
    create(folder).and_then(|()| create(locked)).map_err(|error| fail(error.to_string()))?;
    let _lock = lock(locked).map_err(|error| fail(error.to_string()))?;
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "{}\n".to_owned(),
        Err(error) => return Err(fail(error.to_string())),
    };
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text.as_str()),
    };
    let root = CstRootNode::parse(body, &ParseOptions::default()).map_err(|error| fail(error.to_string()))?;
    let object = root.object_value_or_create().ok_or_else(|| fail("it is not a JSON object".to_owned()))?;
    apply(&object, key, change).map_err(fail)?;
    let changed = format!("{mark}{root}");
    parse::check_text(&changed).map_err(|error| fail(format!("the change would spoil it: {error}")))?;
    replace(path, folder, changed.as_bytes()).map_err(|error| fail(error.to_string()))
}

/// Replaces a file of the person's own configuration by what `content` makes of it, under the lock of its folder.
pub fn replace_file(
    path: &Path,
    content: impl FnOnce() -> Result<Vec<u8>, String>,
) -> Result<(), WriteError> {
    let fail = |problem: String| WriteError { path: path.to_path_buf(), problem };
    let folder = path.parent().ok_or_else(|| fail("it has no folder".to_owned()))?;
    create(folder).map_err(|error| fail(error.to_string()))?;
    let _lock = lock(folder).map_err(|error| fail(error.to_string()))?;
    let bytes = content().map_err(fail)?;
    replace(path, folder, &bytes).map_err(|error| fail(error.to_string()))
}

fn create(folder: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn apply(object: &CstObject, key: &str, change: &Change) -> Result<(), String> {
    let mut object = object.clone();
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_some() {
            let below = object.object_value_or_create(part);
            object = below.ok_or_else(|| format!("`{part}` in `{key}` is not an object"))?;
            continue;
        }
        match change {
            Change::Set(value) => match object.get(part) {
                Some(property) => property.set_value(input(value)),
                None => drop(object.append(part, input(value))),
            },
            Change::Remove => {
                if let Some(property) = object.get(part) {
                    property.remove();
                }
            }
            Change::AddToList(entries) => {
                let list =
                    object.array_value_or_create(part).ok_or_else(|| format!("`{key}` is not a list"))?;
                let present: Vec<String> = list.elements().iter().filter_map(entry_text).collect();
                for entry in entries.iter().filter(|entry| !present.contains(entry)) {
                    list.append(CstInputValue::String(entry.clone()));
                }
            }
            Change::ReplaceList(entries) => {
                let value = Value::Array(entries.iter().cloned().map(Value::String).collect());
                match object.get(part) {
                    Some(property) => property.set_value(input(&value)),
                    None => drop(object.append(part, input(&value))),
                }
            }
            Change::RemoveFromList(entries) => {
                let Some(list) = object.array_value(part) else { continue };
                for element in list.elements() {
                    if entry_text(&element).is_some_and(|text| entries.contains(&text)) {
                        element.remove();
                    }
                }
            }
        }
    }
    Ok(())
}

fn entry_text(node: &jsonc_parser::cst::CstNode) -> Option<String> {
    node.as_string_lit()?.decoded_value().ok()
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(map) => {
            CstInputValue::Object(map.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

/// Held while a file of the folder is changed; the kernel frees it at death.
fn lock(folder: &Path) -> std::io::Result<File> {
    let file = std::fs::OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join(".settings.lock"))?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn replace(path: &Path, folder: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let temporary = folder.join(format!(".settings-{}.tmp", uuid::Uuid::new_v4().simple()));
    let mode = path.metadata().map_or(0o600, |metadata| metadata.permissions().mode() & 0o777);
    let written = (|| {
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        // Often it is not there at all.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_layout_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        std::fs::write(
            &path,
            "{\n  // mine\n  \"permissions\": {\n    \"allow\": [\"Read\"] // ok\n  }\n}\n",
        )
        .unwrap();
        let add =
            |entries: &[&str]| Change::AddToList(entries.iter().map(|text| (*text).to_owned()).collect());
        change(&path, "permissions.allow", &add(&["Read", "Bash(ls)"])).unwrap();
        change(&path, "permissions.deny", &add(&["Bash(rm:*)"])).unwrap();
        change(&path, "general.defaultPermissionMode", &Change::Set(Value::from("plan"))).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("// mine") && text.contains("// ok"), "{text}");
        let value: Value = jsonc_parser::parse_to_serde_value(&text, &ParseOptions::default()).unwrap();
        assert_eq!(value["permissions"]["allow"], serde_json::json!(["Read", "Bash(ls)"]));
        assert_eq!(value["permissions"]["deny"], serde_json::json!(["Bash(rm:*)"]));
        change(&path, "permissions.allow", &Change::RemoveFromList(vec!["Read".to_owned()])).unwrap();
        change(&path, "general.defaultPermissionMode", &Change::Remove).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let value: Value = jsonc_parser::parse_to_serde_value(&text, &ParseOptions::default()).unwrap();
        assert_eq!(value["permissions"]["allow"], serde_json::json!(["Bash(ls)"]));
        assert_eq!(value["general"], serde_json::json!({}));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        for broken in ["{", "[]", "{\"permissions\": 1}"] {
            std::fs::write(&path, broken).unwrap();
            let changed = change(&path, "permissions.allow", &Change::AddToList(vec!["Read".to_owned()]));
            assert!(changed.is_err(), "{broken}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), broken);
        }
    }
}
