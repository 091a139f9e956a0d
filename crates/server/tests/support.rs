//! A database with a tenant, an agent and an environment, and what seats and clients do with it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use qoder_server::model::admission;
use qoder_server::model::agent::AgentBody;
use qoder_server::model::dialect::Dialect;
use qoder_server::model::environment::EnvironmentBody;
use qoder_server::model::event::NewEvent;
use qoder_server::model::ids::{AgentId, EnvironmentId, EventId, NodeId, SessionId, TenantId};
use qoder_server::model::inputs::{self, Input};
use qoder_server::model::session::SessionBody;
use qoder_server::model::status::StopReason;
use qoder_server::model::time::Time;
use qoder_server::store::postgres::{DatabaseUrl, PostgresDb};
use qoder_server::store::sqlite::SqliteDb;
use qoder_server::store::{
    Append, Blobs, Claim, CreateSession, Db, DbError, Done, FolderBlobs, KeptAnswer, ListQuery, NewAction,
    NewRecord, NewSessionRow, NewToken, NodeRow, Once, OnceKey, Place, Rest, SendInputs, Sender, Sent,
};
use qoder_testkit::PostgresServer;
use serde_json::{Value, json};

/// A behaviour, and its name.
pub type Behaviour = (&'static str, fn(Stage) -> BoxFuture<'static, ()>);

/// Declares behaviours as two tests: on SQLite and on PostgreSQL. Each gets a database of its own.
macro_rules! behaviours {
    ($($name:ident),* $(,)?) => {
        const BEHAVIOURS: &[$crate::support::Behaviour] =
            &[$((stringify!($name), |stage| Box::pin($name(stage)))),*];

        #[test]
        fn on_sqlite() {
            $crate::support::on_sqlite(BEHAVIOURS);
        }

        #[test]
        fn on_postgres() {
            $crate::support::on_postgres(BEHAVIOURS);
        }
    };
}
pub(crate) use behaviours;

fn block_on(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work);
}

