//! Agents as clients read them. Toolsets are given with every default filled in, because clients show them to people.

use serde_json::{Map, Value, json};

use crate::model::agent::{AgentBody, ModelChoice};
use crate::model::dialect::Dialect;
use crate::model::ids::AgentId;
use crate::model::names::SkillChoice;
use crate::model::refusal::Refusal;
use crate::model::roster::{Role, team};
use crate::model::session::Session;
use crate::model::time::Time;
use crate::model::tools::{self, Policy, ToolConfig, ToolEntry};
use crate::model::toolset::Toolset;

/// An agent's version with what is beside its body.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentVersion {
    /// The agent.
    pub id: AgentId,
    /// The version, from 1.
    pub version: u64,
    /// When the agent was created.
    pub created_at: Time,
    /// When this version was.
    pub updated_at: Time,
    /// When the agent was archived.
    pub archived_at: Option<Time>,
    /// What it is made of.
    pub body: AgentBody,
}

impl AgentVersion {
    /// The next body of the agent; `None` when the change changes nothing. `expected` is the version that the caller has seen.
    ///
    /// # Errors
    /// When the agent is archived or has another version, or the change is refused.
    pub fn changed(
        &self,
        expected: Option<u64>,
        change: impl FnOnce(&Self) -> Result<AgentBody, Refusal>,
    ) -> Result<Option<AgentBody>, Refusal> {
        if self.archived_at.is_some() {
            let message = format!("The agent `{}` is archived and cannot be changed.", self.id);
            return Err(Refusal::conflict(message));
        }
        if let Some(expected) = expected.filter(|expected| *expected != self.version) {
            let message = format!(
                "The agent is at version {}, and the request is for version {expected}. Read it again and repeat the change.",
                self.version
            );
            return Err(Refusal::conflict(message));
        }
        let body = change(self)?;
        Ok((body != self.body).then_some(body))
    }
}

/// An agent as the resource that it is.
#[must_use]
pub fn agent(agent: &AgentVersion, dialect: Dialect) -> Value {
    let mut value = fixed(agent.id, agent.version, &agent.body, dialect);
    value.insert("metadata".to_owned(), json!(agent.body.metadata));
    value.insert("created_at".to_owned(), json!(agent.created_at));
    value.insert("updated_at".to_owned(), json!(agent.updated_at));
    value.insert("archived_at".to_owned(), json!(agent.archived_at));
    Value::Object(value)
}

/// An agent as a session keeps it.
#[must_use]
pub fn of_session(id: AgentId, version: u64, body: &AgentBody, dialect: Dialect) -> Value {
    Value::Object(fixed(id, version, body, dialect))
}

/// The agent of a session, with the whole definitions of those that it coordinates.
#[must_use]
pub fn of_coordinator(session: &Session, dialect: Dialect) -> Value {
    let body = &session.body;
    let mut value = fixed(session.agent_id, session.agent_version, &body.agent, dialect);
    if body.agent.multiagent.is_some() {
        let team = team(&body.agent, &body.members);
        let agents: Vec<Value> = team.iter().map(|member| of_member(session, member.role, dialect)).collect();
        value.insert("multiagent".to_owned(), json!({ "type": "coordinator", "agents": agents }));
    }
    Value::Object(value)
}

/// An agent of a session's team, as its threads show it.
#[must_use]
pub fn of_member(session: &Session, role: Role<'_>, dialect: Dialect) -> Value {
    let (id, version, body) = match role {
        Role::Advisor(model) => return json!({ "type": "advisor", "model": model }),
        Role::Itself => (Some(session.agent_id), session.agent_version, &session.body.agent),
        Role::Agent(member) => (AgentId::parse(&member.id), member.version, &member.body),
    };
    let mut value = fixed(id.unwrap_or(session.agent_id), version, body, dialect);
    value.shift_remove("multiagent");
    Value::Object(value)
}

