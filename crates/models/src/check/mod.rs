//! Tries a model for real: what it can do, and what the server in front of it takes. Each probe is a small request
//! whose reply is looked at; a probe that could cost more than is left of the budget is not tried.

mod budget;
mod conversation;
mod probes;

use std::sync::Arc;
use std::time::Duration;

use qoder_core::ports::Model;
use qoder_types::{ModelFailure, ModelFailureClass};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::error::ModelConfigError;
use crate::learn::{self, Learned};
use crate::resolve::{list_of, named_route, provider_model, resolve};
use crate::routes::Route;
use crate::settings::{ModelOptions, catalog};

use budget::Budget;
use probes::Probes;

/// What is tried, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// The list of models.
    List,
    /// A short answer.
    Text,
    /// The answer in pieces.
    Stream,
    /// Token counts.
    Usage,
    /// A call of a tool, and an answer to its result.
    ToolCall,
    /// Two calls in one reply.
    ParallelCalls,
    /// A picture in the prompt.
    Image,
    /// Reasoning, and a second turn that sends it back.
    Reasoning,
    /// A prompt of some thousand tokens.
    LongInput,
}

impl Probe {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::List,
        Self::Text,
        Self::Stream,
        Self::Usage,
        Self::ToolCall,
        Self::ParallelCalls,
        Self::Image,
        Self::Reasoning,
        Self::LongInput,
    ];

    /// Its name in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Text => "text",
            Self::Stream => "stream",
            Self::Usage => "usage",
            Self::ToolCall => "tool call",
            Self::ParallelCalls => "parallel calls",
            Self::Image => "image",
            Self::Reasoning => "reasoning",
            Self::LongInput => "long input",
        }
    }

    /// True for what every session needs.
    #[must_use]
    pub fn is_required(self) -> bool {
        match self {
            Self::Text | Self::ToolCall => true,
            Self::List
            | Self::Stream
            | Self::Usage
            | Self::ParallelCalls
            | Self::Image
            | Self::Reasoning
            | Self::LongInput => false,
        }
    }
}

/// How a probe ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It works.
    Works,
    /// The request was accepted, and the reply is less than what was asked for.
    Partly,
    /// It fails.
    Fails,
    /// It was not tried.
    Skipped,
}

impl Verdict {
    /// Its name in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Partly => "partly",
            Self::Fails => "fails",
            Self::Skipped => "skipped",
        }
    }
}

/// How long a probe is waited for.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// How often it is said that a probe is waited for.
    report_every: Duration,
    /// How many such times there are.
    rounds: u32,
}

impl Patience {
    /// A session waits longer; a check should end while a person looks at it.
    const USUAL: Self = Self { report_every: Duration::from_secs(5), rounds: 24 };

    fn longest(self) -> Duration {
        self.report_every * self.rounds
    }
}

/// What is said while a check runs.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// A probe ended.
    Found(&'a Finding),
    /// The server has not answered a probe yet.
    Waiting {
        /// The probe.
        probe: Probe,
        /// For how long it is waited.
        elapsed: Duration,
    },
}

/// What one probe showed.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The probe.
    pub probe: Probe,
    /// How it ended.
    pub verdict: Verdict,
    /// What was seen, in one line.
    pub detail: String,
    /// How long it took.
    pub duration_ms: u64,
    /// The class of the failure, where a request failed.
    pub failure: Option<ModelFailureClass>,
}

/// A model that is about to be checked.
pub struct Check {
    options: ModelOptions,
    model: Arc<dyn Model>,
    max_cost_usd: f64,
}

/// What was found out.
#[derive(Debug, Clone)]
pub struct CheckReport {
    /// What each probe showed.
    pub findings: Vec<Finding>,
    /// What it cost in dollars; `None` where no price is known.
    pub cost_usd: Option<f64>,
    /// The profile of the server; `None` for a model that needs none.
    pub profile: Option<CheckedProfile>,
}

/// The profile that the server showed.
#[derive(Debug, Clone)]
pub struct CheckedProfile {
    /// The provider whose settings decide it.
    pub provider: String,
    /// The wire protocol.
    pub protocol: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Why it was chosen, for people.
    pub reason: String,
    /// What `compat` of the provider must say so that nothing has to be found out again; empty when nothing was.
    pub compat: Map<String, Value>,
}

impl CheckReport {
    /// True when everything that a session needs works.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        let is_bad = |finding: &&Finding| finding.probe.is_required() && finding.verdict == Verdict::Fails;
        !self.findings.iter().any(|finding| is_bad(&finding))
    }

    /// The class of the first failure, for an exit code.
    #[must_use]
    pub fn first_failure(&self) -> Option<ModelFailureClass> {
        self.findings.iter().filter(|finding| finding.probe.is_required()).find_map(|finding| finding.failure)
    }
}

