//! Whether inputs may be taken now, and what follows from taking them: a pure function from the session's head, its actions
//! and the inputs of one request. All of them are taken or none.

use qoder_types::record::InputOrigin;
use qoder_types::{ExternalResult, InboxBody, ToolResultContent};

use crate::model::dialect::Dialect;
use crate::model::ids::{EventId, ThreadId};
use crate::model::inputs::{Effect, Input};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::status::{Status, StopReason};

/// What the model of a thread reads that is stopped while a call of it waits.
const STOPPED: &str = "The user stopped this agent.";

/// What a session is doing when a request arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its status.
    pub status: Status,
    /// True when it takes no more events.
    pub is_archived: bool,
    /// True while a node drives it.
    pub is_leased: bool,
    /// True while it works towards an outcome.
    pub has_outcome: bool,
    /// True when workers run its tools.
    pub is_self_hosted: bool,
}

/// What an action waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// Allow or deny.
    Ask,
    /// The result of a call that the client runs.
    Custom,
    /// The result of a call that a worker runs.
    Worker,
    /// Allow or deny; a worker runs the call that is allowed.
    Gated,
    /// The result of a call that a worker runs because it was allowed.
    Confirmed,
}

impl ActionKind {
    const ALL: [Self; 5] = [Self::Ask, Self::Custom, Self::Worker, Self::Gated, Self::Confirmed];

    /// The word in rows.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Custom => "custom",
            Self::Worker => "worker",
            Self::Gated => "gated",
            Self::Confirmed => "confirmed",
        }
    }

    /// The kind of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The event that answers such an action.
    fn wants(self) -> &'static str {
        match self {
            Self::Ask | Self::Gated => "user.tool_confirmation",
            Self::Custom => "user.custom_tool_result",
            Self::Worker | Self::Confirmed => "user.tool_result",
        }
    }
}

/// What an input answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answering {
    Confirmation { allow: bool },
    CustomResult,
    WorkerResult,
}

impl Answering {
    /// The field that names the action.
    fn field(self) -> &'static str {
        match self {
            Self::Confirmation { .. } | Self::WorkerResult => "tool_use_id",
            Self::CustomResult => "custom_tool_use_id",
        }
    }

    fn fits(self, kind: ActionKind, is_confirmed: bool) -> bool {
        match (self, kind) {
            (Self::Confirmation { .. }, ActionKind::Ask | ActionKind::Gated | ActionKind::Confirmed)
            | (Self::CustomResult, ActionKind::Custom)
            | (Self::WorkerResult, ActionKind::Worker | ActionKind::Confirmed) => true,
            (Self::WorkerResult, ActionKind::Gated) => is_confirmed,
            (Self::Confirmation { .. }, ActionKind::Custom | ActionKind::Worker)
            | (Self::CustomResult, ActionKind::Ask | ActionKind::Gated)
            | (Self::CustomResult, ActionKind::Worker | ActionKind::Confirmed)
            | (Self::WorkerResult, ActionKind::Ask | ActionKind::Custom) => false,
        }
    }
}

/// Whether an action still waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionState {
    /// It does.
    Open,
    /// It has an answer.
    Answered {
        /// The event of the answer.
        event: EventId,
        /// The token that sent it.
        token: String,
        /// Identifies the result.
        digest: Option<Vec<u8>>,
    },
    /// Its turn was stopped.
    Closed,
}

/// A call that waits, or has waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The event that clients answer.
    pub event: EventId,
    /// What it waits for.
    pub kind: ActionKind,
    /// The runtime's id of the call.
    pub call_id: String,
    /// Whether it still waits.
    pub state: ActionState,
    /// The thread whose call it is; none for the session's own.
    pub thread: Option<ThreadId>,
}

/// What becomes of one input.
#[derive(Debug, Clone, PartialEq)]
pub enum Taken {
    /// It is stored.
    Stored {
        /// The input.
        input: Box<Input>,
        /// False while it is queued.
        is_processed: bool,
        /// What the session's inbox gets.
        entries: Vec<InboxBody>,
        /// The thread that it is for; none for the session itself.
        thread: Option<ThreadId>,
    },
    /// The same result was stored before; this is its event.
    Replayed(EventId),
}

