//! `/memory_stores`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use crate::api::app::App;
use crate::http::{self as edge, ApiError, ApiRequest, PageRequest, Scope};
use crate::model::ids::MemoryStoreId;
use crate::model::memory_store::{MemoryStore, MemoryStoreBody};
use crate::model::refusal::Refusal;
use crate::store::Once;

const MOST: u64 = 100;

/// The store that a request names.
pub(super) fn id(request: &ApiRequest) -> Result<MemoryStoreId, ApiError> {
    let text = request.parameter(0);
    MemoryStoreId::parse(text).ok_or_else(|| Refusal::not_found("memory store", text).into())
}

fn answered(request: &ApiRequest) -> Once<MemoryStore> {
    edge::once(request, |store: &MemoryStore| edge::kept(&store.view()))
}

pub(in crate::api) async fn create(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let body = MemoryStoreBody::create(&request.json()?)?;
    let tenant = request.principal.tenant_id();
    let done = app.store.db.create_memory_store(tenant, body, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(in crate::api) async fn read(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    edge::json(&app.store.db.memory_store(request.principal.tenant_id(), id(&request)?).await?.view())
}

pub(in crate::api) async fn update(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let body = request.json()?;
    let change = Box::new(move |before: &MemoryStore| before.body.updated(&body).map_err(Refusal::from));
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let done = app.store.db.update_memory_store(tenant, id, change, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(in crate::api) async fn archive(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let done = app.store.db.archive_memory_store(tenant, id, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(in crate::api) async fn delete(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let render = move |(): &()| edge::kept(&json!({ "id": id, "type": "memory_store_deleted" }));
    let done = app.store.db.delete_memory_store(tenant, id, edge::once(&request, render)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(in crate::api) async fn list(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let page = PageRequest::read(&request.query, MOST)?;
    let parse = |text: &str| MemoryStoreId::parse(text).map(|id| id.0);
    let query = page.list(request.principal.tenant_id(), &request.query, parse)?;
    let name = request.query.one("name")?.map(str::to_owned);
    let listed = app.store.db.list_memory_stores(query, name).await?;
    edge::json(&edge::page(&listed, |store| store.id.to_string(), MemoryStore::view))
}
