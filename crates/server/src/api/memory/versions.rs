//! `/memory_stores/{id}/memory_versions`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::{change, is_full, stores};
use crate::api::app::App;
use crate::http::{self as edge, ApiError, ApiRequest, PageRequest, Scope};
use crate::model::ids::{MemoryId, MemoryVersionId, SessionId};
use crate::model::memories::{Actor, MemoryVersion, Operation};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::store::{ListQuery, MemoryVersionQuery};

const MOST: u64 = 100;

fn id(request: &ApiRequest) -> Result<MemoryVersionId, ApiError> {
    let text = request.parameter(1);
    MemoryVersionId::parse(text).ok_or_else(|| Refusal::not_found("memory version", text).into())
}

pub(in crate::api) async fn read(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let (tenant, store) = (request.principal.tenant_id(), stores::id(&request)?);
    let version = app.store.db.memory_version(tenant, store, id(&request)?).await?;
    edge::json(&version.view(is_full(&request, true)?))
}

pub(in crate::api) async fn redact(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let once = edge::once(&request, |version: &MemoryVersion| edge::kept(&version.view(true)));
    let change = change(&app, &request)?;
    let done = app.store.db.redact_memory_version(change, id(&request)?, once).await?;
    Ok(edge::rendered(done.answer()))
}

/// Who made the versions that are listed; `None` when no version can be theirs.
fn makers(request: &ApiRequest) -> Result<Option<Vec<Actor>>, Problem> {
    let mut makers = Vec::new();
    if request.query.one("service_account_id")?.is_some() {
        return Ok(None);
    }
    if let Some(token) = request.query.one("api_key_id")? {
        makers.push(Actor::Token(token.to_owned()));
    }
    if let Some(session) = request.query.one("session_id")? {
        let Some(session) = SessionId::parse(session) else { return Ok(None) };
        makers.push(Actor::Session(session));
    }
    Ok(Some(makers))
}

pub(in crate::api) async fn list(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let query = &request.query;
    let page = PageRequest::read(query, MOST)?;
    let parse = |text: &str| MemoryVersionId::parse(text).map(|id| id.0);
    let list = page.list(request.principal.tenant_id(), query, parse)?;
    let memory = query.one("memory_id")?.map(MemoryId::parse);
    let operation = match query.one("operation")? {
        None => None,
        Some(word) => Some(
            Operation::parse(word)
                .ok_or_else(|| Problem::field("operation", "must be `created`, `modified` or `deleted`"))?,
        ),
    };
    let (Some(by), false) = (makers(&request)?, memory == Some(None)) else {
        return edge::json(&edge::page_of_ids(&[], false, false, &[]));
    };
    let wanted = MemoryVersionQuery {
        list: ListQuery { include_archived: true, ..list },
        store: stores::id(&request)?,
        memory: memory.flatten(),
        operation,
        by,
    };
    let is_full = is_full(&request, false)?;
    let listed = app.store.db.list_memory_versions(wanted).await?;
    edge::json(&edge::page(&listed, |version| version.id.to_string(), |version| version.view(is_full)))
}
