//! What a session finds out about a server that no table says: the profile that its responses tell, and what it refused.
//!
//! A refusal that names a field or a limit becomes a change of the profile ([`lesson`]); the request goes out once more
//! with it, and so does every later one. Nothing is learned twice, so there is no loop.

mod field;
pub(crate) mod lesson;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use crate::profile::{Profile, overrides};

/// What was learned about servers. Clones share it, so that it outlives a change of the model.
#[derive(Debug, Clone, Default)]
pub struct Learned(Arc<Mutex<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    servers: BTreeMap<String, Known>,
    /// Notes that were given.
    notes: BTreeSet<String>,
    /// What an earlier run of the session learned, as `compat`.
    restored: BTreeMap<String, Value>,
}

#[derive(Debug, Clone)]
struct Known {
    profile: Profile,
    /// The lessons so far, each by its name.
    taught: BTreeSet<String>,
}

impl Learned {
    /// The profile that is in force at `place`, which starts as `configured`.
    pub(crate) fn profile(&self, place: &str, configured: Profile) -> Profile {
        let mut memory = self.lock();
        if let Some(compat) = memory.restored.remove(place)
            && let Ok(profile) = overrides::apply(configured, &compat, "compat")
        {
            memory.servers.insert(place.to_owned(), Known { profile, taught: BTreeSet::new() });
        }
        // What holds for the server holds for its models, unless more is known about one of them.
        let server = || place.rsplit_once(' ').and_then(|(server, _)| memory.servers.get(server));
        memory.servers.get(place).or_else(server).map_or(configured, |known| known.profile)
    }

    /// Notes the profile that a response showed.
    pub(crate) fn recognise(&self, server: &str, profile: Profile) {
        let mut memory = self.lock();
        memory.servers.entry(server.to_owned()).or_insert_with(|| Known { profile, taught: BTreeSet::new() });
    }

    /// Notes a lesson; false when it was taught before, so that asking again would not help.
    pub(crate) fn teach(&self, place: &str, lesson: &lesson::Lesson) -> bool {
        let mut memory = self.lock();
        let known = memory
            .servers
            .entry(place.to_owned())
            .or_insert_with(|| Known { profile: lesson.profile, taught: BTreeSet::new() });
        known.profile = lesson.profile;
        known.taught.insert(lesson.name.clone())
    }

    /// True for a note that was not given yet.
    pub(crate) fn is_news(&self, place: &str, note: &str) -> bool {
        self.lock().notes.insert(format!("{place} {note}"))
    }

    /// Takes up what an earlier run of the session learned about the server and model at `place`.
    pub fn restore(&self, place: &str, compat: &Value) {
        self.lock().restored.insert(place.to_owned(), compat.clone());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What `compat` must say so that `configured` becomes `profile`.
pub(crate) fn changes(configured: &Profile, profile: &Profile) -> Map<String, Value> {
    let mut all = Map::new();
    let named = crate::profile::profiles().iter().find(|row| row.name == profile.name);
    let start = match named {
        Some(row) if row.name != configured.name => {
            all.insert("profile".into(), row.name.into());
            row
        }
        _ => configured,
    };
    let (Ok(Value::Object(before)), Ok(Value::Object(after))) =
        (serde_json::to_value(start), serde_json::to_value(profile))
    else {
        return all;
    };
    all.extend(after.into_iter().filter(|(name, value)| before.get(name) != Some(value)));
    all
}