/// An event about the session itself that follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Follows {
    /// `session.status_running`.
    Running,
    /// `session.status_idle` with what still waits.
    Idle(StopReason),
}

/// What follows from taking inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    /// What becomes of each input, in order.
    pub taken: Vec<Taken>,
    /// True when every open action is closed without an answer.
    pub closes_all: bool,
    /// Open actions that are closed without an answer.
    pub closes: Vec<EventId>,
    /// An event about the session that follows.
    pub follows: Option<Follows>,
    /// True when a node has to take the session up.
    pub wakes: bool,
}

impl Admission {
    /// True when the session may have something for a worker from now on.
    #[must_use]
    pub fn needs_worker(&self) -> bool {
        let is_work = |taken: &Taken| match taken {
            Taken::Stored { input, .. } => !matches!(input.effect, Effect::Interrupt { .. }),
            Taken::Replayed(_) => false,
        };
        self.taken.iter().any(is_work)
    }
}

/// Takes inputs. `actions` are those that are open, in the order of their events, and those that the inputs name.
///
/// # Errors
/// When one of them cannot be taken.
pub fn admit(
    head: Head,
    actions: &[Action],
    (dialect, token): (Dialect, &str),
    inputs: Vec<Input>,
) -> Result<Admission, Refusal> {
    if head.is_archived {
        return Err(Refusal::conflict(
            "The session is archived and takes no more events. Create another session.",
        ));
    }
    if head.status == Status::Terminated {
        return Err(Refusal::conflict("The session is terminated. Create another session."));
    }
    let open = actions.iter().filter(|action| action.state == ActionState::Open).map(|action| action.event);
    let mut state = Taking {
        head,
        actions,
        dialect,
        token,
        open: open.collect(),
        answered: Vec::new(),
        confirmed: Vec::new(),
        starts: false,
        interrupts: false,
        closes_all: false,
        closes: Vec::new(),
    };
    let take = |(index, input)| {
        state.take(input).map_err(|refusal| match refusal {
            Refusal::Invalid(problem) => Refusal::Invalid(problem.inside(&format!("events[{index}]"))),
            Refusal::NotFound(_) | Refusal::Conflict { .. } => refusal,
        })
    };
    let taken = inputs.into_iter().enumerate().map(take).collect::<Result<Vec<_>, _>>()?;
    Ok(state.admission(taken))
}

/// The state of a session while inputs are taken.
struct Taking<'a> {
    head: Head,
    actions: &'a [Action],
    dialect: Dialect,
    token: &'a str,
    open: Vec<EventId>,
    answered: Vec<EventId>,
    /// Allowed by the same request, and still open: a worker brings the result.
    confirmed: Vec<EventId>,
    starts: bool,
    interrupts: bool,
    closes_all: bool,
    closes: Vec<EventId>,
}

