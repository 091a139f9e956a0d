//! Session stores: what is copied to them and when, what their failures mean, and how a session comes back from one. The
//! same with the engine in process and with an external program. A store that fails must never stop a conversation.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use qoder_agent_sdk::{
    InMemorySessionStore, Message, QoderAgentOptions, QoderSdkClient, ResultMessage, SessionKey,
    SessionStore, SessionStoreEntry, SessionStoreError, SessionStoreFlush, StoreResult, StoredSessions,
    query,
};
use serde_json::{Value, json};

use crate::external_real::program;
use crate::support::{Place, all, result, within};

/// The same options for the engine in process and for the program.
fn both(options: &QoderAgentOptions) -> [QoderAgentOptions; 2] {
    [options.clone(), options.clone().cli_path(program())]
}

async fn ask(prompt: &str, options: QoderAgentOptions) -> ResultMessage {
    let mut messages = query(prompt, options).unwrap();
    let mut result = None;
    while let Some(message) = within(messages.next()).await {
        result = message.unwrap().as_result().cloned().or(result);
    }
    within(messages.close()).await;
    result.unwrap()
}

fn key(place: &Place, session_id: &str) -> SessionKey {
    let project = place.0.project().canonicalize().unwrap();
    let name = project.to_str().unwrap().chars();
    let name: String = name.map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    SessionKey::new(name, session_id)
}

