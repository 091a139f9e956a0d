//! An agent as a task: announced and put on record like a command, but its work is done by the caller that began it. It
//! ends as stopped when it is dropped before its time.

use std::sync::Arc;

use qoder_core::ports::ToolContext;
use qoder_types::{AgentAccount, TaskEnded, TaskParked, TaskStarted, TaskStatus};

use crate::tasks::lifecycle::{Recorded, announce_as};
use crate::tasks::register::SessionShared;

/// Why an agent could not be started, for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AgentStartError(String);

/// An agent that is on record and runs.
pub struct AgentTask(Recorded);

impl AgentTask {
    /// Announces the agent `start` and waits until it is on record. It gets a file for its answer.
    ///
    /// # Errors
    /// When as many tasks run as may, or its start cannot be put on record.
    pub async fn begin(
        shared: &Arc<SessionShared>,
        start: TaskStarted,
        context: &ToolContext,
    ) -> Result<Self, AgentStartError> {
        let recorded = announce_as(shared, start, context).await;
        recorded.map(Self).map_err(|refusal| match refusal.content {
            qoder_types::ToolResultContent::Text(text) => AgentStartError(text),
            qoder_types::ToolResultContent::Blocks(_) => {
                AgentStartError("it could not be put on record".to_owned())
            }
        })
    }

    /// How it began.
    #[must_use]
    pub fn start(&self) -> &TaskStarted {
        self.0.start()
    }

    /// Completes when it is asked to stop, also because its session is gone.
    pub async fn stop_wanted(&self) {
        self.0.task().stop_wanted().await;
    }

    /// Whether it was asked to stop.
    #[must_use]
    pub fn shall_stop(&self) -> bool {
        self.0.task().shall_stop()
    }

    /// Leaves it without an end: its process ends, and the next one resumes it.
    pub fn leave(mut self) {
        self.0.leave();
    }

    /// Leaves it without an end because calls of it wait: an answer continues it.
    pub fn park(mut self, parked: TaskParked) {
        self.0.park(parked);
    }

    /// Ends it with its answer, which goes into its file.
    pub fn finish(mut self, status: TaskStatus, ending: &str, answer: &str, account: AgentAccount) {
        self.0.file().append(answer.as_bytes());
        let start = self.0.start();
        let end = TaskEnded {
            task_id: start.task_id.clone(),
            status,
            summary: format!("Agent \"{}\" {ending}", start.description),
            exit_code: None,
            account: Some(Box::new(account)),
        };
        self.0.end(end);
    }
}
