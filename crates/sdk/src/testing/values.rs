//! What the rules put into a store: unused keys, entries, and values of every kind; and how what comes
//! back is compared, as JSON: the order of keys does not count, and a number is its value.

use qoder_runtime::sessions::new_id;
use serde_json::{Value, json};

use crate::session_store::SessionKey;

/// How much of a value an error shows.
const SHOWN: usize = 300;

/// An unused project.
pub(super) fn project() -> String {
    format!("-rule-{}", new_id())
}

/// A session of a project.
pub(super) fn key_in(project: &str) -> SessionKey {
    SessionKey::new(project, new_id())
}

/// A session of an unused project.
pub(super) fn key() -> SessionKey {
    key_in(&project())
}

/// An entry.
pub(super) fn entry(text: &str) -> Value {
    json!({ "type": "user", "uuid": new_id(), "message": { "role": "user", "content": text } })
}

/// Many entries.
pub(super) fn entries(count: usize) -> Vec<Value> {
    (0..count).map(|number| entry(&format!("entry {number}"))).collect()
}

/// An entry with all kinds of values.
pub(super) fn all_kinds() -> Value {
    let mut nested = json!("bottom");
    for level in 0..30 {
        nested = json!({ "level": level, "inside": [nested] });
    }
    let mut all = entry("all kinds of values");
    all["texts"] = json!([
        "",
        " ",
        "é e\u{301} ß",
        "日本語 🦀 👩‍👩‍👧",
        "שלום",
        "\u{2028}\u{2029}",
        "\"\\/\u{8}\u{c}\n\r\t",
        "a\u{0}b",
        "\u{7f}\u{feff}"
    ]);
    all["looks"] =
        json!(["1", "1.0", "true", "null", "2026-01-02T03:04:05.678Z", "{}", "\\u0041", "$1", "%s", "'; --"]);
    all["numbers"] = json!([
        0,
        1,
        -1,
        9_007_199_254_740_991_i64,
        -9_007_199_254_740_991_i64,
        0.1,
        1.5e-7,
        1e21,
        123_456_789.125
    ]);
    all["constants"] = json!([true, false, null]);
    all["empty"] = json!({ "object": {}, "list": [], "text": "", "nothing": null });
    all["names"] = json!({ "": 1, "a b": 2, "a.b": 3, "$ref": 4, "ключ": 5, "UPPER": 6, "upper": 7, "0": 8 });
    all["nested"] = nested;
    all
}

/// Equal as JSON.
pub(super) fn same(first: &Value, second: &Value) -> bool {
    match (first, second) {
        (Value::Object(first), Value::Object(second)) => {
            first.len() == second.len()
                && first.iter().all(|(name, value)| second.get(name).is_some_and(|other| same(value, other)))
        }
        (Value::Array(first), Value::Array(second)) => all_same(first, second),
        (Value::Number(first), Value::Number(second)) => first == second || first.as_f64() == second.as_f64(),
        (first, second) => first == second,
    }
}

/// Equal as JSON, one by one.
pub(super) fn all_same(first: &[Value], second: &[Value]) -> bool {
    first.len() == second.len() && first.iter().zip(second).all(|(first, second)| same(first, second))
}

/// A value for an error.
pub(super) fn shown(entries: Option<&[Value]>) -> String {
    let Some(entries) = entries else { return "nothing".to_owned() };
    let text = Value::Array(entries.to_vec()).to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