fn fixed(id: AgentId, version: u64, body: &AgentBody, dialect: Dialect) -> Map<String, Value> {
    let servers: Vec<Value> = body
        .mcp_servers
        .iter()
        .map(|server| json!({ "type": "url", "name": server.name, "url": server.url }))
        .collect();
    let toolset = Toolset::new(&body.tools);
    let tools: Vec<Value> = body.tools.iter().map(|entry| tool(entry, &toolset, dialect)).collect();
    let skills: Vec<Value> = body.skills.iter().map(SkillChoice::view).collect();
    let value = json!({
        "id": id, "type": "agent", "name": body.name, "description": body.description, "model": model(&body.model),
        "system": body.system, "tools": tools, "mcp_servers": servers, "skills": skills,
        "multiagent": body.multiagent.as_ref().map(|roster| roster.view((id, version))),
        "execution_identity": { "type": "service_account" }, "version": version,
    });
    match value {
        Value::Object(value) => value,
        _ => Map::new(),
    }
}

fn model(choice: &ModelChoice) -> Value {
    let effort = choice.effort.as_ref().map(|effort| json!({ "type": effort }));
    let mut value = json!({
        "id": choice.id, "effort": effort, "speed": choice.speed.as_deref().unwrap_or("standard"),
    });
    if let Some(geo) = &choice.inference_geo {
        value["inference_geo"] = json!(geo);
    }
    if let Some(window) = choice.context_window {
        value["context_window"] = json!(window);
    }
    value
}

fn tool(entry: &ToolEntry, toolset: &Toolset, dialect: Dialect) -> Value {
    match entry {
        ToolEntry::BuiltIn { enabled_tools, disallowed_tools, default_config, configs } => {
            let kind = Policy::AlwaysAllow;
            let lists_tools = !enabled_tools.is_empty() || !disallowed_tools.is_empty();
            let mut value =
                json!({ "type": tools::TOOLSET, "default_config": filled(default_config, kind, dialect) });
            // The Claude dialect has no lists: what they switch off is written as entries there.
            let shown: Vec<Value> = if dialect == Dialect::Claude && lists_tools {
                let all = toolset.built_in.iter().filter(|tool| tool.name != "DeliverArtifacts");
                all.map(|tool| {
                    let policy = tool.policy.unwrap_or(default_config.policy.unwrap_or(kind));
                    let name = tool.spelling.as_deref().unwrap_or(tool.name);
                    let config = ToolConfig {
                        name: name.to_owned(),
                        enabled: Some(tool.policy.is_some()),
                        policy: Some(policy),
                        extra: tool.extra.clone(),
                    };
                    built_in_config(&config, default_config, dialect)
                })
                .collect()
            } else {
                configs.iter().map(|config| built_in_config(config, default_config, dialect)).collect()
            };
            value["configs"] = json!(shown);
            for (key, list) in [("enabled_tools", enabled_tools), ("disallowed_tools", disallowed_tools)] {
                if !list.is_empty() {
                    value[key] = json!(list);
                }
            }
            value
        }
        ToolEntry::Mcp { mcp_server_name, default_config, configs } => {
            let kind = Policy::AlwaysAsk;
            let entry = |config: &ToolConfig| {
                let mut value = filled(&over(config, default_config), kind, dialect);
                value["name"] = json!(config.name);
                value
            };
            json!({
                "type": tools::MCP_TOOLSET, "mcp_server_name": mcp_server_name,
                "default_config": filled(default_config, kind, dialect),
                "configs": configs.iter().map(entry).collect::<Vec<_>>(),
            })
        }
        ToolEntry::Custom { name, description, input_schema } => json!({
            "type": tools::CUSTOM, "name": name, "description": description, "input_schema": input_schema,
        }),
    }
}

fn built_in_config(config: &ToolConfig, default: &ToolConfig, dialect: Dialect) -> Value {
    let mut value = filled(&over(config, default), Policy::AlwaysAllow, dialect);
    let lower = tools::built_in(&config.name).map_or(config.name.as_str(), tools::lower_case);
    // Typed clients choose the class of an entry by its lower-case `type`, and compare names with it.
    value["type"] = json!(lower);
    value["name"] = match dialect {
        Dialect::Qoder => json!(config.name),
        Dialect::Claude => json!(lower),
    };
    value
}

