//! What endpoints get notices about: its types, which of them follow from an event of a session, and the notice itself.

use serde_json::{Value, json};

use crate::model::ids::{SessionId, TenantId, ThreadId, VaultId, WebhookEventId};
use crate::model::time::Time;

/// Every type that an endpoint can ask for. `session.pending` belongs to the interface and never happens here: a session that is
/// created can run at once.
pub const KINDS: &[&str] = &[
    "session.created",
    "session.updated",
    "session.pending",
    "session.running",
    "session.idled",
    "session.requires_action",
    "session.archived",
    "session.deleted",
    "session.status_rescheduled",
    "session.status_run_started",
    "session.status_idled",
    "session.status_terminated",
    "session.thread_created",
    "session.thread_idled",
    "session.thread_terminated",
    "session.outcome_evaluation_ended",
    "session.budget_reached",
    "agent.created",
    "agent.updated",
    "agent.archived",
    "agent.deleted",
    "environment.created",
    "environment.updated",
    "environment.archived",
    "environment.deleted",
    "deployment.created",
    "deployment.updated",
    "deployment.paused",
    "deployment.unpaused",
    "deployment.archived",
    "deployment.deleted",
    "deployment_run.started",
    "deployment_run.succeeded",
    "deployment_run.failed",
    "vault.created",
    "vault.archived",
    "vault.deleted",
    "vault_credential.created",
    "vault_credential.archived",
    "vault_credential.deleted",
    "vault_credential.refresh_failed",
    "memory_store.created",
    "memory_store.archived",
    "memory_store.deleted",
];

/// Something that happened to a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// Its type.
    pub kind: &'static str,
    /// The resource.
    pub resource: String,
    /// The thread that it is about.
    pub thread: Option<ThreadId>,
    /// The vault that the resource is in.
    pub vault: Option<VaultId>,
}

impl Happening {
    /// Something happened to this resource.
    pub fn new(kind: &'static str, resource: impl std::fmt::Display) -> Self {
        Self { kind, resource: resource.to_string(), thread: None, vault: None }
    }

    /// To a resource of this vault.
    #[must_use]
    pub fn in_vault(self, vault: VaultId) -> Self {
        Self { vault: Some(vault), ..self }
    }

    /// The notice about it, as JSON.
    #[must_use]
    pub fn notice(&self, id: WebhookEventId, tenant: TenantId, at: Time) -> String {
        let mut data = json!({
            "id": self.resource, "type": self.kind, "organization_id": tenant, "workspace_id": tenant,
        });
        if let Some(thread) = self.thread {
            data["session_thread_id"] = json!(thread);
        }
        if let Some(vault) = self.vault {
            data["vault_id"] = json!(vault);
        }
        json!({ "id": id, "created_at": at, "type": "event", "data": data }).to_string()
    }
}

/// True when such an event of a session may be worth a notice.
#[must_use]
pub fn is_noted(event: &str) -> bool {
    event == "span.outcome_evaluation_end"
        || event.strip_prefix("session.").is_some_and(|rest| {
            rest.starts_with("status_") || rest.starts_with("thread_") || rest == "updated"
        })
}

/// What an event of a session is worth a notice for.
#[must_use]
pub fn of_event(session: SessionId, event: &str, body: &str) -> Vec<Happening> {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let kinds: &[&'static str] = match event {
        "session.updated" => &["session.updated"],
        "session.status_running" => &["session.status_run_started", "session.running"],
        "session.status_rescheduled" => &["session.status_rescheduled"],
        "session.status_terminated" => &["session.status_terminated"],
        "session.status_idle" => match body["stop_reason"]["type"].as_str() {
            Some("requires_action") => &["session.status_idled", "session.idled", "session.requires_action"],
            Some("budget_reached") => &["session.status_idled", "session.idled", "session.budget_reached"],
            _ => &["session.status_idled", "session.idled"],
        },
        "session.thread_created" => &["session.thread_created"],
        "session.thread_status_idle" => &["session.thread_idled"],
        "session.thread_status_terminated" => &["session.thread_terminated"],
        "span.outcome_evaluation_end" => &["session.outcome_evaluation_ended"],
        _ => &[],
    };
    let thread = body["session_thread_id"].as_str().and_then(ThreadId::parse);
    let one = |kind: &&'static str| Happening { thread, ..Happening::new(kind, session) };
    kinds.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: SessionId = SessionId([7; 16]);

    fn kinds(event: &str, body: &Value) -> Vec<&'static str> {
        of_event(SESSION, event, &body.to_string()).iter().map(|happening| happening.kind).collect()
    }

    #[test]
    fn events_of_a_session_become_notices_of_known_types() {
        let waits = json!({ "stop_reason": { "type": "requires_action", "event_ids": [] } });
        assert_eq!(
            kinds("session.status_idle", &waits),
            ["session.status_idled", "session.idled", "session.requires_action"]
        );
        for event in ["session.status_running", "session.status_terminated", "span.outcome_evaluation_end"] {
            assert!(is_noted(event) && !kinds(event, &json!({})).is_empty(), "{event}");
            assert!(kinds(event, &json!({})).iter().all(|kind| KINDS.contains(kind)), "{event}");
        }
        assert!(kinds("agent.message", &json!({})).is_empty() && !is_noted("agent.message"));
    }

    #[test]
    fn a_notice_about_a_thread_names_it() {
        let thread = ThreadId([9; 16]);
        let body = json!({ "session_thread_id": thread, "agent_name": "a" });
        let happening = of_event(SESSION, "session.thread_status_idle", &body.to_string()).remove(0);
        let notice = happening.notice(WebhookEventId([1; 16]), TenantId([2; 16]), Time(0));
        let notice: Value = serde_json::from_str(&notice).unwrap();
        assert_eq!(notice["data"]["session_thread_id"], json!(thread));
        assert_eq!(notice["data"]["id"], json!(SESSION));
        assert_eq!(
            (&notice["type"], &notice["data"]["type"]),
            (&json!("event"), &json!("session.thread_idled"))
        );
    }
}
