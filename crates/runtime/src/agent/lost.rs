//! Agents whose process ended while they worked: what their logs say of them. Nobody goes on with them here; their end is
//! told with what they had done and used.

use std::path::Path;

use qoder_core::State;
use qoder_types::{TaskEnded, TaskStarted, TaskStatus};

use super::FOLDER;
use super::account::account;
use super::sidecar::PREFIX;
use crate::layout::SessionPaths;
use crate::session::apply_line;
use crate::store::jsonl::scan;

/// The most characters of last words that a report has.
const WORDS: usize = 1_000;

/// The files of an agent that the session whose folder is `side` has started.
pub(crate) fn paths(side: &Path, agent_id: &str) -> SessionPaths {
    SessionPaths::new(&side.join(FOLDER), &format!("{PREFIX}{agent_id}"))
}

/// The end of an agent that was cut off.
pub(crate) fn end(side: Option<&Path>, start: &TaskStarted) -> TaskEnded {
    let state = side.map_or_else(State::default, |side| fold(&paths(side, &start.task_id)));
    TaskEnded {
        task_id: start.task_id.clone(),
        status: TaskStatus::Unknown,
        summary: format!(
            "Agent \"{}\" was cut off: the program ended while it worked, after {} model calls",
            start.description, state.model_calls
        ),
        exit_code: None,
        account: Some(Box::new(account(&state, start, TaskStatus::Unknown, 0))),
    }
}

/// What the model is told of an agent that was cut off.
pub(crate) fn report(side: Option<&Path>, start: &TaskStarted) -> String {
    let Some(paths) = side.map(|side| paths(side, &start.task_id)) else {
        return format!("The agent {} was cut off.", start.command);
    };
    let state = fold(&paths);
    let had_ended = state.turn.is_none() && state.last_turn.is_some();
    let what = if had_ended { "had just ended" } else { "was cut off" };
    let mut text = format!(
        "The agent {} ({}) {what} after {} model calls and {} tool calls, and does not go on. Its log is {}.",
        start.command,
        start.task_id,
        state.model_calls,
        state.tool_results,
        paths.log.display()
    );
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
fn fold(paths: &SessionPaths) -> State {
    let mut state = State::default();
    // What stands before a damage counts; a log that is not there says nothing.
    let _ = scan(paths, |line| apply_line(&mut state, line));
    state
}