impl Check {
    /// The model that `name` means: a model's name, or the name of a provider for its default model.
    ///
    /// # Errors
    /// When the name or the configuration means no model.
    pub fn new(
        options: &ModelOptions,
        name: Option<&str>,
        max_cost_usd: f64,
    ) -> Result<Self, ModelConfigError> {
        let mut options = options.clone();
        if let Some(name) = name {
            options.model = Some(provider_model(&options, name)?.unwrap_or_else(|| name.to_owned()));
        }
        options.fallback_model = None;
        options.learned = Learned::default();
        // A probe shows what the server does now; more attempts forgive a lost connection and a server that still starts.
        options.max_attempts = options.max_attempts.min(3);
        let model = resolve(&options)?;
        Ok(Self { options, model, max_cost_usd })
    }

    /// The model's name and its provider.
    #[must_use]
    pub fn subject(&self) -> (String, String) {
        let facts = self.model.facts();
        (facts.name, facts.provider)
    }

    /// Tries everything, and reports each finding when it is there, and meanwhile that it is waited for.
    pub async fn run(self, mut on_progress: impl FnMut(Progress<'_>)) -> CheckReport {
        let price = catalog::lookup(&self.options, &self.model.facts().name).price;
        let route = named_route(&self.options).ok().flatten();
        let budget = Budget::new(self.max_cost_usd, price, route.is_some());
        let mut probes = Probes::new(Arc::clone(&self.model), budget);
        let mut findings: Vec<Finding> = Vec::new();
        let mut stopped: Option<&str> = None;
        for probe in Probe::ALL {
            let started = Instant::now();
            let tried = async {
                match (stopped, probe, &route) {
                    (_, Probe::List, Some(route)) => match list_of(route, &self.options).await {
                        Ok(models) => probes::listed(&models, &route.model),
                        Err(failure) => probes::failed(&failure),
                    },
                    (_, Probe::List, None) => probes::skipped("this model has no list"),
                    (Some(why), _, _) => probes::skipped(why),
                    (None, _, _) => probes.run(probe).await,
                }
            };
            let waiting = |elapsed| on_progress(Progress::Waiting { probe, elapsed });
            let outcome = within_limit(tried, Patience::USUAL, waiting).await;
            if probe == Probe::Text && outcome.verdict == Verdict::Fails {
                stopped = Some("no request was answered");
            }
            let finding = Finding {
                probe,
                verdict: outcome.verdict,
                detail: outcome.detail,
                duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                failure: outcome.failure,
            };
            on_progress(Progress::Found(&finding));
            findings.push(finding);
        }
        let profile = route.as_ref().map(|route| self.profile(route));
        CheckReport { findings, cost_usd: price.map(|_| probes.spent()), profile }
    }

    fn profile(&self, route: &Route) -> CheckedProfile {
        let configured = route.profile();
        let shown = self.options.learned.profile(&route.learned_under(), configured);
        let reason = match shown.name == configured.name {
            true => route.profile_in_force().reason,
            false => "its responses tell".to_owned(),
        };
        CheckedProfile {
            provider: route.provider.clone(),
            protocol: route.protocol.name(),
            name: shown.name,
            reason,
            compat: learn::changes(&configured, &shown),
        }
    }
}

/// What the probe showed, or that it took too long.
async fn within_limit(
    tried: impl Future<Output = probes::Outcome>,
    patience: Patience,
    mut on_waiting: impl FnMut(Duration),
) -> probes::Outcome {
    let started = Instant::now();
    let mut tried = std::pin::pin!(tried);
    for _ in 1..patience.rounds {
        match tokio::time::timeout(patience.report_every, tried.as_mut()).await {
            Ok(outcome) => return outcome,
            Err(_) => on_waiting(started.elapsed()),
        }
    }
    let last = tokio::time::timeout(patience.report_every, tried).await;
    last.unwrap_or_else(|_| probes::unanswered(patience.longest()))
}

/// The one line of a failure that a table has room for.
fn one_line(failure: &ModelFailure) -> String {
    failure.message.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_probe_that_is_not_answered_is_reported_and_ends() {
        let mut waited = Vec::new();
        let patience = Patience { report_every: Duration::from_millis(2), rounds: 24 };
        let outcome = within_limit(std::future::pending(), patience, |elapsed| waited.push(elapsed)).await;
        assert_eq!(outcome.verdict, Verdict::Fails);
        assert_eq!(waited.len(), 23);
        let is_due = |(round, elapsed): (u32, &Duration)| *elapsed >= patience.report_every * round;
        assert!((1..).zip(&waited).all(is_due), "{waited:?}");
        assert_eq!(probes::unanswered(Patience::USUAL.longest()).detail, "no answer within 120 s");
    }
}
