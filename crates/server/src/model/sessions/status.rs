//! What a session is doing, and why it stopped.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::ids::EventId;

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It waits for input.
    Idle,
    /// A turn runs.
    Running,
    /// Its node is gone; another one is about to take it over.
    Rescheduling,
    /// It is over.
    Terminated,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Running, Self::Rescheduling, Self::Terminated];

    /// The word on the wire and in rows.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Rescheduling => "rescheduling",
            Self::Terminated => "terminated",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// Why a turn paused or ended, as rows keep it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StopReason {
    /// The turn ended, by itself or because it was interrupted.
    EndTurn,
    /// These events wait for answers.
    RequiresAction {
        /// The events.
        event_ids: Vec<String>,
    },
    /// The model failed for good.
    RetriesExhausted,
    /// What may be spent is spent.
    BudgetReached,
    /// The model or its provider refused.
    Refusal,
}

impl StopReason {
    /// Events that wait for answers.
    #[must_use]
    pub fn requires(events: &[EventId]) -> Self {
        Self::RequiresAction { event_ids: events.iter().map(ToString::to_string).collect() }
    }

    /// The fields of `session.status_idle`.
    #[must_use]
    pub fn idle_event(&self) -> Value {
        let mut event = json!({ "status": "idle", "stop_reason": self });
        if *self == Self::Refusal {
            event["stop_details"] = json!({ "type": "refusal", "category": null, "explanation": null });
        }
        event
    }
}
