//! `/vaults`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::app::App;
use crate::http::{self as edge, ApiError, ApiRequest, PageRequest, Scope};
use crate::model::ids::{TenantId, VaultId};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::vault::{Vault, VaultBody};
use crate::store::Once;

const MOST: u64 = 100;

/// The vault that a request names.
pub(super) fn id(request: &ApiRequest) -> Result<VaultId, ApiError> {
    let text = request.parameter(0);
    VaultId::parse(text).ok_or_else(|| Refusal::not_found("vault", text).into())
}

/// Makes sure that a session can use these vaults.
pub(super) async fn check(app: &App, tenant: TenantId, ids: &[VaultId]) -> Result<(), ApiError> {
    for id in ids {
        if app.store.db.vault(tenant, *id).await?.archived_at.is_some() {
            let problem = format!("has `{id}`, which is archived; use another vault");
            return Err(Problem::field("vault_ids", problem).with_code("vault_archived").into());
        }
    }
    Ok(())
}

fn answered(request: &ApiRequest) -> Once<Vault> {
    edge::once(request, |vault: &Vault| edge::kept(&vault.view()))
}

pub(super) async fn create(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let body = VaultBody::create(&request.json()?)?;
    let done = app.store.db.create_vault(request.principal.tenant_id(), body, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn read(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    edge::json(&app.store.db.vault(request.principal.tenant_id(), id(&request)?).await?.view())
}

pub(super) async fn update(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let body = request.json()?;
    let change = Box::new(move |before: &Vault| before.body.updated(&body).map_err(Refusal::from));
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let done = app.store.db.update_vault(tenant, id, change, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn archive(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let done = app.store.db.archive_vault(tenant, id, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn delete(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let render = move |(): &()| edge::kept(&json!({ "id": id, "type": "vault_deleted" }));
    let done = app.store.db.delete_vault(tenant, id, edge::once(&request, render)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn list(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let page = PageRequest::read(&request.query, MOST)?;
    let parse = |text: &str| VaultId::parse(text).map(|id| id.0);
    let query = page.list(request.principal.tenant_id(), &request.query, parse)?;
    let name = request.query.one("name")?.map(str::to_owned);
    let listed = app.store.db.list_vaults(query, name).await?;
    edge::json(&edge::page(&listed, |vault| vault.id.to_string(), Vault::view))
}
