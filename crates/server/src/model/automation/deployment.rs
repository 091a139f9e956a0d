//! Deployments: an agent with everything that its sessions are created with, and a schedule. What is secret of it is kept apart: the
//! template of its sessions as the owner sent it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::run::RunError;
use super::schedule::Schedule;
use crate::model::fields::{Change, Fields};
use crate::model::ids::{AgentId, DeploymentId};
use crate::model::metadata::{self, EmptyText, Metadata};
use crate::model::problem::Problem;
use crate::model::time::Time;

const LONGEST_NAME: usize = 256;
const LONGEST_DESCRIPTION: usize = 2_048;
/// The fields of a session that a deployment has.
const TEMPLATE: [&str; 7] = [
    "agent",
    "environment_id",
    "initial_events",
    "resources",
    "vault_ids",
    "budget",
    "environment_variables",
];
/// Those of them without which there is no session.
const REQUIRED: [&str; 3] = ["agent", "environment_id", "initial_events"];
/// What clients may write and never read.
const SECRET: [&str; 2] = ["authorization_token", "password"];

/// What sessions of a deployment are created with: the body of their creation.
pub type Template = Map<String, Value>;

/// What a row keeps of a deployment that is not secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeploymentBody {
    /// For people.
    pub name: String,
    /// For people.
    #[serde(default)]
    pub description: Option<String>,
    /// What the owner wrote on it.
    #[serde(default)]
    pub metadata: Metadata,
    /// When it runs by itself.
    #[serde(default)]
    pub schedule: Option<Schedule>,
    /// The agent's version.
    pub agent_version: u64,
    /// The template without secrets.
    pub shown: Template,
    /// Who created it, for the events of its sessions.
    #[serde(default)]
    pub user: String,
    /// The token that created it.
    #[serde(default)]
    pub token: String,
}

/// What the owner says about a deployment, read from a request.
#[derive(Debug, Clone, PartialEq)]
pub struct DeploymentFields {
    /// For people.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// What the owner wrote on it.
    pub metadata: Metadata,
    /// When it runs by itself.
    pub schedule: Option<Schedule>,
    /// What its sessions are created with.
    pub template: Template,
}

impl DeploymentFields {
    /// Reads the body of a creation.
    ///
    /// # Errors
    /// When a field is missing or cannot be used.
    pub fn create(body: &Value) -> Result<Self, Problem> {
        let fields = Fields::of_body(body)?;
        let created = Self {
            name: fields.text("name", 1..=LONGEST_NAME)?.to_owned(),
            description: fields.optional_text("description", 0..=LONGEST_DESCRIPTION)?.map(str::to_owned),
            metadata: metadata::read(fields.get("metadata").unwrap_or(&Value::Null))?,
            schedule: fields.get("schedule").map(Schedule::read).transpose()?,
            template: template(&Template::new(), fields)?,
        };
        created.checked()
    }

    /// Applies an update to what a deployment is.
    ///
    /// # Errors
    /// When a field cannot be used.
    pub fn updated(body: &DeploymentBody, before: &Template, update: &Value) -> Result<Self, Problem> {
        let fields = Fields::of_body(update)?;
        let mut after = Self {
            name: fields.optional_text("name", 1..=LONGEST_NAME)?.unwrap_or(&body.name).to_owned(),
            description: body.description.clone(),
            metadata: body.metadata.clone(),
            schedule: body.schedule.clone(),
            template: template(before, fields)?,
        };
        if fields.change("description") != Change::Keep {
            let description = fields.optional_text("description", 0..=LONGEST_DESCRIPTION)?;
            after.description = description.map(str::to_owned);
        }
        if let Change::Set(patch) = fields.change("metadata") {
            after.metadata = metadata::patched(&body.metadata, patch, EmptyText::Kept)?;
        }
        match fields.change("schedule") {
            Change::Keep => {}
            Change::Clear => after.schedule = None,
            Change::Set(schedule) => after.schedule = Some(Schedule::read(schedule)?),
        }
        after.checked()
    }

    fn checked(self) -> Result<Self, Problem> {
        for key in REQUIRED {
            if self.template.get(key).is_none_or(Value::is_null) {
                return Err(Problem::field(key, "is required"));
            }
        }
        if self.template["agent"].get("type").and_then(Value::as_str).is_some_and(|kind| kind != "agent") {
            return Err(Problem::field("agent.type", "must be `agent`; a deployment has no overrides"));
        }
        if self.template["initial_events"].as_array().is_none_or(Vec::is_empty) {
            return Err(Problem::field("initial_events", "must have 1 to 50 events"));
        }
        Ok(self)
    }

    /// What a row keeps, for an agent at this version.
    #[must_use]
    pub fn body(&self, (agent, version): (AgentId, u64), (user, token): (&str, &str)) -> DeploymentBody {
        let mut shown = self.template.clone();
        shown.shift_remove("environment_variables");
        shown.insert("agent".to_owned(), json!({ "type": "agent", "id": agent, "version": version }));
        for resource in shown.get_mut("resources").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(fields) = resource.as_object_mut() {
                fields.retain(|key, _| !SECRET.contains(&key.as_str()));
            }
        }
        for event in shown.get_mut("initial_events").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(text) = event.get("content").and_then(Value::as_str) {
                event["content"] = json!([{ "type": "text", "text": text }]);
            }
        }
        DeploymentBody {
            name: self.name.clone(),
            description: self.description.clone(),
            metadata: self.metadata.clone(),
            schedule: self.schedule.clone(),
            agent_version: version,
            shown,
            user: user.to_owned(),
            token: token.to_owned(),
        }
    }
}

