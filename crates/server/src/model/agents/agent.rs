//! Agents: what one is made of, what an update changes, and what a session may override. Every effective change is a new
//! version; a session keeps the one it was created with.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use super::roster::Roster;
use crate::model::fields::{Change, Fields, each};
use crate::model::metadata::{self, EmptyText, Metadata};
use crate::model::names::SkillChoice;
use crate::model::problem::Problem;
use crate::model::tools::{self, ToolEntry};

const LONGEST_NAME: usize = 256;
const LONGEST_SYSTEM: usize = 100_000;
const LONGEST_DESCRIPTION: usize = 4_096;
const MOST_SERVERS: usize = 20;
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// The model of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChoice {
    /// A tier or a provider's id.
    pub id: String,
    /// `low` … `max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// `standard` or `fast`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,
    /// Where the provider computes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_geo: Option<String>,
    /// The window in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}

/// An MCP server of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// Its address.
    pub url: String,
}

/// What an agent is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentBody {
    /// For people.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who answers.
    pub model: ModelChoice,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// What it can call.
    #[serde(default)]
    pub tools: Vec<ToolEntry>,
    /// The servers that its toolsets name.
    #[serde(default)]
    pub mcp_servers: Vec<McpServer>,
    /// The skills that it uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillChoice>,
    /// The agents that its sessions may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiagent: Option<Roster>,
    /// What the owner wrote on it.
    #[serde(default)]
    pub metadata: Metadata,
}

impl AgentBody {
    /// Reads the body of a creation.
    ///
    /// # Errors
    /// When a field is missing or cannot be used.
    pub fn create(body: &Value) -> Result<Self, Problem> {
        let fields = Fields::of_body(body)?;
        let model = fields.get("model").ok_or_else(|| Problem::field("model", "is required"))?;
        let system = if fields.get("system").is_some() { "system" } else { "instructions" };
        let agent = Self {
            name: name(fields)?.ok_or_else(|| Problem::field("name", "is required"))?,
            description: text(fields, "description", LONGEST_DESCRIPTION)?,
            model: read_model(model)?,
            system: text(fields, system, LONGEST_SYSTEM)?,
            tools: tools::read(fields.get("tools").unwrap_or(&Value::Null))?,
            mcp_servers: servers(fields)?,
            skills: SkillChoice::read(fields)?,
            multiagent: Roster::read(fields)?,
            metadata: metadata::read(fields.get("metadata").unwrap_or(&Value::Null))?,
        };
        refuse_unserved(fields)?;
        agent.checked()
    }

    /// The agent after an update; equal to what it was when nothing changes.
    ///
    /// # Errors
    /// When a field cannot be used, or cleared.
    pub fn updated(&self, body: &Value) -> Result<Self, Problem> {
        let fields = Fields::of_body(body)?;
        let mut agent = self.with_overrides(fields)?;
        match fields.change("name") {
            Change::Keep => {}
            Change::Clear => return Err(Problem::field("name", "cannot be cleared")),
            Change::Set(_) => agent.name = name(fields)?.unwrap_or_default(),
        }
        if fields.change("description") != Change::Keep {
            agent.description = text(fields, "description", LONGEST_DESCRIPTION)?;
        }
        if fields.change("multiagent") != Change::Keep {
            agent.multiagent = Roster::read(fields)?;
        }
        if let Change::Set(patch) = fields.change("metadata") {
            agent.metadata = metadata::patched(&self.metadata, patch, EmptyText::Kept)?;
        }
        refuse_unserved(fields)?;
        agent.checked()
    }

    /// The agent with what a session overrides: the model, the system prompt, tools, servers and skills.
    ///
    /// # Errors
    /// When a field cannot be used, or cleared.
    pub fn with_overrides(&self, fields: Fields<'_>) -> Result<Self, Problem> {
        let mut agent = self.clone();
        match fields.change("model") {
            Change::Keep => {}
            Change::Clear => return Err(Problem::field("model", "cannot be cleared")),
            Change::Set(model) => agent.model = read_model(model)?,
        }
        if fields.change("system") != Change::Keep {
            agent.system = text(fields, "system", LONGEST_SYSTEM)?;
        }
        match fields.change("tools") {
            Change::Keep => {}
            Change::Clear => agent.tools = Vec::new(),
            Change::Set(value) => agent.tools = tools::read(value)?,
        }
        if fields.change("mcp_servers") != Change::Keep {
            agent.mcp_servers = servers(fields)?;
        }
        if fields.change("skills") != Change::Keep {
            agent.skills = SkillChoice::read(fields)?;
        }
        agent.checked()
    }

