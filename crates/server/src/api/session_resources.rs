//! `/sessions/{id}/resources`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::app::{self, App};
use super::{files, memory, sessions};
use crate::http::{self as edge, ApiError, ApiRequest, Scope};
use crate::model::fields::Fields;
use crate::model::refusal::Refusal;
use crate::model::resources::{self, Resource};
use crate::model::session::{SessionBody, SessionSecrets};
use crate::model::time::Time;
use crate::store::{SessionChange, SessionRow};

const MOST: usize = 500;

fn find<'a>(row: &'a SessionRow, id: &str) -> Result<&'a Resource, Refusal> {
    let found = row.session.body.resources.iter().find(|resource| resource.id == id);
    found.ok_or_else(|| Refusal::not_found("resource", id))
}

pub(super) async fn list(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let row = app.store.db.session(request.principal.tenant_id(), sessions::id(&request)?).await?;
    let resources = &row.session.body.resources;
    let ids: Vec<String> = resources.iter().map(|resource| resource.id.clone()).collect();
    let data: Vec<Value> = resources.iter().map(Resource::view).collect();
    edge::json(&edge::page_of_ids(&ids, false, false, &data))
}

pub(super) async fn read(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let row = app.store.db.session(request.principal.tenant_id(), sessions::id(&request)?).await?;
    edge::json(&find(&row, request.parameter(1))?.view())
}

/// Changes the resources of a session, and answers with what `view` makes of them.
async fn change(
    app: &App,
    request: &ApiRequest,
    change: impl FnOnce(&mut SessionBody, &mut SessionSecrets) -> Result<(), Refusal> + Send + 'static,
    view: impl FnOnce(&SessionRow) -> Value + Send + 'static,
) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let (key, id) = (app.data_key(request)?, sessions::id(request)?);
    let change = move |row: &SessionRow| {
        let (mut body, mut secrets) = (row.session.body.clone(), app::secrets(row, &key));
        change(&mut body, &mut secrets)?;
        Ok(SessionChange {
            title: row.session.title.clone(),
            metadata: row.session.metadata.clone(),
            sealed: sessions::sealed(&key, row.session.id, &secrets)?,
            body,
            updated: None,
        })
    };
    let once = edge::once(request, move |(row, _): &(SessionRow, Vec<crate::model::event::Event>)| {
        edge::kept(&view(row))
    });
    let tenant = request.principal.tenant_id();
    let done = app.store.db.update_session(tenant, id, Box::new(change), once).await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn add(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    let (tenant, session) = (request.principal.tenant_id(), sessions::id(&request)?);
    let mut new = resources::read(&request.json()?, Time::now())?;
    request.needs(Scope::Run)?;
    let environment = app.store.db.session(tenant, session).await?.session.environment_id;
    if app.store.db.environment(tenant, environment).await?.body.is_self_hosted() {
        return Err(resources::unsupported("type").into());
    }
    files::check(&app, tenant, new.resource.file().into_iter()).await?;
    if new.resource.memory().is_some() {
        let row = app.store.db.session(tenant, session).await?;
        let mounted = row.session.body.resources.iter().map(|resource| resource.mount_path.clone()).collect();
        memory::complete(&app, tenant, std::slice::from_mut(&mut new), mounted).await?;
    }
    let view = new.resource.view();
    let adding = move |body: &mut SessionBody, secrets: &mut SessionSecrets| {
        if body.resources.len() >= MOST {
            return Err(Refusal::conflict(format!("A session has at most {MOST} resources.")));
        }
        let store = new.resource.memory().map(|mount| &mount.store);
        if store.is_some() && body.resources.iter().any(|one| one.memory().map(|mount| &mount.store) == store)
        {
            return Err(Refusal::conflict("The session has this memory store already.".to_owned()));
        }
        if let Some(credential) = new.credential {
            secrets.credentials.insert(new.resource.id.clone(), credential);
        }
        body.resources.push(new.resource);
        Ok(resources::check_paths(body.resources.iter())?)
    };
    change(&app, &request, adding, move |_| view).await
}

pub(super) async fn update(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    let body = request.json()?;
    let credential = resources::credential(Fields::of_body(&body)?)?;
    let id = request.parameter(1).to_owned();
    let changed = id.clone();
    let changing = move |body: &mut SessionBody, secrets: &mut SessionSecrets| {
        let found = body.resources.iter_mut().find(|resource| resource.id == changed);
        let resource = found.ok_or_else(|| Refusal::not_found("resource", &changed))?;
        if let Some(credential) = credential {
            resource.updated_at = Time::now().0;
            secrets.credentials.insert(changed, credential);
        }
        Ok(())
    };
    let view = move |row: &SessionRow| find(row, &id).map_or(Value::Null, Resource::view);
    change(&app, &request, changing, view).await
}

pub(super) async fn delete(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    let id = request.parameter(1).to_owned();
    let session = sessions::id(&request)?;
    let row = app.store.db.session(request.principal.tenant_id(), session).await?;
    let path =
        find(&row, &id).ok().filter(|resource| resource.file().is_some()).map(|one| one.mount_path.clone());
    let answer = json!({ "id": id, "type": "session_resource_deleted" });
    let removing = move |body: &mut SessionBody, secrets: &mut SessionSecrets| {
        let before = body.resources.len();
        body.resources.retain(|resource| resource.id != id);
        if body.resources.len() == before {
            return Err(Refusal::not_found("resource", &id));
        }
        secrets.credentials.remove(&id);
        Ok(())
    };
    let response = change(&app, &request, removing, move |_| answer).await?;
    if let Some(path) = path {
        app.node.unmount(session, path).await;
    }
    Ok(response)
}
