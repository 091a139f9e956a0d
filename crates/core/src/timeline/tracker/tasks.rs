//! Tasks in the timeline: what runs beside the conversation, from the record that starts it to the one that ends it. An
//! agent that its call waits for runs beside nothing: only what it spent is taken from its end.

use qoder_types::{TaskEnded, TaskStarted};

use super::{Tracker, some};
use crate::timeline::{BackgroundTask, Happening, What};

/// A task that has not ended.
#[derive(Debug)]
pub(super) struct OpenTask {
    /// The call that started it.
    pub(super) call: String,
    is_agent: bool,
    pub(super) task: BackgroundTask,
}

impl Tracker {
    pub(super) fn task_started(&mut self, task: &TaskStarted) {
        if self.tasks.has(&task.task_id) {
            return;
        }
        let background = BackgroundTask {
            task_id: task.task_id.clone(),
            description: task.description.clone(),
            status: None,
            summary: String::new(),
        };
        let open = OpenTask { call: task.tool_use_id.clone(), is_agent: task.is_agent(), task: background };
        self.tasks.begin(&task.task_id, self.now, open);
    }

    /// True for an agent whose call waits for it: what it does is shown with that call, and nothing runs beside.
    pub(super) fn is_awaited(&self, open: &OpenTask) -> bool {
        open.is_agent && self.calls.has(&open.call)
    }

    pub(super) fn task_ended(&mut self, end: &TaskEnded, out: &mut Vec<Happening>) {
        let Some((began, mut open)) = self.tasks.end(&end.task_id) else { return };
        // What an agent used is the session's to account for.
        for (model, used) in end.account.iter().flat_map(|account| &account.model_usage) {
            self.spend(model, &used.usage(), used.cost_usd);
        }
        if self.is_awaited(&open) {
            return;
        }
        open.task.status = Some(end.status);
        open.task.summary.clone_from(&end.summary);
        self.push_since(began, some(&open.call), What::Task(open.task), out);
    }
}
