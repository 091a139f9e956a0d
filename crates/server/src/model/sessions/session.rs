//! Sessions: what one is created with, what an update changes, and how clients read it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::model::agent::{AgentBody, McpServer};
use crate::model::agent_view;
use crate::model::budget::Budget;
use crate::model::dialect::Dialect;
use crate::model::fields::{Change, Fields, each};
use crate::model::files::GivenFiles;
use crate::model::ids::{AgentId, DeploymentId, EnvironmentId, SessionId, VaultId};
use crate::model::inputs::{self, Input};
use crate::model::metadata::{self, EmptyText, Metadata};
use crate::model::names::SkillChoice;
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::resources::{self, NewResource, Resource};
use crate::model::roster::Member;
use crate::model::status::Status;
use crate::model::time::Time;
use crate::model::usage::SessionUsage;

const LONGEST_TITLE: usize = 512;
const MOST_RESOURCES: usize = 500;
const MOST_VAULTS: usize = 50;
const MOST_VARIABLES: usize = 256;
const LONGEST_VARIABLE: usize = 32 * 1024;

/// Variables of a session's commands.
pub type Variables = BTreeMap<String, String>;

/// Which agent a session is of.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentReference {
    /// The agent.
    pub id: AgentId,
    /// The version; the latest without it.
    pub version: Option<u64>,
    /// What the session has otherwise.
    pub overrides: Option<Value>,
}

/// What a session is created with.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSession {
    /// Its agent.
    pub agent: AgentReference,
    /// Its environment.
    pub environment: EnvironmentId,
    /// For people.
    pub title: Option<String>,
    /// What the owner wrote on it.
    pub metadata: Metadata,
    /// What is mounted.
    pub resources: Vec<NewResource>,
    /// Whose credentials it uses, in order.
    pub vaults: Vec<VaultId>,
    /// What it may cost.
    pub budget: Option<Budget>,
    /// Variables of its commands.
    pub variables: Variables,
    /// What it begins with.
    pub inputs: Vec<Input>,
}

/// What a row keeps of a session beside its columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionBody {
    /// The agent as the session has it.
    pub agent: AgentBody,
    /// The agents of its roster, as they were when the session was created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
    /// What is mounted.
    #[serde(default)]
    pub resources: Vec<Resource>,
    /// Whose credentials it uses, in order.
    #[serde(default)]
    pub vault_ids: Vec<String>,
    /// What it may cost.
    #[serde(default)]
    pub budget: Option<Budget>,
}

impl SessionBody {
    /// The MCP servers of all its agents.
    #[must_use]
    pub fn servers(&self) -> Vec<McpServer> {
        let mut servers: Vec<McpServer> = Vec::new();
        let bodies = std::iter::once(&self.agent).chain(self.members.iter().map(|member| &member.body));
        for server in bodies.flat_map(|body| &body.mcp_servers) {
            if !servers.contains(server) {
                servers.push(server.clone());
            }
        }
        servers
    }

    /// The skills of all its agents.
    pub fn skills(&self) -> impl Iterator<Item = &SkillChoice> {
        let members = self.members.iter().flat_map(|member| &member.body.skills);
        let mut seen = std::collections::BTreeSet::new();
        self.agent.skills.iter().chain(members).filter(move |choice| seen.insert(choice.skill_id.clone()))
    }

    /// The vaults whose credentials it uses, in order.
    #[must_use]
    pub fn vaults(&self) -> Vec<VaultId> {
        self.vault_ids.iter().filter_map(|id| VaultId::parse(id)).collect()
    }
}

/// What is sealed of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionSecrets {
    /// Variables of its commands.
    pub variables: Variables,
    /// Credentials of its resources, by their ids.
    pub credentials: BTreeMap<String, String>,
}

impl SessionSecrets {
    /// True when there is nothing to seal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty() && self.credentials.is_empty()
    }
}

