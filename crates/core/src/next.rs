//! What happens next: a pure function from the state to one step. The order of the questions is the order of the
//! functions in [`next`]; the first that answers decides.

use qoder_types::record::{TerminalReason, TurnEnded, TurnSubtype};
use qoder_types::{Actor, Behavior, ModelFailureClass, PermissionMode, Role, StopReason};

use crate::option_names::OptionNames;
use crate::recover::{CloseReason, Recovery, recovery};
use crate::state::structured::MOST_ATTEMPTS;
use crate::state::{ReplySummary, State, Turn};

/// Replies in a row that the output limit may cut before the turn ends.
pub(crate) const MAX_CONTINUATIONS: u32 = 3;
/// Summaries in a row, with hardly a reply between them, before the turn ends.
const MAX_QUICK_COMPACTIONS: u32 = 3;
/// Empty replies in a row before the turn ends.
const MAX_EMPTY_REPLIES: u32 = 3;

/// What bounds a session, apart from its records.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Model calls per turn; `None` is unlimited.
    pub max_turns: Option<u64>,
    /// The model's window in tokens.
    pub context_window: u64,
    /// The most tokens one reply may have.
    pub max_output_tokens: u64,
    /// The mode in force, for the record of the turn's end.
    pub permission_mode: PermissionMode,
    /// Set when what may be spent is spent; the model is no longer asked.
    pub exhausted: Option<Exhausted>,
    /// How messages name the options that would raise a limit.
    pub option_names: OptionNames,
}

/// What is spent, with its limit in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exhausted {
    /// The money of the run.
    Money(String),
    /// The tokens of the task.
    Tokens(String),
}

impl Limits {
    /// Context size, in tokens, from which older messages are replaced by a summary.
    #[must_use]
    pub fn compaction_threshold(&self) -> u64 {
        let reserve = self.max_output_tokens.min(self.context_window / 8);
        (self.context_window * 23 / 25).saturating_sub(reserve)
    }
}

/// How a turn ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndReason {
    /// The model finished.
    Completed,
    /// The turn limit was reached.
    MaxTurns(u64),
    /// The endpoint failed, with what to tell people and its status.
    ModelFailed {
        /// The failure in words.
        message: String,
        /// The HTTP status.
        status: Option<u16>,
        /// What kind of failure.
        class: ModelFailureClass,
    },
    /// The model said nothing, several times.
    EmptyReplies,
    /// The model or its provider refused.
    Refused,
    /// A person interrupted while the model spoke.
    AbortedStreaming,
    /// A person interrupted while tools ran.
    AbortedTools,
    /// A hook ended the turn or did not let it begin, with its reason.
    HookStopped(String),
    /// What may be spent is spent.
    Exhausted(Exhausted),
    /// The model did not give an answer that fits the schema.
    NoStructuredOutput,
}

/// One step of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing to do.
    Idle,
    /// Start the turn of the oldest waiting input.
    Promote,
    /// Give these calls an outcome without running them.
    Close(Vec<String>, CloseReason),
    /// Decide about these calls.
    Decide(Vec<String>),
    /// Ask the host or person about these calls; the questions are on record.
    Ask(Vec<String>),
    /// Answer these calls with the denial that is on record.
    Refuse(Vec<String>),
    /// Give these calls the results that came from outside.
    Deliver(Vec<String>),
    /// Run these calls; each has an allowing decision. Some may have run before and are repeatable.
    Run(Vec<String>),
    /// Say this to the model inside the turn.
    Notice(&'static str),
    /// Tell the model how these background tasks ended.
    AppendTaskNotices(Vec<String>),
    /// Replace older messages by a summary.
    Compact,
    /// Ask the model.
    CallModel,
    /// End the turn.
    End(EndReason),
}

/// What happens next.
#[must_use]
pub fn next(state: &State, limits: &Limits) -> Step {
    let Some(turn) = &state.turn else {
        return if state.inputs.is_empty() { Step::Idle } else { Step::Promote };
    };
    interrupted(state, turn)
        .or_else(|| stopped(state, turn))
        .or_else(|| open_calls(state))
        .or_else(|| failed(state, turn))
        .or_else(|| answered(state, turn))
        .or_else(|| replied(state, turn))
        .or_else(|| limited(turn, limits))
        .or_else(|| full(state, limits))
        .or_else(|| untold(state))
        .unwrap_or(Step::CallModel)
}

