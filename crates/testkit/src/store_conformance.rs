//! What every session store owes, as checks that run on any of them: a store is conformant when [`StoreConformance::run`]
//! returns. Each check gets a store of its own and panics with what is wrong.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use qoder_core::ports::{LogStore, LogStoreError};
use qoder_store::inbox::{InboxError, Item, LARGEST_ENTRY};
use qoder_store::line::{self, Line, Owner};
use qoder_store::{OpenSession, SessionKey, SessionStore, StoreError, Take};
use qoder_types::record::InputOrigin;
use qoder_types::{InboxBody, InboxEntry, InboxOutcome, InboxReply, Message, Record};
use serde_json::{Value, json};

use crate::LogBuilder;

const ONE: &str = "11111111-1111-4111-8111-111111111111";
const OTHER: &str = "22222222-2222-4222-8222-222222222222";
/// A guard against hanging.
const PATIENCE: Duration = Duration::from_secs(30);

/// A future that a check waits for.
pub type Awaited = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Checks session stores.
pub struct StoreConformance<'a> {
    /// Makes an empty store.
    pub make: &'a dyn Fn() -> Box<dyn SessionStore>,
    /// Runs a future to its end on the runtime that the store needs.
    pub block_on: &'a dyn Fn(Awaited),
}

impl StoreConformance<'_> {
    /// Runs every check.
    pub fn run(&self) {
        self.what_was_appended_is_read_back_in_order();
        self.only_the_newest_lease_appends();
        self.entries_arrive_in_order_and_once();
        self.entries_stay_until_they_are_settled();
        self.bad_entries_are_refused();
        self.arrivals_are_announced();
        self.blobs_are_kept_under_their_content();
        self.agents_have_logs_of_their_own();
        self.sidecars_stand_beside_logs();
        self.sessions_are_listed();
        self.deletion_takes_everything();
    }

    fn store(&self) -> Box<dyn SessionStore> {
        (self.make)()
    }

    fn barrier(&self, log: &mut dyn LogStore) -> Result<(), LogStoreError> {
        let done = Arc::new(Mutex::new(None));
        let (barrier, told) = (log.barrier(), Arc::clone(&done));
        (self.block_on)(Box::pin(async move {
            let durable = barrier.await;
            *told.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(durable);
        }));
        let done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        done.unwrap_or_else(|| panic!("the barrier was not run to its end"))
    }

    fn what_was_appended_is_read_back_in_order(&self) {
        let store = self.store();
        let key = SessionKey::main(ONE);
        let records = records();
        let mut opened = open(&*store, &key);
        assert_eq!(opened.last_seq, 0, "a new session has no record");
        let (first, rest) = records.split_at(2);
        ok(opened.log.append(first));
        for record in rest {
            ok(opened.log.append(std::slice::from_ref(record)));
        }
        ok(self.barrier(&mut *opened.log));
        assert_eq!(read(&*store, &key), texts(&records), "also while it is open");
        ok(opened.log.sync());
        drop(opened);
        let mut seen = Vec::new();
        let opened = ok(store.open(&key, Take::IfFree, &mut |line| seen.push(line)));
        assert_eq!(seen.iter().filter_map(text).collect::<Vec<_>>(), texts(&records));
        assert_eq!(opened.last_seq, records.len() as u64);
    }

    fn only_the_newest_lease_appends(&self) {
        let store = self.store();
        let key = SessionKey::main(ONE);
        let records = records();
        assert!(ok(store.holder(&key)).is_none(), "a session that does not exist has no holder");
        let mut older = open(&*store, &key);
        ok(older.log.append(&records[..1]));
        let holder = ok(store.holder(&key)).unwrap_or_else(|| panic!("an open session has a holder"));
        assert!(holder.since.is_some(), "{holder:?}");
        match store.open(&key, Take::IfFree, &mut |_| ()) {
            Err(StoreError::Locked { id, .. }) => assert_eq!(id, ONE),
            other => panic!("a second holder: {other:?}"),
        }
        ok(older.log.append(&records[1..2]));
        let mut newer = ok(store.open(&key, Take::Over, &mut |_| ()));
        assert_eq!(newer.last_seq, 2, "a lease that is taken over sees what the older one wrote");
        for attempt in [&records[2..3], &records[2..4]] {
            match older.log.append(attempt) {
                Err(LogStoreError::Fenced { .. } | LogStoreError::Ended { .. }) => {}
                other => panic!("the older lease appended: {other:?}"),
            }
        }
        ok(newer.log.append(&records[2..3]));
        drop(older);
        ok(newer.log.append(&records[3..4]));
        assert_eq!(read(&*store, &key), texts(&records[..4]));
        drop(newer);
        assert!(ok(store.holder(&key)).is_none(), "a lease ends with its log");
    }

    fn entries_arrive_in_order_and_once(&self) {
        let store = self.store();
        let key = SessionKey::main(ONE);
        let mut opened = begun(&*store, &key);
        assert_eq!(opened.inbox.take(), []);
        let entries: Vec<InboxEntry> = (0..20).map(|number| entry(&format!("id-{number}"))).collect();
        for entry in &entries {
            ok(store.leave(&key, entry));
        }
        // The same id again is the same entry again.
        ok(store.leave(&key, &entries[3]));
        let arrived: Vec<Item> = entries.iter().cloned().map(Item::Entry).collect();
        assert_eq!(opened.inbox.take(), arrived);
        assert_eq!(opened.inbox.take(), [], "each entry is given once");
    }

    fn entries_stay_until_they_are_settled(&self) {
        let store = self.store();
        let key = SessionKey::main(ONE);
        let opened = begun(&*store, &key);
        let mut ticket = ok(store.leave(&key, &entry("a")));
        ok(store.leave(&key, &entry("b")));
        drop(opened);
        let mut next = open(&*store, &key);
        assert_eq!(next.inbox.take().len(), 2, "they outlive a holder that has not taken them");
        ok(next.inbox.settle(reply("b")));
        assert_eq!(ticket.look(), None, "no process has settled it");
        drop(next);
        let mut last = open(&*store, &key);
        assert_eq!(last.inbox.take(), [Item::Entry(entry("a"))], "and one that has not settled them");
        ok(last.inbox.settle(reply("a")));
        assert_eq!(ticket.wait(PATIENCE), Some(reply("a")));
        assert_eq!(ticket.look(), None, "a reply is fetched once");
        ok(last.inbox.settle(reply("never left")));
        drop(last);
        assert_eq!(open(&*store, &key).inbox.take(), [], "what is settled does not come back");
    }

    fn bad_entries_are_refused(&self) {
        let store = self.store();
        let key = SessionKey::main(ONE);
        match store.leave(&key, &entry("a")) {
            Err(InboxError::NoSession { .. }) => {}
            other => panic!("an entry for a session that is not there: {other:?}"),
        }
        let mut opened = begun(&*store, &key);
        for id in ["", "../a", "a/b", "a b", ".", "é", &"a".repeat(129)] {
            match store.leave(&key, &entry(id)) {
                Err(InboxError::BadId { .. }) => {}
                other => panic!("the id {id:?}: {other:?}"),
            }
        }
        let mut huge = entry("huge");
        let length = usize::try_from(LARGEST_ENTRY).unwrap_or(usize::MAX);
        huge.body =
            InboxBody::Input { message: Message::user("x".repeat(length)), origin: InputOrigin::User };
        match store.leave(&key, &huge) {
            Err(InboxError::TooLarge { .. }) => {}
            other => panic!("a huge entry: {other:?}"),
        }
        assert_eq!(opened.inbox.take(), []);
    }

    fn arrivals_are_announced(&self) {
        let store = self.store();
        let key = SessionKey::main(ONE);
        let mut opened = begun(&*store, &key);
        for id in ["before", "after"] {
            let arrived = opened.inbox.arrived();
            ok(store.leave(&key, &entry(id)));
            (self.block_on)(Box::pin(arrived));
            let mut items = opened.inbox.take();
            while items.is_empty() {
                (self.block_on)(Box::pin(opened.inbox.arrived()));
                items = opened.inbox.take();
            }
            assert_eq!(items, [Item::Entry(entry(id))]);
        }
    }

    fn blobs_are_kept_under_their_content(&self) {
        let store = self.store();
        let key = SessionKey::main(ONE);
        let _opened = begun(&*store, &key);
        let content = b"\0some bytes\xff";
        let name = ok(store.put_blob(&key, content));
        assert_eq!(ok(store.put_blob(&key, content)), name);
        assert_ne!(ok(store.put_blob(&key, b"others")), name);
        assert_eq!(ok(store.blob(&key, &name)).as_deref(), Some(content.as_slice()));
        for missing in ["0000", "../lock", ""] {
            assert_eq!(ok(store.blob(&key, missing)), None, "{missing}");
        }
    }

    fn agents_have_logs_of_their_own(&self) {
        let store = self.store();
        let main = SessionKey::main(ONE);
        let (a, b) = (main.agent("a"), main.agent("b"));
        let deep = a.agent("deep");
        let records = records();
        let mut opened = begun(&*store, &main);
        for (key, count) in [(&b, 3), (&a, 2), (&deep, 1)] {
            ok(open(&*store, key).log.append(&records[..count]));
        }
        ok(opened.log.append(&records[1..2]));
        assert_eq!(ok(store.children(&main)), [a.clone(), b.clone()]);
        assert_eq!(ok(store.children(&a)), std::slice::from_ref(&deep));
        assert_eq!(ok(store.children(&b)), []);
        for (key, count) in [(&main, 2), (&a, 2), (&b, 3), (&deep, 1)] {
            let read = read(&*store, key);
            assert_eq!(read, texts(&records[..count]), "{key:?}");
        }
        match store.open(&main.agent("../x"), Take::IfFree, &mut |_| ()) {
            Err(StoreError::BadId { .. }) => {}
            other => panic!("a path for an id: {other:?}"),
        }
    }

    fn sidecars_stand_beside_logs(&self) {
        let store = self.store();
        let main = SessionKey::main(ONE);
        let _opened = begun(&*store, &main);
        let agent = main.agent("a");
        assert_eq!(ok(store.sidecar(&agent)), None);
        for sidecar in [json!({ "agentType": "one" }), json!({ "agentType": "other", "more": [1, "é"] })] {
            ok(store.write_sidecar(&agent, &sidecar));
            assert_eq!(ok(store.sidecar(&agent)), Some(sidecar), "the last one counts");
        }
        assert_eq!(
            ok(store.children(&main)),
            std::slice::from_ref(&agent),
            "an agent is known by its sidecar alone"
        );
        ok(open(&*store, &agent).log.append(&records()[..1]));
        assert_eq!(ok(store.children(&main)), std::slice::from_ref(&agent));
        match store.write_sidecar(&main.agent("../x"), &json!({})) {
            Err(StoreError::BadId { .. }) => {}
            other => panic!("a path for an id: {other:?}"),
        }
    }

    fn sessions_are_listed(&self) {
        let store = self.store();
        assert_eq!(ok(store.list()), []);
        let (one, other) = (SessionKey::main(ONE), SessionKey::main(OTHER));
        let held = begun(&*store, &one);
        let mut idle = open(&*store, &other);
        ok(idle.log.append(&records()));
        ok(idle.log.note(&json!({ "type": "custom-title", "customTitle": "Another", "sessionId": OTHER })));
        ok(idle.log.sync());
        drop(idle);
        assert_eq!(read(&*store, &other).len(), records().len(), "a note is no record");
        ok(store
            .note(&other, &json!({ "type": "custom-title", "customTitle": "A title", "sessionId": OTHER })));
        let listed = ok(store.list());
        let of = |id: &str| listed.iter().find(|session| session.id == id).cloned();
        let (one, other) = (of(ONE), of(OTHER));
        let (Some(one), Some(other), 2) = (one, other, listed.len()) else { panic!("{listed:?}") };
        assert!(one.holder.is_some() && other.holder.is_none(), "{listed:?}");
        assert_eq!(other.title.as_deref(), Some("A title"));
        assert_eq!(other.first_prompt.as_deref(), Some("the first prompt"));
        drop(held);
    }

    fn deletion_takes_everything(&self) {
        let store = self.store();
        let (key, kept) = (SessionKey::main(ONE), SessionKey::main(OTHER));
        let opened = begun(&*store, &key);
        drop(begun(&*store, &kept));
        ok(open(&*store, &key.agent("a")).log.append(&records()[..1]));
        ok(store.leave(&key, &entry("a")));
        match store.delete(&key) {
            Err(StoreError::Locked { .. }) => {}
            other => panic!("a session that is driven was deleted: {other:?}"),
        }
        drop(opened);
        ok(store.delete(&key));
        match store.delete(&key) {
            Err(StoreError::NotFound { .. }) => {}
            other => panic!("deleted twice: {other:?}"),
        }
        assert!(store.read(&key, &mut |_| ()).is_err());
        assert_eq!(ok(store.children(&key)), []);
        let mut again = open(&*store, &key);
        assert_eq!((again.last_seq, again.inbox.take()), (0, Vec::new()), "nothing of it comes back");
        assert_eq!(read(&*store, &kept).len(), 1);
    }
}

