//! The machines of a simulation, what they have in common, and how one is started.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use qoder_server::config::{Config, ServeOptions};
use qoder_server::credentials::Credentials;
use qoder_server::drive::{Membership, Node, NodeSettings, RuntimeSettings};
use qoder_server::environment::LocalEnvironments;
use qoder_server::fanout::Hub;
use qoder_server::model::agent::AgentBody;
use qoder_server::model::environment::EnvironmentBody;
use qoder_server::model::ids::{AgentId, EnvironmentId, TenantId};
use qoder_server::observe::{Level, Log};
use qoder_server::outgoing::{Outgoing, PrivateAddresses};
use qoder_server::serve::{Foundation, Use};
use qoder_server::store::sqlite::SqliteDb;
use qoder_server::store::{NewToken, Store};
use serde_json::{Value, json};

use super::line::{Mode, NodeLine, mix};
use crate::support::{now, plain};

/// Turns that the model has replies for.
pub const TURNS: usize = 40;
/// How often the database's clock is moved on.
const TICK: Duration = Duration::from_millis(250);

/// A node and what belongs to it.
pub struct Machine {
    pub node: Arc<Node>,
    pub hub: Arc<Hub>,
    pub store: Store,
    pub line: Arc<NodeLine>,
}

/// Everything.
pub struct World {
    pub seed: u64,
    pub tenant: TenantId,
    pub agent: AgentId,
    pub environment: EnvironmentId,
    pub config: Config,
    pub machines: Mutex<Vec<Arc<Machine>>>,
    /// True when no more faults are made.
    pub is_calm: AtomicBool,
    foundation: Foundation,
    runtime: RuntimeSettings,
    drawn: AtomicU64,
    _folder: tempfile::TempDir,
}

/// A turn: something is delivered, which is an effect; the client runs a tool and is asked about another; then a word.
fn playbook() -> Value {
    let deliver = json!({ "toolCalls": [{ "name": "DeliverArtifacts", "input": { "paths": ["out.md"] } }], "delayMs": 40 });
    let both = json!({ "toolCalls": [{ "name": "weather", "input": { "city": "Oslo" } },
        { "name": "Write", "input": { "file_path": "w.txt", "content": "x" } }], "delayMs": 15 });
    let done = json!({ "text": "done", "delayMs": 25 });
    let replies: Vec<Value> =
        (0..TURNS).flat_map(|_| [deliver.clone(), both.clone(), done.clone()]).collect();
    json!({ "replies": replies })
}