/// A session with what is beside its body.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Its number in the store.
    pub key: i64,
    /// The session.
    pub id: SessionId,
    /// Its agent.
    pub agent_id: AgentId,
    /// The agent's version.
    pub agent_version: u64,
    /// Its environment.
    pub environment_id: EnvironmentId,
    /// For people.
    pub title: Option<String>,
    /// What the owner wrote on it.
    pub metadata: Metadata,
    /// The rest.
    pub body: SessionBody,
    /// What is sealed of it.
    pub secrets: SessionSecrets,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed.
    pub updated_at: Time,
    /// When it was archived.
    pub archived_at: Option<Time>,
    /// What it is doing.
    pub status: Status,
    /// What it has used.
    pub usage: SessionUsage,
    /// How long turns ran, without the present one.
    pub active_ms: u64,
    /// Since when a turn runs.
    pub running_since: Option<Time>,
    /// When something last happened in it.
    pub last_at: Time,
    /// The deployment that created it.
    pub deployment: Option<DeploymentId>,
}

/// Reads the body of a creation. `files` has the files that its messages may name.
///
/// # Errors
/// When a field is missing or cannot be used, or names something that is not there.
pub fn create(body: &Value, now: Time, files: &GivenFiles) -> Result<NewSession, Refusal> {
    let fields = Fields::of_body(body)?;
    let agent = fields.get("agent").or_else(|| fields.get("agent_id"));
    let agent = agent.ok_or_else(|| Problem::field("agent", "is required"))?;
    let environment = fields.text("environment_id", 1..=256)?;
    let environment =
        EnvironmentId::parse(environment).ok_or_else(|| Refusal::not_found("environment", environment))?;
    let mut mounted = Vec::new();
    for id in fields.texts("memory_store_ids", 50)? {
        mounted.push(resources::read(&json!({ "type": "memory_store", "memory_store_id": id }), now)?);
    }
    for (index, item) in fields.items("resources", MOST_RESOURCES)?.iter().enumerate() {
        let resource = resources::read(item, now).map_err(|refusal| match refusal {
            Refusal::Invalid(problem) => Refusal::Invalid(problem.inside(&format!("resources[{index}]"))),
            other @ (Refusal::NotFound(_) | Refusal::Conflict { .. }) => other,
        })?;
        mounted.push(resource);
    }
    resources::check_paths(mounted.iter().map(|new| &new.resource))?;
    Ok(NewSession {
        agent: reference(agent)?,
        environment,
        title: fields.optional_text("title", 0..=LONGEST_TITLE)?.map(str::to_owned),
        metadata: metadata::read(fields.get("metadata").unwrap_or(&Value::Null))?,
        resources: mounted,
        vaults: vaults(fields)?,
        budget: fields.get("budget").map(Budget::read).transpose()?,
        variables: variables(fields)?.unwrap_or_default(),
        inputs: inputs::read_initial(fields, files)?,
    })
}

fn reference(value: &Value) -> Result<AgentReference, Refusal> {
    let parse = |id: &str| AgentId::parse(id).ok_or_else(|| Refusal::not_found("agent", id));
    match value {
        Value::String(id) => Ok(AgentReference { id: parse(id)?, version: None, overrides: None }),
        Value::Object(_) => {
            let fields = Fields::of(value, "agent")?;
            let inside = |problem: Problem| Refusal::Invalid(problem.inside("agent"));
            let kind = fields.word("type", &["agent", "agent_with_overrides"]).map_err(inside)?;
            let version =
                fields.number("version", 0..=u64::MAX).map_err(inside)?.filter(|version| *version > 0);
            let id = parse(fields.text("id", 1..=256).map_err(inside)?)?;
            let overrides = (kind == Some("agent_with_overrides")).then(|| value.clone());
            Ok(AgentReference { id, version, overrides })
        }
        _ => Err(Problem::field("agent", "must be a string or an object").into()),
    }
}

