//! `/agents`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::app::App;
use super::skills;
use crate::http::{self as edge, ApiError, ApiRequest, PageRequest, Scope};
use crate::model::agent::AgentBody;
use crate::model::agent_view::{self, AgentVersion};
use crate::model::dialect::Dialect;
use crate::model::fields::Fields;
use crate::model::ids::{AgentId, TenantId};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::roster::Roster;
use crate::store::{AgentQuery, Once};

const MOST: u64 = 100;

/// The agent that a request names.
fn id(request: &ApiRequest) -> Result<AgentId, ApiError> {
    let text = request.parameter(0);
    AgentId::parse(text).ok_or_else(|| Refusal::not_found("agent", text).into())
}

fn answered(request: &ApiRequest) -> Once<AgentVersion> {
    let dialect = request.dialect;
    edge::once(request, move |agent| edge::kept(&agent_view::agent(agent, dialect)))
}

pub(super) async fn create(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let mut body = AgentBody::create(&request.json()?)?;
    skills::pin(&app, request.principal.tenant_id(), &body.skills).await?;
    if let Some(roster) = &mut body.multiagent {
        let pinned = pin_roster(&app, request.principal.tenant_id(), roster).await?;
        roster.pin(&pinned);
    }
    let done = app.store.db.create_agent(request.principal.tenant_id(), body, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

/// The versions that the agents of a roster have now. Each must be there and not archived.
async fn pin_roster(app: &App, tenant: TenantId, roster: &Roster) -> Result<HashMap<String, u64>, ApiError> {
    let mut pinned = HashMap::new();
    for (text, version) in roster.named() {
        let id = AgentId::parse(text).ok_or_else(|| Refusal::not_found("agent", text))?;
        let agent = app.store.db.agent(AgentQuery { tenant, id, version }).await?;
        if agent.archived_at.is_some() {
            return Err(Problem::field("multiagent", format!("names `{text}`, which is archived")).into());
        }
        pinned.insert(text.to_owned(), agent.version);
    }
    Ok(pinned)
}

pub(super) async fn read(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let version = request.query.number("version", 1..=u64::MAX)?;
    let query = AgentQuery { tenant: request.principal.tenant_id(), id: id(&request)?, version };
    let agent = app.store.db.agent(query).await?;
    edge::json(&agent_view::agent(&agent, request.dialect))
}

pub(super) async fn update(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let body = request.json()?;
    skills::pin_body(&app, request.principal.tenant_id(), &body).await?;
    let expected = Fields::of_body(&body)?.number("version", 1..=u64::MAX)?;
    // What cannot be read is refused with the rest of the body.
    let pinned = match Roster::read(Fields::of_body(&body)?) {
        Ok(Some(roster)) => pin_roster(&app, request.principal.tenant_id(), &roster).await?,
        Ok(None) | Err(_) => HashMap::new(),
    };
    let change = Box::new(move |agent: &AgentVersion| {
        let mut after = agent.body.updated(&body)?;
        if let Some(roster) = &mut after.multiagent {
            roster.pin(&pinned);
        }
        Ok(after)
    });
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let done = app.store.db.update_agent(tenant, id, expected, change, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn archive(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let done = app.store.db.archive_agent(tenant, id, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn list(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let page = PageRequest::read(&request.query, MOST)?;
    let parse = |text: &str| AgentId::parse(text).map(|id| id.0);
    let query = page.list(request.principal.tenant_id(), &request.query, parse)?;
    let listed = app.store.db.list_agents(query).await?;
    let dialect = request.dialect;
    edge::json(&edge::page(&listed, |agent| agent.id.to_string(), |agent| agent_view::agent(agent, dialect)))
}

pub(super) async fn versions(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let page = PageRequest::read(&request.query, MOST)?;
    let after = match &page.cursor {
        edge::Cursor::Start => None,
        edge::Cursor::After(text) => {
            let number = text.parse::<u64>().ok();
            Some(number.ok_or_else(|| {
                Problem::field("page", format!("is `{text}`, which is not a cursor of this list"))
            })?)
        }
        edge::Cursor::Before(_) => {
            return Err(Problem::field("before_id", "cannot be used for versions").into());
        }
    };
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let listed = app.store.db.list_agent_versions(tenant, id, after, page.limit).await?;
    let dialect: Dialect = request.dialect;
    edge::json(&edge::page(
        &listed,
        |agent| agent.version.to_string(),
        |agent| agent_view::agent(agent, dialect),
    ))
}