impl World {
    pub async fn make(seed: u64) -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("playbook.json"), playbook().to_string()).unwrap();
        let options = ServeOptions { data_dir: Some(path("data")), ..ServeOptions::default() };
        let config = Config::load(options, BTreeMap::new()).unwrap();
        let foundation = Foundation::lay(&config, Use::Command).await.unwrap();
        let keys = foundation.keys.clone();
        let token = NewToken {
            id: "token1".to_owned(),
            tenant: "ana".to_owned(),
            user: "ana".to_owned(),
            hash: vec![1],
            scopes: Vec::new(),
            expires_at: None,
        };
        let make_key = Box::new(move |tenant| keys.new_data_key(tenant).unwrap());
        let db = &foundation.store.db;
        let tenant = db.create_token(token, make_key).await.unwrap().tenant.id;
        let body = AgentBody::create(&json!({ "name": "helper", "model": "auto", "tools": [
            { "type": "agent_toolset_20260401", "configs": [
                { "name": "Write", "permission_policy": { "type": "always_ask" } } ] },
            { "type": "custom", "name": "weather", "description": "d", "input_schema": { "type": "object" } } ] }));
        let agent = now(db.create_agent(tenant, body.unwrap(), plain()).await.unwrap()).id;
        let body = EnvironmentBody::create(&json!({ "name": "here" })).unwrap();
        let environment = now(db.create_environment(tenant, body, plain()).await.unwrap()).id;
        let model = format!("scripted:{}", path("playbook.json").display());
        let settings = json!({ "model": { "tiers": { "auto": model } } });
        let runtime = RuntimeSettings {
            environment: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            config_root: config.runtime_root(),
            settings: settings.as_object().unwrap().clone(),
            is_offline: false,
            credit_usd: 0.01,
        };
        let world = Arc::new(Self {
            seed,
            tenant,
            agent,
            environment,
            config,
            machines: Mutex::default(),
            is_calm: AtomicBool::new(false),
            foundation,
            runtime,
            drawn: AtomicU64::new(0),
            _folder: folder,
        });
        tokio::spawn(move_clock(world.database()));
        world
    }

    /// A number below `end` that follows from the seed.
    pub fn draw(&self, end: u64) -> u64 {
        mix(self.seed, (1 << 40) + self.drawn.fetch_add(1, Ordering::SeqCst)) % end
    }

    pub fn database(&self) -> PathBuf {
        self.config.database()
    }

    /// The machine that was started last.
    pub fn newest(&self) -> Arc<Machine> {
        Arc::clone(self.machines.lock().unwrap().last().unwrap())
    }

    /// A machine that answers, most often the newest.
    pub fn front(&self) -> Arc<Machine> {
        let machines = self.machines.lock().unwrap();
        let older = self.draw(4) == 0;
        let answers = |machine: &&Arc<Machine>| !matches!(machine.line.mode(), Mode::Dead | Mode::Frozen);
        let found = if older { machines.iter().find(answers) } else { machines.iter().rev().find(answers) };
        Arc::clone(found.unwrap_or_else(|| machines.last().unwrap()))
    }

    /// Starts a machine, which takes over what others have.
    pub async fn boot(&self) -> Arc<Machine> {
        let number = self.machines.lock().unwrap().len() as u64;
        let line = Arc::new(NodeLine::new(mix(self.seed, (1 << 50) + number)));
        let db = SqliteDb::open(&self.database()).unwrap().over(Arc::clone(&line) as _);
        let store = Store { db: Arc::new(db), ..self.foundation.store.clone() };
        let hub = Arc::new(Hub::default());
        let private = PrivateAddresses { all: true, hosts: Vec::new() };
        let outgoing = Outgoing::new(BTreeMap::new(), private.clone());
        let settings = NodeSettings {
            runtime: self.runtime.clone(),
            private_addresses: private,
            most_seats: 64,
            drives: true,
            storage_quota: 1 << 30,
            home: self.foundation.home,
            shares_workspaces: true,
        };
        let credentials = Arc::new(Credentials::new(store.clone(), outgoing));
        let node = Node::new(
            store.clone(),
            Arc::clone(&hub),
            (self.foundation.keys.clone(), credentials),
            (LocalEnvironments::new(&self.config.workspaces), None),
            settings,
            Log::to(Level::Error, |_| {}),
        );
        let member = Membership { home: self.foundation.home, address: format!("machine {number}") };
        // A process that cannot reach its database is started again.
        while node.join(&member).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::spawn(Arc::clone(&node).claim_due());
        let machine = Arc::new(Machine { node, hub, store, line });
        self.machines.lock().unwrap().push(Arc::clone(&machine));
        machine
    }

    /// Ends all machines but a new one, on which everything works.
    pub async fn heal(&self) {
        self.is_calm.store(true, Ordering::SeqCst);
        for machine in self.machines.lock().unwrap().iter() {
            machine.line.set(Mode::Dead);
        }
        self.boot().await;
    }
}

/// The database uses the clock of the machine; with this, what is to happen later comes nearer as virtual time goes by.
async fn move_clock(database: PathBuf) {
    let connection = rusqlite::Connection::open(database).unwrap();
    connection.busy_timeout(Duration::from_secs(10)).unwrap();
    let tick = i64::try_from(TICK.as_micros()).unwrap();
    loop {
        tokio::time::sleep(TICK).await;
        let now = qoder_server::model::time::Time::now().0;
        connection
            .execute("UPDATE heads SET wake_at = wake_at - ?1 WHERE wake_at > ?2", [tick, now])
            .unwrap();
    }
}
