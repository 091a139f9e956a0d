//! A description as status rows and commands show it: the fields that are known, with the values of variables, headers and
//! secrets hidden. A person still sees the command, its arguments, the names of variables and the host.

use serde_json::{Map, Value, json};

use super::read::SHARED;

/// The text that replaces a hidden value.
pub const HIDDEN: &str = "***";

/// Fields of one kind of server that are shown as they are; so is what all kinds share.
const OPEN: &[&str] = &["command", "args", "cwd", "name"];

/// What can be shown of a description, also of one that cannot be used.
#[must_use]
pub fn shown(value: &Value) -> Value {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or("stdio");
    value.as_object().map_or(Value::Null, |map| fields(map, kind))
}

pub(super) fn fields(map: &Map<String, Value>, kind: &str) -> Value {
    let mut out = Map::new();
    out.insert("type".to_owned(), json!(kind));
    for (name, value) in map {
        match (name.as_str(), value) {
            // The kind may follow from other fields and is there already.
            ("type", _) => {}
            (open, _) if OPEN.contains(&open) || SHARED.contains(&open) => {
                drop(out.insert(name.clone(), value.clone()))
            }
            ("url" | "http_url" | "httpUrl", Value::String(address)) => {
                out.insert("url".to_owned(), Value::String(without_credentials(address)));
            }
            ("env" | "headers", Value::Object(pairs)) => {
                let hidden = pairs.keys().map(|name| (name.clone(), json!(HIDDEN))).collect();
                out.insert(name.clone(), Value::Object(hidden));
            }
            ("oauth", Value::Object(pairs)) => {
                let hide = |(name, value): (&String, &Value)| {
                    let secret = name.to_lowercase().contains("secret");
                    (name.clone(), if secret { json!(HIDDEN) } else { value.clone() })
                };
                out.insert(name.clone(), Value::Object(pairs.iter().map(hide).collect()));
            }
            _ => {}
        }
    }
    Value::Object(out)
}

/// An address without the password before its host and without what its query says. Works on text, because an address
/// with variables cannot be parsed yet.
#[must_use]
pub fn without_credentials(address: &str) -> String {
    let (address, query) =
        address.split_once('?').map_or((address, None), |(left, right)| (left, Some(right)));
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = host.rsplit_once('@').map_or_else(|| host.to_owned(), |(_, host)| format!("{HIDDEN}@{host}"));
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    let hide = |pair: &str| match pair.split_once('=') {
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None => pair.to_owned(),
    };
    let query = query.map(|query| query.split('&').map(hide).collect::<Vec<_>>().join("&"));
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{scheme}{host}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_an_address_are_not_shown() {
        for (address, seen) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("https://u:p@a.example:8/mcp?key=1&b", "https://***@a.example:8/mcp?key=***&b"),
            ("${BASE}/mcp", "${BASE}/mcp"),
        ] {
            assert_eq!(without_credentials(address), seen);
        }
    }
}
