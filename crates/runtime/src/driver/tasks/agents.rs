//! Agents between the driver and the log: a run is held open while some work in the background, and an agent that is not
//! resumed is ended with what its log says of it.

use qoder_core::state::TaskState;
use qoder_types::record::RecordBody;
use qoder_types::{TaskStarted, TaskStatus};

use crate::driver::Driver;
use crate::error::DriveError;
use crate::session::lost_agents;

impl Driver<'_> {
    /// Waits while agents work in the background. True when there is something to do again: an agent has ended, which
    /// the model reads in a turn of its own, or an input has arrived.
    pub(in crate::driver) async fn wait_for_agents(&mut self) -> Result<bool, DriveError> {
        let concerns = |task: &TaskState| task.start.is_agent() && !(task.end.is_some() && task.told);
        if !self.session.state.tasks.values().any(concerns) {
            return Ok(false);
        }
        loop {
            self.forward_task_events()?;
            self.end_abandoned_agents()?;
            self.take_arrived()?;
            if self.session.state.is_unfinished() {
                return Ok(true);
            }
            let agents = || self.session.state.tasks.values().filter(|task| task.start.is_agent());
            let news = |task: &&TaskState| {
                let end = task.end.as_ref().filter(|_| !task.told);
                end.is_some_and(|end| matches!(end.status, TaskStatus::Completed | TaskStatus::Failed))
            };
            let ended: Vec<String> = agents().filter(news).map(|task| task.start.task_id.clone()).collect();
            if !ended.is_empty() && self.limits.exhausted.is_none() {
                self.clock.restart();
                self.begin_clock();
                self.append_task_notices(&ended)?;
                return Ok(true);
            }
            let rests = |task: &TaskState| task.end.is_some() || self.is_parked(task);
            if agents().all(rests) || self.stopping.is_wanted() {
                return Ok(false);
            }
            let mut cancelled = self.stopping.wanted();
            tokio::select! {
                biased;
                () = &mut cancelled => {}
                () = self.session.task_events.arrival() => {}
                arrival = self.arrivals.next() => self.take_now(arrival).await?,
            }
        }
    }

    /// True when the process ends and the agent of this call stays as it is: the call gets no result, so that the next
    /// process continues it.
    pub(in crate::driver) fn is_left_open(&self, tool_use_id: &str) -> bool {
        let is_open = |task: &TaskState| {
            task.start.is_agent() && task.start.tool_use_id == tool_use_id && task.end.is_none()
        };
        self.ended_by().is_some() && self.session.state.tasks.values().any(is_open)
    }

    /// Ends agents that are on record as running and that no process runs. Waiting for them would never end.
    fn end_abandoned_agents(&mut self) -> Result<(), DriveError> {
        let abandoned = |task: &&TaskState| {
            task.start.is_agent()
                && task.end.is_none()
                && task.parked.is_none()
                && !self.engine.shared.is_running(&task.start.task_id)
        };
        let starts: Vec<_> =
            self.session.state.tasks.values().filter(abandoned).map(|task| task.start.clone()).collect();
        for start in starts {
            self.end_lost(&start)?;
        }
        Ok(())
    }

    /// Ends the agent of a call that has run without resuming it. Answers as [`Self::end_agent_of`].
    pub(in crate::driver) fn end_abandoned_agent_of(
        &mut self,
        tool_use_id: &str,
    ) -> Result<(Option<String>, Vec<String>), DriveError> {
        let abandoned = |task: &TaskState| {
            task.start.tool_use_id == tool_use_id
                && task.start.is_agent()
                && task.end.is_none()
                && !self.engine.shared.is_running(&task.start.task_id)
        };
        if self.session.state.tasks.values().any(abandoned) {
            return self.end_agent_of(tool_use_id);
        }
        Ok((None, Vec::new()))
    }

    /// Puts the unknown end of an agent on record and announces it.
    pub(in crate::driver) fn end_lost(&mut self, start: &TaskStarted) -> Result<(), DriveError> {
        self.session.append(RecordBody::TaskEnded(self.session.lost_end(start)))?;
        if self.quiet { Ok(()) } else { self.report_task_end(&start.task_id) }
    }

    /// Ends the agent that a call has started and that is not resumed. Answers with what the model reads of
    /// it, and with the agents whose end the model has not read yet.
    pub(in crate::driver) fn end_agent_of(
        &mut self,
        tool_use_id: &str,
    ) -> Result<(Option<String>, Vec<String>), DriveError> {
        let of_call =
            |task: &&TaskState| task.start.tool_use_id == tool_use_id && task.start.is_agent() && !task.told;
        let Some(TaskState { start, end, .. }) = self.session.state.tasks.values().find(of_call).cloned()
        else {
            return Ok((None, Vec::new()));
        };
        if end.is_none() {
            self.end_lost(&start)?;
        }
        Ok((Some(lost_agents::report(self.session.location(), &start)), vec![start.task_id]))
    }
}
