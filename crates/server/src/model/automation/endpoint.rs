//! Endpoints: addresses that get notices of what happens.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::happening::KINDS;
use crate::model::fields::{Change, Fields};
use crate::model::ids::{WebhookEndpointId, random};
use crate::model::metadata::{self, EmptyText, Metadata};
use crate::model::problem::Problem;
use crate::model::time::Time;

const LONGEST_URL: usize = 2_048;
const LONGEST_DESCRIPTION: usize = 1_024;
const MOST_EVENTS: usize = 100;
/// The most endpoints of a tenant.
pub const MOST_ENDPOINTS: u64 = 100;
/// What a signing secret begins with.
const SECRET: &str = "whsec_";

/// What a row keeps of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointBody {
    /// Where notices go.
    pub url: String,
    /// The types that it wants: `session.created`, `session.*`, `*`.
    pub events: Vec<String>,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// What the owner wrote on it.
    #[serde(default)]
    pub metadata: Metadata,
}

impl EndpointBody {
    /// Reads the body of a creation.
    ///
    /// # Errors
    /// When a field is missing or cannot be used.
    pub fn create(body: &Value) -> Result<Self, Problem> {
        let fields = Fields::of_body(body)?;
        let description = fields.optional_text("description", 0..=LONGEST_DESCRIPTION)?;
        Ok(Self {
            url: url(fields.text("url", 1..=LONGEST_URL)?)?,
            events: events(&fields)?.ok_or_else(|| Problem::field("events", "is required"))?,
            description: description.unwrap_or_default().to_owned(),
            metadata: metadata::read(fields.get("metadata").unwrap_or(&Value::Null))?,
        })
    }

    /// Applies an update. Answers with whether the endpoint is to be active, too, when the update says so.
    ///
    /// # Errors
    /// When a field cannot be used.
    pub fn updated(&self, body: &Value) -> Result<(Self, Option<bool>), Problem> {
        let fields = Fields::of_body(body)?;
        let mut after = self.clone();
        if let Some(text) = fields.optional_text("url", 1..=LONGEST_URL)? {
            after.url = url(text)?;
        }
        if let Some(events) = events(&fields)? {
            after.events = events;
        }
        if fields.change("description") != Change::Keep {
            let description = fields.optional_text("description", 0..=LONGEST_DESCRIPTION)?;
            after.description = description.unwrap_or_default().to_owned();
        }
        if let Change::Set(patch) = fields.change("metadata") {
            after.metadata = metadata::patched(&self.metadata, patch, EmptyText::Kept)?;
        }
        Ok((after, fields.flag("active")?))
    }

    /// True when it wants notices about such a thing.
    #[must_use]
    pub fn wants(&self, kind: &str) -> bool {
        self.events.iter().any(|wanted| match wanted.strip_suffix('*') {
            Some(prefix) => kind.starts_with(prefix),
            None => wanted == kind,
        })
    }
}

fn url(text: &str) -> Result<String, Problem> {
    let problem = |problem: &str| Problem::field("url", problem);
    let url = url::Url::parse(text).map_err(|error| problem(&format!("is not a URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(problem("must be an `https` URL"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(problem("must not contain a user name or a password"));
    }
    Ok(url.into())
}

fn events(fields: &Fields<'_>) -> Result<Option<Vec<String>>, Problem> {
    if fields.get("events").is_none() {
        return Ok(None);
    }
    let wanted = fields.texts("events", MOST_EVENTS)?;
    if wanted.is_empty() {
        return Err(Problem::field("events", "must name at least one type, or `*`"));
    }
    for kind in &wanted {
        let group = kind.strip_suffix(".*").map(|group| format!("{group}."));
        let is_known = kind == "*"
            || KINDS.contains(&kind.as_str())
            || group.is_some_and(|group| KINDS.iter().any(|kind| kind.starts_with(&group)));
        if !is_known {
            let problem = format!("has `{kind}`, which is not a type of event; docs/cloud-api.md lists them");
            return Err(Problem::field("events", problem));
        }
    }
    Ok(Some(wanted))
}

/// A new signing secret: 256 random bits as Standard Webhooks writes them.
#[must_use]
pub fn new_secret() -> String {
    format!("{SECRET}{}", STANDARD.encode([random(), random()].concat()))
}

/// The key of a signing secret.
#[must_use]
pub fn key_of(secret: &str) -> Option<Vec<u8>> {
    STANDARD.decode(secret.strip_prefix(SECRET)?).ok()
}

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The endpoint.
    pub id: WebhookEndpointId,
    /// What is kept of it.
    pub body: EndpointBody,
    /// False when nothing is sent to it.
    pub is_active: bool,
    /// Why it is not active.
    pub disabled_reason: Option<String>,
    /// Attempts that failed since the last one that did not.
    pub failures: u64,
    /// When it last took a notice.
    pub last_success_at: Option<Time>,
    /// When it last did not.
    pub last_failure_at: Option<Time>,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed.
    pub updated_at: Time,
}

impl Endpoint {
    /// As clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        json!({
            "id": self.id, "type": "webhook_endpoint", "url": self.body.url, "events": self.body.events,
            "description": self.body.description, "metadata": self.body.metadata, "active": self.is_active,
            "disabled_reason": self.disabled_reason, "consecutive_fail": self.failures,
            "last_success_at": self.last_success_at, "last_failure_at": self.last_failure_at,
            "created_at": self.created_at, "updated_at": self.updated_at,
        })
    }

    /// As the one who creates it reads it, once.
    #[must_use]
    pub fn view_with_secret(&self, secret: &str) -> Value {
        let mut view = self.view();
        view["signing_secret"] = json!(secret);
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(events: &Value, url: &str) -> Result<EndpointBody, Problem> {
        EndpointBody::create(&json!({ "url": url, "events": events }))
    }

    #[test]
    fn an_endpoint_wants_types_groups_or_everything() {
        let body = created(&json!(["session.created", "vault.*"]), "https://example.com/hook").unwrap();
        assert!(body.wants("session.created") && body.wants("vault.deleted"));
        assert!(!body.wants("session.updated") && !body.wants("vault_credential.created"));
        assert!(created(&json!(["*"]), "https://example.com").unwrap().wants("agent.created"));
        for (events, url) in [
            (json!([]), "https://example.com"),
            (json!(["session.nothing"]), "https://example.com"),
            (json!(["nothing.*"]), "https://example.com"),
            (json!(["*"]), "ftp://example.com"),
            (json!(["*"]), "https://ana:pw@example.com"),
            (json!(["*"]), "nonsense"),
        ] {
            assert!(created(&events, url).is_err(), "{events} {url}");
        }
    }

    #[test]
    fn a_secret_is_32_random_bytes() {
        let secret = new_secret();
        assert_eq!(key_of(&secret).unwrap().len(), 32);
        assert_ne!(secret, new_secret());
        assert_eq!(key_of("other"), None);
    }
}
