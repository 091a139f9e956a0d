//! `/sessions`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::app::{self, App};
use super::environments::rights;
use super::{files, memory, skills, vaults};
use crate::http::{self as edge, ApiError, ApiRequest, PageRequest, Scope};
use crate::model::admission::{self, Action, Head};
use crate::model::agent_view::AgentVersion;
use crate::model::dialect::Dialect;
use crate::model::environment::{Environment, EnvironmentConfig};
use crate::model::fields::Fields;
use crate::model::ids::{AgentId, DeploymentId, EventId, MemoryStoreId, SessionId, TenantId};
use crate::model::inputs::{Effect, Input};
use crate::model::names::SkillChoice;
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::resources;
use crate::model::roster::{Member, Roster, tools_together};
use crate::model::session::{self, NewSession, SessionBody, SessionSecrets};
use crate::model::time::Time;
use crate::secrets::DataKey;
use crate::store::{
    Admit, AgentQuery, CreateSession, Done, KeptAnswer, ListQuery, NewSessionRow, Once, SendInputs, Sender,
    Sent, SessionChange, SessionQuery, SessionRow,
};

const MOST: u64 = 100;

/// The session that a request names.
pub(super) fn id(request: &ApiRequest) -> Result<SessionId, ApiError> {
    let text = request.parameter(0);
    SessionId::parse(text).ok_or_else(|| Refusal::not_found("session", text).into())
}

/// Renders a session for the one who asks.
fn renderer(
    app: &App,
    request: &ApiRequest,
) -> Result<impl Fn(&SessionRow) -> Value + Send + Sync + Clone + 'static, ApiError> {
    let (key, dialect, credit_usd) = (app.data_key(request)?, request.dialect, app.credit_usd);
    Ok(move |row: &SessionRow| session::view(&app::opened(row, &key), dialect, Time::now(), credit_usd))
}

/// Who sends inputs, and where the session may be driven.
pub(super) fn sender(app: &App, request: &ApiRequest, is_offered: bool) -> Sender {
    Sender {
        by: request.principal.user.clone(),
        token: request.principal.token_id.clone(),
        node: is_offered.then(|| app.node.id()),
    }
}

/// Decides what is taken of the inputs of a request.
pub(super) fn admit(request: &ApiRequest, inputs: Vec<Input>) -> (Admit, Vec<EventId>) {
    admit_from((request.dialect, request.principal.token_id.clone()), inputs)
}

fn admit_from((dialect, token): (Dialect, String), inputs: Vec<Input>) -> (Admit, Vec<EventId>) {
    let actions = inputs.iter().filter_map(|input| input.effect.action()).collect();
    let admit =
        move |head: Head, actions: &[Action]| admission::admit(head, actions, (dialect, &token), inputs);
    (Box::new(admit), actions)
}

pub(super) async fn create(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let creator = Creator {
        tenant: request.principal.tenant_id(),
        key: app.data_key(&request)?,
        user: request.principal.user.clone(),
        token: request.principal.token_id.clone(),
        dialect: request.dialect,
    };
    let (create, offered) = prepare(&app, &creator, &request.json()?).await?;
    let render = renderer(&app, &request)?;
    let once = edge::once(&request, move |(row, _): &(SessionRow, Sent)| edge::kept(&render(row)));
    match app.store.db.create_session(create, once).await? {
        Done::Now((_, sent), answer) => {
            app.node.sent(sent, offered);
            Ok(edge::rendered(answer))
        }
        Done::Before(answer) => Ok(edge::rendered(answer)),
    }
}

/// Who creates a session.
pub(super) struct Creator {
    /// Whose it is.
    pub(super) tenant: TenantId,
    /// Seals what is secret of it.
    pub(super) key: DataKey,
    /// Who it is, as records name it.
    pub(super) user: String,
    /// The token.
    pub(super) token: String,
    /// How the session's first inputs are read.
    pub(super) dialect: Dialect,
}