fn interrupted(state: &State, turn: &Turn) -> Option<Step> {
    let by = turn.interrupted.as_ref()?;
    let reason = if *by == Actor::Resume { CloseReason::NewPrompt } else { CloseReason::Interrupted };
    let open: Vec<String> = state.open_calls().map(|call| call.id.clone()).collect();
    if !open.is_empty() {
        return Some(Step::Close(open, reason));
    }
    if !turn.interrupt_noted {
        return Some(Step::Notice(match reason {
            CloseReason::NewPrompt => "[The previous turn was cut off before it finished.]",
            CloseReason::Interrupted | CloseReason::ProcessDied | CloseReason::Stopped => {
                "[Request interrupted by user]"
            }
        }));
    }
    let tools = turn.model_calls > 0 && !turn.requested;
    Some(Step::End(if tools { EndReason::AbortedTools } else { EndReason::AbortedStreaming }))
}

/// A hook ended the turn: what is open gets an outcome, and nothing else happens.
fn stopped(state: &State, turn: &Turn) -> Option<Step> {
    let reason = turn.stopped.as_ref()?;
    let open: Vec<String> = state.open_calls().map(|call| call.id.clone()).collect();
    Some(match open.is_empty() {
        true => Step::End(EndReason::HookStopped(reason.clone())),
        false => Step::Close(open, CloseReason::Stopped),
    })
}

fn open_calls(state: &State) -> Option<Step> {
    let open: Vec<_> = state.open_calls().collect();
    if open.is_empty() {
        return None;
    }
    let ids =
        |calls: Vec<&&crate::state::Call>| calls.into_iter().map(|call| call.id.clone()).collect::<Vec<_>>();
    let unknown: Vec<_> = open
        .iter()
        .filter(|call| call.started.is_some_and(|replay| recovery(replay) == Recovery::CloseUnknown))
        .collect();
    if !unknown.is_empty() {
        return Some(Step::Close(ids(unknown), CloseReason::ProcessDied));
    }
    let (waiting, undecided): (Vec<_>, Vec<_>) = open
        .iter()
        .filter(|call| call.decision.is_none())
        .partition(|call| call.asked.is_some() && call.answer.is_none());
    if !undecided.is_empty() {
        return Some(Step::Decide(ids(undecided)));
    }
    if !waiting.is_empty() {
        return Some(Step::Ask(ids(waiting)));
    }
    // No decision means no: only an allowing decision lets a call run.
    let (allowed, refused): (Vec<_>, Vec<_>) = open.iter().partition(|call| {
        call.decision.as_ref().is_some_and(|decision| decision.behavior == Behavior::Allow)
    });
    if !refused.is_empty() {
        return Some(Step::Refuse(ids(refused)));
    }
    let (delivered, runnable): (Vec<_>, Vec<_>) =
        allowed.into_iter().partition(|call| call.external_result().is_some());
    if !delivered.is_empty() {
        return Some(Step::Deliver(ids(delivered)));
    }
    Some(Step::Run(ids(runnable)))
}

fn failed(state: &State, turn: &Turn) -> Option<Step> {
    let failure = turn.failure.as_ref()?;
    let may_shrink = !turn.compaction_failed && !turn.compaction_blocked;
    let can_shrink = state.prompt.len() > 1 && state.context.replies > 0 && may_shrink;
    if failure.class == ModelFailureClass::ContextTooLong && can_shrink {
        return Some(Step::Compact);
    }
    Some(Step::End(EndReason::ModelFailed {
        message: failure.message.clone(),
        status: failure.status,
        class: failure.class,
    }))
}

