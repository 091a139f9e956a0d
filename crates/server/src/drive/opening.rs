//! Opening a session: its log is folded, its files, credentials and servers are made ready, and the runtime takes it up.

use std::path::Path;
use std::sync::Arc;

use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::config::servers::Flags;
use qoder_runtime::sessions::{FirstPrompt, OpenError, OpenRequest, OpenedSession, SessionChoice, Sessions};
use qoder_runtime::setup::{HostTools, Setup, SetupError};
use qoder_store::line::Line;
use qoder_store::{SessionKey, SessionLocation, SessionStore};
use qoder_types::record::RecordBody;
use serde_json::json;

use super::given::artifacts;
use super::given::host::{self, SessionHost};
use super::given::memory::Memories;
use super::given::vaults::{self, Tokens};
use super::given::{mounts, repositories, servers, setup, skills};
use super::node::Node;
use super::options::{Given, secret_values};
use super::shared::Shared;
use super::sink::SeatSink;
use super::stored_session::SeatSession;
use super::team::{self, Team};
use super::threads::{Crew, Threads};
use super::workspace::Workspace;
use crate::environment::Places;
use crate::model::event::NewEvent;
use crate::model::ids::{SessionId, TenantId, hex};
use crate::model::outcome::Outcome;
use crate::model::session::SessionSecrets;
use crate::model::toolset::Toolset;
use crate::project::{Previews, Projector};
use crate::store::{Claim, DbError, SeatRow};

/// A session that is open.
pub(super) struct Open {
    pub(super) opened: OpenedSession,
    pub(super) shared: Arc<Shared>,
    pub(super) tenant: TenantId,
    pub(super) session: SessionId,
    pub(super) budget: Option<serde_json::Value>,
    pub(super) credit_usd: f64,
    pub(super) configured_at: crate::model::time::Time,
    pub(super) memories: Memories,
    /// What runs its tools, when that is another process.
    pub(super) host: Option<SessionHost>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) workspace: Workspace,
}

/// Why a session could not be opened.
pub(super) enum OpenFailure {
    /// The store does not work, or has given the session to another.
    Store(DbError),
    /// The session cannot run as it is configured.
    Session(String),
}

impl From<DbError> for OpenFailure {
    fn from(error: DbError) -> Self {
        Self::Store(error)
    }
}

