//! The things that a conversation is made of on a screen: prompts, replies, calls, notices. A cell is finished once, and only
//! finished cells reach the scrollback.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::TodoItem;

/// One thing on the screen.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    /// Identifies it in this process.
    pub(crate) id: u64,
    /// What it is.
    pub(crate) body: CellBody,
    /// True when nothing of it changes from now on.
    pub(crate) is_finished: bool,
    /// The transcript entry that it belongs to.
    pub(crate) entry: String,
}

/// What a cell is.
#[derive(Debug, Clone)]
pub(crate) enum CellBody {
    /// What the person asked.
    Prompt(Prompt),
    /// What the model says, in Markdown.
    Reply {
        /// The text so far.
        text: String,
    },
    /// What the model thinks.
    Thinking {
        /// The text so far.
        text: String,
        /// How long it took; absent until it ends, and when it is not known.
        took: Option<Duration>,
        /// When it began.
        since: Option<Instant>,
    },
    /// Calls of tools: one, or several that only look at something.
    Calls(Vec<Call>),
    /// What a built-in command says.
    CommandOutput(String),
    /// Something the person should know.
    Notice(Notice),
    /// How the turn ended, when that is worth a line.
    End(TurnEnd),
    /// The model's list of steps, as it was at the end of the turn.
    Todo(Vec<TodoItem>),
    /// A line across the screen with a few words: a new conversation, a summary.
    Rule(String),
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// The transcript entry.
    pub(crate) uuid: String,
    /// What the person wrote.
    pub(crate) text: String,
    /// How many images came with it.
    pub(crate) images: usize,
}

/// How urgent a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// For information.
    Info,
    /// Take care.
    Warning,
    /// It failed.
    Error,
}

/// Something the person should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// How urgent it is.
    pub(crate) level: Level,
    /// What happened, and what to do.
    pub(crate) text: String,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TurnEnd {
    /// The person stopped it.
    Interrupted,
    /// It failed.
    Failed(Vec<String>),
    /// A limit was reached.
    Limit(String),
    /// It took long enough to say so.
    Done {
        /// Wall time.
        took: Duration,
        /// Dollars of the session so far.
        cost: f64,
    },
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The call; empty while its block is being written.
    pub(crate) id: String,
    /// The tool.
    pub(crate) tool: String,
    /// Its input; null while it is being written.
    pub(crate) input: Value,
    /// How far it is.
    pub(crate) progress: CallProgress,
    /// The last output while it runs.
    pub(crate) tail: Tail,
    /// Why it was denied.
    pub(crate) denial: Option<String>,
    /// Who else answered its question.
    pub(crate) answered_by: Option<String>,
    /// When it was first seen; none in a replay.
    pub(crate) since: Option<Instant>,
    /// Of an agent: what it does.
    pub(crate) agent: Option<AgentProgress>,
}

/// How far a call is.
#[derive(Debug, Clone)]
pub(crate) enum CallProgress {
    /// The model still writes its input.
    Written,
    /// It was made and has no result.
    Pending,
    /// It has its result.
    Done(Box<CallResult>),
}

/// The result of a call.
#[derive(Debug, Clone)]
pub(crate) struct CallResult {
    /// What the model reads.
    pub(crate) text: String,
    /// True when it failed, was denied, or has no known outcome.
    pub(crate) is_error: bool,
    /// The tool's typed output.
    pub(crate) structured: Value,
    /// How long it ran.
    pub(crate) took: Option<Duration>,
}

/// What an agent does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentProgress {
    /// The tool that it called last.
    pub(crate) last_tool: Option<String>,
    /// What that call is about.
    pub(crate) about: String,
    /// Its calls.
    pub(crate) calls: u64,
    /// Tokens of its model calls.
    pub(crate) tokens: u64,
}

impl Call {
    /// A call that was made.
    pub(crate) fn new(id: &str, tool: &str, input: Value, since: Option<Instant>) -> Self {
        Self {
            id: id.to_owned(),
            tool: tool.to_owned(),
            input,
            progress: CallProgress::Pending,
            tail: Tail::default(),
            denial: None,
            answered_by: None,
            since,
            agent: None,
        }
    }

    /// True when it has its result.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.progress, CallProgress::Done(_))
    }

    /// Its result.
    pub(crate) fn result(&self) -> Option<&CallResult> {
        match &self.progress {
            CallProgress::Done(result) => Some(result),
            CallProgress::Written | CallProgress::Pending => None,
        }
    }

    /// A text of its input.
    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        self.input.get(field).and_then(Value::as_str)
    }

    /// True for a tool that only looks at files: such calls in a row make one cell.
    pub(crate) fn only_looks(&self) -> bool {
        matches!(self.tool.as_str(), "Read" | "Grep" | "Glob")
    }
}

/// The most bytes of output that are held of a call that runs.
const MOST_TAIL: usize = 64 * 1024;

/// The end of the output of a call that runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    text: String,
    /// Lines that are no longer held.
    dropped: usize,
}

impl Tail {
    /// Adds output.
    pub(crate) fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        if self.text.len() > 2 * MOST_TAIL {
            let mut cut = self.text.len() - MOST_TAIL;
            while !self.text.is_char_boundary(cut) {
                cut += 1;
            }
            let at = self.text[cut..].find('\n').map_or(cut, |line| cut + line + 1);
            self.dropped += self.text[..at].matches('\n').count();
            self.text.drain(..at);
        }
    }

    /// The last lines, and how many came before them.
    pub(crate) fn last(&self, most: usize) -> (Vec<&str>, usize) {
        let text = self.text.strip_suffix('\n').unwrap_or(&self.text);
        if text.is_empty() {
            return (Vec::new(), self.dropped);
        }
        let total = text.matches('\n').count() + 1;
        let mut lines: Vec<&str> = text.rsplit('\n').take(most).collect();
        lines.reverse();
        (lines, self.dropped + total.saturating_sub(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_bounded_and_counts_what_it_dropped() {
        let mut tail = Tail::default();
        for number in 0..100_000 {
            tail.push(&format!("line {number}\n"));
        }
        assert!(tail.text.len() <= 2 * MOST_TAIL);
        let (lines, hidden) = tail.last(2);
        assert_eq!((lines, hidden), (vec!["line 99998", "line 99999"], 99_998));
    }

    #[test]
    fn a_line_that_is_not_complete_counts() {
        let mut tail = Tail::default();
        assert_eq!(tail.last(5), (vec![], 0));
        tail.push("a\nb");
        assert_eq!(tail.last(5), (vec!["a", "b"], 0));
        assert_eq!(tail.last(1), (vec!["b"], 1));
    }
}
