//! Sessions in a store: the same answers as from local logs, with every parameter, and the same refusals.

use qoder_agent_sdk::{
    InMemorySessionStore, SessionKey, SessionStore, SessionStoreEntry, StoreResult, StoredSessions,
    get_session_info, get_session_messages, query, rename_session, tag_session,
};
use serde_json::{Value, json};

use crate::support::{Place, all, result};

async fn talked(place: &Place, store: &InMemorySessionStore, prompt: &str) -> String {
    let options = place.playing(&json!([{ "text": "one", "repeat": true }])).session_store(store.clone());
    result(&all(query(prompt, options).unwrap()).await).session_id.clone()
}

#[tokio::test]
async fn the_answers_are_those_of_local_logs() {
    let place = Place::new();
    let store = InMemorySessionStore::new();
    let id = talked(&place, &store, "Remember the milk.").await;
    let (at, stored) = (place.sessions(), StoredSessions::new(store).of(place.0.project()));
    rename_session(&id, "Milk", &at).unwrap();
    stored.rename_session(&id, "Milk").await.unwrap();
    tag_session(&id, Some("kitchen"), &at).unwrap();
    stored.tag_session(&id, Some("kitchen")).await.unwrap();
    let local = get_session_info(&id, &at).unwrap().unwrap();
    let mut found = stored.get_session_info(&id).await.unwrap().unwrap();
    assert!(found.last_modified > 0 && local.created_at.is_some_and(|created| created > 1_600_000_000_000));
    (found.last_modified, found.file_size) = (local.last_modified, local.file_size);
    assert_eq!(found, local);
    let messages = stored.get_session_messages(&id).await.unwrap();
    assert_eq!(messages, get_session_messages(&id, &at).unwrap());
    stored.tag_session(&id, None).await.unwrap();
    assert_eq!(stored.get_session_info(&id).await.unwrap().unwrap().tag, None);
}