/// Opens a claimed session.
pub(super) async fn open(node: &Arc<Node>, claim: &Claim) -> Result<Open, OpenFailure> {
    let mut row = read(node, claim.key).await?;
    let settings = &node.settings.runtime;
    let mut secrets = open_secrets(node, &row)?;
    let session = &row.session.session;
    let agent = &session.body.agent;
    let is_outside = row.environment.is_self_hosted();
    let toolset = team::toolset(agent, agent.multiagent.is_some(), is_outside);
    // Names and tools of agents do not depend on what is mounted.
    let known = Team::new(&session.body, &[], settings, is_outside).map_err(OpenFailure::Session)?;
    let crew = Crew {
        session: session.id,
        name: agent.name.clone(),
        credit_usd: settings.credit_usd,
        toolsets: known.toolsets,
    };
    let mut projector = Projector::new(session.id, toolset.clone(), settings.credit_usd);
    if agent.multiagent.is_some() {
        projector = projector.of_coordinator(crew.primary());
    }
    let mut lines = read_log(&row, &mut projector)?;
    let last_seq = row.records.last().map_or(0, |record| record.seq);
    let id = session.id.to_string();
    let unfinished = projector.is_unfinished();
    let threads = Threads::new(crew, std::mem::take(&mut row.threads))?;
    let shared = Arc::new(Shared::new(&id, projector, threads, last_seq));
    let is_over = !unfinished && row.inbox.is_empty();
    shared.feed(std::mem::take(&mut row.inbox), row.inbox_seq);
    if is_over {
        // Its node was gone between the end of its turn and its rest; the runtime has nothing to do and says nothing.
        drop(shared.want_commit(true));
    }
    let budget = session.body.budget.as_ref().map(crate::model::budget::Budget::view);
    let first = if unfinished { FirstPrompt::Continue } else { FirstPrompt::FromHost };
    let (opening, opener, sink_shared) = (Arc::clone(node), Arc::clone(&shared), Arc::clone(&shared));
    let key = claim.key;
    let configured_at = claim.configured_at;
    let (tenant, id, outcomes) = (row.tenant, session.id, session.outcomes.clone());
    let places = prepare(node, session.id).await?;
    let workspace = Workspace::open(node, &row, &places, &shared).await?;
    relocate(&mut lines, id, &places.workspace);
    let mut facts = mounts::provide(node, &row, &places, &shared).await;
    facts.extend(repositories::provide(node, &row, &places, &secrets, &shared).await);
    let tokens = vaults::open(node, &row, &mut secrets, &shared).await?;
    setup::provide(node, &row, (&secrets, &toolset), &places, &shared).await;
    let memories = Memories::new(node, &row, &places, secret_values(&secrets));
    memories.synchronise().await.into_iter().for_each(|event| shared.report(event));
    facts.extend(memories.facts());
    let host = match row.environment.is_self_hosted() {
        true => None,
        false => host::provide(node, &row, &places, &secrets, &shared),
    };
    let given = given(node, &row, (&places, host.clone()), &shared, facts).await?;
    let opened = tokio::task::spawn_blocking(move || {
        let sink = Arc::new(SeatSink::new(key, Arc::clone(&opening.hub), sink_shared, &toolset));
        open_session(
            &opening,
            &row,
            (&secrets, &toolset),
            (lines, opener, first),
            (places, given, tokens),
            sink,
        )
    });
    let opened = opened.await.map_err(|error| OpenFailure::Session(format!("internal error: {error}")))??;
    Ok(Open {
        opened,
        shared,
        tenant,
        session: id,
        budget,
        credit_usd: settings.credit_usd,
        configured_at,
        memories,
        host,
        outcomes,
        workspace,
    })
}

/// Skills, tools of the server and the team; what workers have on their machines is only listed.
async fn given(
    node: &Arc<Node>,
    row: &SeatRow,
    (places, host): (&Places, Option<SessionHost>),
    shared: &Arc<Shared>,
    mut facts: Vec<String>,
) -> Result<Given, OpenFailure> {
    let (session, is_outside) = (&row.session.session, row.environment.is_self_hosted());
    let mut installed = skills::Skills::default();
    let mut tools = HostTools::default();
    if is_outside {
        facts.extend(skills::listed(node, row).await);
    } else {
        installed = skills::provide(node, row, places, shared).await;
        tools = artifacts::tools(node, (row.tenant, session.id), shared, host.as_ref());
    }
    let team = Team::new(&session.body, &facts, &node.settings.runtime, is_outside);
    let team = team.map_err(OpenFailure::Session)?;
    Ok(Given { facts, skills: installed, team, tools, host, is_outside })
}

/// Everything that driving a session needs.
async fn read(node: &Node, key: i64) -> Result<SeatRow, DbError> {
    let mut row = node.store.db.seat(key).await?;
    node.store.fill_records(row.tenant, &mut row.records).await?;
    for thread in &mut row.threads {
        node.store.fill_records(row.tenant, &mut thread.records).await?;
    }
    Ok(row)
}

/// The folders of a session.
async fn prepare(node: &Node, session: SessionId) -> Result<Places, OpenFailure> {
    let environments = node.environments.clone();
    let prepared = tokio::task::spawn_blocking(move || environments.prepare(session)).await;
    let prepared = prepared.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    prepared.map_err(|error| OpenFailure::Session(format!("the workspace cannot be made: {error}")))
}

fn open_secrets(node: &Node, row: &SeatRow) -> Result<SessionSecrets, OpenFailure> {
    let Some(sealed) = &row.session.sealed else { return Ok(SessionSecrets::default()) };
    let id = row.session.session.id.to_string();
    let opened = node
        .keys
        .data_key(row.tenant, &row.data_key)
        .and_then(|key| key.open("sessions", &id, sealed))
        .map_err(|error| OpenFailure::Session(error.to_string()))?;
    serde_json::from_slice(&opened).map_err(|error| OpenFailure::Session(error.to_string()))
}