    /// Servers and toolsets name each other.
    fn checked(self) -> Result<Self, Problem> {
        let known: BTreeSet<&str> = self.mcp_servers.iter().map(|server| server.name.as_str()).collect();
        let mut used = BTreeSet::new();
        for (index, entry) in self.tools.iter().enumerate() {
            let ToolEntry::Mcp { mcp_server_name, .. } = entry else { continue };
            if !known.contains(mcp_server_name.as_str()) {
                let problem = format!("is `{mcp_server_name}`, which is not in `mcp_servers`");
                return Err(Problem::field(format!("tools[{index}].mcp_server_name"), problem));
            }
            used.insert(mcp_server_name.as_str());
        }
        if let Some((index, server)) =
            self.mcp_servers.iter().enumerate().find(|(_, server)| !used.contains(server.name.as_str()))
        {
            let problem = format!("`{}` is in no `mcp_toolset` of `tools`; add one", server.name);
            return Err(Problem::field(format!("mcp_servers[{index}]"), problem));
        }
        Ok(self)
    }
}

fn name(fields: Fields<'_>) -> Result<Option<String>, Problem> {
    let name = fields.optional_text("name", 1..=LONGEST_NAME)?;
    if name.is_some_and(|name| name.trim().is_empty()) {
        return Err(Problem::field("name", "is blank"));
    }
    Ok(name.map(str::to_owned))
}

/// A text; an empty one clears it.
fn text(fields: Fields<'_>, key: &str, longest: usize) -> Result<Option<String>, Problem> {
    let text = fields.optional_text(key, 0..=longest)?;
    Ok(text.filter(|text| !text.is_empty()).map(str::to_owned))
}

fn read_model(value: &Value) -> Result<ModelChoice, Problem> {
    let plain = |id: &str| ModelChoice {
        id: id.to_owned(),
        effort: None,
        speed: None,
        inference_geo: None,
        context_window: None,
    };
    let (choice, field) = match value {
        Value::String(id) => (plain(id), "model"),
        Value::Object(_) => {
            let fields = Fields::of(value, "model")?;
            let read = || {
                let effort = match fields.get("effort") {
                    Some(Value::Object(_)) => {
                        let effort = fields.object("effort")?.and_then(|effort| effort.get("type"));
                        effort
                            .and_then(Value::as_str)
                            .filter(|word| EFFORTS.contains(word))
                            .map(Some)
                            .ok_or_else(|| {
                                Problem::field(
                                    "effort.type",
                                    format!("must be one of {}", EFFORTS.join(", ")),
                                )
                            })?
                    }
                    _ => fields.word("effort", &EFFORTS)?,
                };
                Ok(ModelChoice {
                    effort: effort.map(str::to_owned),
                    speed: fields.word("speed", &["standard", "fast"])?.map(str::to_owned),
                    inference_geo: fields.optional_text("inference_geo", 1..=64)?.map(str::to_owned),
                    context_window: fields.number("context_window", 1..=100_000_000)?,
                    ..plain(fields.text("id", 1..=256)?)
                })
            };
            (read().map_err(|problem: Problem| problem.inside("model"))?, "model.id")
        }
        _ => return Err(Problem::field("model", "must be a string or an object")),
    };
    read_model_id(&choice.id, field)?;
    Ok(choice)
}

/// Reads the name of a model.
pub(super) fn read_model_id(id: &str, field: &str) -> Result<String, Problem> {
    // Such names open files of the server's machine.
    let is_file = ["scripted:", "replay:"].iter().any(|prefix| id.starts_with(prefix));
    if is_file || id.trim().is_empty() || id.chars().any(char::is_control) {
        return Err(Problem::field(
            field,
            "is not a model; use a tier such as `auto`, or a provider's model ID",
        ));
    }
    Ok(id.to_owned())
}