/// Reads `vault_ids`. Whether the vaults are there is for the caller.
///
/// # Errors
/// When one is not the name of a vault, or there are too many.
pub fn vaults(fields: Fields<'_>) -> Result<Vec<VaultId>, Refusal> {
    let ids = fields.texts("vault_ids", MOST_VAULTS)?;
    ids.iter().map(|id| VaultId::parse(id).ok_or_else(|| Refusal::not_found("vault", id))).collect()
}

/// Reads `environment_variables`: a map of texts.
///
/// # Errors
/// When a name or value cannot be a variable.
pub fn variables(fields: Fields<'_>) -> Result<Option<Variables>, Problem> {
    const FIELD: &str = "environment_variables";
    let Some(map) = fields.object(FIELD)? else { return Ok(None) };
    if map.map().len() > MOST_VARIABLES {
        return Err(Problem::field(FIELD, format!("has more than {MOST_VARIABLES} variables")));
    }
    let mut variables = Variables::new();
    for (name, value) in map.map() {
        let is_name = !name.is_empty()
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            return Err(Problem::field(FIELD, format!("has `{name}`, which is not the name of a variable")));
        }
        let value = value.as_str().filter(|value| value.len() <= LONGEST_VARIABLE && !value.contains('\0'));
        let Some(value) = value else {
            let problem = format!("must be a string of at most {LONGEST_VARIABLE} bytes without NUL");
            return Err(Problem::field(format!("{FIELD}.{name}"), problem));
        };
        variables.insert(name.clone(), value.to_owned());
    }
    Ok(Some(variables))
}

/// What an update comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdatedSession {
    /// For people.
    pub title: Option<String>,
    /// What the owner wrote on it.
    pub metadata: Metadata,
    /// The rest.
    pub body: SessionBody,
    /// What is sealed of it.
    pub secrets: SessionSecrets,
    /// The names of what `session.updated` reports, in the order in which it does.
    pub changed: Vec<&'static str>,
}

/// Applies an update. `spent` is what the session has cost.
///
/// # Errors
/// When a field cannot be used or changed now.
pub fn update(
    session: &Session,
    body: &Value,
    dialect: Dialect,
    credit_usd: f64,
) -> Result<UpdatedSession, Refusal> {
    let fields = Fields::of_body(body)?;
    let mut after = UpdatedSession {
        title: session.title.clone(),
        metadata: session.metadata.clone(),
        body: session.body.clone(),
        secrets: session.secrets.clone(),
        changed: Vec::new(),
    };
    if let Change::Set(agent) = fields.change("agent") {
        after.body.agent = updated_agent(session, agent, dialect)?;
    }
    match fields.change("budget") {
        Change::Keep => {}
        Change::Clear => after.body.budget = None,
        Change::Set(value) => after.body.budget = Some(replaced_budget(session, value, credit_usd)?),
    }
    if let Change::Set(patch) = fields.change("metadata") {
        after.metadata = metadata::patched(&session.metadata, patch, EmptyText::Kept)?;
    }
    if fields.change("title") != Change::Keep {
        after.title = fields.optional_text("title", 0..=LONGEST_TITLE)?.map(str::to_owned);
    }
    if fields.get("vault_ids").is_some() {
        if dialect == Dialect::Claude {
            return Err(Problem::field("vault_ids", "cannot be changed").into());
        }
        after.body.vault_ids = vaults(fields)?.iter().map(ToString::to_string).collect();
    }
    if let Some(variables) = variables(fields)? {
        after.secrets.variables = variables;
    }
    for (name, is_changed) in [
        ("agent", after.body.agent != session.body.agent),
        ("budget", after.body.budget != session.body.budget),
        ("metadata", after.metadata != session.metadata),
        ("title", after.title != session.title),
    ] {
        if is_changed {
            after.changed.push(name);
        }
    }
    Ok(after)
}

