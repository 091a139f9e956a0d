//! What a status line shows: the model, the mode, the folder, what was used, and what the session is doing.

use std::collections::BTreeMap;
use std::time::Instant;

use qoder_protocol::SessionState;
use qoder_protocol::messages::{InitMessage, ResultMessage};
use qoder_types::{ModelTotals, PermissionMode};

/// What is known about the session.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// The session.
    pub(crate) session_id: String,
    /// The model that answers.
    pub(crate) model: String,
    /// True when the built-in offline model answers.
    pub(crate) offline: bool,
    /// The permission mode.
    pub(crate) mode: PermissionMode,
    /// The working directory.
    pub(crate) cwd: String,
    /// What the session is doing.
    pub(crate) state: SessionState,
    /// When the running turn began, and what it is doing.
    pub(crate) turn: Option<TurnFacts>,
    /// Dollars so far.
    pub(crate) cost: f64,
    /// Totals per model.
    pub(crate) totals: BTreeMap<String, ModelTotals>,
    /// Tokens that the last model call had in its context.
    pub(crate) context_tokens: u64,
    /// The model's window.
    pub(crate) context_window: u64,
    /// Lines that edits of this session added and removed.
    pub(crate) lines: (u64, u64),
    /// Wall time and model time of all turns, in milliseconds.
    pub(crate) durations: (u64, u64),
    /// Commands by name.
    pub(crate) commands: Vec<String>,
    /// The version of the program that drives the session.
    pub(crate) version: String,
    /// The name of the output style.
    pub(crate) output_style: String,
    /// The title.
    pub(crate) title: Option<String>,
}

/// What is known about the running turn.
#[derive(Debug, Clone)]
pub(crate) struct TurnFacts {
    /// When it began.
    pub(crate) since: Instant,
    /// What it is doing, when that is not the conversation.
    pub(crate) activity: Option<String>,
    /// True when anything of an answer has arrived.
    pub(crate) has_answer: bool,
    /// Characters of the reply that have arrived, for an estimate of its tokens.
    pub(crate) received: u64,
}

impl Facts {
    /// Of a session that nothing is known of.
    pub(crate) fn new(session_id: &str) -> Self {
        Self {
            session_id: session_id.to_owned(),
            model: String::new(),
            offline: false,
            mode: PermissionMode::Default,
            cwd: String::new(),
            state: SessionState::Idle,
            turn: None,
            cost: 0.0,
            totals: BTreeMap::new(),
            context_tokens: 0,
            context_window: 0,
            lines: (0, 0),
            durations: (0, 0),
            commands: Vec::new(),
            version: String::new(),
            output_style: "default".to_owned(),
            title: None,
        }
    }

    /// True while a turn runs or waits.
    pub(crate) fn is_running(&self) -> bool {
        self.turn.is_some()
    }

    /// Percent of the context that is used, when that is known.
    pub(crate) fn context_percent(&self) -> Option<u64> {
        (self.context_window > 0 && self.context_tokens > 0)
            .then(|| (self.context_tokens * 100 / self.context_window).min(100))
    }

    /// The person chose another model; which one a tier comes to is known with the next turn.
    pub(crate) fn choose_model(&mut self, model: String) {
        (self.model, self.offline, self.context_window) = (model, false, 0);
    }

    pub(super) fn begin_turn(&mut self, now: Instant) {
        self.state = SessionState::Running;
        self.turn.get_or_insert(TurnFacts { since: now, activity: None, has_answer: false, received: 0 });
    }

    pub(super) fn set_activity(&mut self, activity: Option<String>) {
        if let Some(turn) = &mut self.turn {
            turn.activity = activity;
        }
    }

    pub(super) fn answer_arrives(&mut self, characters: usize) {
        if let Some(turn) = &mut self.turn {
            turn.has_answer = true;
            turn.activity = None;
            turn.received += characters as u64;
        }
    }

    pub(super) fn take_init(&mut self, init: &InitMessage) {
        self.model.clone_from(&init.model);
        self.offline = init.offline;
        self.cwd.clone_from(&init.cwd);
        self.version.clone_from(&init.qodercli_version);
        self.commands.clone_from(&init.slash_commands);
        self.output_style.clone_from(&init.output_style);
        if let Some(mode) = PermissionMode::parse(&init.permission_mode) {
            self.mode = mode;
        }
    }

    pub(super) fn take_result(&mut self, result: &ResultMessage) {
        self.turn = None;
        self.state = SessionState::Idle;
        self.cost = result.total_cost_usd.unwrap_or_default();
        self.totals.clone_from(&result.model_usage);
        self.durations.0 += result.duration_ms;
        self.durations.1 += result.duration_api_ms;
        let window = result.model_usage.get(&self.model).map(|totals| totals.context_window);
        if let Some(window) = window.filter(|window| *window > 0) {
            self.context_window = window;
        }
    }
}
