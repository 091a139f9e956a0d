//! The rules that a session store has to keep, each a function that gets a store and fails. The names are those of the
//! other languages' suites, and so is what they check.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::values::{all_kinds, all_same, entries, entry, key, key_in, project, shown};
use crate::session_store::{SessionKey, SessionStore, SessionStoreError, StoreResult, without_repeats};

/// The names of all rules.
pub const SESSION_STORE_RULES: [&str; 14] = [
    "append-order",
    "deep-equality",
    "values-are-copies",
    "unknown-key",
    "keys-are-separate",
    "subkeys-listed",
    "session-list",
    "delete-cascades",
    "delete-of-a-subpath",
    "delete-of-unknown",
    "concurrent-appends",
    "large-batches",
    "repeated-delivery",
    "odd-keys",
];

/// So long that every usual clock has moved on.
const CLOCK: Duration = Duration::from_millis(50);
/// A day in milliseconds.
const DAY: u64 = 24 * 60 * 60 * 1000;
/// The subpath of an agent.
const AGENT: &str = "subagents/agent-a";

/// Why a rule did not hold.
pub(super) enum Broken {
    /// The store did not do what it was asked for.
    Store(SessionStoreError),
    /// What it did breaks the rule.
    Rule(String),
}

impl From<SessionStoreError> for Broken {
    fn from(error: SessionStoreError) -> Self {
        Self::Store(error)
    }
}

type Checked = Result<(), Broken>;

/// Checks one rule.
pub(super) async fn check(store: &impl SessionStore, rule: &str) -> Checked {
    match rule {
        "append-order" => append_order(store).await,
        "deep-equality" => deep_equality(store).await,
        "values-are-copies" => values_are_copies(store).await,
        "unknown-key" => unknown_key(store).await,
        "keys-are-separate" => keys_are_separate(store).await,
        "subkeys-listed" => subkeys_listed(store).await,
        "session-list" => session_list(store).await,
        "delete-cascades" => delete_cascades(store).await,
        "delete-of-a-subpath" => delete_of_a_subpath(store).await,
        "delete-of-unknown" => delete_of_unknown(store).await,
        "concurrent-appends" => concurrent_appends(store).await,
        "large-batches" => large_batches(store).await,
        "repeated-delivery" => repeated_delivery(store).await,
        "odd-keys" => odd_keys(store).await,
        other => Err(Broken::Rule(format!("there is no rule {other}"))),
    }
}

fn insist(holds: bool, violation: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(Broken::Rule(violation())) }
}

async fn expect(store: &impl SessionStore, key: &SessionKey, wanted: Option<&[Value]>, why: &str) -> Checked {
    let found = store.load(key).await?;
    let holds = match (found.as_deref(), wanted) {
        (Some(found), Some(wanted)) => all_same(found, wanted),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    insist(holds, || {
        let (found, wanted) = (shown(found.as_deref()), shown(wanted));
        format!("{why}: load({key:?}) gave {found} instead of {wanted}")
    })
}

/// What a method gave; `None` when the store has left it out.
fn optional<T>(answer: StoreResult<T>) -> Result<Option<T>, SessionStoreError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(SessionStoreError::LeftOut(_)) => Ok(None),
        Err(failed @ SessionStoreError::Failed(_)) => Err(failed),
    }
}

async fn append_order(store: &impl SessionStore) -> Checked {
    let (key, entries) = (key(), entries(60));
    for batch in entries.chunks(7) {
        store.append(&key, batch).await?;
    }
    expect(store, &key, Some(&entries), "entries come back in the order of their arrival").await
}

async fn deep_equality(store: &impl SessionStore) -> Checked {
    let (key, entries) = (key(), [all_kinds(), json!({ "type": "without-uuid" })]);
    store.append(&key, &entries).await?;
    expect(store, &key, Some(&entries), "entries come back as they were").await
}

async fn values_are_copies(store: &impl SessionStore) -> Checked {
    let (key, entries) = (key(), entries(2));
    let mut given = entries.clone();
    store.append(&key, &given).await?;
    given[0]["message"]["content"] = json!("changed");
    expect(store, &key, Some(&entries), "what a caller changes after append is not stored").await?;
    if let Some(mut loaded) = store.load(&key).await? {
        loaded.iter_mut().for_each(|entry| entry["message"]["content"] = json!("changed"));
    }
    expect(store, &key, Some(&entries), "what a caller changes after load is not stored").await
}

async fn unknown_key(store: &impl SessionStore) -> Checked {
    let key = key();
    expect(store, &key, None, "a session that was never stored is None").await?;
    store.append(&key.with_subpath(AGENT), &[entry("agent")]).await?;
    expect(store, &key, None, "an agent's log does not make one of the session").await?;
    let other = key.with_subpath("subagents/agent-b");
    expect(store, &other, None, "an agent that was never stored is None").await
}

