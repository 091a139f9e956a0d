//! What a session is doing, as its lease and its log say: whether a process drives it, and whether a turn runs or waits.

use std::time::SystemTime;

use qoder_core::State;
use qoder_runtime::layout::SessionPaths;
use qoder_runtime::session::apply_line;
use qoder_store::lease::holder;
use qoder_store::line::Line;
use qoder_store::scan;
use serde_json::{Value, json};

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// A process drives a turn.
    Running,
    /// A call waits for an answer.
    Waiting,
    /// A process holds the session and waits for a prompt.
    Idle,
    /// A turn was cut off, and no process drives it.
    Unfinished,
    /// No process drives it, and nothing is owed.
    Ended,
}

/// What a session is doing, and since when.
#[derive(Debug, Clone)]
pub struct Status {
    /// What it is doing.
    pub doing: Doing,
    /// Since when, as records write it.
    pub since: Option<String>,
    /// The process that drives it.
    pub pid: Option<u32>,
}

impl Doing {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Idle => "idle",
            Self::Unfinished => "unfinished",
            Self::Ended => "ended",
        }
    }
}

impl Status {
    /// Looks at a session. The whole log is read only where a process drives it or its end says that a turn is open.
    pub fn of(paths: &SessionPaths, modified: SystemTime) -> Self {
        let held = holder(paths);
        let pid = held.and_then(|holder| holder.pid);
        if held.is_none() && ends_with_a_turn(paths) {
            return Self { doing: Doing::Ended, since: text(modified), pid };
        }
        let mut state = State::default();
        let mut phase = None;
        let mut since = None;
        // A log that cannot be read to its end says what it says up to there.
        let _ = scan(paths, |line| {
            let at = match &line {
                Line::Record(record) => Some(record.timestamp.clone()),
                Line::Foreign(_) => None,
            };
            apply_line(&mut state, line);
            let now = (waits(&state), state.is_unfinished());
            if phase.replace(now) != Some(now) {
                since = at;
            }
        });
        let doing = match (held.is_some(), waits(&state), state.is_unfinished()) {
            (_, true, _) => Doing::Waiting,
            (true, false, true) => Doing::Running,
            (true, false, false) => Doing::Idle,
            (false, false, true) => Doing::Unfinished,
            (false, false, false) => Doing::Ended,
        };
        Self { doing, since: since.or_else(|| text(modified)), pid }
    }

    /// What a list shows: for a session that a process drives also since when, in the time zone of lists.
    pub fn words(&self) -> String {
        let time = match self.doing {
            Doing::Running | Doing::Waiting | Doing::Idle => self.since.as_deref().and_then(clock),
            Doing::Unfinished | Doing::Ended => None,
        };
        let word = self.doing.as_str();
        time.map_or_else(|| word.to_owned(), |time| format!("{word} since {time}"))
    }

    /// As data.
    pub fn to_json(&self) -> Value {
        json!({ "status": self.doing.as_str(), "since": self.since, "pid": self.pid })
    }
}

/// True when a call has no answer.
fn waits(state: &State) -> bool {
    state.open_calls().any(|call| call.asked.is_some() && call.answer.is_none())
}

/// The hour and minute of a record's time.
fn clock(time: &str) -> Option<String> {
    let time: jiff::Timestamp = time.parse().ok()?;
    Some(time.strftime("%H:%M").to_string())
}

/// True when the last record of the log is the end of a turn, which is so for nearly all that no process drives.
fn ends_with_a_turn(paths: &SessionPaths) -> bool {
    use std::os::unix::fs::FileExt;
    const TAIL: u64 = 64 * 1024;
    let Ok(file) = std::fs::File::open(&paths.log) else { return false };
    let Ok(length) = file.metadata().map(|metadata| metadata.len()) else { return false };
    let start = length.saturating_sub(TAIL);
    let mut tail = vec![0; usize::try_from(length - start).unwrap_or(0)];
    if file.read_exact_at(&mut tail, start).is_err() {
        return false;
    }
    let records = tail.split(|byte| *byte == b'\n').rev().filter_map(|line| {
        let value: Value = serde_json::from_slice(line).ok()?;
        value.get("seq")?;
        value["type"].as_str().map(str::to_owned)
    });
    records.into_iter().next().is_some_and(|kind| kind == "turn-end")
}

fn text(time: SystemTime) -> Option<String> {
    jiff::Timestamp::try_from(time).ok().map(|time| time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}
