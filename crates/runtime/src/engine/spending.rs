//! What a run may spend: money over all its turns, or over all runs of its session, and tokens in each turn. The session and the agents that it starts count into
//! the same purse, as they go, so that agents that run together cannot each spend the whole of it.

use std::sync::{Mutex, PoisonError};

use qoder_core::Exhausted;
use qoder_types::Usage;

/// The purse of a run.
#[derive(Debug, Default)]
pub struct Spending {
    max_cost_usd: Option<f64>,
    max_tokens: Option<u64>,
    /// True when the money is that of the session.
    is_of_session: bool,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Spent {
    cost_usd: f64,
    /// Of the turn that runs.
    tokens: u64,
    /// True once what earlier runs of the session spent is counted.
    is_continued: bool,
}

impl Spending {
    /// A purse with these limits; `None` is no limit.
    #[must_use]
    pub fn new(max_cost_usd: Option<f64>, max_tokens: Option<u64>) -> Self {
        Self { max_cost_usd, max_tokens, is_of_session: false, spent: Mutex::default() }
    }

    /// The same for all runs of the session together.
    #[must_use]
    pub fn of_session(mut self) -> Self {
        self.is_of_session = true;
        self
    }

    /// A run begins in a session that has spent this much; counts once, and only for a limit of the session.
    pub fn continue_from(&self, cost_usd: f64) {
        if self.is_of_session {
            self.change(|spent| {
                if !std::mem::replace(&mut spent.is_continued, true) {
                    spent.cost_usd += cost_usd;
                }
            });
        }
    }

    /// A model was asked.
    pub fn add(&self, usage: &Usage, cost_usd: f64) {
        self.change(|spent| {
            spent.cost_usd += cost_usd;
            spent.tokens += new_tokens(usage);
        });
    }

    /// A turn begins, or one continues that has used this much.
    pub fn begin_turn(&self, usage: &Usage) {
        self.change(|spent| spent.tokens = new_tokens(usage));
    }

    /// An agent continues that has used this much in an earlier run.
    pub fn recall(&self, usage: &Usage, cost_usd: f64) {
        self.change(|spent| {
            spent.tokens += new_tokens(usage);
            if self.is_of_session {
                spent.cost_usd += cost_usd;
            }
        });
    }

    /// What is spent, if something is.
    #[must_use]
    pub fn exhausted(&self) -> Option<Exhausted> {
        if self.max_cost_usd.is_none() && self.max_tokens.is_none() {
            return None;
        }
        let spent = *self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let money = self.max_cost_usd.filter(|most| spent.cost_usd >= *most);
        let tokens = self.max_tokens.filter(|most| spent.tokens >= *most);
        money
            .map(|most| Exhausted::Money(most.to_string()))
            .or_else(|| tokens.map(|most| Exhausted::Tokens(most.to_string())))
    }

    fn change(&self, change: impl FnOnce(&mut Spent)) {
        change(&mut self.spent.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// What was new to the provider: the conversation is sent with every request, and what its cache had is not counted again.
fn new_tokens(usage: &Usage) -> u64 {
    usage.input_tokens + usage.cache_creation_input_tokens + usage.output_tokens
}