async fn kinds(store: &InMemorySessionStore, key: &SessionKey) -> Vec<String> {
    let entries = store.load(key).await.unwrap().unwrap();
    entries.iter().map(|entry| entry["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn when_the_result_is_seen_the_store_has_everything_up_to_it() {
    let place = Place::new();
    for (number, options) in
        both(&place.playing(&json!([{ "text": "one", "repeat": true }]))).iter().enumerate()
    {
        let store = InMemorySessionStore::new();
        let mut messages =
            query(format!("Hello {number}."), options.clone().session_store(store.clone())).unwrap();
        let mut checked = false;
        while let Some(message) = within(messages.next()).await {
            if let Some(result) = message.unwrap().as_result() {
                let kinds = kinds(&store, &key(&place, &result.session_id)).await;
                assert_eq!(kinds[0], "session-start", "{kinds:?}");
                assert!(
                    ["user", "assistant", "turn-end"].iter().all(|kind| kinds.contains(&(*kind).to_owned()))
                );
                checked = true;
            }
        }
        assert!(checked);
    }
}

#[tokio::test]
async fn a_session_goes_on_where_only_the_store_is_left() {
    for number in 0..2 {
        let place = Place::new();
        let store = InMemorySessionStore::new();
        let replies = json!([{ "when": { "turn": 1 }, "text": "Noted." }, { "text": "Milk." }]);
        let options = both(&place.playing(&replies).session_store(store.clone())).remove_at(number);
        let first = ask("Remember the milk.", options.clone()).await;
        std::fs::remove_dir_all(place.0.config()).unwrap();
        let second = ask("What was it?", options.resume(&first.session_id)).await;
        assert_eq!((second.session_id.as_str(), second.text()), (first.session_id.as_str(), "Milk."));
        let sessions = StoredSessions::new(store).of(place.0.project());
        let messages = sessions.get_session_messages(&first.session_id).await.unwrap();
        let texts: Vec<&Value> = messages.iter().map(|message| &message.message["content"]).collect();
        assert_eq!((texts[0], texts[2]), (&json!("Remember the milk."), &json!("What was it?")));
        assert_eq!(texts.len(), 4, "each message once: {texts:?}");
        let folder = std::fs::read_dir(place.0.config()).into_iter().flatten().count();
        assert_eq!(folder, 0, "the session ran in a directory of its own");
    }
}

/// Takes one of two.
trait RemoveAt<T> {
    fn remove_at(self, number: usize) -> T;
}

impl<T> RemoveAt<T> for [T; 2] {
    fn remove_at(self, number: usize) -> T {
        self.into_iter().nth(number).unwrap()
    }
}

#[tokio::test]
async fn the_newest_session_of_the_store_is_continued() {
    let place = Place::new();
    let store = InMemorySessionStore::new();
    let options = place.playing(&json!([{ "text": "one", "repeat": true }])).session_store(store.clone());
    let nothing = ask("Anybody?", options.clone().continue_conversation(true)).await;
    // Clocks of stores count in milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(5));
    let newer = ask("Hello.", options.clone()).await;
    assert_ne!(nothing.session_id, newer.session_id, "there was nothing to continue");
    let continued = ask("Again.", options.continue_conversation(true)).await;
    assert_eq!(continued.session_id, newer.session_id);
}

#[tokio::test]
async fn a_fork_is_complete_in_the_store() {
    let place = Place::new();
    for options in both(&place.playing(&json!([{ "text": "one", "repeat": true }]))) {
        let store = InMemorySessionStore::new();
        let options = options.session_store(store.clone());
        let first = ask("Hello.", options.clone()).await;
        let fork = ask("Again.", options.resume(&first.session_id).fork_session(true)).await;
        assert_ne!(fork.session_id, first.session_id);
        let sessions = StoredSessions::new(store).of(place.0.project());
        assert_eq!(sessions.get_session_messages(&first.session_id).await.unwrap().len(), 2);
        assert_eq!(sessions.get_session_messages(&fork.session_id).await.unwrap().len(), 4);
    }
}

/// Fails the first appends, or all, and counts them.
#[derive(Clone, Default)]
struct Failing {
    failures: usize,
    panics: bool,
    appends: Arc<AtomicUsize>,
    kept: InMemorySessionStore,
}

impl SessionStore for Failing {
    async fn append(&self, key: &SessionKey, entries: &[SessionStoreEntry]) -> StoreResult<()> {
        if self.appends.fetch_add(1, Ordering::SeqCst) < self.failures {
            assert!(!self.panics, "the disk is on fire");
            return Err(SessionStoreError::failed("the disk is full"));
        }
        self.kept.append(key, entries).await
    }

    async fn load(&self, key: &SessionKey) -> StoreResult<Option<Vec<SessionStoreEntry>>> {
        self.kept.load(key).await
    }
}

fn mirror_errors(messages: &[Message]) -> Vec<Value> {
    let system = messages.iter().filter_map(|message| match message {
        Message::System(system) if system.subtype == "mirror_error" => {
            Some(Value::Object(system.data.clone()))
        }
        _ => None,
    });
    system.collect()
}

#[tokio::test]
async fn an_append_that_fails_is_tried_three_times_and_then_told_as_mirror_error() {
    let place = Place::new();
    for (options, panics) in
        both(&place.playing(&json!([{ "text": "one", "repeat": true }]))).into_iter().zip([false, true])
    {
        let store = Failing { failures: 3, panics, ..Failing::default() };
        let messages = all(query("Hello.", options.session_store(store.clone())).unwrap()).await;
        assert_eq!(result(&messages).text(), "one", "the conversation continues");
        let errors = mirror_errors(&messages);
        assert_eq!(errors.len(), 1, "{messages:#?}");
        let words = if panics { "on fire" } else { "the disk is full" };
        assert!(errors[0]["error"].as_str().unwrap().contains(words), "{errors:?}");
        assert_eq!(errors[0]["key"]["session_id"], json!(result(&messages).session_id));
        let position = |wanted: fn(&Message) -> bool| messages.iter().position(wanted).unwrap();
        let error = position(
            |message| matches!(message, Message::System(system) if system.subtype == "mirror_error"),
        );
        assert!(error < position(|message| matches!(message, Message::Result(_))));
    }
}

#[tokio::test]
async fn an_append_that_fails_once_is_repeated_and_nothing_is_told() {
    let place = Place::new();
    let store = Failing { failures: 1, ..Failing::default() };
    let options = place.playing(&json!([{ "text": "one" }])).session_store(store.clone());
    let messages = all(query("Hello.", options).unwrap()).await;
    assert_eq!(mirror_errors(&messages), [] as [Value; 0]);
    let key = key(&place, &result(&messages).session_id);
    assert!(kinds(&store.kept, &key).await.contains(&"assistant".to_owned()));
}

/// Keeps how many entries each append brought.
#[derive(Clone, Default)]
struct Counting(Arc<Mutex<Vec<usize>>>);

impl SessionStore for Counting {
    async fn append(&self, _: &SessionKey, entries: &[SessionStoreEntry]) -> StoreResult<()> {
        self.0.lock().unwrap().push(entries.len());
        Ok(())
    }

    async fn load(&self, _: &SessionKey) -> StoreResult<Option<Vec<SessionStoreEntry>>> {
        Ok(None)
    }
}

#[tokio::test]
async fn entries_are_batched_per_turn_unless_they_are_wanted_eagerly() {
    let place = Place::new();
    let options = place.playing(&json!([{ "text": "one", "repeat": true }]));
    let mut appends = Vec::new();
    for flush in [SessionStoreFlush::Batched, SessionStoreFlush::Eager] {
        let store = Counting::default();
        let mut client =
            QoderSdkClient::new(options.clone().session_store(store.clone()).session_store_flush(flush));
        client.connect(None).await.unwrap();
        client.query("Hello.").await.unwrap();
        within(client.receive_response().collect::<Vec<_>>()).await;
        appends.push(store.0.lock().unwrap().len());
        within(client.disconnect()).await.unwrap();
    }
    assert_eq!(appends[0], 1, "one append before the result");
    assert!(appends[1] > 1, "{appends:?}");
}

#[tokio::test]
async fn what_a_store_cannot_be_combined_with_is_refused_at_the_start() {
    let place = Place::new();
    let options = place.options().session_store(Counting::default());
    let refused = |options: QoderAgentOptions| options.validate().unwrap_err().to_string();
    assert!(refused(options.clone().enable_file_checkpointing(true)).starts_with("session_store: "));
    assert!(refused(options.clone().persist_session(false)).starts_with("session_store: "));
    assert!(refused(options.clone().resume("a title")).starts_with("resume: "));
    let unknown = "123e4567-e89b-42d3-a456-426614174000";
    for (options, words) in [
        (options.clone().resume(unknown), "the session store has no session"),
        (options.continue_conversation(true), "list_sessions"),
    ] {
        for options in both(&options) {
            let items: Vec<_> = within(query("Go.", options).unwrap().collect()).await;
            let error = items[0].as_ref().unwrap_err().to_string();
            assert!(items.len() == 1 && error.contains(words), "{error}");
        }
    }
}

/// Answers a session whose agent's log lies elsewhere.
struct Sly;

impl SessionStore for Sly {
    async fn append(&self, _: &SessionKey, _: &[SessionStoreEntry]) -> StoreResult<()> {
        Ok(())
    }

    async fn load(&self, _: &SessionKey) -> StoreResult<Option<Vec<SessionStoreEntry>>> {
        Ok(Some(vec![json!({ "type": "user", "uuid": "1", "message": { "role": "user", "content": "x" } })]))
    }

    async fn list_subkeys(&self, _: &SessionKey) -> StoreResult<Vec<String>> {
        Ok(vec!["../../../agent-a".to_owned()])
    }
}

#[tokio::test]
async fn a_store_cannot_name_places_outside_of_the_session() {
    let place = Place::new();
    let options = place.options().session_store(Sly).resume("123e4567-e89b-42d3-a456-426614174000");
    let items: Vec<_> = within(query("Go.", options).unwrap().collect()).await;
    let error = items[0].as_ref().unwrap_err();
    assert_eq!(error.code(), "session_store");
    assert!(error.to_string().contains("outside of the session"), "{error}");
}

#[tokio::test]
async fn logs_of_agents_and_what_is_known_of_them_are_restored() {
    let place = Place::new();
    let store = InMemorySessionStore::new();
    let options = place.playing(&json!([{ "text": "one", "repeat": true }])).session_store(store.clone());
    let first = ask("Hello.", options.clone()).await;
    let agent = key(&place, &first.session_id).with_subpath("subagents/agent-a1");
    let line = json!({ "type": "user", "uuid": "u1", "isSidechain": true, "message": { "role": "user", "content": "Look." } });
    let about = json!({ "type": "agent_metadata", "agentType": "scout" });
    store.append(&agent, &[about, line]).await.unwrap();
    let mut client = QoderSdkClient::new(options.resume(&first.session_id));
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    client.connect(None).await.unwrap();
    let root = std::env::temp_dir();
    for folder in std::fs::read_dir(root).unwrap().filter_map(Result::ok).map(|entry| entry.path()) {
        let agents =
            folder.join("config/projects").join(&agent.project_key).join(&agent.session_id).join("subagents");
        if agents.is_dir() {
            let log = std::fs::read_to_string(agents.join("agent-a1.jsonl")).unwrap();
            let about = std::fs::read_to_string(agents.join("agent-a1.meta.json")).unwrap();
            seen.lock().unwrap().extend([log, about]);
        }
    }
    within(client.disconnect()).await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2, "the restored log and what is known of the agent");
    assert!(seen[0].starts_with(r#"{"type":"user""#) && seen[0].lines().count() == 1, "{}", seen[0]);
    assert_eq!(seen[1], r#"{"agentType":"scout"}"#);
}