fn ok<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

fn open(store: &dyn SessionStore, key: &SessionKey) -> OpenSession {
    ok(store.open(key, Take::IfFree, &mut |_| ()))
}

/// An open session with one record.
fn begun(store: &dyn SessionStore, key: &SessionKey) -> OpenSession {
    let mut opened = open(store, key);
    ok(opened.log.append(&records()[..1]));
    opened
}

fn records() -> Vec<Record> {
    LogBuilder::new().prompt("the first prompt").assistant_text("an answer").input("i", "more").build()
}

fn entry(id: &str) -> InboxEntry {
    InboxEntry {
        id: id.to_owned(),
        at: "2026-01-02T03:04:05.000Z".to_owned(),
        by: "a test".to_owned(),
        body: InboxBody::Input { message: Message::user(id), origin: InputOrigin::User },
    }
}

fn reply(id: &str) -> InboxReply {
    let message = "it is on record".to_owned();
    InboxReply { id: id.to_owned(), outcome: InboxOutcome::Accepted, message, details: Value::Null }
}

/// The records of a session as text.
fn read(store: &dyn SessionStore, key: &SessionKey) -> Vec<String> {
    let mut seen = Vec::new();
    let last = ok(store.read(key, &mut |line| seen.push(line)));
    let seen: Vec<String> = seen.iter().filter_map(text).collect();
    assert_eq!(last, seen.len() as u64);
    seen
}

fn texts(records: &[Record]) -> Vec<String> {
    records.iter().map(encoded).collect()
}

fn text(line: &Line) -> Option<String> {
    match line {
        Line::Record(record) => Some(encoded(record)),
        Line::Foreign(_) => None,
    }
}

fn encoded(record: &Record) -> String {
    let mut bytes = Vec::new();
    ok(line::encode(record, Owner { session_id: "s", agent_id: None }, &mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
