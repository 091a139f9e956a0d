//! A digest of a value that the user or the host vouched for: what was written, whatever the order of its fields.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// A digest of a name and a whole value, such as a server and its description; the order of fields does not matter.
#[must_use]
pub fn digest(name: &str, value: &Value) -> String {
    let mut text = String::new();
    canonical(&Value::String(name.to_owned()), &mut text);
    canonical(value, &mut text);
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<(&String, &Value)> = map.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in fields {
                out.push_str(&Value::String(name.clone()).to_string());
                out.push(':');
                canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string())
        }
    }
}