impl Taking<'_> {
    fn take(&mut self, input: Input) -> Result<Taken, Refusal> {
        let mut thread = None;
        let (is_processed, entries) = match &input.effect {
            Effect::Message(message) => {
                let is_processed = self.message()?;
                let entry = InboxBody::Input { message: message.clone(), origin: InputOrigin::User };
                (is_processed, vec![entry])
            }
            Effect::Outcome(outcome) => {
                let entry = InboxBody::Input { message: outcome.task(), origin: InputOrigin::User };
                self.outcome()?;
                (true, vec![entry])
            }
            Effect::System(message) => {
                (false, vec![InboxBody::Input { message: message.clone(), origin: InputOrigin::System }])
            }
            Effect::Interrupt { thread: None } => {
                (true, self.interrupt().then_some(InboxBody::Interrupt {}).into_iter().collect())
            }
            Effect::Interrupt { thread: Some(stopped) } => {
                thread = Some(*stopped);
                (true, self.interrupt_thread(*stopped))
            }
            Effect::Confirm { action, allow, message } => {
                match self.answer(*action, Answering::Confirmation { allow: *allow }, None)? {
                    Answer::Counts(tool_use_id, of) => {
                        thread = of;
                        let entry = InboxBody::Answer {
                            tool_use_id,
                            agent_id: of.map(ThreadId::agent),
                            allow: *allow,
                            message: message.clone(),
                            updated_input: None,
                            updated_permissions: Vec::new(),
                            always: false,
                            interrupt: false,
                        };
                        (true, vec![entry])
                    }
                    Answer::Confirms(of) => {
                        thread = of;
                        (true, Vec::new())
                    }
                    Answer::Replayed(event) => return Ok(Taken::Replayed(event)),
                }
            }
            Effect::Result { by_worker, action, result, digest } => {
                let answering = if *by_worker { Answering::WorkerResult } else { Answering::CustomResult };
                match self.answer(*action, answering, Some(digest))? {
                    Answer::Counts(tool_use_id, of) => {
                        thread = of;
                        let (agent_id, result) = (of.map(ThreadId::agent), result.clone());
                        (true, vec![InboxBody::Result { tool_use_id, agent_id, result }])
                    }
                    Answer::Confirms(_) => (true, Vec::new()),
                    Answer::Replayed(event) => return Ok(Taken::Replayed(event)),
                }
            }
        };
        Ok(Taken::Stored { input: Box::new(input), is_processed, entries, thread })
    }

    /// Takes a message; true when it begins a turn at once.
    fn message(&mut self) -> Result<bool, Refusal> {
        let idle = self.head.status == Status::Idle && self.open.is_empty();
        if idle && !self.starts {
            self.starts = true;
            return Ok(true);
        }
        // Behind what the same request starts or stops, a message has its place in any dialect.
        if self.starts || self.interrupts || self.dialect == Dialect::Claude {
            return Ok(false);
        }
        Err(Refusal::conflict(match self.head.status {
            Status::Idle => {
                "The session waits for answers to its pending actions. Answer them, or cancel the turn, before you send a \
                 message."
            }
            Status::Running => {
                "The session is running. Wait for `session.status_idle`, or stop the turn with `user.interrupt`."
            }
            Status::Rescheduling | Status::Terminated => {
                "The session is being rescheduled. Wait for `session.status_idle`."
            }
        }))
    }

    /// Takes an outcome. A session has one at a time.
    fn outcome(&mut self) -> Result<(), Refusal> {
        if self.head.has_outcome {
            return Err(Refusal::conflict(
                "The session works towards an outcome already. Wait until it is over, or stop it with `user.interrupt`.",
            ));
        }
        self.message()?;
        self.head.has_outcome = true;
        Ok(())
    }

    /// True when there is something to stop.
    fn interrupt(&mut self) -> bool {
        let runs = matches!(self.head.status, Status::Running | Status::Rescheduling);
        if !runs && self.open.is_empty() {
            return false;
        }
        self.closes_all |= !self.open.is_empty();
        self.open.clear();
        self.interrupts = true;
        true
    }

    /// What stops one thread: its calls that wait are answered, so that its agent comes to its end; one that runs is stopped.
    fn interrupt_thread(&mut self, thread: ThreadId) -> Vec<InboxBody> {
        let is_open = |action: &&Action| action.thread == Some(thread) && self.open.contains(&action.event);
        let waiting: Vec<&Action> = self.actions.iter().filter(is_open).collect();
        if waiting.is_empty() {
            let runs = matches!(self.head.status, Status::Running | Status::Rescheduling);
            let request = serde_json::json!({ "subtype": "stop_task", "task_id": thread.agent() });
            return runs.then_some(InboxBody::Request { request }).into_iter().collect();
        }
        let agent_id = Some(thread.agent());
        let mut entries = Vec::new();
        for action in waiting {
            let (tool_use_id, agent_id) = (action.call_id.clone(), agent_id.clone());
            entries.push(match action.kind {
                ActionKind::Ask | ActionKind::Worker | ActionKind::Gated | ActionKind::Confirmed => {
                    InboxBody::Answer {
                        tool_use_id,
                        agent_id,
                        allow: false,
                        message: Some(STOPPED.to_owned()),
                        updated_input: None,
                        updated_permissions: Vec::new(),
                        always: false,
                        interrupt: true,
                    }
                }
                ActionKind::Custom => InboxBody::Result {
                    tool_use_id,
                    agent_id,
                    result: ExternalResult {
                        content: ToolResultContent::Text(STOPPED.to_owned()),
                        is_error: true,
                    },
                },
            });
            self.closes.push(action.event);
            self.answered.push(action.event);
        }
        self.open.retain(|open| !self.closes.contains(open));
        entries
    }

    fn answer(
        &mut self,
        event: EventId,
        answering: Answering,
        digest: Option<&Vec<u8>>,
    ) -> Result<Answer, Refusal> {
        let field = answering.field();
        if answering == Answering::WorkerResult && !self.head.is_self_hosted {
            let problem = "is `user.tool_result`, which only a session in a self-hosted environment takes";
            return Err(Problem::field("type", problem).into());
        }
        let Some(action) = self.actions.iter().find(|action| action.event == event) else {
            return Err(Problem::field(field, format!("is `{event}`, and no such action is pending")).into());
        };
        let is_confirmed = self.confirmed.contains(&event);
        if !answering.fits(action.kind, is_confirmed) {
            let problem = format!("is `{event}`, which waits for a `{}`", action.kind.wants());
            return Err(Problem::field(field, problem).into());
        }
        let confirms = matches!(answering, Answering::Confirmation { .. });
        if self.answered.contains(&event) || (confirms && is_confirmed) {
            return Err(Refusal::conflict(format!("The request answers `{event}` twice.")));
        }
        if confirms && action.kind == ActionKind::Confirmed {
            return Err(Refusal::conflict(format!("`{event}` was allowed before. The first answer counts.")));
        }
        match &action.state {
            ActionState::Open if self.open.contains(&event) => {
                if action.kind == ActionKind::Gated && answering == (Answering::Confirmation { allow: true })
                {
                    self.confirmed.push(event);
                    return Ok(Answer::Confirms(action.thread));
                }
                self.open.retain(|open| *open != event);
                self.answered.push(event);
                Ok(Answer::Counts(action.call_id.clone(), action.thread))
            }
            ActionState::Answered { event: first, token, digest: stored }
                if self.dialect == Dialect::Claude
                    && digest.is_some()
                    && stored.as_ref() == digest
                    && token == self.token =>
            {
                Ok(Answer::Replayed(*first))
            }
            ActionState::Answered { event: first, .. } => Err(Refusal::conflict(format!(
                "`{event}` was answered before, by `{first}`. The first answer counts."
            ))),
            // Workers of this dialect repeat a result for minutes when they read a conflict.
            ActionState::Open | ActionState::Closed
                if self.dialect == Dialect::Claude && answering == Answering::WorkerResult =>
            {
                let problem = format!("is `{event}`, which is no longer pending: its turn was stopped");
                Err(Problem::field(field, problem).into())
            }
            ActionState::Open | ActionState::Closed => {
                Err(Refusal::conflict(format!("`{event}` is no longer pending: its turn was stopped.")))
            }
        }
    }

    fn admission(self, taken: Vec<Taken>) -> Admission {
        let idle = self.head.status == Status::Idle;
        let resumes = !self.answered.is_empty() && self.open.is_empty() && !self.interrupts;
        let answers = !self.answered.is_empty() || !self.confirmed.is_empty();
        let follows = if idle && (self.starts || resumes) {
            Some(Follows::Running)
        } else if idle && answers && !self.interrupts && !self.head.is_leased {
            Some(Follows::Idle(StopReason::requires(&self.open)))
        } else {
            None
        };
        let wakes = self.starts || resumes || self.interrupts;
        Admission { taken, closes_all: self.closes_all, closes: self.closes, follows, wakes }
    }
}

enum Answer {
    /// It is the first; the call, and whose it is.
    Counts(String, Option<ThreadId>),
    /// It allows the call, whose result a worker brings; whose it is.
    Confirms(Option<ThreadId>),
    /// It was stored before; its event.
    Replayed(EventId),
}