#[tokio::test]
async fn lists_are_newest_first_with_limit_and_offset() {
    let place = Place::new();
    let store = InMemorySessionStore::new();
    let mut ids = Vec::new();
    for prompt in ["one", "two", "three"] {
        ids.push(talked(&place, &store, prompt).await);
        // Clocks of stores count in milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let stored = StoredSessions::new(store).of(place.0.project());
    let list = |stored: StoredSessions| async move {
        let listed = stored.list_sessions().await.unwrap();
        listed.into_iter().map(|info| info.session_id).collect::<Vec<_>>()
    };
    let newest: Vec<String> = ids.iter().rev().cloned().collect();
    assert_eq!(list(stored.clone()).await, newest);
    assert_eq!(list(stored.clone().offset(1).limit(1)).await, newest[1..2]);
    assert!(list(stored.clone().of(place.0.home())).await.is_empty(), "another project");
    let part = stored.clone().offset(1).limit(1).get_session_messages(&ids[0]).await.unwrap();
    assert_eq!((part.len(), part[0].kind.as_str()), (1, "assistant"));
}

#[tokio::test]
async fn messages_of_the_runtime_are_shown_when_they_are_asked_for() {
    let place = Place::new();
    let store = InMemorySessionStore::new();
    let id = talked(&place, &store, "Hello.").await;
    let stored = StoredSessions::new(store.clone()).of(place.0.project());
    let last = stored.get_session_messages(&id).await.unwrap().pop().unwrap();
    let rows = place.0.project().canonicalize().unwrap();
    let name: String =
        rows.to_str().unwrap().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let metadata = json!({ "trigger": "manual", "preTokens": 10 });
    let entries = [
        json!({ "type": "system", "subtype": "compact_boundary", "uuid": "s1", "parentUuid": last.uuid,
                "content": "Conversation compacted", "compactMetadata": metadata }),
        json!({ "type": "user", "uuid": "u2", "parentUuid": "s1", "isCompactSummary": true,
                "message": { "role": "user", "content": "Summary." } }),
    ];
    store.append(&SessionKey::new(name, &id), &entries).await.unwrap();
    let kinds = |messages: Vec<qoder_agent_sdk::SessionMessage>| {
        messages.into_iter().map(|message| message.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(stored.get_session_messages(&id).await.unwrap()), ["user", "assistant", "user"]);
    let all = stored.include_system_messages(true).get_session_messages(&id).await.unwrap();
    let system = all.iter().find(|message| message.kind == "system").unwrap();
    assert_eq!(system.subtype.as_deref(), Some("compact_boundary"));
    assert_eq!(system.compact_metadata.as_ref().unwrap()["trigger"], "manual");
    assert_eq!(kinds(all), ["user", "assistant", "system", "user"]);
}

#[tokio::test]
async fn copies_and_deletions_happen_in_the_store_alone() {
    let place = Place::new();
    let store = InMemorySessionStore::new();
    let id = talked(&place, &store, "Hello.").await;
    let stored = StoredSessions::new(store.clone()).of(place.0.project());
    let messages = stored.get_session_messages(&id).await.unwrap();
    let copy = stored.fork_session(&id, Some(&messages[0].uuid), Some("The copy")).await.unwrap();
    let copied = stored.get_session_messages(&copy).await.unwrap();
    assert_eq!((copied.len(), &copied[0].message), (1, &messages[0].message));
    assert_ne!(copied[0].uuid, messages[0].uuid, "messages of a copy have ids of their own");
    assert_eq!(
        stored.get_session_info(&copy).await.unwrap().unwrap().custom_title.as_deref(),
        Some("The copy")
    );
    let whole = stored.fork_session(&id, None, None).await.unwrap();
    assert_eq!(stored.get_session_messages(&whole).await.unwrap().len(), 2);
    assert_eq!(stored.get_session_info(&whole).await.unwrap().unwrap().summary, "Hello. (fork)");
    let error = stored.fork_session(&id, Some("nowhere"), None).await.unwrap_err();
    assert!(error.to_string().starts_with("up_to_message_id: "), "{error}");
    stored.delete_session(&id).await.unwrap();
    assert_eq!(stored.get_session_info(&id).await.unwrap(), None);
    assert!(get_session_info(&id, &place.sessions()).unwrap().is_some(), "the local log is left alone");
}

#[tokio::test]
async fn agents_are_found_by_their_subpaths() {
    let place = Place::new();
    let store = InMemorySessionStore::new();
    let id = talked(&place, &store, "Hello.").await;
    let key = {
        let path = place.0.project().canonicalize().unwrap();
        let name = path.to_str().unwrap().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        SessionKey::new(name.collect::<String>(), &id)
    };
    let line = |uuid: &str, parent: Value| {
        json!({ "type": "user", "uuid": uuid, "parentUuid": parent, "isSidechain": true,
                "message": { "role": "user", "content": uuid } })
    };
    let lines = [line("u1", Value::Null), line("u2", json!("u1"))];
    store.append(&key.with_subpath("subagents/agent-b"), &lines).await.unwrap();
    store.append(&key.with_subpath("subagents/deeper/agent-a"), &lines[..1]).await.unwrap();
    let stored = StoredSessions::new(store).of(place.0.project());
    assert_eq!(stored.list_subagents(&id).await.unwrap(), ["a", "b"]);
    let messages = stored.get_subagent_messages(&id, "b").await.unwrap();
    assert_eq!(messages.iter().map(|message| message.uuid.as_str()).collect::<Vec<_>>(), ["u1", "u2"]);
    let rest = stored.clone().offset(1).get_subagent_messages(&id, "b").await.unwrap();
    assert_eq!(rest.len(), 1);
    assert!(stored.get_subagent_messages(&id, "absent").await.unwrap().is_empty());
}

/// Has only what a store must have, and nothing in it.
struct Bare;

impl SessionStore for Bare {
    async fn append(&self, _: &SessionKey, _: &[SessionStoreEntry]) -> StoreResult<()> {
        Ok(())
    }

    async fn load(&self, _: &SessionKey) -> StoreResult<Option<Vec<SessionStoreEntry>>> {
        Ok(None)
    }
}

#[tokio::test]
async fn what_a_store_does_not_have_is_said() {
    let place = Place::new();
    let stored = StoredSessions::new(Bare).of(place.0.project());
    let id = "123e4567-e89b-42d3-a456-426614174000";
    assert!(stored.list_sessions().await.unwrap_err().to_string().contains("list_sessions"));
    assert_eq!(stored.get_session_info(id).await.unwrap(), None);
    assert!(stored.get_session_messages(id).await.unwrap().is_empty());
    assert!(stored.list_subagents(id).await.unwrap().is_empty());
    stored.delete_session(id).await.unwrap();
    let error = stored.rename_session(id, "Title").await.unwrap_err();
    assert!(error.to_string().contains("has no session"), "{error}");
    assert_eq!(stored.get_session_info("nonsense").await.unwrap_err().code(), "session_bad_id");
    assert!(stored.rename_session(id, " ").await.unwrap_err().to_string().starts_with("title: "));
    assert!(stored.tag_session(id, Some("")).await.unwrap_err().to_string().starts_with("tag: "));
}
