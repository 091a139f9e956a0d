//! A definition of an agent with all that was written, as lists for programs have it.

use qoder_types::PermissionMode;
use serde_json::{Map, Value, json};

use super::list::{Listed, Standing};
use super::{Isolation, MemoryScope, ServerReference};
use crate::sources::Origin;

impl Listed {
    /// All that was written. The values for its servers stay in its file: they may be keys.
    #[must_use]
    pub fn to_wire(&self) -> Value {
        let definition = &self.definition;
        let mut row = Map::new();
        let mut put = |key: &str, value: Value| {
            if !value.is_null() {
                row.insert(key.to_owned(), value);
            }
        };
        put("name", json!(self.name));
        put("description", json!(definition.description));
        put("source", json!(definition.origin.as_str()));
        if let Origin::Plugin(plugin) = &definition.origin {
            put("plugin", json!(plugin));
        }
        put("path", json!(definition.path));
        put("active", json!(self.standing == Standing::Active));
        match &self.standing {
            Standing::Active => {}
            Standing::Shadowed { by, path } => {
                put("shadowedBy", json!({ "source": by.as_str(), "path": path }));
            }
            Standing::Disabled => put("disabled", json!(true)),
        }
        put("model", json!(definition.model));
        put("tools", json!(definition.tools));
        put("disallowedTools", listed(&definition.disallowed_tools));
        let effort = definition.effort.as_ref().map(|word| json!(word));
        put("effort", effort.unwrap_or_else(|| json!(definition.thinking_tokens)));
        put("permissionMode", json!(definition.permission_mode.map(PermissionMode::as_str)));
        put("maxTurns", json!(definition.max_turns));
        put("timeoutMins", json!(definition.timeout.map(|time| time.as_secs_f64() / 60.0)));
        put("temperature", json!(definition.temperature));
        put("skills", listed(&definition.skills));
        let names =
            |servers: &Vec<ServerReference>| servers.iter().map(|one| one.name().to_owned()).collect();
        put(
            "mcpServers",
            json!(definition.mcp_servers.as_ref().map(|servers| -> Vec<String> { names(servers) })),
        );
        let events = definition.hooks.as_ref().and_then(Value::as_object);
        put("hooks", json!(events.map(|events| events.keys().collect::<Vec<_>>())));
        put("background", if definition.background { json!(true) } else { Value::Null });
        let isolation = definition.isolation.map(|isolation| match isolation {
            Isolation::Worktree => "worktree",
        });
        put("isolation", json!(isolation));
        put("memory", json!(definition.memory.map(MemoryScope::as_str)));
        put("initialPrompt", json!(definition.initial_prompt));
        put("color", json!(definition.color));
        put("notes", listed(&definition.notes));
        Value::Object(row)
    }
}

/// Null for an empty list, which the definition does not have.
fn listed(texts: &[String]) -> Value {
    if texts.is_empty() { Value::Null } else { json!(texts) }
}