fn replied(state: &State, turn: &Turn) -> Option<Step> {
    let reply = turn.reply.as_ref()?;
    if !state.calls.is_empty() {
        return None;
    }
    match &reply.stop_reason {
        Some(StopReason::PauseTurn) => return None,
        Some(StopReason::Refusal) => return Some(Step::End(EndReason::Refused)),
        _ => {}
    }
    if reply.empty && !is_finished(turn, reply) {
        return Some(if turn.empty_replies < MAX_EMPTY_REPLIES {
            Step::Notice("Your last reply was empty. Continue with the task, or say that it is finished.")
        } else {
            Step::End(if has_spoken(state) { EndReason::Completed } else { EndReason::EmptyReplies })
        });
    }
    if reply.stop_reason == Some(StopReason::MaxTokens) && turn.continuations <= MAX_CONTINUATIONS {
        return Some(Step::Notice(
            "Your reply was cut off by the output limit. Continue exactly where it stopped, without repeating anything.",
        ));
    }
    Some(missing_answer(state, turn).unwrap_or(Step::End(EndReason::Completed)))
}

/// True when the model has said or done something in this conversation; then it may have nothing to add.
fn has_spoken(state: &State) -> bool {
    state.prompt.iter().any(|message| message.message.role == Role::Assistant)
}

/// True when an empty reply is the end that the model wanted: its tools have done the work, and it stopped by itself.
fn is_finished(turn: &Turn, reply: &ReplySummary) -> bool {
    let by_itself = match &reply.stop_reason {
        None | Some(StopReason::EndTurn | StopReason::StopSequence) => true,
        Some(
            StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::PauseTurn
            | StopReason::Refusal
            | StopReason::Other(_),
        ) => false,
    };
    by_itself && turn.used_tools
}

fn limited(turn: &Turn, limits: &Limits) -> Option<Step> {
    if let Some(exhausted) = &limits.exhausted {
        return Some(Step::End(EndReason::Exhausted(exhausted.clone())));
    }
    let max = limits.max_turns.filter(|max| *max > 0)?;
    (turn.model_calls >= max).then_some(Step::End(EndReason::MaxTurns(max)))
}

fn full(state: &State, limits: &Limits) -> Option<Step> {
    let may_shrink = state.turn.as_ref().is_none_or(|turn| !turn.compaction_blocked);
    let worth_it = state.prompt.len() > 2 && state.context.replies > 0 && may_shrink;
    if !worth_it || state.context.tokens() <= limits.compaction_threshold() {
        return None;
    }
    if state.turn.as_ref().is_some_and(|turn| turn.quick_compactions >= MAX_QUICK_COMPACTIONS) {
        return Some(Step::End(EndReason::ModelFailed {
            message: "The conversation fills the model's context again right after each summary. Ask for less at a \
                      time, or use a model with a larger window."
                .to_owned(),
            status: None,
            class: ModelFailureClass::ContextTooLong,
        }));
    }
    Some(Step::Compact)
}

/// After a summary rather than before it: the notice would be summarised away.
fn untold(state: &State) -> Option<Step> {
    let ids: Vec<String> = state.untold_tasks().map(|task| task.start.task_id.clone()).collect();
    (!ids.is_empty()).then_some(Step::AppendTaskNotices(ids))
}

/// The record of a turn's end.
#[must_use]
pub fn turn_end(state: &State, limits: &Limits, reason: &EndReason, duration_ms: u64) -> TurnEnded {
    let turn = state.turn.clone().unwrap_or_default();
    let (subtype, terminal_reason, errors, error_code, api_error_status) =
        describe(reason, limits.option_names);
    let success = subtype == TurnSubtype::Success;
    let structured_output = turn.structured.answer.filter(|_| success);
    // A reader of text alone gets the answer too.
    let text = match &structured_output {
        Some(answer) if turn.last_text.trim().is_empty() => answer.to_string(),
        Some(_) | None => turn.last_text,
    };
    TurnEnded {
        subtype,
        terminal_reason,
        is_error: !success,
        result: success.then_some(text),
        structured_output,
        errors,
        error_code,
        api_error_status,
        stop_reason: turn.stop_reason,
        num_turns: turn.model_calls,
        duration_ms,
        duration_api_ms: turn.duration_api_ms,
        usage: turn.usage,
        total_cost_usd: state.total_cost_usd,
        model_usage: state.totals.clone(),
        permission_denials: turn.denials,
        calls_run: turn.calls_run,
        subagents: state.unlisted_accounts().cloned().collect(),
        permission_mode: limits.permission_mode,
    }
}

type Description = (TurnSubtype, TerminalReason, Vec<String>, Option<u32>, Option<u16>);