pub fn on_sqlite(behaviours: &[Behaviour]) {
    for (name, behaviour) in behaviours {
        println!("{name}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("server.db");
        let db = SqliteDb::open(&file).unwrap();
        let blobs = FolderBlobs::new(&folder.path().join("blobs"));
        let raw = Raw::Sqlite(file);
        block_on(async { behaviour(Stage::new(Arc::new(db), Arc::new(blobs), raw).await).await });
    }
}

pub fn on_postgres(behaviours: &[Behaviour]) {
    let server = PostgresServer::start();
    for (name, behaviour) in behaviours {
        println!("{name}");
        let address = server.database(name);
        let url = DatabaseUrl::parse(&address).unwrap();
        block_on(async {
            let db = PostgresDb::open(&url, None).await.unwrap();
            let blobs = db.blobs();
            let raw = Raw::Postgres(address);
            behaviour(Stage::new(Arc::new(db), Arc::new(blobs), raw).await).await;
        });
    }
}

/// Where the database is, to change what no method changes.
#[derive(Clone)]
enum Raw {
    Sqlite(PathBuf),
    Postgres(String),
}

/// A database with something in it.
#[derive(Clone)]
pub struct Stage {
    pub db: Arc<dyn Db>,
    pub blobs: Arc<dyn Blobs>,
    pub tenant: TenantId,
    pub agent: AgentId,
    pub environment: EnvironmentId,
    raw: Raw,
}

/// A request without a key, answered with nothing.
pub fn plain<T>() -> Once<T> {
    Once { key: None, render: Box::new(|_| KeptAnswer { status: 200, body: Vec::new() }) }
}

/// A request with a key.
pub fn keyed<T>(key: &str, digest: &str, answer: &'static str) -> Once<T> {
    let key = OnceKey { token: "t".to_owned(), key: key.to_owned(), digest: digest.as_bytes().to_vec() };
    let render = |_: &T| KeptAnswer { status: 200, body: answer.as_bytes().to_vec() };
    Once { key: Some(key), render: Box::new(render) }
}

/// What happened now.
#[track_caller]
pub fn now<T: std::fmt::Debug>(done: Done<T>) -> T {
    match done {
        Done::Now(value, _) => value,
        Done::Before(answer) => panic!("it happened before: {answer:?}"),
    }
}

pub fn message(text: &str) -> Value {
    json!({ "type": "user.message", "content": [{ "type": "text", "text": text }] })
}

pub fn is_conflict<T>(done: &Result<T, DbError>) -> bool {
    let Err(DbError::Refused(refusal)) = done else { return false };
    matches!(refusal, qoder_server::model::refusal::Refusal::Conflict { .. })
}

pub fn is_not_found<T>(done: &Result<T, DbError>) -> bool {
    let Err(DbError::Refused(refusal)) = done else { return false };
    matches!(refusal, qoder_server::model::refusal::Refusal::NotFound(_))
}

pub fn record(seq: u64, text: &str) -> NewRecord {
    let body = json!({ "seq": seq, "text": text }).to_string().into_bytes();
    NewRecord { seq, at: Time::now(), kind: "note".to_owned(), body, parts: Vec::new(), blob: None }
}

pub fn node_row(id: NodeId, home: NodeId) -> NodeRow {
    let at = Time::now();
    NodeRow {
        id,
        home,
        address: "127.0.0.1:1".to_owned(),
        version: "1".to_owned(),
        started_at: at,
        expires_at: at,
        is_draining: false,
    }
}

impl Stage {
    async fn new(db: Arc<dyn Db>, blobs: Arc<dyn Blobs>, raw: Raw) -> Self {
        let token = NewToken {
            id: "token1".to_owned(),
            tenant: "ana".to_owned(),
            user: "ana".to_owned(),
            hash: vec![1],
            scopes: vec!["read".to_owned()],
            expires_at: None,
        };
        let tenant = db.create_token(token, Box::new(|_| vec![7; 32])).await.unwrap().tenant.id;
        let body = AgentBody::create(&json!({ "name": "helper", "model": "auto" })).unwrap();
        let agent = now(db.create_agent(tenant, body, plain()).await.unwrap()).id;
        let body = EnvironmentBody::create(&json!({ "name": "here" })).unwrap();
        let environment = now(db.create_environment(tenant, body, plain()).await.unwrap()).id;
        Self { db, blobs, tenant, agent, environment, raw }
    }

    /// Runs SQL that both kinds of database understand.
    pub async fn sql(&self, sql: &str) {
        match &self.raw {
            Raw::Sqlite(file) => rusqlite::Connection::open(file).unwrap().execute_batch(sql).unwrap(),
            Raw::Postgres(address) => {
                let (client, connection) =
                    tokio_postgres::connect(address, tokio_postgres::NoTls).await.unwrap();
                tokio::spawn(connection);
                client.batch_execute(sql).await.unwrap();
            }
        }
    }

    pub fn list(&self) -> ListQuery {
        ListQuery {
            tenant: self.tenant,
            place: Place::Start,
            limit: 100,
            include_archived: false,
            created_from: None,
            created_to: None,
            ascending: false,
        }
    }

    pub fn create(&self, events: &[Value]) -> CreateSession {
        let inputs = (!events.is_empty()).then(|| admit(read(events)));
        CreateSession {
            tenant: self.tenant,
            agent: self.agent,
            agent_version: None,
            environment: self.environment,
            make: Box::new(|agent, _| {
                Ok(NewSessionRow {
                    id: SessionId::random(),
                    title: Some("a title".to_owned()),
                    metadata: Default::default(),
                    body: SessionBody {
                        members: Vec::new(),
                        agent: agent.body.clone(),
                        resources: Vec::new(),
                        budget: None,
                        vault_ids: Vec::new(),
                    },
                    sealed: Some(vec![1, 2, 3]),
                })
            }),
            inputs,
            sender: sender(None),
            run: None,
        }
    }

    /// A new session: its id and its key.
    pub async fn session(&self) -> (SessionId, i64) {
        let (row, _) = now(self.db.create_session(self.create(&[]), plain()).await.unwrap());
        (row.session.id, row.session.key)
    }

    pub fn sending(&self, session: SessionId, events: &[Value], node: Option<NodeId>) -> SendInputs {
        let (admit, actions) = admit(read(events));
        SendInputs { tenant: self.tenant, session, admit, actions, sender: sender(node) }
    }

    /// Sends events.
    pub async fn send(&self, session: SessionId, events: &[Value]) -> Result<Sent, DbError> {
        Ok(now(self.db.send_inputs(self.sending(session, events, None), plain()).await?))
    }

    /// A new session with a message, claimed by a new node.
    pub async fn claimed(&self) -> (SessionId, Claim, NodeId) {
        let (id, key) = self.session().await;
        self.send(id, &[message("go")]).await.unwrap();
        let node = NodeId::random();
        let (claims, _) = self.db.claim(node, 100).await.unwrap();
        let claim = *claims.iter().find(|claim| claim.key == key).unwrap();
        (id, claim, node)
    }

    /// What a seat commits: these records, and an event for each.
    pub fn append(&self, claim: &Claim, expected: u64, count: u64) -> Append {
        Append {
            key: claim.key,
            session: SessionId([0; 16]),
            tenant: self.tenant,
            fence: claim.fence,
            expected,
            records: (1..=count).map(|number| record(expected + number, "x")).collect(),
            events: (0..count).map(|number| event("agent.message", number)).collect(),
            actions: Vec::new(),
            threads: Vec::new(),
            outcomes: None,
            begins: false,
            processed: Vec::new(),
            taken: 0,
            usage: None,
            workspace: None,
            is_progress: false,
            rest: None,
            is_repeated: false,
        }
    }

    /// Opens a pending action and rests; answers with its event.
    pub async fn asks(&self, claim: &Claim, kind: &'static str) -> EventId {
        let asked = event("agent.tool_use", 1);
        let id = asked.id;
        let mut append = self.append(claim, claim.record_seq, 1);
        append.events = vec![asked];
        append.actions = vec![NewAction { event: id, call_id: "call".to_owned(), kind, thread: None }];
        append.taken = 1;
        append.rest = Some(rest(1, StopReason::RequiresAction { event_ids: vec![id.to_string()] }));
        assert!(self.db.append(append).await.unwrap().rests);
        id
    }

    /// The types of the events of a session, which have no gap.
    pub async fn kinds(&self, key: i64) -> Vec<String> {
        let events = self.db.events_after(key, 0, 1_000).await.unwrap().unwrap();
        assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq), "a gap: {events:?}");
        assert!(events.is_sorted_by_key(|event| event.at), "time runs backwards: {events:?}");
        events.into_iter().map(|event| event.kind).collect()
    }
}

pub fn event(kind: &'static str, number: u64) -> NewEvent {
    NewEvent::new(kind, &json!({ "number": number }))
}

pub fn rest(seen: u64, stop: StopReason) -> Rest {
    let events = vec![NewEvent::new("session.status_idle", &stop.idle_event())];
    Rest { seen, stop, events, releases: true }
}

pub fn sender(node: Option<NodeId>) -> Sender {
    Sender { by: "ana".to_owned(), token: "t".to_owned(), node }
}

fn read(events: &[Value]) -> Vec<Input> {
    inputs::read(&json!({ "events": events }), &HashMap::new()).unwrap()
}

fn admit(inputs: Vec<Input>) -> (qoder_server::store::Admit, Vec<EventId>) {
    let actions = inputs.iter().filter_map(|input| input.effect.action()).collect();
    let admit = move |head, actions: &[admission::Action]| {
        admission::admit(head, actions, (Dialect::Claude, "t"), inputs)
    };
    (Box::new(admit), actions)
}