fn updated_agent(session: &Session, value: &Value, dialect: Dialect) -> Result<AgentBody, Refusal> {
    let fields = Fields::of(value, "agent")?;
    if session.status != Status::Idle {
        return Err(Refusal::conflict("The agent of a session can be changed while the session is idle."));
    }
    if dialect == Dialect::Claude {
        let fixed = ["model", "system", "skills"].into_iter().find(|key| fields.get(key).is_some());
        if let Some(key) = fixed {
            return Err(Problem::field(
                format!("agent.{key}"),
                "cannot be changed; `tools` and `mcp_servers` can",
            )
            .into());
        }
    }
    session.body.agent.with_overrides(fields).map_err(|problem| problem.inside("agent").into())
}

fn replaced_budget(session: &Session, value: &Value, credit_usd: f64) -> Result<Budget, Refusal> {
    if session.body.budget.is_none() {
        let problem = "can only be set when the session is created";
        return Err(Problem::field("budget", problem).with_code("budget_create_only").into());
    }
    let budget = Budget::read(value)?;
    if budget.dollars(credit_usd) <= session.usage.cost_usd {
        let problem = "is not more than what the session has already cost";
        return Err(Problem::field("budget", problem).with_code("budget_not_raised").into());
    }
    Ok(budget)
}

/// How long turns ran, up to now.
fn active_seconds(session: &Session, now: Time) -> f64 {
    let running = session.running_since.map_or(0, |since| now.since(since));
    seconds(session.active_ms + running)
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of any session fit")]
pub(super) fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

/// A session as clients read it.
#[must_use]
pub fn view(session: &Session, dialect: Dialect, now: Time, credit_usd: f64) -> Value {
    let active = active_seconds(session, now);
    let end = match session.status {
        Status::Terminated => session.last_at,
        Status::Idle | Status::Running | Status::Rescheduling => session.archived_at.unwrap_or(now),
    };
    let body = &session.body;
    let mut value = json!({
        "id": session.id, "type": "session",
        "agent": agent_view::of_coordinator(session, dialect),
        "environment_id": session.environment_id, "status": session.status.as_str(), "title": session.title,
        "metadata": session.metadata,
        "resources": body.resources.iter().map(Resource::view).collect::<Vec<_>>(),
        "vault_ids": body.vault_ids, "outcome_evaluations": [],
        "stats": { "active_seconds": active, "duration_seconds": seconds(end.since(session.created_at)) },
        "usage": session.usage.view(active, credit_usd),
        "budget": body.budget.as_ref().map(Budget::view), "deployment_id": session.deployment,
        "created_at": session.created_at, "updated_at": session.updated_at, "archived_at": session.archived_at,
    });
    if dialect == Dialect::Qoder {
        value["agent_id"] = json!(session.agent_id);
        value["environment_variables"] = json!(session.secrets.variables);
    }
    value
}

/// The fields of `session.updated`: what changed and nothing else. The agent is given by its body, from which each dialect
/// renders it.
#[must_use]
pub fn updated_event(session: &Session, after: &UpdatedSession) -> Value {
    let mut event = Map::new();
    for name in &after.changed {
        let value = match *name {
            "agent" => {
                json!({ "id": session.agent_id, "version": session.agent_version, "body": after.body.agent })
            }
            "budget" => json!(after.body.budget.as_ref().map(Budget::view)),
            "metadata" if after.metadata.is_empty() => continue,
            "metadata" => json!(after.metadata),
            _ => json!(after.title),
        };
        event.insert((*name).to_owned(), value);
    }
    Value::Object(event)
}

/// Reads `statuses[]` of a list.
///
/// # Errors
/// When a word is not a status.
pub fn statuses(words: &[String]) -> Result<Vec<Status>, Problem> {
    let words: Vec<Value> = words.iter().map(|word| json!(word)).collect();
    each("statuses", &words, |word| {
        Status::parse(word.as_str().unwrap_or_default()).ok_or_else(|| {
            let known: Vec<&str> = Status::ALL.iter().map(|status| status.as_str()).collect();
            Problem::whole(format!("{word} is not a status; they are {}", known.join(", ")))
        })
    })
}