/// Looks up everything that a session is created with, and room for it when it begins with a message.
pub(super) async fn prepare(
    app: &App,
    creator: &Creator,
    body: &Value,
) -> Result<(CreateSession, Option<OwnedSemaphorePermit>), ApiError> {
    let tenant = creator.tenant;
    let given = files::given(app, tenant, body).await?;
    let mut new = session::create(body, Time::now(), &given)?;
    files::check(app, tenant, new.resources.iter().filter_map(|new| new.resource.file())).await?;
    memory::complete(app, tenant, &mut new.resources, Vec::new()).await?;
    vaults::check(app, tenant, &new.vaults).await?;
    let pinned = pinned(app, tenant, &new).await?;
    let (roster, members) = members(app, tenant, &new).await?;
    let mut inputs = std::mem::take(&mut new.inputs);
    app.store.spill_inputs(tenant, &mut inputs).await?;
    let offered = if inputs.is_empty() { None } else { app.node.offer() };
    let from = (creator.dialect, creator.token.clone());
    let inputs = (!inputs.is_empty()).then(|| admit_from(from, inputs));
    let (agent, agent_version, environment) = (new.agent.id, new.agent.version, new.environment);
    let (key, models) = (creator.key.clone(), app.models.clone());
    let has_containers = app.has_containers;
    let make = move |agent: &AgentVersion, environment: &Environment| {
        check_environment(environment, has_containers)?;
        let mut row = make(new, agent, environment, &key)?;
        SkillChoice::pin(&mut row.body.agent.skills, &pinned);
        if row.body.agent.multiagent != roster {
            return Err(Refusal::conflict("The agent was changed meanwhile. Send the request again."));
        }
        row.body.members = members;
        tools_together(&row.body.agent, &row.body.members)?;
        if row.body.budget.is_some() {
            models.check_budget(&row.body.agent.model.id)?;
            for member in &row.body.members {
                models.check_budget(&member.body.model.id)?;
            }
        }
        Ok(row)
    };
    let create = CreateSession {
        tenant,
        agent,
        agent_version,
        environment,
        make: Box::new(make),
        inputs,
        sender: Sender {
            by: creator.user.clone(),
            token: creator.token.clone(),
            node: offered.is_some().then(|| app.node.id()),
        },
        run: None,
    };
    Ok((create, offered))
}

/// The versions of the skills that a session uses from its creation on.
async fn pinned(app: &App, tenant: TenantId, new: &NewSession) -> Result<skills::Pinned, ApiError> {
    match &new.agent.overrides {
        Some(overrides) if overrides.get("skills").is_some() => {
            skills::pin_body(app, tenant, overrides).await
        }
        Some(_) | None => {
            let query = AgentQuery { tenant, id: new.agent.id, version: new.agent.version };
            skills::pin(app, tenant, &app.store.db.agent(query).await?.body.skills).await
        }
    }
}

/// The roster of the agent of a session, and its agents with the versions that were fixed.
async fn members(
    app: &App,
    tenant: TenantId,
    new: &NewSession,
) -> Result<(Option<Roster>, Vec<Member>), ApiError> {
    let query = AgentQuery { tenant, id: new.agent.id, version: new.agent.version };
    let roster = app.store.db.agent(query).await?.body.multiagent;
    let mut members = Vec::new();
    for (text, version) in roster.iter().flat_map(Roster::named) {
        let id = AgentId::parse(text).ok_or_else(|| Refusal::not_found("agent", text))?;
        let mut agent = app.store.db.agent(AgentQuery { tenant, id, version }).await?;
        let pinned = skills::pin(app, tenant, &agent.body.skills).await?;
        SkillChoice::pin(&mut agent.body.skills, &pinned);
        // An agent of a roster starts no others.
        agent.body.multiagent = None;
        members.push(Member { id: text.to_owned(), version: agent.version, body: agent.body });
    }
    Ok((roster, members))
}

