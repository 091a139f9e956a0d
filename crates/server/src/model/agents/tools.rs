//! The `tools` of an agent as they are written: the built-in toolset, toolsets of MCP servers and tools that the client runs.
//! What they come to together is in `toolset`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::fields::{Fields, each};
use crate::model::problem::Problem;

/// The type of the built-in toolset.
pub const TOOLSET: &str = "agent_toolset_20260401";
/// The type of a toolset of an MCP server.
pub const MCP_TOOLSET: &str = "mcp_toolset";
/// The type of a tool that the client runs.
pub const CUSTOM: &str = "custom";

/// The built-in tools: as guides and the runtime write them, and in lower case.
pub const BUILT_IN: [(&str, &str); 9] = [
    ("Bash", "bash"),
    ("Read", "read"),
    ("Write", "write"),
    ("Edit", "edit"),
    ("Glob", "glob"),
    ("Grep", "grep"),
    ("WebFetch", "web_fetch"),
    ("WebSearch", "web_search"),
    ("DeliverArtifacts", "deliver_artifacts"),
];

/// The most tools of all toolsets together.
const MOST_TOOLS: usize = 256;
const LONGEST_CUSTOM_NAME: usize = 128;
/// The longest name of a tool of an MCP server.
const LONGEST_TOOL_NAME: usize = 1024;
const MOST_DOMAINS: usize = 64;

/// The runtime's name of a built-in tool, however it is spelt.
#[must_use]
pub fn built_in(name: &str) -> Option<&'static str> {
    let folded = |text: &str| -> String {
        text.chars().filter(|each| !matches!(each, '_' | '-')).flat_map(char::to_lowercase).collect()
    };
    let wanted = folded(name);
    BUILT_IN.iter().find(|(_, lower)| folded(lower) == wanted).map(|(name, _)| *name)
}

/// The lower-case name of a built-in tool.
#[must_use]
pub fn lower_case(name: &str) -> &str {
    BUILT_IN.iter().find(|(known, _)| *known == name).map_or(name, |(_, lower)| lower)
}

/// What happens when the model calls a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The call runs.
    AlwaysAllow,
    /// The turn pauses for a confirmation.
    AlwaysAsk,
    /// The model gets a refusal.
    AlwaysDeny,
    /// The server judges each call.
    Auto,
}

impl Policy {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AlwaysAllow => "always_allow",
            Self::AlwaysAsk => "always_ask",
            Self::AlwaysDeny => "always_deny",
            Self::Auto => "auto",
        }
    }

    fn read(value: &Value) -> Result<Self, Problem> {
        let word = value.as_str().or_else(|| value.get("type").and_then(Value::as_str));
        Ok(match word {
            Some("always_allow") => Self::AlwaysAllow,
            Some("always_ask") => Self::AlwaysAsk,
            Some("always_deny") => Self::AlwaysDeny,
            Some("auto") => Self::Auto,
            Some(other) => {
                let accepted = "accepted are `always_allow`, `always_ask`, `always_deny` and `auto`";
                return Err(Problem::field("permission_policy.type", format!("is `{other}`; {accepted}")));
            }
            None => return Err(Problem::field("permission_policy", "must be an object with a `type`")),
        })
    }
}

/// What is configured about one tool, or about all that are not named.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolConfig {
    /// The tool, as it was spelt; empty for the default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Whether the model sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// What happens when it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Further fields, kept as sent.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// One entry of `tools`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolEntry {
    /// The built-in toolset.
    BuiltIn {
        /// When not empty, the only tools that the model sees.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        enabled_tools: Vec<String>,
        /// Tools that the model does not see.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        disallowed_tools: Vec<String>,
        /// For tools without an entry.
        #[serde(default)]
        default_config: ToolConfig,
        /// By tool.
        #[serde(default)]
        configs: Vec<ToolConfig>,
    },
    /// The tools of an MCP server.
    Mcp {
        /// The server.
        mcp_server_name: String,
        /// For tools without an entry.
        #[serde(default)]
        default_config: ToolConfig,
        /// By tool.
        #[serde(default)]
        configs: Vec<ToolConfig>,
    },
    /// A tool that the client runs.
    Custom {
        /// Its name.
        name: String,
        /// What the model reads about it.
        description: String,
        /// JSON Schema of its input.
        input_schema: Value,
    },
}

/// Reads `tools`. Null is no tools.
///
/// # Errors
/// When an entry cannot be used; nothing of it is kept then.
pub fn read(value: &Value) -> Result<Vec<ToolEntry>, Problem> {
    let entries = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(entries) => entries,
        _ => return Err(Problem::field("tools", "must be an array")),
    };
    let tools = each("tools", entries, read_entry)?;
    check_together(&tools)?;
    Ok(tools)
}