fn over(config: &ToolConfig, default: &ToolConfig) -> ToolConfig {
    ToolConfig {
        enabled: config.enabled.or(default.enabled),
        policy: config.policy.or(default.policy),
        ..config.clone()
    }
}

/// A configuration with its defaults filled in. Typed clients of the Claude dialect take `always_deny` for an allowance, so a
/// denied tool is shown to them as one that is switched off.
fn filled(config: &ToolConfig, kind: Policy, dialect: Dialect) -> Value {
    let (enabled, policy) = (config.enabled.unwrap_or(true), config.policy.unwrap_or(kind));
    let (enabled, policy) = match (dialect, policy) {
        (Dialect::Claude, Policy::AlwaysDeny) => (false, Policy::AlwaysAsk),
        (Dialect::Qoder | Dialect::Claude, policy) => (enabled, policy),
    };
    let mut value = Value::Object(config.extra.clone());
    value["enabled"] = json!(enabled);
    value["permission_policy"] = json!({ "type": policy.as_str() });
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(tools: &Value, dialect: Dialect) -> Value {
        let body = json!({ "name": "a", "model": "auto", "tools": tools });
        let body = AgentBody::create(&body).unwrap();
        of_session(AgentId([1; 16]), 1, &body, dialect)["tools"].clone()
    }

    #[test]
    fn a_denied_tool_is_switched_off_in_the_claude_dialect() {
        let tools = json!([{ "type": tools::TOOLSET,
            "configs": [{ "name": "Bash", "permission_policy": { "type": "always_deny" } }] }]);
        let qoder = shown(&tools, Dialect::Qoder);
        assert_eq!(
            qoder[0]["configs"][0],
            json!({ "enabled": true, "permission_policy": { "type": "always_deny" }, "type": "bash", "name": "Bash" })
        );
        let claude = shown(&tools, Dialect::Claude);
        assert_eq!(
            claude[0]["configs"][0],
            json!({ "enabled": false, "permission_policy": { "type": "always_ask" }, "type": "bash", "name": "bash" })
        );
        assert!(!claude.to_string().contains("always_deny"));
        assert_eq!(claude[0]["default_config"]["permission_policy"]["type"], "always_allow");
    }

    #[test]
    fn lists_become_entries_in_the_claude_dialect() {
        let tools = json!([{ "type": tools::TOOLSET, "enabled_tools": ["Read"],
            "configs": [{ "name": "Read", "permission_policy": { "type": "always_ask" } }] }]);
        assert_eq!(shown(&tools, Dialect::Qoder)[0]["configs"].as_array().unwrap().len(), 1);
        let claude = shown(&tools, Dialect::Claude);
        let entries = claude[0]["configs"].as_array().unwrap();
        let enabled: Vec<&Value> = entries.iter().filter(|entry| entry["enabled"] == true).collect();
        assert_eq!((entries.len(), enabled.len(), &enabled[0]["name"]), (8, 1, &json!("read")));
    }

    #[test]
    fn toolsets_of_servers_ask_by_default() {
        let body = json!({ "name": "a", "model": "auto",
            "mcp_servers": [{ "name": "s", "url": "https://h/" }],
            "tools": [{ "type": "mcp_toolset", "mcp_server_name": "s", "configs": [{ "name": "t", "enabled": false }] }] });
        let body = AgentBody::create(&body).unwrap();
        let shown = of_session(AgentId([1; 16]), 1, &body, Dialect::Claude);
        assert_eq!(shown["tools"][0]["default_config"]["permission_policy"]["type"], "always_ask");
        assert_eq!(shown["tools"][0]["configs"][0]["enabled"], false);
        assert_eq!(shown["mcp_servers"][0], json!({ "type": "url", "name": "s", "url": "https://h/" }));
    }
}