/// The row of a session, from what it is created with.
fn make(
    new: NewSession,
    agent: &AgentVersion,
    environment: &Environment,
    key: &DataKey,
) -> Result<NewSessionRow, Refusal> {
    if environment.body.is_self_hosted() && !new.resources.is_empty() {
        return Err(resources::unsupported("resources").into());
    }
    let body = match &new.agent.overrides {
        None => agent.body.clone(),
        Some(overrides) => {
            let fields = Fields::of(overrides, "agent")?;
            agent.body.with_overrides(fields).map_err(|problem| problem.inside("agent"))?
        }
    };
    let credentials =
        new.resources.iter().filter_map(|new| Some((new.resource.id.clone(), new.credential.clone()?)));
    let secrets = SessionSecrets { variables: new.variables, credentials: credentials.collect() };
    let id = SessionId::random();
    Ok(NewSessionRow {
        id,
        title: new.title,
        metadata: new.metadata,
        sealed: sealed(key, id, &secrets)?,
        body: SessionBody {
            agent: body,
            members: Vec::new(),
            resources: new.resources.into_iter().map(|new| new.resource).collect(),
            vault_ids: new.vaults.iter().map(ToString::to_string).collect(),
            budget: new.budget,
        },
    })
}

/// What this server cannot provide is refused: a session that silently lacks a part would be worse.
fn check_environment(environment: &Environment, has_containers: bool) -> Result<(), Problem> {
    let wrong = |what: &str| {
        let problem = format!("is `{}`, which {what}; this server does not provide that", environment.id);
        Err(Problem::field("environment_id", problem))
    };
    match &environment.body.config {
        EnvironmentConfig::SelfHosted { .. } => Ok(()),
        EnvironmentConfig::Cloud { packages, .. } => {
            let has_apt = packages.get("apt").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
            if has_apt && !has_containers {
                wrong("installs packages of `apt`, which needs a container")
            } else {
                Ok(())
            }
        }
    }
}

/// The secrets of a session as its row keeps them.
pub(super) fn sealed(
    key: &DataKey,
    id: SessionId,
    secrets: &SessionSecrets,
) -> Result<Option<Vec<u8>>, Refusal> {
    if secrets.is_empty() {
        return Ok(None);
    }
    let content = serde_json::to_vec(secrets).unwrap_or_default();
    let sealed = key.seal("sessions", &id.to_string(), &content);
    sealed.map(Some).map_err(|error| Refusal::conflict(error.to_string()))
}

pub(super) async fn read(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    rights::needs_session(&app, &request, Scope::Read, id(&request)?).await?;
    let row = app.store.db.session(request.principal.tenant_id(), id(&request)?).await?;
    edge::json(&renderer(&app, &request)?(&row))
}

pub(super) async fn update(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let (body, key, id) = (request.json()?, app.data_key(&request)?, id(&request)?);
    let named = session::vaults(Fields::of_body(&body)?)?;
    vaults::check(&app, request.principal.tenant_id(), &named).await?;
    let agent = body.get("agent").unwrap_or(&Value::Null);
    let pinned = skills::pin_body(&app, request.principal.tenant_id(), agent).await?;
    let (dialect, credit_usd, models) = (request.dialect, app.credit_usd, app.models.clone());
    let change = move |row: &SessionRow| {
        let before = app::opened(row, &key);
        let mut after = session::update(&before, &body, dialect, credit_usd)?;
        SkillChoice::pin(&mut after.body.agent.skills, &pinned);
        tools_together(&after.body.agent, &after.body.members)?;
        if after.changed.contains(&"budget") && after.body.budget.is_some() {
            models.check_budget(&after.body.agent.model.id)?;
        }
        let event = session::updated_event(&before, &after);
        let is_reported = !after.changed.is_empty();
        Ok(SessionChange {
            sealed: sealed(&key, before.id, &after.secrets)?,
            title: after.title,
            metadata: after.metadata,
            body: after.body,
            updated: is_reported.then(|| event.to_string()),
        })
    };
    let render = renderer(&app, &request)?;
    let once: Once<(SessionRow, Vec<crate::model::event::Event>)> =
        edge::once(&request, move |(row, _)| edge::kept(&render(row)));
    let tenant = request.principal.tenant_id();
    match app.store.db.update_session(tenant, id, Box::new(change), once).await? {
        Done::Now((row, events), answer) => {
            app.hub.publish(row.session.key, events);
            Ok(edge::rendered(answer))
        }
        Done::Before(answer) => Ok(edge::rendered(answer)),
    }
}