fn read_entry(entry: &Value) -> Result<ToolEntry, Problem> {
    let fields = Fields::of_item(entry)?;
    match fields.word("type", &[TOOLSET, MCP_TOOLSET, CUSTOM])? {
        Some(TOOLSET) => Ok(ToolEntry::BuiltIn {
            enabled_tools: fields.texts("enabled_tools", MOST_TOOLS)?,
            disallowed_tools: fields.texts("disallowed_tools", MOST_TOOLS)?,
            default_config: default_config(fields)?,
            configs: configs(fields, check_built_in)?,
        }),
        Some(MCP_TOOLSET) => Ok(ToolEntry::Mcp {
            mcp_server_name: fields.text("mcp_server_name", 1..=255)?.to_owned(),
            default_config: default_config(fields)?,
            configs: configs(fields, |_| Ok(()))?,
        }),
        Some(_) => custom(fields),
        None => Err(Problem::field("type", "is required")),
    }
}

fn custom(fields: Fields<'_>) -> Result<ToolEntry, Problem> {
    let name = fields.text("name", 1..=LONGEST_CUSTOM_NAME)?.to_owned();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !name.bytes().all(is_plain) {
        return Err(Problem::field("name", "may contain letters, digits, `_` and `-` alone"));
    }
    if fields.get("permission_policy").is_some() {
        let why = "cannot be set on a custom tool: the client runs it and decides by itself";
        return Err(Problem::field("permission_policy", why));
    }
    let description = fields.optional_text("description", 0..=usize::MAX)?.unwrap_or_default().to_owned();
    let mut schema = fields.object("input_schema")?.map(|schema| schema.map().clone()).unwrap_or_default();
    match schema.get("type") {
        None => drop(schema.insert("type".to_owned(), Value::from("object"))),
        Some(Value::String(word)) if word == "object" => {}
        Some(_) => return Err(Problem::field("input_schema.type", "must be `object`")),
    }
    Ok(ToolEntry::Custom { name, description, input_schema: Value::Object(schema) })
}

fn default_config(fields: Fields<'_>) -> Result<ToolConfig, Problem> {
    let Some(config) = fields.object("default_config")? else { return Ok(ToolConfig::default()) };
    read_config(config, String::new()).map_err(|problem| problem.inside("default_config"))
}

fn configs(
    fields: Fields<'_>,
    check: impl Fn(&ToolConfig) -> Result<(), Problem>,
) -> Result<Vec<ToolConfig>, Problem> {
    each("configs", fields.items("configs", MOST_TOOLS)?, |item| {
        let config = Fields::of_item(item)?;
        let key = if config.get("name").is_some() { "name" } else { "type" };
        let name = config.optional_text(key, 1..=LONGEST_TOOL_NAME)?;
        let name = name.ok_or_else(|| Problem::field("name", "is required"))?;
        let config = read_config(config, name.to_owned())?;
        check(&config)?;
        Ok(config)
    })
}

fn read_config(fields: Fields<'_>, name: String) -> Result<ToolConfig, Problem> {
    let enabled = fields.flag("enabled")?;
    let policy = fields.get("permission_policy").map(Policy::read).transpose()?;
    let known = ["name", "type", "enabled", "permission_policy"];
    let extra = fields.map().iter().filter(|(key, _)| !known.contains(&key.as_str()));
    let extra = extra.map(|(key, value)| (key.clone(), value.clone())).collect();
    Ok(ToolConfig { name, enabled, policy, extra })
}

/// A policy for a tool that does not exist would silently protect nothing.
fn check_built_in(config: &ToolConfig) -> Result<(), Problem> {
    if built_in(&config.name).is_none() {
        let known: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        let problem =
            format!("is `{}`, which is not a built-in tool; they are {}", config.name, known.join(", "));
        return Err(Problem::field("name", problem));
    }
    let lists = ["allowed_domains", "blocked_domains"].map(|key| (key, config.extra.get(key)));
    if lists.iter().all(|(_, list)| list.is_some_and(|list| !list.is_null())) {
        return Err(Problem::field("allowed_domains", "cannot be combined with `blocked_domains`"));
    }
    for (key, list) in lists {
        let Some(list) = list.filter(|list| !list.is_null()) else { continue };
        let hosts = list.as_array().filter(|hosts| (1..=MOST_DOMAINS).contains(&hosts.len()));
        let is_host = |host: &Value| host.as_str().is_some_and(is_hostname);
        if !hosts.is_some_and(|hosts| hosts.iter().all(is_host)) {
            return Err(Problem::field(key, format!("must be 1 to {MOST_DOMAINS} plain host names")));
        }
    }
    Ok(())
}

