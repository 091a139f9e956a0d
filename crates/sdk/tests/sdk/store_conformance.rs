//! The suite that users run on their own stores: stores that keep the rules pass, and each way to break one is found by
//! the rule that is about it.

#![expect(dead_code, reason = "the example's own main function is for it as a program")]

use qoder_agent_sdk::testing::{SESSION_STORE_RULES, check_session_store_rule, session_store_conformance};
use qoder_agent_sdk::{
    InMemorySessionStore, SessionKey, SessionStore, SessionStoreEntry, SessionStoreError,
    SessionStoreListEntry, StoreResult,
};

use crate::support::{Place, within};

#[path = "../../examples/file_session_store.rs"]
mod file_session_store;

#[tokio::test]
async fn the_store_in_memory_keeps_all_rules() {
    let checked = within(session_store_conformance(InMemorySessionStore::new)).await.unwrap();
    assert_eq!(checked, SESSION_STORE_RULES);
}

#[tokio::test]
async fn the_store_in_files_keeps_all_rules() {
    let place = Place::new();
    let folder = place.0.home().join("store");
    let make = || file_session_store::FileSessionStore(folder.clone());
    assert_eq!(within(session_store_conformance(make)).await.unwrap(), SESSION_STORE_RULES);
}

#[tokio::test]
async fn the_example_goes_on_from_its_files() {
    let place = Place::new();
    let store = file_session_store::FileSessionStore(place.0.home().join("store"));
    let options = place.options().model("offline").session_store(store);
    assert_eq!(within(file_session_store::run(options)).await.unwrap().len(), 36);
}

/// A way to break a rule.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Bare,
    Fails,
    Reverses,
    DropsNulls,
    EmptyForUnknown,
    IgnoresCase,
    OneSubkey,
    SecondsForTimes,
    KeepsAgents,
    DeletesAll,
    RefusesUnknown,
    OnlySmall,
    RefusesRepeats,
    CutsNames,
}

struct Faulty(Fault, InMemorySessionStore);

impl Faulty {
    fn key(&self, key: &SessionKey) -> SessionKey {
        let mut key = key.clone();
        match self.0 {
            Fault::IgnoresCase => key.project_key = key.project_key.to_lowercase(),
            Fault::CutsNames => key.subpath = key.subpath.map(|name| name.replace('/', "_")),
            _ => {}
        }
        key
    }
}

impl SessionStore for Faulty {
    async fn append(&self, key: &SessionKey, entries: &[SessionStoreEntry]) -> StoreResult<()> {
        let key = self.key(key);
        match self.0 {
            Fault::Fails => return Err(SessionStoreError::failed("no connection")),
            Fault::OnlySmall if entries.len() > 100 => return Err(SessionStoreError::failed("too many")),
            Fault::RefusesRepeats => {
                let known = self.1.load(&key).await?.unwrap_or_default();
                if entries.iter().any(|entry| known.contains(entry)) {
                    return Err(SessionStoreError::failed("duplicate key"));
                }
            }
            Fault::DropsNulls => {
                let mut entries = entries.to_vec();
                for entry in entries.iter_mut().filter_map(|entry| entry.get_mut("empty")) {
                    entry["nothing"] = "".into();
                }
                return self.1.append(&key, &entries).await;
            }
            _ => {}
        }
        self.1.append(&key, entries).await
    }

    async fn load(&self, key: &SessionKey) -> StoreResult<Option<Vec<SessionStoreEntry>>> {
        let mut entries = self.1.load(&self.key(key)).await?;
        match self.0 {
            Fault::Reverses => entries.iter_mut().for_each(|entries| entries.reverse()),
            Fault::EmptyForUnknown => entries = Some(entries.unwrap_or_default()),
            _ => {}
        }
        Ok(entries)
    }

    async fn list_sessions(&self, project_key: &str) -> StoreResult<Vec<SessionStoreListEntry>> {
        if self.0 == Fault::Bare {
            return Err(SessionStoreError::LeftOut("list_sessions"));
        }
        let mut rows = self.1.list_sessions(project_key).await?;
        if self.0 == Fault::SecondsForTimes {
            rows.iter_mut().for_each(|row| row.mtime /= 1000);
        }
        Ok(rows)
    }

    async fn list_subkeys(&self, key: &SessionKey) -> StoreResult<Vec<String>> {
        if self.0 == Fault::Bare {
            return Err(SessionStoreError::LeftOut("list_subkeys"));
        }
        let mut subpaths = self.1.list_subkeys(key).await?;
        if self.0 == Fault::OneSubkey {
            subpaths.truncate(1);
        }
        Ok(subpaths)
    }

    async fn delete(&self, key: &SessionKey) -> StoreResult<()> {
        match self.0 {
            Fault::Bare => Err(SessionStoreError::LeftOut("delete")),
            Fault::KeepsAgents if key.subpath.is_none() => {
                let kept = self.1.load(&key.with_subpath("subagents/agent-a")).await?.unwrap_or_default();
                self.1.delete(key).await?;
                self.1.append(&key.with_subpath("subagents/agent-a"), &kept).await
            }
            Fault::DeletesAll => self.1.delete(&SessionKey { subpath: None, ..key.clone() }).await,
            Fault::RefusesUnknown if self.1.load(key).await?.is_none() => {
                Err(SessionStoreError::failed("not found"))
            }
            _ => self.1.delete(key).await,
        }
    }
}

#[tokio::test]
async fn each_way_to_break_a_rule_is_found_by_it() {
    let cases = [
        (Fault::Reverses, "append-order"),
        (Fault::DropsNulls, "deep-equality"),
        (Fault::EmptyForUnknown, "unknown-key"),
        (Fault::IgnoresCase, "keys-are-separate"),
        (Fault::OneSubkey, "subkeys-listed"),
        (Fault::SecondsForTimes, "session-list"),
        (Fault::KeepsAgents, "delete-cascades"),
        (Fault::DeletesAll, "delete-of-a-subpath"),
        (Fault::RefusesUnknown, "delete-of-unknown"),
        (Fault::OnlySmall, "large-batches"),
        (Fault::RefusesRepeats, "repeated-delivery"),
        (Fault::CutsNames, "odd-keys"),
        (Fault::Fails, "concurrent-appends"),
        (Fault::Reverses, "values-are-copies"),
    ];
    for (fault, rule) in cases {
        let make = || Faulty(fault, InMemorySessionStore::new());
        let broken = within(check_session_store_rule(make, rule)).await.unwrap_err();
        assert_eq!(broken.rule, rule);
        assert!(broken.to_string().starts_with(&format!("session store rule '{rule}': ")), "{broken}");
    }
    let rules: std::collections::BTreeSet<&str> = cases.iter().map(|(_, rule)| *rule).collect();
    assert_eq!(rules.len(), SESSION_STORE_RULES.len(), "every rule has a store that breaks it");
}

#[tokio::test]
async fn rules_about_methods_that_were_left_out_are_passed_over() {
    let make = || Faulty(Fault::Bare, InMemorySessionStore::new());
    let checked = within(session_store_conformance(make)).await.unwrap();
    let missing =
        ["subkeys-listed", "session-list", "delete-cascades", "delete-of-a-subpath", "delete-of-unknown"];
    assert_eq!(checked.len() + missing.len(), SESSION_STORE_RULES.len());
    assert!(missing.iter().all(|rule| !checked.contains(rule)), "{checked:?}");
    let unknown = within(check_session_store_rule(make, "no-such-rule")).await.unwrap_err();
    assert!(unknown.violation.contains("append-order"), "{unknown}");
}
