//! Runs of deployments: each made one session, or says why it could not.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::ids::{AgentId, DeploymentId, DeploymentRunId, SessionId, TenantId};
use crate::model::time::Time;

/// Why a run happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// A client asked for it.
    Manual,
    /// It came due at this time.
    Schedule(Time),
}

impl Trigger {
    /// The word of rows and filters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Schedule(_) => "schedule",
        }
    }

    /// When it came due.
    #[must_use]
    pub fn scheduled_at(self) -> Option<Time> {
        match self {
            Self::Manual => None,
            Self::Schedule(at) => Some(at),
        }
    }
}

/// Why a run has no session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// One of the documented types.
    #[serde(rename = "type")]
    pub kind: String,
    /// For people.
    pub message: String,
}

impl RunError {
    /// From what creating the session was refused with: a stable name, the kind of the thing that is missing, and the words.
    #[must_use]
    pub fn new(code: Option<&str>, is_missing: bool, message: &str) -> Self {
        let missing = [
            ("environment", "environment_not_found_error"),
            ("vault", "vault_not_found_error"),
            ("file", "file_not_found_error"),
            ("skill", "skill_not_found_error"),
            ("memory store", "session_resource_not_found_error"),
            ("agent", "agent_archived_error"),
        ];
        let kind = match code {
            Some("agent_archived") => "agent_archived_error",
            Some("environment_archived") => "environment_archived_error",
            Some("vault_archived") => "vault_archived_error",
            Some("memory_store_archived") => "memory_store_archived_error",
            Some("file_expired") => "file_not_found_error",
            Some("self_hosted_resources_unsupported") => "self_hosted_resources_unsupported_error",
            Some(_) | None => {
                let named =
                    missing.iter().find(|(word, _)| message.starts_with(&format!("There is no {word} ")));
                named.filter(|_| is_missing).map_or("session_creation_rejected_error", |(_, kind)| kind)
            }
        };
        Self { kind: kind.to_owned(), message: message.to_owned() }
    }

    /// True when the next run would fail in the same way, so that the schedule is paused.
    #[must_use]
    pub fn pauses(&self) -> bool {
        !matches!(
            self.kind.as_str(),
            "session_rate_limited_error" | "session_creation_rejected_error" | "unknown_error"
        )
    }
}

/// A run of a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The run.
    pub id: DeploymentRunId,
    /// Whose.
    pub tenant: TenantId,
    /// Of which deployment.
    pub deployment: DeploymentId,
    /// The agent that it runs.
    pub agent: AgentId,
    /// The agent's version.
    pub agent_version: u64,
    /// Why it happens.
    pub trigger: Trigger,
    /// The session that it made.
    pub session: Option<SessionId>,
    /// Why it made none.
    pub error: Option<RunError>,
    /// When it began.
    pub created_at: Time,
}

impl Run {
    /// As clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        let trigger = match self.trigger {
            Trigger::Manual => json!({ "type": "manual" }),
            Trigger::Schedule(at) => json!({ "type": "schedule", "scheduled_at": at }),
        };
        json!({
            "id": self.id, "type": "deployment_run", "deployment_id": self.deployment,
            "agent": { "type": "agent", "id": self.agent, "version": self.agent_version },
            "session_id": self.session, "error": self.error, "trigger_context": trigger,
            "created_at": self.created_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_documented_types_and_some_pause_the_schedule() {
        for (code, is_missing, message, kind, pauses) in [
            (Some("agent_archived"), false, "x", "agent_archived_error", true),
            (None, true, "There is no environment `env_1`.", "environment_not_found_error", true),
            (None, true, "There is no vault `vlt_1`.", "vault_not_found_error", true),
            (None, false, "`budget` is wrong", "session_creation_rejected_error", false),
        ] {
            let error = RunError::new(code, is_missing, message);
            assert_eq!((error.kind.as_str(), error.pauses()), (kind, pauses), "{message}");
        }
    }
}