/// True for a plain host name: no scheme, port, path or wildcard.
#[must_use]
pub fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

/// What no entry can be checked for alone.
fn check_together(tools: &[ToolEntry]) -> Result<(), Problem> {
    let mut seen = BTreeSet::new();
    let mut count = 0;
    for (index, entry) in tools.iter().enumerate() {
        let at = format!("tools[{index}]");
        let (unique, listed) = match entry {
            ToolEntry::BuiltIn { configs, .. } => (format!("{TOOLSET} "), Some(configs)),
            ToolEntry::Mcp { mcp_server_name, configs, .. } => {
                (format!("{MCP_TOOLSET} {mcp_server_name}"), Some(configs))
            }
            ToolEntry::Custom { name, .. } => (format!("{CUSTOM} {name}"), None),
        };
        if !seen.insert(unique.clone()) {
            return Err(Problem::field(at, format!("is a duplicate of an earlier `{}`", unique.trim_end())));
        }
        let mut names = BTreeSet::new();
        for config in listed.into_iter().flatten() {
            let is_built_in = matches!(entry, ToolEntry::BuiltIn { .. });
            let name = built_in(&config.name).filter(|_| is_built_in).unwrap_or(&config.name);
            if !names.insert(name) {
                return Err(Problem::field(
                    format!("{at}.configs"),
                    format!("lists `{}` twice", config.name),
                ));
            }
        }
        count += match entry {
            ToolEntry::BuiltIn { .. } => BUILT_IN.len(),
            ToolEntry::Mcp { configs, .. } => configs.len(),
            ToolEntry::Custom { .. } => 1,
        };
    }
    if count > MOST_TOOLS {
        return Err(Problem::field("tools", format!("has more than {MOST_TOOLS} tools")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(tools: &Value) -> Problem {
        read(tools).unwrap_err()
    }

    #[test]
    fn the_example_of_the_guide_is_read() {
        let tools = read(&json!([
            { "type": TOOLSET, "enabled_tools": ["Bash", "Read", "Write"], "configs": [
                { "name": "Read", "permission_policy": { "type": "always_allow" } },
                { "name": "Write", "permission_policy": { "type": "always_ask" } },
                { "name": "Bash", "permission_policy": { "type": "always_deny" } },
            ]},
            { "type": MCP_TOOLSET, "mcp_server_name": "weather-service", "configs": [
                { "name": "get_forecast", "permission_policy": { "type": "always_ask" } },
            ]},
        ]));
        assert_eq!(tools.unwrap().len(), 2);
        assert_eq!(read(&Value::Null).unwrap(), []);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (tools, field) in [
            (json!({}), "tools"),
            (json!([1]), "tools[0]"),
            (json!([{}]), "tools[0].type"),
            (json!([{ "type": "bash_20250124" }]), "tools[0].type"),
            (json!([{ "type": TOOLSET, "configs": [{}] }]), "tools[0].configs[0].name"),
            (json!([{ "type": TOOLSET, "configs": [{ "name": "Bsh" }] }]), "tools[0].configs[0].name"),
            (
                json!([{ "type": TOOLSET, "configs": [{ "name": "Bash", "permission_policy": { "type": "never" } }] }]),
                "tools[0].configs[0].permission_policy.type",
            ),
            (
                json!([{ "type": TOOLSET, "default_config": { "enabled": 1 } }]),
                "tools[0].default_config.enabled",
            ),
            (json!([{ "type": TOOLSET }, { "type": TOOLSET }]), "tools[1]"),
            (
                json!([{ "type": TOOLSET, "configs": [{ "name": "Read" }, { "name": "read" }] }]),
                "tools[0].configs",
            ),
            (json!([{ "type": MCP_TOOLSET }]), "tools[0].mcp_server_name"),
            (json!([{ "type": CUSTOM, "name": "a b" }]), "tools[0].name"),
            (
                json!([{ "type": CUSTOM, "name": "a", "input_schema": { "type": "string" } }]),
                "tools[0].input_schema.type",
            ),
            (
                json!([{ "type": CUSTOM, "name": "a", "permission_policy": { "type": "always_ask" } }]),
                "tools[0].permission_policy",
            ),
        ] {
            assert_eq!(problem(&tools).field.as_deref(), Some(field), "{tools}: {}", problem(&tools));
        }
    }

    #[test]
    fn names_are_found_in_any_spelling() {
        for name in ["WebFetch", "web_fetch", "WEBFETCH", "web-fetch"] {
            assert_eq!(built_in(name), Some("WebFetch"));
        }
        assert_eq!((built_in("Task"), lower_case("WebSearch")), (None, "web_search"));
    }
}
