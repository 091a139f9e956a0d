//! `/vaults/{id}/credentials`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::app::App;
use super::vaults;
use crate::credentials::Credentials;
use crate::http::{self as edge, ApiError, ApiRequest, PageRequest, Scope};
use crate::model::ids::CredentialId;
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::vault::{Credential, CredentialBody};
use crate::secrets::SealError;
use crate::store::{CredentialQuery, CredentialRow, NewCredential, Once};

const MOST: u64 = 100;

/// The credential that a request names.
fn query(request: &ApiRequest) -> Result<CredentialQuery, ApiError> {
    let text = request.parameter(1);
    let id = CredentialId::parse(text).ok_or_else(|| Refusal::not_found("credential", text))?;
    Ok(CredentialQuery { tenant: request.principal.tenant_id(), vault: vaults::id(request)?, id })
}

fn answered(request: &ApiRequest) -> Once<Credential> {
    edge::once(request, |credential: &Credential| edge::kept(&credential.view()))
}

/// What cannot be sealed or opened is for the operator.
fn sealing(app: &App, error: &SealError) -> ApiError {
    app.edge.log.error("sealed_data", &[("error", &error.to_string())]);
    ApiError::internal()
}

pub(super) async fn create(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let vault = vaults::id(&request)?;
    let (body, secrets) = CredentialBody::create(&request.json()?)?;
    let (key, id) = (app.data_key(&request)?, CredentialId::random());
    let sealed = Credentials::seal(&key, id, &secrets).map_err(|error| sealing(&app, &error))?;
    let new = NewCredential { tenant: request.principal.tenant_id(), vault, id, body, sealed };
    let done = app.store.db.create_credential(new, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn read(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    edge::json(&app.store.db.credential(query(&request)?).await?.credential.view())
}

pub(super) async fn update(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let (query, key, update) = (query(&request)?, app.data_key(&request)?, request.json()?);
    let change = move |row: &CredentialRow| {
        let unreadable = |error: SealError| Refusal::conflict(error.to_string());
        let opened = Credentials::open(&key, row.clone()).map_err(unreadable)?;
        let (body, secrets) = row.credential.body.updated(&opened.secrets, &update)?;
        let sealed = Credentials::seal(&key, row.credential.id, &secrets).map_err(unreadable)?;
        Ok((body, sealed))
    };
    let done = app.store.db.update_credential(query, Box::new(change), answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn archive(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let done = app.store.db.archive_credential(query(&request)?, answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn delete(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let query = query(&request)?;
    let render = move |(): &()| edge::kept(&json!({ "id": query.id, "type": "vault_credential_deleted" }));
    let done = app.store.db.delete_credential(query, edge::once(&request, render)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn list(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let page = PageRequest::read(&request.query, MOST)?;
    let parse = |text: &str| CredentialId::parse(text).map(|id| id.0);
    let query = page.list(request.principal.tenant_id(), &request.query, parse)?;
    let name = request.query.one("name")?.map(str::to_owned);
    let listed = app.store.db.list_credentials(vaults::id(&request)?, query, name).await?;
    edge::json(&edge::page(&listed, |credential| credential.id.to_string(), Credential::view))
}

/// Tries the token of an MCP server out.
pub(super) async fn validate(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let (query, key) = (query(&request)?, app.data_key(&request)?);
    let row = app.store.db.credential(query).await?;
    if row.credential.archived_at.is_some() {
        return Err(Refusal::conflict(format!("The credential `{}` is archived.", query.id)).into());
    }
    let Some(server) = row.credential.body.auth.server().map(str::to_owned) else {
        let problem = "is `environment_variable`; only credentials of MCP servers can be tried out";
        return Err(Problem::field("auth.type", problem).into());
    };
    let opened = Credentials::open(&key, row).map_err(|error| sealing(&app, &error))?;
    edge::json(&app.credentials.validate(query.tenant, &key, opened, &server).await)
}