fn servers(fields: Fields<'_>) -> Result<Vec<McpServer>, Problem> {
    let items = fields.items("mcp_servers", MOST_SERVERS)?;
    let servers = each("mcp_servers", items, |item| {
        let fields = Fields::of_item(item)?;
        fields.word("type", &["url"])?;
        let url = fields.text("url", 1..=2_048)?;
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let parsed = Url::parse(url).ok().filter(is_web);
        let Some(parsed) = parsed else {
            return Err(Problem::field("url", "must be an http or https address"));
        };
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(Problem::field("url", "must not contain credentials; use a vault"));
        }
        Ok(McpServer { name: fields.text("name", 1..=255)?.to_owned(), url: url.to_owned() })
    })?;
    let mut seen = BTreeSet::new();
    for (index, server) in servers.iter().enumerate() {
        if !seen.insert(server.name.as_str()) {
            let field = format!("mcp_servers[{index}].name");
            return Err(Problem::field(field, format!("`{}` is a duplicate", server.name)));
        }
    }
    Ok(servers)
}

/// What this server cannot do is refused: an agent that silently lacks a part would be worse.
fn refuse_unserved(fields: Fields<'_>) -> Result<(), Problem> {
    if let Some(identity) = fields.object("execution_identity")? {
        identity
            .word("type", &["service_account"])
            .map_err(|problem| problem.inside("execution_identity"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn agent(more: &Value) -> Result<AgentBody, Problem> {
        let mut body = json!({ "name": "helper", "model": "auto" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        AgentBody::create(&body)
    }

    #[test]
    fn models_are_texts_or_objects_and_never_files() {
        let model = |model: Value| agent(&json!({ "model": model })).map(|agent| agent.model);
        assert_eq!(model(json!("auto")).unwrap().id, "auto");
        let full =
            model(json!({ "id": "x", "effort": { "type": "high" }, "speed": "fast", "context_window": 9 }));
        assert_eq!(full.unwrap().effort.as_deref(), Some("high"));
        assert_eq!(model(json!({ "id": "x", "effort": "low" })).unwrap().effort.as_deref(), Some("low"));
        for (wrong, field) in [
            (json!("scripted:/etc/passwd"), "model"),
            (json!({ "id": "replay:x" }), "model.id"),
            (json!(" "), "model"),
            (json!(7), "model"),
            (json!({}), "model.id"),
            (json!({ "id": "x", "effort": "huge" }), "model.effort"),
            (json!({ "id": "x", "effort": { "type": 1 } }), "model.effort.type"),
        ] {
            assert_eq!(model(wrong.clone()).unwrap_err().field.as_deref(), Some(field), "{wrong}");
        }
        assert_eq!(agent(&json!({ "model": null })).unwrap_err().field.as_deref(), Some("model"));
    }

    #[test]
    fn an_update_keeps_clears_and_replaces() {
        let before =
            agent(&json!({ "description": "d", "system": "s", "metadata": { "a": "1", "b": "2" } })).unwrap();
        assert_eq!(before.updated(&json!({})).unwrap(), before);
        let after =
            before.updated(&json!({ "description": null, "system": "", "metadata": { "a": null } })).unwrap();
        assert_eq!((after.description, after.system, after.metadata.len()), (None, None, 1));
        for field in ["name", "model"] {
            let problem = before.updated(&json!({ field: null })).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some(field));
        }
    }

    #[test]
    fn servers_and_toolsets_name_each_other() {
        let server = |name: &str| json!({ "type": "url", "name": name, "url": "https://mcp.example.com/" });
        let toolset = json!({ "type": "mcp_toolset", "mcp_server_name": "a" });
        assert!(agent(&json!({ "mcp_servers": [server("a")], "tools": [toolset] })).is_ok());
        for (body, field) in [
            (json!({ "mcp_servers": [server("a")] }), "mcp_servers[0]"),
            (json!({ "tools": [toolset] }), "tools[0].mcp_server_name"),
            (json!({ "mcp_servers": [server("a"), server("a")], "tools": [toolset] }), "mcp_servers[1].name"),
            (json!({ "mcp_servers": [{ "name": "a", "url": "file:///etc" }] }), "mcp_servers[0].url"),
            (json!({ "mcp_servers": [{ "name": "a", "url": "https://u:p@h/" }] }), "mcp_servers[0].url"),
            (json!({ "skills": [{ "type": "anthropic", "skill_id": "x" }] }), "skills[0].skill_id"),
            (json!({ "multiagent": { "type": "coordinator" } }), "multiagent.agents"),
        ] {
            assert_eq!(agent(&body).unwrap_err().field.as_deref(), Some(field), "{body}");
        }
    }
}
