//! Threads of a session: the session itself, and the agents that it started.

use serde_json::{Value, json};

use super::session::{Session, seconds};
use super::usage::SessionUsage;
use crate::model::agent_view;
use crate::model::dialect::Dialect;
use crate::model::ids::ThreadId;
use crate::model::roster::{Role, team};
use crate::model::status::Status;
use crate::model::time::Time;

/// A thread that a session started.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    /// The thread.
    pub id: ThreadId,
    /// The agent that runs in it, by its name in the session.
    pub agent_name: String,
    /// What it is doing.
    pub status: Status,
    /// What it has used.
    pub usage: SessionUsage,
    /// How long it ran, without the present run.
    pub active_ms: u64,
    /// Since when it runs.
    pub running_since: Option<Time>,
    /// When it was created.
    pub created_at: Time,
    /// When something last happened in it.
    pub updated_at: Time,
    /// When it was archived.
    pub archived_at: Option<Time>,
}

/// How threads are shown.
#[derive(Debug, Clone, Copy)]
pub struct ThreadView {
    /// The dialect of the client.
    pub dialect: Dialect,
    /// What a credit costs.
    pub credit_usd: f64,
    /// Now.
    pub now: Time,
}

impl Thread {
    /// The thread of a session itself.
    #[must_use]
    pub fn primary(session: &Session) -> Self {
        Self {
            id: ThreadId::primary(session.id),
            agent_name: session.body.agent.name.clone(),
            status: session.status,
            usage: session.usage,
            active_ms: session.active_ms,
            running_since: session.running_since,
            created_at: session.created_at,
            updated_at: session.updated_at.max(session.last_at),
            archived_at: session.archived_at,
        }
    }

    /// As clients read it.
    #[must_use]
    pub fn view(&self, session: &Session, by: ThreadView) -> Value {
        let is_primary = self.id == ThreadId::primary(session.id);
        let team = team(&session.body.agent, &session.body.members);
        let member = team.iter().find(|member| member.name == self.agent_name).map(|member| member.role);
        let role = if is_primary { Role::Itself } else { member.unwrap_or(Role::Itself) };
        let active = seconds(self.active_ms + self.running_since.map_or(0, |since| by.now.since(since)));
        let end = self.archived_at.unwrap_or(by.now);
        let mut view = json!({
            "id": self.id, "type": "session_thread", "session_id": session.id,
            "parent_thread_id": (!is_primary).then(|| ThreadId::primary(session.id)),
            "agent": agent_view::of_member(session, role, by.dialect), "status": self.status.as_str(),
            "stats": { "active_seconds": active, "duration_seconds": seconds(end.since(self.created_at)),
                "startup_seconds": 0.0 },
            "usage": self.usage.view(active, by.credit_usd),
            "created_at": self.created_at, "updated_at": self.updated_at, "archived_at": self.archived_at,
        });
        if by.dialect == Dialect::Qoder {
            view["role"] = json!(if is_primary { "coordinator" } else { "child" });
        }
        view
    }
}
