//! Agents whose process ended while they worked: what their logs say of them. They are not resumed here; their end is
//! recorded with what they had done and used.

use qoder_core::State;
use qoder_types::{AgentAccount, TaskStarted, TaskStatus};

use super::account::account;
use crate::session::apply_line;
use crate::store::SessionLocation;

/// The most characters of last words that a report has.
const WORDS: usize = 1_000;

/// What an agent that was cut off had used, by its log; `session` is where the session that started it is kept.
pub(crate) fn used(session: &SessionLocation, start: &TaskStarted) -> AgentAccount {
    account(&fold(&session.agent(&start.task_id)), start, TaskStatus::Unknown, 0)
}

/// What the model reads of an agent that was cut off.
pub(crate) fn report(session: &SessionLocation, start: &TaskStarted) -> String {
    let agent = session.agent(&start.task_id);
    let state = fold(&agent);
    let had_ended = state.turn.is_none() && state.last_turn.is_some();
    let what = if had_ended { "had just ended" } else { "was cut off" };
    let mut text = format!(
        "The agent {} ({}) {what} after {} model calls and {} tool calls, and does not go on.",
        start.command, start.task_id, state.model_calls, state.tool_results,
    );
    if let Some(files) = agent.files() {
        text.push_str(&format!(" Its log is {}.", files.log.display()));
    }
    let open: Vec<&str> = state.open_calls().map(|call| call.name.as_str()).collect();
    if !open.is_empty() {
        text.push_str(&format!(" Nobody knows how these calls of it ended: {}.", open.join(", ")));
    }
    let turn = state.turn.map(|turn| turn.last_text);
    let words = turn.or_else(|| state.last_turn.and_then(|end| end.result)).unwrap_or_default();
    if !words.trim().is_empty() {
        let words: String = words.trim().chars().take(WORDS).collect();
        text.push_str(&format!(" Its last words were:\n{words}"));
    }
    text
}

/// What can be read of a log.
fn fold(agent: &SessionLocation) -> State {
    let mut state = State::default();
    // What precedes a damage counts; a log that is not there says nothing.
    let _ = agent.read(|line| apply_line(&mut state, line));
    state
}