fn describe(reason: &EndReason, names: OptionNames) -> Description {
    let during = TurnSubtype::ErrorDuringExecution;
    match reason {
        EndReason::Completed => (TurnSubtype::Success, TerminalReason::Completed, Vec::new(), None, None),
        EndReason::MaxTurns(max) => (
            TurnSubtype::ErrorMaxTurns,
            TerminalReason::MaxTurns,
            vec![format!(
                "Reached the maximum number of turns ({max}). Raise {} or resume the session.",
                names.name("max-turns")
            )],
            Some(47_902),
            None,
        ),
        EndReason::ModelFailed { message, status, class } => {
            let message = names.reword(message).into_owned();
            (during, TerminalReason::ApiError, vec![message], failure_code(*class), *status)
        }
        EndReason::EmptyReplies => (
            during,
            TerminalReason::ApiError,
            vec![format!("The model returned {MAX_EMPTY_REPLIES} empty replies in a row.")],
            Some(10_500),
            None,
        ),
        EndReason::Refused => (
            during,
            TerminalReason::ApiError,
            vec!["The model or its provider refused to answer.".to_owned()],
            Some(406),
            None,
        ),
        EndReason::AbortedStreaming => (
            during,
            TerminalReason::AbortedStreaming,
            vec!["Interrupted by the user.".to_owned()],
            None,
            None,
        ),
        EndReason::HookStopped(reason) => {
            (during, TerminalReason::HookStopped, vec![reason.clone()], Some(48_716), None)
        }
        EndReason::Exhausted(Exhausted::Money(limit)) => (
            TurnSubtype::ErrorMaxBudgetUsd,
            TerminalReason::MaxBudget,
            vec![format!(
                "Reached the maximum budget (${limit}). Raise {} or resume the session.",
                names.name("max-budget-usd")
            )],
            None,
            None,
        ),
        EndReason::Exhausted(Exhausted::Tokens(limit)) => (
            TurnSubtype::ErrorMaxTaskBudget,
            TerminalReason::MaxTaskBudget,
            vec![format!(
                "Used the tokens of the task ({limit}). Raise {} or send another prompt.",
                names.name("task-budget")
            )],
            None,
            None,
        ),
        EndReason::NoStructuredOutput => (
            TurnSubtype::ErrorMaxStructuredOutputRetries,
            TerminalReason::StructuredOutputRetries,
            vec![format!("The model gave no answer that fits the schema in {} attempts.", MOST_ATTEMPTS)],
            None,
            None,
        ),
        EndReason::AbortedTools => {
            (during, TerminalReason::AbortedTools, vec!["Interrupted by the user.".to_owned()], None, None)
        }
    }
}

/// The documented number of a failure.
fn failure_code(class: ModelFailureClass) -> Option<u32> {
    match class {
        ModelFailureClass::Authentication => Some(105),
        ModelFailureClass::ContextTooLong => Some(80_411),
        ModelFailureClass::InvalidRequest => Some(416),
        ModelFailureClass::Network => Some(500),
        ModelFailureClass::Timeout => Some(10_408),
        ModelFailureClass::Server
        | ModelFailureClass::Overloaded
        | ModelFailureClass::MalformedStream
        | ModelFailureClass::RateLimit => Some(10_500),
        ModelFailureClass::Permission
        | ModelFailureClass::Quota
        | ModelFailureClass::NotFound
        | ModelFailureClass::Configuration => None,
    }
}

/// What the model reads when it ends without having given its answer.
const REMINDER: &str = "You have not given your final answer yet. Give it now by calling the tool StructuredOutput; its input \
is the answer, and it must fit the tool's schema.";

/// The turn ends as soon as the answer is there, or when it was tried often enough.
fn answered(state: &State, turn: &Turn) -> Option<Step> {
    let structured = &turn.structured;
    if structured.is_fresh {
        return Some(Step::End(EndReason::Completed));
    }
    let given_up = structured.answer.is_none() && structured.fruitless >= MOST_ATTEMPTS;
    (given_up && state.wants_structured_output()).then_some(Step::End(EndReason::NoStructuredOutput))
}

/// The model ended without a call: it is reminded while its answer is missing.
fn missing_answer(state: &State, turn: &Turn) -> Option<Step> {
    let missing = turn.structured.answer.is_none() && state.wants_structured_output();
    missing.then_some(Step::Notice(REMINDER))
}
