//! Agents that a front defines for a session: what they are for, what they are told, and which of the session's tools they
//! have. A definition can only give less than the session has; permissions are the session's own.

use std::collections::BTreeMap;

use qoder_types::PermissionMode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{DESCRIPTION, GENERAL_PURPOSE};

/// An agent that a front defines.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentDefinition {
    /// When to use it, for the model.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The tools it has; all that agents may have without it.
    pub tools: Option<Vec<String>>,
    /// Tools it does not have.
    pub disallowed_tools: Option<Vec<String>>,
    /// Its model; `inherit` is the session's.
    pub model: Option<String>,
    /// Model calls it may make.
    pub max_turns: Option<u64>,
    /// How hard it thinks.
    pub effort: Option<String>,
    /// A stricter mode than the session's.
    pub permission_mode: Option<String>,
    /// The first prompt when it is the main agent.
    pub initial_prompt: Option<String>,
    /// Servers by name; they are the session's anyway.
    pub mcp_servers: Option<Vec<Value>>,
    /// Skills to begin with.
    pub skills: Option<Vec<String>>,
}

impl AgentDefinition {
    /// What is wrong with it, if something is.
    fn complaint(&self) -> Option<String> {
        let efforts = ["low", "medium", "high", "xhigh", "max"];
        let mode = self.permission_mode.as_deref();
        if self.description.trim().is_empty() {
            Some("`description` is empty; the model chooses by it".to_owned())
        } else if self.prompt.trim().is_empty() {
            Some("`prompt` is empty".to_owned())
        } else if let Some(effort) = self.effort.as_deref().filter(|effort| !efforts.contains(effort)) {
            Some(format!("`effort` is `{effort}`; accepted are {}", efforts.join(", ")))
        } else if let Some(mode) = mode.filter(|mode| PermissionMode::parse(mode).is_none()) {
            Some(format!("`permissionMode` is `{mode}`; accepted are {}", PermissionMode::ACCEPTED))
        } else if self.mcp_servers.iter().flatten().any(|server| !server.is_string()) {
            Some(
                "`mcpServers` defines a server; this version accepts names of the session's servers"
                    .to_owned(),
            )
        } else if self.skills.as_ref().is_some_and(|skills| !skills.is_empty()) {
            Some("`skills` are not supported by this version".to_owned())
        } else {
            None
        }
    }

    /// The model it asks for, when it is not the session's.
    #[must_use]
    pub fn other_model(&self) -> Option<&str> {
        self.model.as_deref().filter(|name| !name.trim().is_empty() && *name != "inherit")
    }

    /// True when it has the tool of this name, as far as the definition goes.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let named = |list: &[String]| {
            list.iter().any(|entry| match entry.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => entry == name || name.rsplit_once("__").is_some_and(|(server, _)| entry == server),
            })
        };
        self.tools.as_deref().is_none_or(named) && !self.disallowed_tools.as_deref().is_some_and(named)
    }

    /// The mode it works in: its own where that is stricter than every other, else the session's.
    #[must_use]
    pub fn mode(&self, session: PermissionMode) -> PermissionMode {
        match self.permission_mode.as_deref().and_then(PermissionMode::parse) {
            Some(mode @ (PermissionMode::Plan | PermissionMode::DontAsk)) => mode,
            Some(
                PermissionMode::Default
                | PermissionMode::AcceptEdits
                | PermissionMode::Auto
                | PermissionMode::BypassPermissions,
            )
            | None => session,
        }
    }
}

/// The agents of a session: those that a front defined and the one that is always there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentList {
    defined: BTreeMap<String, AgentDefinition>,
}

impl AgentList {
    /// These, and the one that is always there.
    ///
    /// # Errors
    /// When a definition cannot be used.
    pub fn new(defined: BTreeMap<String, AgentDefinition>) -> Result<Self, String> {
        for (name, definition) in &defined {
            if name.trim().is_empty() {
                return Err("agents: a name is empty".to_owned());
            }
            if let Some(problem) = definition.complaint() {
                return Err(format!("agents.{name}: {problem}"));
            }
        }
        Ok(Self { defined })
    }

