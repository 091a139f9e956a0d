//! How many agents a session may have: at one time, in each other, and in all. Those that find no room wait their turn;
//! the other two limits refuse. Every layer of the settings may lower a limit; only the user may let agents start agents.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use qoder_types::RuleSource;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::session::sidecar;
use crate::store::SessionLocation;
use qoder_config::settings::Settings;

/// Agents that work at the same time, at each depth.
const MOST_CONCURRENT: u64 = 8;
/// How deep agents may start agents: those of the session itself are at depth 1, and start none.
const USUAL_DEPTH: u64 = 1;
/// The deepest that a user may choose.
const MOST_DEPTH: u64 = 10;
/// Agents of one session.
const MOST_IN_ALL: u64 = 200;

/// The limits in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// Agents that work at the same time, at each depth.
    pub concurrent: u64,
    /// How deep agents may start agents.
    pub depth: u64,
    /// Agents of one session.
    pub total: u64,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self { concurrent: MOST_CONCURRENT, depth: USUAL_DEPTH, total: MOST_IN_ALL }
    }
}

impl AgentLimits {
    /// The lowest that any layer of the settings names. The depth begins with what the user chose.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let named = |key: &str| {
            let pointer = format!("/agents/{key}");
            let numbers = settings.layers.iter().filter_map(move |layer| {
                Some((layer.source, layer.value.pointer(&pointer).and_then(Value::as_u64)?))
            });
            numbers.collect::<Vec<_>>()
        };
        let lowest =
            |key: &str, most: u64| named(key).iter().fold(most, |least, (_, value)| least.min(*value));
        let depths = named("maxDepth");
        let (folder, own): (Vec<_>, Vec<_>) =
            depths.into_iter().partition(|(source, _)| is_of_folder(*source));
        let chosen = own.last().map_or(USUAL_DEPTH, |(_, value)| (*value).min(MOST_DEPTH));
        Self {
            concurrent: lowest("maxConcurrent", MOST_CONCURRENT).max(1),
            depth: folder.iter().fold(chosen, |least, (_, value)| least.min(*value)),
            total: lowest("maxTotal", MOST_IN_ALL),
        }
    }
}

/// True for layers that come with the folder: they may lower the depth and not raise it.
fn is_of_folder(source: RuleSource) -> bool {
    match source {
        RuleSource::ProjectSettings | RuleSource::LocalSettings => true,
        RuleSource::UserSettings
        | RuleSource::FlagSettings
        | RuleSource::CliArg
        | RuleSource::Command
        | RuleSource::Session => false,
    }
}

/// The room that all agents of a session share.
#[derive(Debug)]
pub(super) struct AgentSlots {
    limits: AgentLimits,
    /// One for each depth: an agent that waits for its own agents holds its place, and must not wait for itself.
    levels: Vec<Arc<Semaphore>>,
    started: AtomicU64,
    earlier: OnceLock<u64>,
    /// The agents that worked in this process.
    known: Mutex<HashSet<String>>,
}

impl AgentSlots {
    pub(super) fn new(limits: AgentLimits) -> Self {
        let places = usize::try_from(limits.concurrent).unwrap_or(1);
        let level = |_| Arc::new(Semaphore::new(places));
        let levels = (0..limits.depth.max(1)).map(level).collect();
        let (started, earlier, known) = (AtomicU64::new(0), OnceLock::new(), Mutex::default());
        Self { limits, levels, started, earlier, known }
    }

    /// True the first time that an agent works in this process.
    pub(super) fn is_new_here(&self, agent_id: &str) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(agent_id.to_owned())
    }

    /// True when agents at this depth may start agents.
    pub(super) fn has_depth_below(&self, depth: u64) -> bool {
        depth < self.limits.depth
    }

    /// Counts an agent that is about to start. `session` has the logs of those that earlier processes started.
    pub(super) fn enter(&self, session: &SessionLocation) -> Result<(), String> {
        let earlier = match self.earlier.get() {
            Some(earlier) => *earlier,
            None => {
                let counted = sidecar::count(session).map_err(|error| error.to_string())?;
                *self.earlier.get_or_init(|| counted)
            }
        };
        let started = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        if earlier + started > self.limits.total {
            self.started.fetch_sub(1, Ordering::Relaxed);
            return Err(format!(
                "the session has started {} agents, which is the most there may be (`agents.maxTotal`)",
                self.limits.total
            ));
        }
        Ok(())
    }

    /// Waits for a place at this depth, which counts from 1.
    pub(super) async fn place(&self, depth: u64) -> Option<OwnedSemaphorePermit> {
        let level = usize::try_from(depth).unwrap_or(1).saturating_sub(1);
        let level = self.levels.get(level).or(self.levels.last())?;
        // The semaphore is never closed.
        Arc::clone(level).acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_agents_is_bounded() {
        let slots = AgentSlots::new(AgentLimits { total: 2, ..AgentLimits::default() });
        let session = SessionLocation::in_memory("s", "/nowhere".into());
        assert!(slots.enter(&session).is_ok() && slots.enter(&session).is_ok());
        let refused = slots.enter(&session).unwrap_err();
        assert!(refused.contains("started 2 agents") && refused.contains("agents.maxTotal"), "{refused}");
    }

    #[test]
    fn agents_beyond_the_limit_wait_and_others_are_at_other_depths() {
        use futures::FutureExt;
        let slots = AgentSlots::new(AgentLimits { concurrent: 1, depth: 2, total: 9 });
        let first = slots.place(1).now_or_never().unwrap().unwrap();
        assert!(slots.place(1).now_or_never().is_none());
        let second = slots.place(2).now_or_never().unwrap().unwrap();
        drop(first);
        assert!(slots.place(1).now_or_never().is_some());
        drop(second);
        assert!(slots.has_depth_below(1) && !slots.has_depth_below(2));
    }
}