/// Folds the log; what comes of it is stored already.
fn read_log(row: &SeatRow, projector: &mut Projector) -> Result<Vec<Line>, OpenFailure> {
    let mut previews = Previews::default();
    let mut lines = Vec::with_capacity(row.records.len());
    for (index, record) in row.records.iter().enumerate() {
        let line = crate::store::decode(record)?;
        if let Some(version) = qoder_store::line::later_version(&record.line) {
            // A node of that release takes it when this one gives it back.
            let problem = format!("record {} is of a later release (schema {version})", record.seq);
            return Err(DbError::Corrupt(problem).into());
        }
        match &line {
            Line::Record(record) if record.seq == index as u64 + 1 => {
                projector.project(record, &mut previews);
            }
            Line::Record(_) | Line::Foreign(_) => {
                return Err(DbError::Corrupt(format!("record {} is out of place", record.seq)).into());
            }
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Lets the session continue in its folder on this node, which may be elsewhere than where its commands were before.
fn relocate(lines: &mut [Line], session: SessionId, workspace: &Path) {
    let mark = format!("/{}/workspace", hex(&session.0));
    let move_here = |path: &mut String| {
        let Some((_, below)) = path.split_once(&mark) else { return };
        let inner = workspace.join(below.trim_matches('/'));
        let is_root = below.trim_matches('/').is_empty() || !inner.is_dir();
        *path = if is_root { workspace.display().to_string() } else { inner.display().to_string() };
    };
    for line in lines {
        let Line::Record(record) = line else { continue };
        if let RecordBody::SessionStarted(started) = &mut record.body {
            move_here(&mut started.cwd);
        } else if let RecordBody::User(entry) = &mut record.body {
            entry.new_cwd.iter_mut().for_each(move_here);
        }
    }
}

fn open_session(
    node: &Node,
    row: &SeatRow,
    (secrets, toolset): (&SessionSecrets, &Toolset),
    (lines, shared, first): (Vec<Line>, Arc<Shared>, FirstPrompt),
    (places, given, tokens): (Places, Given, Tokens),
    sink: Arc<SeatSink>,
) -> Result<OpenedSession, OpenFailure> {
    let session = &row.session.session;
    let runtime = &node.settings.runtime;
    let (agents, together) = (given.team.agents.clone(), given.team.together.clone());
    let options = runtime.options(session, &row.environment, secrets, (toolset, &places), given);
    let setup = Setup::prepare(options).map_err(|error| cannot_open(&error.into()))?;
    let private = &node.settings.private_addresses;
    let (servers, refused) = servers::servers(&session.body.servers(), &together, private, &tokens);
    for name in refused {
        let error = json!({ "type": "mcp_connection_failed_error", "mcp_server_name": name,
            "message": "The server's address is not public, and this server does not list it.",
            "retry_status": { "type": "retrying" } });
        shared.report(NewEvent::new("session.error", &json!({ "error": error })));
    }
    let id = session.id.to_string();
    let store: Arc<dyn SessionStore> = Arc::new(SeatSession::new(id.clone(), shared, lines));
    let location = SessionLocation::new(store, SessionKey::main(id), places.outputs);
    let request = OpenRequest {
        setup,
        callbacks: Callbacks {
            servers,
            agents,
            connections: Some(node.connections.clone()),
            ..Callbacks::default()
        },
        agent: None,
        servers: Flags::default(),
        answers_own_servers: false,
        choice: SessionChoice::default(),
        kept: Some(location),
        first,
        sink,
        mirror: None,
        report: Arc::new(|_: &str| ()),
    };
    Sessions::default().open(request).map_err(|error| cannot_open(&error))
}

/// Problems with the model are the operator's to solve, who reads how in the session's events.
fn cannot_open(error: &OpenError) -> OpenFailure {
    let hint = match error {
        OpenError::Setup(SetupError::Model(problem)) => format!("; {}", problem.hint()),
        OpenError::Setup(SetupError::Settings(_) | SetupError::Option { .. })
        | OpenError::NoPrompt
        | OpenError::Session(_)
        | OpenError::Begin { .. } => String::new(),
    };
    OpenFailure::Session(format!("{error}{hint}"))
}
