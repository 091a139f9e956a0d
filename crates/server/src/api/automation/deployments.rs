//! `/deployments` and `/deployment_runs`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::Value;

use super::scheduler;
use crate::api::app::App;
use crate::api::sessions::{self, Creator};
use crate::http::{self as edge, ApiError, ApiRequest, PageRequest, Scope};
use crate::model::deployment::{Deployment, DeploymentBody, DeploymentFields, Paused, Template};
use crate::model::ids::{AgentId, DeploymentId, DeploymentRunId};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::run::{Run, Trigger};
use crate::model::time::Time;
use crate::secrets::SealError;
use crate::store::{
    AgentQuery, DeploymentQuery, DeploymentRow, NewDeployment, NextDeployment, Once, RunQuery,
};

const MOST: u64 = 100;
const MOST_RUNS: u64 = 1_000;

/// The deployment that a request names.
fn id(request: &ApiRequest) -> Result<DeploymentId, ApiError> {
    let text = request.parameter(0);
    DeploymentId::parse(text).ok_or_else(|| Refusal::not_found("deployment", text).into())
}

fn run_id(text: &str) -> Result<DeploymentRunId, ApiError> {
    DeploymentRunId::parse(text).ok_or_else(|| Refusal::not_found("deployment run", text).into())
}

fn answered(request: &ApiRequest) -> Once<DeploymentRow> {
    edge::once(request, |row: &DeploymentRow| edge::kept(&row.deployment.view()))
}

fn sealing(app: &App, error: &SealError) -> ApiError {
    app.edge.log.error("sealed_data", &[("error", &error.to_string())]);
    ApiError::internal()
}

/// What a deployment is to be, checked as the creation of a session: the agent with its version, what is kept, and what is sealed.
async fn checked(
    app: &App,
    request: &ApiRequest,
    id: DeploymentId,
    fields: &DeploymentFields,
) -> Result<(AgentId, DeploymentBody, Vec<u8>), ApiError> {
    let principal = &request.principal;
    let key = app.data_key(request)?;
    let creator = Creator {
        tenant: principal.tenant_id(),
        key: key.clone(),
        user: principal.user.clone(),
        token: principal.token_id.clone(),
        dialect: request.dialect,
    };
    let (create, _) = sessions::prepare(app, &creator, &Value::Object(fields.template.clone())).await?;
    let query = AgentQuery { tenant: creator.tenant, id: create.agent, version: create.agent_version };
    let agent = app.store.db.agent(query).await?;
    app.store.db.environment(creator.tenant, create.environment).await?;
    let body = fields.body((agent.id, agent.version), (&creator.user, &creator.token));
    let template = serde_json::to_vec(&fields.template).map_err(|_| ApiError::internal())?;
    let sealed = key.seal("deployments", &id.to_string(), &template).map_err(|error| sealing(app, &error))?;
    Ok((agent.id, body, sealed))
}

