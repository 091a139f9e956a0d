//! Agents that wait: an agent whose call waits ends its drive, and its parent continues it from its log once there is an
//! answer. The log of the parent says which calls wait, so a later process continues agents in the background as well.

use qoder_config::agents::NAME as AGENT_TOOL;
use qoder_core::state::{Call, TaskState};
use qoder_protocol::{ActionId, Answer};
use qoder_types::record::{RecordBody, TurnEnded};
use qoder_types::{CallOutcome, ParkedCall, TaskParked};
use tokio::sync::mpsc;

use crate::driver::Driver;
use crate::driver::calls::asking::LateAnswer;
use crate::error::{DriveError, SessionError, WaitingCall};
use crate::events::AnswerError;
use crate::session::Session;
use crate::session::agent_logs;
use crate::store::StoreError;

impl Driver<'_> {
    /// Puts on record that an agent waits.
    pub(in crate::driver) fn park_agent(&mut self, parked: TaskParked) -> Result<(), DriveError> {
        let task = self.session.state.tasks.get(&parked.task_id);
        let Some(call) = task.filter(|task| task.end.is_none()).map(|task| task.start.tool_use_id.clone())
        else {
            return Ok(());
        };
        if self.session.state.is_resumable(&call) {
            self.waiting.park(call, parked.calls.clone());
        }
        self.session.parked_here.insert(parked.task_id.clone());
        self.session.append(RecordBody::TaskParked(Box::new(parked)))?;
        Ok(())
    }

    /// True for an agent that waits and is not driven now.
    pub(in crate::driver) fn is_parked(&self, task: &TaskState) -> bool {
        task.parked.is_some() && !self.engine.shared.is_running(&task.start.task_id)
    }

    /// Runs calls, but not those whose agents wait. When nothing else is left to run, the turn waits with them.
    pub(in crate::driver) async fn run_unparked(&mut self, ids: &[String]) -> Result<(), DriveError> {
        let is_ready = |id: &&String| !self.waiting.waits(id);
        let ready: Vec<String> = ids.iter().filter(is_ready).cloned().collect();
        if !ready.is_empty() {
            return self.run_calls(&ready).await;
        }
        if self.engine.outlet.has_answerer() {
            // One came after the agents had stopped waiting.
            self.waiting.clear();
        } else {
            self.look_for_answers().await?;
        }
        if self.stopping.is_wanted() {
            return self.interrupt_turn();
        }
        if ids.iter().any(|id| !self.waiting.waits(id)) {
            self.engine.shared.adopt(self.session.state.tasks.values());
            return Ok(());
        }
        Err(DriveError::Waiting(self.waiting.calls().map(|call| self.waiting_call(call)).collect()))
    }

    /// Takes what other processes have left for agents that wait.
    async fn look_for_answers(&mut self) -> Result<(), DriveError> {
        let mut taken = self.engine.outlet.take_left_answers();
        let mut cancelled = self.stopping.wanted();
        loop {
            tokio::select! {
                biased;
                () = &mut cancelled => return Ok(()),
                () = &mut taken => return Ok(()),
                arrival = self.arrivals.next() => self.take_now(arrival).await?,
            }
        }
    }

    /// Continues the agents in the background that an earlier drive left waiting: those that were answered, those that this
    /// process has not driven, and all of them while an answerer is attached.
    pub(in crate::driver) async fn resume_parked_agents(&mut self) -> Result<(), DriveError> {
        let resumed: Vec<TaskState> = if self.engine.outlet.has_answerer() {
            self.session.parked_in_background().filter(|task| self.is_parked(task)).cloned().collect()
        } else {
            self.session.agents_to_resume().filter(|task| self.is_parked(task)).cloned().collect()
        };
        for task in resumed {
            let input = task.parked.as_ref().and_then(|parked| parked.input.clone());
            let tool = self.engine.toolbox.get(AGENT_TOOL);
            let Some((tool, input)) = tool.zip(input) else {
                self.end_lost(&task.start)?;
                continue;
            };
            let (output, _) = mpsc::channel(1);
            let mut starting = tool.run(input, self.context(&task.start.tool_use_id, &output));
            let started = loop {
                tokio::select! {
                    started = &mut starting => break started,
                    () = self.session.task_events.arrival() => self.forward_task_events()?,
                    arrival = self.arrivals.next() => self.take_now(arrival).await?,
                }
            };
            if started.outcome != CallOutcome::Completed {
                self.end_lost(&task.start)?;
            }
        }
        Ok(())
    }

    /// Nothing is left to do. An agent does not end while agents of its own wait.
    pub(in crate::driver) fn idle(
        &mut self,
        ended: Option<TurnEnded>,
    ) -> Result<Option<TurnEnded>, DriveError> {
        match &self.engine.agent {
            Some(_) => self.waiting_in_background().map(|()| ended),
            None => Ok(ended),
        }
    }

    /// Fails when agents in the background wait.
    pub(crate) fn waiting_in_background(&self) -> Result<(), DriveError> {
        let parked = self.session.parked_in_background().filter_map(|task| task.parked.as_ref());
        let calls: Vec<WaitingCall> =
            parked.flat_map(|parked| &parked.calls).map(|call| self.waiting_call(call)).collect();
        if calls.is_empty() { Ok(()) } else { Err(DriveError::Waiting(calls)) }
    }

    fn waiting_call(&self, call: &ParkedCall) -> WaitingCall {
        WaitingCall {
            session_id: self.session.id.clone(),
            agent_id: Some(call.agent_id.clone()),
            tool_use_id: call.tool_use_id.clone(),
            tool_name: call.tool_name.clone(),
            kind: call.kind,
            reason: call.reason.clone(),
        }
    }

    /// Takes the answer to a call of an agent that waits: into the log of that agent, which is continued with it.
    pub(in crate::driver) fn answer_parked(
        &mut self,
        action: &ActionId,
        answer: Answer,
    ) -> Result<LateAnswer, DriveError> {
        let is_meant = |call: &&ParkedCall| {
            call.tool_use_id == action.tool_use_id
                && action.agent_id.as_ref().is_none_or(|agent| call.agent_id == *agent)
        };
        let parked = self.session.state.running_tasks().filter(|task| self.is_parked(task));
        let calls = parked.filter_map(|task| task.parked.as_ref()).flat_map(|parked| {
            parked.calls.iter().filter(is_meant).map(|call| (parked.task_id.clone(), call.agent_id.clone()))
        });
        let meant: Vec<(String, String)> = calls.collect();
        let (task_id, agent_id) = match meant.as_slice() {
            [] => return Ok(LateAnswer::Unknown),
            [one] => one.clone(),
            _ => return Ok(LateAnswer::Refused(AnswerError::Ambiguous)),
        };
        let Some(mut agent) = self.open_agent(&agent_id)? else { return Ok(LateAnswer::Unknown) };
        let id = action.tool_use_id.as_str();
        let Some(asked) = agent.state.call(id).and_then(|call| call.asked.clone()) else {
            return Ok(LateAnswer::Unknown);
        };
        if let Some(first) = agent.state.call(id).and_then(|call: &Call| call.answer.clone()) {
            return Ok(LateAnswer::Lost(Box::new(first)));
        }
        if let Some(error) = AnswerError::of_misfit(&answer, asked.kind) {
            return Ok(LateAnswer::Refused(error));
        }
        let updates = self.usable_updates(answer.updated_permissions.clone())?;
        agent.append(RecordBody::Answered(Box::new(answer.into_record(id, updates.clone()))))?;
        agent.sync()?;
        self.persist(&updates)?;
        self.session.parked_here.remove(&task_id);
        self.waiting.answered(&agent_id);
        Ok(LateAnswer::Accepted)
    }

    /// True for an agent that runs, or is run by one that does.
    pub(crate) fn may_still_ask(&mut self, agent_id: &str) -> Result<bool, DriveError> {
        let runs = |id: &str| self.session.state.running_tasks().any(|task| task.start.task_id == id);
        if runs(agent_id) {
            return Ok(true);
        }
        let logs = agent_logs(self.session.location()).map_err(SessionError::from)?;
        let parent = |id: &str| logs.iter().find(|log| log.agent_id == id)?.parent_agent_id.as_deref();
        Ok(std::iter::successors(parent(agent_id), |id| parent(id)).take(logs.len()).any(runs))
    }

    /// The session of an agent that is not driven; `None` when it is, or is not kept.
    fn open_agent(&self, agent_id: &str) -> Result<Option<Session>, DriveError> {
        let logs = agent_logs(self.session.location()).map_err(SessionError::from)?;
        let Some(log) = logs.into_iter().find(|log| log.agent_id == agent_id) else { return Ok(None) };
        let cwd = std::path::Path::new(&self.session.state.cwd);
        match Session::open(log.location, self.session.redactor().clone(), cwd) {
            Ok(session) => Ok(Some(session)),
            Err(SessionError::Storage(StoreError::Locked { .. })) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