async fn keys_are_separate(store: &impl SessionStore) -> Checked {
    let main = key();
    let session = main.session_id.as_str();
    let (lower, upper) = (format!("{}-a", main.project_key), format!("{}-A", main.project_key));
    let keys = [
        main.clone(),
        SessionKey::new(&lower, session),
        SessionKey::new(&upper, session),
        key_in(&main.project_key),
        main.with_subpath(AGENT),
        main.with_subpath("subagents/agent-A"),
        main.with_subpath("subagents/deeper/agent-a"),
        SessionKey::new(&lower, session).with_subpath(AGENT),
    ];
    let entries = entries(keys.len());
    for (key, entry) in keys.iter().zip(&entries) {
        store.append(key, std::slice::from_ref(entry)).await?;
    }
    for (key, entry) in keys.iter().zip(&entries) {
        let own = Some(std::slice::from_ref(entry));
        expect(store, key, own, "each project, session and subpath has a log of its own").await?;
    }
    Ok(())
}

async fn subkeys_listed(store: &impl SessionStore) -> Checked {
    let key = key();
    let none = |found: Vec<String>, why: &str| insist(found.is_empty(), || format!("{why}, not {found:?}"));
    none(store.list_subkeys(&key).await?, "a session that was never stored has no subpaths")?;
    store.append(&key, &[entry("main")]).await?;
    none(store.list_subkeys(&key).await?, "the log of the session itself is no subpath")?;
    let subpaths = [AGENT, "subagents/agent-b", "subagents/deeper/agent-c"];
    for subpath in [subpaths[0], subpaths[1], subpaths[2], subpaths[0]] {
        store.append(&key.with_subpath(subpath), &[entry(subpath)]).await?;
    }
    let other = key_in(&key.project_key).with_subpath("subagents/agent-other");
    store.append(&other, &[entry("other")]).await?;
    let mut found = store.list_subkeys(&key).await?;
    found.sort();
    insist(found == subpaths, || format!("list_subkeys gave {found:?} instead of {subpaths:?}"))
}

async fn listed(store: &impl SessionStore, project: &str) -> Result<BTreeMap<String, u64>, Broken> {
    let rows = store.list_sessions(project).await?;
    let count = rows.len();
    let times: BTreeMap<String, u64> = rows.into_iter().map(|row| (row.session_id, row.mtime)).collect();
    insist(times.len() == count, || "list_sessions names a session twice".to_owned())?;
    Ok(times)
}