pub(in crate::api) async fn create(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let (id, fields) = (DeploymentId::random(), DeploymentFields::create(&request.json()?)?);
    let (agent, body, sealed) = checked(&app, &request, id, &fields).await?;
    let new = NewDeployment { tenant: request.principal.tenant_id(), id, agent, body, sealed };
    let done = app.store.db.create_deployment(new, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(in crate::api) async fn read(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let row = app.store.db.deployment(request.principal.tenant_id(), id(&request)?).await?;
    edge::json(&row.deployment.view())
}

pub(in crate::api) async fn update(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let before = app.store.db.deployment(tenant, id).await?;
    open(&before.deployment)?;
    let template: Template =
        scheduler::template(&app.data_key(&request)?, &before).map_err(|error| sealing(&app, &error))?;
    let fields = DeploymentFields::updated(&before.deployment.body, &template, &request.json()?)?;
    let (agent, body, sealed) = checked(&app, &request, id, &fields).await?;
    let seen = before.deployment.updated_at;
    let change = Box::new(move |row: &DeploymentRow| {
        open(&row.deployment)?;
        if row.deployment.updated_at != seen {
            return Err(Refusal::conflict("The deployment was changed meanwhile. Send the request again."));
        }
        let paused = row.deployment.paused.clone();
        Ok(Some(NextDeployment {
            agent,
            body,
            sealed,
            paused,
            is_archived: false,
            kind: "deployment.updated",
        }))
    });
    let done = app.store.db.update_deployment(tenant, id, change, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

/// Makes sure that a deployment can be changed.
fn open(deployment: &Deployment) -> Result<(), Refusal> {
    if deployment.archived_at.is_some() {
        let message = format!("The deployment `{}` is archived and cannot be changed.", deployment.id);
        return Err(Refusal::conflict(message));
    }
    Ok(())
}

/// Changes the state of a deployment.
async fn become_state(
    app: &App,
    request: &ApiRequest,
    kind: &'static str,
    next: impl FnOnce(&Deployment) -> Result<Option<(Option<Paused>, bool)>, Refusal> + Send + 'static,
) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let change = Box::new(move |row: &DeploymentRow| {
        let DeploymentRow { deployment, sealed } = row;
        let Some((paused, is_archived)) = next(deployment)? else { return Ok(None) };
        let (agent, body, sealed) = (deployment.agent, deployment.body.clone(), sealed.clone());
        Ok(Some(NextDeployment { agent, body, sealed, paused, is_archived, kind }))
    });
    let (tenant, id) = (request.principal.tenant_id(), id(request)?);
    let done = app.store.db.update_deployment(tenant, id, change, answered(request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(in crate::api) async fn pause(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    let next = |deployment: &Deployment| {
        open(deployment)?;
        Ok(deployment.paused.is_none().then_some((Some(Paused::Manual), false)))
    };
    become_state(&app, &request, "deployment.paused", next).await
}

pub(in crate::api) async fn unpause(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    let next = |deployment: &Deployment| {
        open(deployment)?;
        Ok(deployment.paused.is_some().then_some((None, false)))
    };
    become_state(&app, &request, "deployment.unpaused", next).await
}

pub(in crate::api) async fn archive(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    let next = |deployment: &Deployment| {
        Ok(deployment.archived_at.is_none().then(|| (deployment.paused.clone(), true)))
    };
    become_state(&app, &request, "deployment.archived", next).await
}

pub(in crate::api) async fn list(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let page = PageRequest::read(&request.query, MOST)?;
    let parse = |text: &str| DeploymentId::parse(text).map(|id| id.0);
    let list = page.list(request.principal.tenant_id(), &request.query, parse)?;
    let agent = request.query.one("agent_id")?.map(AgentId::parse);
    if agent == Some(None) {
        return edge::json(&edge::page_of_ids(&[], false, false, &[]));
    }
    let is_paused = match request.query.one("status")? {
        None => None,
        Some("active") => Some(false),
        Some("paused") => Some(true),
        Some(other) => {
            let problem = format!("is `{other}`; accepted are active and paused");
            return Err(Problem::field("status", problem).into());
        }
    };
    let query = DeploymentQuery { list, agent: agent.flatten(), is_paused };
    let listed = app.store.db.list_deployments(query).await?;
    edge::json(&edge::page(&listed, |deployment| deployment.id.to_string(), Deployment::view))
}

pub(in crate::api) async fn run(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let tenant = request.principal.tenant_id();
    let row = app.store.db.deployment(tenant, id(&request)?).await?;
    open(&row.deployment)?;
    let run = Run {
        id: DeploymentRunId::random(),
        tenant,
        deployment: row.deployment.id,
        agent: row.deployment.agent,
        agent_version: row.deployment.body.agent_version,
        trigger: Trigger::Manual,
        session: None,
        error: None,
        created_at: Time::now(),
    };
    let once = edge::once(&request, |run: &Run| edge::kept(&run.view()));
    let done = scheduler::attempt(&app, &app.data_key(&request)?, &row, &run, once).await?;
    Ok(edge::rendered(done.answer()))
}

async fn list_runs(
    app: &App,
    request: &ApiRequest,
    deployment: Option<DeploymentId>,
) -> Result<Response, ApiError> {
    let page = PageRequest::read(&request.query, MOST_RUNS)?;
    let parse = |text: &str| DeploymentRunId::parse(text).map(|id| id.0);
    let mut list = page.list(request.principal.tenant_id(), &request.query, parse)?;
    let time = |key: &str| -> Result<Option<Time>, Problem> {
        let text = request.query.one(key)?;
        text.map(|text| Time::parse(text).ok_or_else(|| Problem::field(key, "must be a time of RFC 3339")))
            .transpose()
    };
    list.created_from = list.created_from.or(time("triggered_after")?);
    list.created_to = list.created_to.or(time("triggered_before")?);
    let is_scheduled = match request.query.one("trigger_type")? {
        None => None,
        Some("manual") => Some(false),
        Some("schedule") => Some(true),
        Some(other) => {
            let problem = format!("is `{other}`; accepted are manual and schedule");
            return Err(Problem::field("trigger_type", problem).into());
        }
    };
    let has_error = request.query.one("has_error")?.map(|_| request.query.flag("has_error")).transpose()?;
    let listed = app.store.db.list_runs(RunQuery { list, deployment, has_error, is_scheduled }).await?;
    edge::json(&edge::page(&listed, |run| run.id.to_string(), Run::view))
}

pub(in crate::api) async fn runs(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let deployment = match request.query.one("deployment_id")? {
        None => None,
        Some(text) => match DeploymentId::parse(text) {
            Some(id) => Some(id),
            None => return Err(Refusal::not_found("deployment", text).into()),
        },
    };
    list_runs(&app, &request, deployment).await
}

pub(in crate::api) async fn runs_of(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    list_runs(&app, &request, Some(id(&request)?)).await
}

pub(in crate::api) async fn read_run(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let id = run_id(request.parameter(0))?;
    edge::json(&app.store.db.run(request.principal.tenant_id(), id).await?.view())
}

pub(in crate::api) async fn read_run_of(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let (deployment, id) = (id(&request)?, run_id(request.parameter(1))?);
    let run = app.store.db.run(request.principal.tenant_id(), id).await?;
    if run.deployment != deployment {
        return Err(Refusal::not_found("deployment run", id).into());
    }
    edge::json(&run.view())
}