pub(super) async fn list(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let page = PageRequest::read(&request.query, MOST)?;
    let query = &request.query;
    let list =
        page.list(request.principal.tenant_id(), query, |text| SessionId::parse(text).map(|id| id.0))?;
    let ascending = match query.one("order")? {
        None | Some("desc") => false,
        Some("asc") => true,
        Some(other) => {
            return Err(Problem::field("order", format!("is `{other}`; accepted are asc and desc")).into());
        }
    };
    let agent_version = query.number("agent_version", 1..=u64::MAX)?;
    let agent = query.one("agent_id")?.map(AgentId::parse);
    if agent_version.is_some() && agent.is_none() {
        return Err(Problem::field("agent_version", "needs `agent_id`").into());
    }
    // What names an agent, deployment or memory store that is not there lists nothing.
    let memory_store = query.one("memory_store_id")?.map(MemoryStoreId::parse);
    let deployment = query.one("deployment_id")?.map(DeploymentId::parse);
    let names_nothing = agent == Some(None) || memory_store == Some(None) || deployment == Some(None);
    let wanted = SessionQuery {
        list: ListQuery { ascending, ..list },
        agent: agent.flatten(),
        agent_version,
        memory_store: memory_store.flatten(),
        deployment: deployment.flatten(),
        statuses: session::statuses(&query.all("statuses"))?,
    };
    let render = renderer(&app, &request)?;
    if names_nothing {
        return edge::json(&edge::page_of_ids(&[], false, false, &[]));
    }
    let listed = app.store.db.list_sessions(wanted).await?;
    edge::json(&edge::page(&listed, |row| row.session.id.to_string(), render))
}

pub(super) async fn cancel(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let id = id(&request)?;
    let stop = Input {
        id: EventId::now(),
        kind: "user.interrupt",
        body: "{}".to_owned(),
        blob: None,
        effect: Effect::Interrupt { thread: None },
    };
    let (admit, actions) = admit(&request, vec![stop]);
    let offered = app.node.offer();
    let send = SendInputs {
        tenant: request.principal.tenant_id(),
        session: id,
        admit,
        actions,
        sender: sender(&app, &request, offered.is_some()),
    };
    let once = edge::once(&request, move |(_, stops): &(Sent, bool)| {
        let (status, code) =
            if *stops { ("canceling", StatusCode::ACCEPTED) } else { ("idle", StatusCode::OK) };
        let body = json!({ "id": id, "type": "session", "status": status });
        KeptAnswer { status: code.as_u16(), ..edge::kept(&body) }
    });
    match app.store.db.cancel_session(send, once).await? {
        Done::Now((sent, _), answer) => {
            app.node.sent(sent, offered);
            Ok(edge::rendered(answer))
        }
        Done::Before(answer) => Ok(edge::rendered(answer)),
    }
}

pub(super) async fn archive(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let render = renderer(&app, &request)?;
    let once = edge::once(&request, move |row: &SessionRow| edge::kept(&render(row)));
    let done = app.store.db.archive_session(request.principal.tenant_id(), id(&request)?, once).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn delete(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let id = id(&request)?;
    let render = move |_: &i64| edge::kept(&json!({ "id": id, "type": "session_deleted" }));
    match app.store.db.delete_session(request.principal.tenant_id(), id, edge::once(&request, render)).await?
    {
        Done::Now(key, answer) => {
            app.hub.deleted(key);
            app.node.remove_workspace(id).await;
            Ok(edge::rendered(answer))
        }
        Done::Before(answer) => Ok(edge::rendered(answer)),
    }
}
