//! `/environments`, and the work of those that workers serve.

pub(super) mod rights;
pub(super) mod work_items;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::app::App;
use crate::http::{self as edge, ApiError, ApiRequest, PageRequest, Scope};
use crate::model::environment::{self, Environment, EnvironmentBody};
use crate::model::ids::EnvironmentId;
use crate::model::refusal::Refusal;
use crate::store::Once;

const MOST: u64 = 100;

fn id(request: &ApiRequest) -> Result<EnvironmentId, ApiError> {
    let text = request.parameter(0);
    EnvironmentId::parse(text).ok_or_else(|| {
        let mut error = ApiError::from(Refusal::not_found("environment", text));
        error.code = Some("environment_not_found");
        error
    })
}

fn answered(request: &ApiRequest) -> Once<Environment> {
    edge::once(request, |made| edge::kept(&environment::view(made)))
}

pub(super) async fn create(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let body = EnvironmentBody::create(&request.json()?)?;
    let done =
        app.store.db.create_environment(request.principal.tenant_id(), body, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn read(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    rights::needs_environment(&request, Scope::Read, id(&request)?)?;
    let found = app.store.db.environment(request.principal.tenant_id(), id(&request)?).await?;
    edge::json(&environment::view(&found))
}

pub(super) async fn update(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let body = request.json()?;
    let change = Box::new(move |before: &Environment| before.body.updated(&body).map_err(Refusal::from));
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let done = app.store.db.update_environment(tenant, id, change, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn archive(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let done = app.store.db.archive_environment(tenant, id, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn delete(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let render = move |(): &()| edge::kept(&json!({ "id": id, "type": "environment_deleted" }));
    let done = app.store.db.delete_environment(tenant, id, edge::once(&request, render)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn list(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let page = PageRequest::read(&request.query, MOST)?;
    let parse = |text: &str| EnvironmentId::parse(text).map(|id| id.0);
    let query = page.list(request.principal.tenant_id(), &request.query, parse)?;
    let listed = app.store.db.list_environments(query).await?;
    edge::json(&edge::page(&listed, |made| made.id.to_string(), environment::view))
}