    /// The definition of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&AgentDefinition> {
        self.defined.get(name)
    }

    /// All names.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let general = (!self.defined.contains_key(GENERAL_PURPOSE)).then_some(GENERAL_PURPOSE);
        general.into_iter().chain(self.defined.keys().map(String::as_str)).collect()
    }

    /// Name, description and model of each, as the documented `AgentInfo`.
    #[must_use]
    pub fn rows(&self) -> Vec<Value> {
        let row = |name: &str| match self.get(name) {
            None => json!({ "name": name, "description": DESCRIPTION }),
            Some(definition) => {
                let mut row = json!({ "name": name, "description": definition.description });
                if let Some(model) = definition.other_model() {
                    row["model"] = json!(model);
                }
                row
            }
        };
        self.names().into_iter().map(row).collect()
    }

    /// What the model is told of them, when there is more than the one.
    pub(super) fn told(&self) -> Option<String> {
        let lines: Vec<String> = self
            .defined
            .iter()
            .map(|(name, definition)| format!("- `{name}`: {}", definition.description.trim()))
            .collect();
        (!lines.is_empty())
            .then(|| format!("\n\nThe agents besides `{GENERAL_PURPOSE}`:\n{}", lines.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(more: &Value) -> AgentDefinition {
        let mut value = json!({ "description": "d", "prompt": "p" });
        for (key, field) in more.as_object().unwrap() {
            value[key] = field.clone();
        }
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn tools_are_given_and_taken_by_name() {
        let agent = definition(
            &json!({ "tools": ["Read", "mcp__kb__*", "mcp__calc"], "disallowedTools": ["mcp__kb__drop"] }),
        );
        for (name, has) in [
            ("Read", true),
            ("Bash", false),
            ("mcp__kb__find", true),
            ("mcp__kb__drop", false),
            ("mcp__calc__add", true),
        ] {
            assert_eq!(agent.has(name), has, "{name}");
        }
        assert!(definition(&json!({})).has("Bash"));
    }

    #[test]
    fn only_stricter_modes_are_taken() {
        let mode = |word: &str| definition(&json!({ "permissionMode": word })).mode(PermissionMode::Default);
        assert_eq!(mode("plan"), PermissionMode::Plan);
        assert_eq!(mode("dontAsk"), PermissionMode::DontAsk);
        assert_eq!(mode("bypassPermissions"), PermissionMode::Default);
    }

    #[test]
    fn definitions_that_cannot_work_are_named() {
        for (more, named) in [
            (json!({ "prompt": " " }), "prompt"),
            (json!({ "description": "" }), "description"),
            (json!({ "effort": "heroic" }), "heroic"),
            (json!({ "permissionMode": "free" }), "free"),
            (json!({ "mcpServers": [{ "kb": {} }] }), "mcpServers"),
            (json!({ "skills": ["pdf"] }), "skills"),
        ] {
            let problem = AgentList::new(BTreeMap::from([("a".to_owned(), definition(&more))])).unwrap_err();
            assert!(problem.starts_with("agents.a: ") && problem.contains(named), "{problem}");
        }
    }

    #[test]
    fn the_list_has_the_usual_agent_and_the_defined_ones() {
        let list =
            AgentList::new(BTreeMap::from([("r".to_owned(), definition(&json!({ "model": "lite" })))]))
                .unwrap();
        assert_eq!(list.names(), [GENERAL_PURPOSE, "r"]);
        assert_eq!(list.rows()[1], json!({ "name": "r", "description": "d", "model": "lite" }));
        assert!(list.told().unwrap().contains("- `r`: d"));
        assert_eq!(AgentList::default().told(), None);
    }
}
