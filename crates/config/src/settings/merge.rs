//! Merging layers: objects field by field, scalars override, lists that grant, deny or exclude are united and the
//! others replaced.

use serde_json::Value;

/// Lists that a higher layer adds to instead of replacing.
const UNITED: [&str; 13] = [
    "/permissions/allow",
    "/permissions/ask",
    "/permissions/deny",
    "/permissions/additionalDirectories",
    "/permissions/trustDirectories",
    "/agentsMdExcludes",
    "/tools/exclude",
    "/mcp/excluded",
    "/mcp/disabledProjectMcpServers",
    "/advanced/excludedEnvVars",
    "/sandbox/filesystem/denyRead",
    "/sandbox/filesystem/denyWrite",
    "/sandbox/network/deniedDomains",
];

/// Merges `higher` into `lower`.
pub(super) fn merge(lower: &mut Value, higher: &Value, pointer: &str) {
    match (lower, higher) {
        (Value::Object(lower), Value::Object(higher)) => {
            for (key, value) in higher {
                let pointer = format!("{pointer}/{key}");
                match lower.get_mut(key) {
                    Some(below) => merge(below, value, &pointer),
                    None => {
                        lower.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(lower), Value::Array(higher)) if UNITED.contains(&pointer) => {
            for item in higher {
                if !lower.contains(item) {
                    lower.push(item.clone());
                }
            }
        }
        (lower, higher) => *lower = higher.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_merge_scalars_win_and_grants_unite() {
        let mut lower = json!({"model": {"name": "a", "x": 1}, "permissions": {"deny": ["A"]}, "context": {"fileName": ["a", "b"]}});
        let higher = json!({"model": {"name": "b"}, "permissions": {"deny": ["B", "A"]}, "context": {"fileName": ["c"]}});
        merge(&mut lower, &higher, "");
        assert_eq!(
            lower,
            json!({"model": {"name": "b", "x": 1}, "permissions": {"deny": ["A", "B"]}, "context": {"fileName": ["c"]}})
        );
    }
}