async fn session_list(store: &impl SessionStore) -> Checked {
    let project = project();
    let (first, second, elsewhere) = (key_in(&project), key_in(&project), key());
    let before = store.list_sessions(&project).await?;
    insist(before.is_empty(), || "a project that was never stored has no sessions".to_owned())?;
    for key in [&first, &second, &elsewhere] {
        store.append(key, &[entry("one")]).await?;
    }
    store.append(&first.with_subpath(AGENT), &[entry("agent")]).await?;
    let times = listed(store, &project).await?;
    let wanted = BTreeSet::from([&first.session_id, &second.session_id]);
    let found: BTreeSet<&String> = times.keys().collect();
    insist(found == wanted, || format!("list_sessions gave {found:?} instead of {wanted:?}"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let now = u64::try_from(now).unwrap_or(u64::MAX);
    for mtime in times.values() {
        insist(mtime.abs_diff(now) < DAY, || {
            format!("mtime is {mtime}, not the time of the append in milliseconds")
        })?;
    }
    std::thread::sleep(CLOCK);
    store.append(&first, &[entry("two")]).await?;
    let times = listed(store, &project).await?;
    insist(times.get(&first.session_id) > times.get(&second.session_id), || {
        "an append makes a session the newest".to_owned()
    })
}

async fn delete_cascades(store: &impl SessionStore) -> Checked {
    let (key, entry) = (key(), [entry("kept")]);
    let same_project = key_in(&key.project_key);
    let same_id = SessionKey::new(project(), key.session_id.as_str());
    let agent = key.with_subpath(AGENT);
    let kept = [same_project.clone(), same_id.clone(), same_id.with_subpath(AGENT)];
    for each in [&key, &agent].into_iter().chain(&kept) {
        store.append(each, &entry).await?;
    }
    store.delete(&key).await?;
    expect(store, &key, None, "a deleted session is None").await?;
    expect(store, &agent, None, "deleting a session deletes the logs of its agents").await?;
    let subpaths = optional(store.list_subkeys(&key).await)?.unwrap_or_default();
    insist(subpaths.is_empty(), || format!("a deleted session has no subpaths, not {subpaths:?}"))?;
    if optional(store.list_sessions(&key.project_key).await)?.is_some() {
        let left: Vec<String> = listed(store, &key.project_key).await?.into_keys().collect();
        insist(left == [same_project.session_id.clone()], || {
            format!("after delete, list_sessions gave {left:?}")
        })?;
    }
    for each in &kept {
        expect(store, each, Some(&entry), "deleting a session leaves all others alone").await?;
    }
    let again = entries(1);
    store.append(&key, &again).await?;
    expect(store, &key, Some(&again), "a session that is stored again starts empty").await
}

async fn delete_of_a_subpath(store: &impl SessionStore) -> Checked {
    let (key, entry) = (key(), [entry("kept")]);
    let (gone, sibling) = (key.with_subpath(AGENT), key.with_subpath("subagents/agent-ab"));
    for each in [&key, &gone, &sibling] {
        store.append(each, &entry).await?;
    }
    store.delete(&gone).await?;
    expect(store, &gone, None, "a deleted log of an agent is None").await?;
    expect(store, &key, Some(&entry), "deleting the log of an agent leaves that of the session").await?;
    expect(store, &sibling, Some(&entry), "deleting the log of an agent leaves those of others").await
}

async fn delete_of_unknown(store: &impl SessionStore) -> Checked {
    let key = key();
    store.delete(&key).await?;
    store.delete(&key.with_subpath(AGENT)).await?;
    expect(store, &key, None, "deleting what is not there changes nothing").await
}

async fn concurrent_appends(store: &impl SessionStore) -> Checked {
    let project = project();
    let mut keys: Vec<SessionKey> = (0..6).map(|_| key_in(&project)).collect();
    keys.extend((0..2).map(|_| key_in(&project).with_subpath(AGENT)));
    let logs: Vec<Vec<Value>> = keys.iter().map(|_| entries(10)).collect();
    let write = |key: SessionKey, log: Vec<Value>| async move {
        for batch in log.chunks(2) {
            store.append(&key, batch).await?;
        }
        Ok::<(), SessionStoreError>(())
    };
    let writing = keys.iter().zip(&logs).map(|(key, log)| write(key.clone(), log.clone()));
    futures::future::try_join_all(writing).await?;
    for (key, log) in keys.iter().zip(&logs) {
        let why = "appends to different logs at the same time do not disturb each other";
        expect(store, key, Some(log), why).await?;
    }
    Ok(())
}

async fn large_batches(store: &impl SessionStore) -> Checked {
    let (key, mut batch) = (key(), entries(1000));
    batch.insert(0, entry(&"ü".repeat(1024 * 1024)));
    store.append(&key, &batch).await?;
    expect(store, &key, Some(&batch), "an entry of 1 MiB and a thousand more are stored in one append").await
}

async fn repeated_delivery(store: &impl SessionStore) -> Checked {
    let (key, entries) = (key(), entries(4));
    for batch in [&entries[..2], &entries[..3], &entries[3..], &entries[..1]] {
        store.append(&key, batch).await?;
    }
    let found = without_repeats(store.load(&key).await?.unwrap_or_default());
    insist(all_same(&found, &entries), || {
        let (found, wanted) = (shown(Some(&found)), shown(Some(&entries)));
        format!("after a repeated append, the entries by their first arrival are {found} instead of {wanted}")
    })
}

async fn odd_keys(store: &impl SessionStore) -> Checked {
    let token = project();
    let long = format!("-{}", "x".repeat(300));
    let names = ["a/b", "..", "ä 日本 🦀", "quote'\"\\", "%2F*?:|<>", long.as_str()];
    let mut logs = Vec::new();
    for name in names {
        let key = key_in(&format!("{token}{name}"));
        let subpath = format!("subagents/{name}/agent-{token}");
        let (main, agent) = ([entry(&format!("{name} main"))], [entry(&format!("{name} agent"))]);
        store.append(&key, &main).await?;
        store.append(&key.with_subpath(subpath.as_str()), &agent).await?;
        logs.push((key, subpath, main, agent));
    }
    for (key, subpath, main, agent) in &logs {
        expect(store, key, Some(main), "every text can be a project key").await?;
        let child = key.with_subpath(subpath.as_str());
        expect(store, &child, Some(agent), "every text can be a subpath").await?;
        if let Some(found) = optional(store.list_subkeys(key).await)? {
            insist(found == [subpath.clone()], || {
                format!("list_subkeys gave {found:?} instead of the subpath as it was given")
            })?;
        }
        if optional(store.list_sessions(&key.project_key).await)?.is_some() {
            let found: Vec<String> = listed(store, &key.project_key).await?.into_keys().collect();
            insist(found == [key.session_id.clone()], || {
                format!("list_sessions({:?}) gave {found:?}", key.project_key)
            })?;
        }
    }
    Ok(())
}
