//! Tasks in the fold: that one began, how it ended, and what an agent used on account of which turn.

use qoder_types::{TaskEnded, TaskParked, TaskStarted};

use crate::state::{State, TaskState};

impl State {
    /// A task that continues in another process begins once.
    pub(crate) fn apply_task_start(&mut self, start: &TaskStarted) {
        let task = TaskState {
            start: start.clone(),
            end: None,
            parked: None,
            told: false,
            counted: false,
            listed: false,
        };
        self.tasks.entry(start.task_id.clone()).or_insert(task);
    }

    /// An agent waits; the last word counts, until it ends.
    pub(crate) fn apply_task_parked(&mut self, parked: &TaskParked) {
        if let Some(task) = self.tasks.get_mut(&parked.task_id).filter(|task| task.end.is_none()) {
            task.parked = Some(parked.clone());
        }
    }

    /// A task ends once; the first word about it stands. What an agent used is the session's to account for.
    pub(crate) fn apply_task_end(&mut self, end: &TaskEnded) {
        let Some(task) = self.tasks.get_mut(&end.task_id) else { return };
        if task.end.is_some() {
            return;
        }
        task.end = Some(end.clone());
        task.parked = None;
        let Some(account) = &end.account else { return };
        for (model, used) in &account.model_usage {
            self.add_usage(model, &used.usage(), used.cost_usd);
            if let Some(totals) = self.totals.get_mut(model).filter(|totals| totals.context_window == 0) {
                totals.context_window = used.context_window;
                totals.max_output_tokens = used.max_output_tokens;
            }
        }
        self.duration_api_ms += account.duration_api_ms;
        self.count_in_turn(&end.task_id);
    }

    /// What an agent used belongs to the turn in which it ended, else to the one in which the model reads of it.
    pub(crate) fn count_in_turn(&mut self, task_id: &str) {
        let (Some(turn), Some(task)) = (&mut self.turn, self.tasks.get_mut(task_id)) else { return };
        let account = task.end.as_ref().and_then(|end| end.account.as_deref());
        if let Some(account) = account.filter(|_| !task.counted) {
            turn.usage.add(&account.usage);
            turn.duration_api_ms += account.duration_api_ms;
            task.counted = true;
        }
    }
}
