//! Metadata: a map of texts that the server keeps and does not read. On update the map is a patch.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::problem::Problem;

/// What the owner wrote on an object.
pub type Metadata = BTreeMap<String, String>;

const MOST_PAIRS: usize = 16;
const LONGEST_KEY: usize = 64;
const LONGEST_VALUE: usize = 512;

/// Reads the metadata of something new.
///
/// # Errors
/// When it is not a map of texts, or exceeds a limit.
pub fn read(value: &Value) -> Result<Metadata, Problem> {
    patched(&Metadata::new(), value, EmptyText::Kept)
}

/// What an empty text in a patch means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyText {
    /// A value like any other.
    Kept,
    /// The key is removed, as environments have it.
    Removes,
}

/// Applies a patch: a text sets a key, null removes one, and keys that are not named stay. Null for the whole map changes
/// nothing.
///
/// # Errors
/// When it is not a map of texts and nulls, or the outcome exceeds a limit.
pub fn patched(before: &Metadata, patch: &Value, empty: EmptyText) -> Result<Metadata, Problem> {
    let patch: &Map<String, Value> = match patch {
        Value::Null => return Ok(before.clone()),
        Value::Object(patch) => patch,
        _ => return Err(Problem::field("metadata", "must be an object of strings")),
    };
    let mut after = before.clone();
    for (key, value) in patch {
        match value {
            Value::String(text) if !(text.is_empty() && empty == EmptyText::Removes) => {
                after.insert(key.clone(), text.clone());
            }
            Value::Null | Value::String(_) => drop(after.remove(key)),
            _ => {
                let field = format!("metadata.{key}");
                return Err(Problem::field(field, "must be a string").with_code("invalid_metadata"));
            }
        }
    }
    check(&after)?;
    Ok(after)
}

fn check(metadata: &Metadata) -> Result<(), Problem> {
    let wrong = |text: String| Err(Problem::field("metadata", text).with_code("invalid_metadata"));
    if metadata.len() > MOST_PAIRS {
        return wrong(format!("has {} pairs; at most {MOST_PAIRS} are kept", metadata.len()));
    }
    for (key, value) in metadata {
        if key.is_empty() || key.chars().count() > LONGEST_KEY {
            return wrong(format!(
                "has a key of {} characters; 1 to {LONGEST_KEY} are accepted",
                key.chars().count()
            ));
        }
        if value.chars().count() > LONGEST_VALUE {
            return wrong(format!("has a value for `{key}` of more than {LONGEST_VALUE} characters"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_sets_removes_and_leaves() {
        let before = read(&json!({ "a": "1", "b": "2", "c": "" })).unwrap();
        assert_eq!(before.len(), 3);
        let after = patched(&before, &json!({ "a": null, "b": "3", "d": "" }), EmptyText::Kept).unwrap();
        assert_eq!(serde_json::to_value(&after).unwrap(), json!({ "b": "3", "c": "", "d": "" }));
        let after = patched(&before, &json!({ "a": "" }), EmptyText::Removes).unwrap();
        assert!(!after.contains_key("a") && after.contains_key("c"));
        assert_eq!(patched(&before, &Value::Null, EmptyText::Kept).unwrap(), before);
    }

    #[test]
    fn limits_hold_for_the_outcome() {
        let many: Map<String, Value> = (0..16).map(|number| (number.to_string(), json!("x"))).collect();
        let before = read(&Value::Object(many)).unwrap();
        assert!(patched(&before, &json!({ "new": "x" }), EmptyText::Kept).is_err());
        assert!(patched(&before, &json!({ "new": "x", "0": null }), EmptyText::Kept).is_ok());
        let wrong = [json!([]), json!("x"), json!({ "a": 1 }), json!({ "": "x" })];
        for value in
            wrong.into_iter().chain([json!({ "k".repeat(65): "x" }), json!({ "a": "x".repeat(513) })])
        {
            assert!(read(&value).is_err(), "{value}");
        }
        assert!(read(&json!({ "ä".repeat(64): "ö".repeat(512) })).is_ok(), "characters, not bytes");
    }
}
