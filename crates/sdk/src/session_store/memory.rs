//! A store that lasts as long as the program: for tests, and as the shortest example of one. Clones share what they hold.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{SessionKey, SessionStore, SessionStoreEntry, SessionStoreListEntry, StoreResult};

/// A store in memory; clones are the same store.
#[derive(Debug, Clone, Default)]
pub struct InMemorySessionStore(Arc<Mutex<Logs>>);

#[derive(Debug, Default)]
struct Logs {
    entries: BTreeMap<SessionKey, Vec<SessionStoreEntry>>,
    /// When the own logs of sessions were last appended to.
    changed: BTreeMap<SessionKey, u64>,
}

impl InMemorySessionStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn logs(&self) -> MutexGuard<'_, Logs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionStore for InMemorySessionStore {
    async fn append(&self, key: &SessionKey, entries: &[SessionStoreEntry]) -> StoreResult<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let mut logs = self.logs();
        logs.entries.entry(key.clone()).or_default().extend_from_slice(entries);
        if key.subpath.is_none() {
            logs.changed.insert(key.clone(), u64::try_from(now).unwrap_or(u64::MAX));
        }
        Ok(())
    }

    async fn load(&self, key: &SessionKey) -> StoreResult<Option<Vec<SessionStoreEntry>>> {
        Ok(self.logs().entries.get(key).cloned())
    }

    async fn list_sessions(&self, project_key: &str) -> StoreResult<Vec<SessionStoreListEntry>> {
        let logs = self.logs();
        let sessions = logs.changed.iter().filter(|(key, _)| key.project_key == project_key);
        Ok(sessions
            .map(|(key, mtime)| SessionStoreListEntry { session_id: key.session_id.clone(), mtime: *mtime })
            .collect())
    }

    async fn list_subkeys(&self, key: &SessionKey) -> StoreResult<Vec<String>> {
        let logs = self.logs();
        let own = logs.entries.keys().filter(|each| is_of(each, key));
        Ok(own.filter_map(|each| each.subpath.clone()).collect())
    }

    async fn delete(&self, key: &SessionKey) -> StoreResult<()> {
        let mut logs = self.logs();
        if key.subpath.is_some() {
            logs.entries.remove(key);
        } else {
            logs.entries.retain(|each, _| !is_of(each, key));
            logs.changed.remove(key);
        }
        Ok(())
    }
}

fn is_of(each: &SessionKey, session: &SessionKey) -> bool {
    each.project_key == session.project_key && each.session_id == session.session_id
}