fn template(before: &Template, fields: Fields<'_>) -> Result<Template, Problem> {
    let mut template = before.clone();
    for key in TEMPLATE {
        match fields.change(key) {
            Change::Keep => {}
            Change::Clear => drop(template.shift_remove(key)),
            Change::Set(value) => drop(template.insert(key.to_owned(), value.clone())),
        }
    }
    // Clients of one generation type the variables as text: a JSON object.
    if let Some(Value::String(text)) = template.get("environment_variables") {
        let problem =
            || Problem::field("environment_variables", "must be an object, or a JSON object as text");
        let object: Value = serde_json::from_str(text).map_err(|_| problem())?;
        template.insert("environment_variables".to_owned(), object);
    }
    Ok(template)
}

/// Whether the schedule of a deployment counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Paused {
    /// Its owner paused it.
    Manual,
    /// A run failed in a way that the next one would, too.
    Error {
        /// Why.
        error: RunError,
    },
}

/// A deployment.
#[derive(Debug, Clone, PartialEq)]
pub struct Deployment {
    /// The deployment.
    pub id: DeploymentId,
    /// The agent.
    pub agent: AgentId,
    /// What is kept of it.
    pub body: DeploymentBody,
    /// Why its schedule does not count.
    pub paused: Option<Paused>,
    /// When it runs next by itself.
    pub next_at: Option<Time>,
    /// When it last ran.
    pub last_run_at: Option<Time>,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed.
    pub updated_at: Time,
    /// When it was archived.
    pub archived_at: Option<Time>,
}

impl Deployment {
    /// When it runs next by itself, from now on.
    #[must_use]
    pub fn next(&self, now: Time) -> Option<Time> {
        if self.paused.is_some() || self.archived_at.is_some() {
            return None;
        }
        self.body.schedule.as_ref()?.next(now)
    }

    /// When it runs next after a change. A time that is due and not begun yet stays, unless the schedule is another one.
    #[must_use]
    pub fn next_after(&self, before: &Self, now: Time) -> Option<Time> {
        let next = self.next(now)?;
        let is_same = before.body.schedule == self.body.schedule;
        Some(before.next_at.filter(|_| is_same).unwrap_or(next))
    }

    /// As clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        let shown = |key: &str, default: Value| self.body.shown.get(key).cloned().unwrap_or(default);
        let reason = self.paused.as_ref().map(|paused| match paused {
            Paused::Manual => json!({ "type": "manual" }),
            Paused::Error { error } => {
                json!({ "type": "error", "error": { "type": error.kind, "message": error.message } })
            }
        });
        let schedule = self.body.schedule.as_ref();
        json!({
            "id": self.id, "type": "deployment", "name": self.body.name, "description": self.body.description,
            "agent": shown("agent", Value::Null), "environment_id": shown("environment_id", Value::Null),
            "initial_events": shown("initial_events", json!([])), "resources": shown("resources", json!([])),
            "vault_ids": shown("vault_ids", json!([])), "budget": shown("budget", Value::Null),
            "schedule": schedule.map(|schedule| schedule.view(self.last_run_at, self.next_at)),
            "status": if reason.is_some() { "paused" } else { "active" }, "paused_reason": reason,
            "metadata": self.body.metadata, "created_at": self.created_at, "updated_at": self.updated_at,
            "archived_at": self.archived_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_is_not_in_what_is_shown() {
        let fields = DeploymentFields::create(&json!({ "name": "d", "agent": "agent_1", "environment_id": "env_1",
            "initial_events": [{ "type": "user.message", "content": "go" }],
            "environment_variables": "{\"KEY\": \"value-of-a-key\"}",
            "resources": [{ "type": "github_repository", "url": "https://x", "authorization_token": "token-of-ana" }] }))
        .unwrap();
        let body = fields.body((AgentId([1; 16]), 3), ("ana", "t1"));
        let text = serde_json::to_string(&body).unwrap();
        assert!(!text.contains("value-of-a-key") && !text.contains("token-of-ana"), "{text}");
        assert_eq!(body.shown["initial_events"][0]["content"], json!([{ "type": "text", "text": "go" }]));
        assert_eq!(fields.template["environment_variables"], json!({ "KEY": "value-of-a-key" }));
        let kept = DeploymentFields::updated(&body, &fields.template, &json!({ "name": "e" })).unwrap();
        assert_eq!((kept.name.as_str(), &kept.template), ("e", &fields.template));
        for wrong in [
            json!({ "agent": null }),
            json!({ "initial_events": [] }),
            json!({ "agent": { "type": "agent_with_overrides", "id": "agent_1" } }),
        ] {
            assert!(DeploymentFields::updated(&body, &fields.template, &wrong).is_err(), "{wrong}");
        }
    }
}
