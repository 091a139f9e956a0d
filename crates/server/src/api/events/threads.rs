//! `/sessions/{id}/threads`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::Value;

use super::stream;
use crate::api::app::{self, App};
use crate::api::sessions;
use crate::http::{self as edge, ApiError, ApiRequest, Cursor, PageRequest, Scope};
use crate::model::ids::{SessionId, ThreadId};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::session::{self, Session};
use crate::model::thread::{Thread, ThreadView};
use crate::model::time::Time;

const MOST: u64 = 100;

fn view(app: &App, request: &ApiRequest) -> ThreadView {
    ThreadView { dialect: request.dialect, credit_usd: app.credit_usd, now: Time::now() }
}

/// The session that a request names, and its threads, its own first.
async fn all(app: &App, request: &ApiRequest) -> Result<(Session, Vec<Thread>), ApiError> {
    let (tenant, id) = (request.principal.tenant_id(), sessions::id(request)?);
    let row = app.store.db.session(tenant, id).await?;
    let session = app::opened(&row, &app.data_key(request)?);
    let started = app.store.db.threads(tenant, id).await?;
    let threads = std::iter::once(Thread::primary(&session)).chain(started).collect();
    Ok((session, threads))
}

/// The thread that a request names.
fn id(request: &ApiRequest) -> Result<ThreadId, ApiError> {
    let text = request.parameter(1);
    ThreadId::parse(text).ok_or_else(|| Refusal::not_found("thread", text).into())
}

fn find(threads: Vec<Thread>, id: ThreadId) -> Result<Thread, ApiError> {
    let found = threads.into_iter().find(|thread| thread.id == id);
    found.ok_or_else(|| Refusal::not_found("thread", id).into())
}

/// Makes sure that a session has a thread. For the session's own thread it answers with nothing.
pub(super) async fn check(
    app: &App,
    request: &ApiRequest,
    session: SessionId,
    thread: ThreadId,
) -> Result<Option<ThreadId>, ApiError> {
    if thread == ThreadId::primary(session) {
        return Ok(None);
    }
    let threads = app.store.db.threads(request.principal.tenant_id(), session).await?;
    find(threads, thread).map(|thread| Some(thread.id))
}

pub(in crate::api) async fn list(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let page = PageRequest::read(&request.query, MOST)?;
    let statuses = session::statuses(&request.query.all("statuses"))?;
    let (session, mut threads) = all(&app, &request).await?;
    threads.retain(|thread| statuses.is_empty() || statuses.contains(&thread.status));
    let place = |text: &str, field: &str| {
        let found = threads.iter().position(|thread| thread.id.to_string() == text);
        found.ok_or_else(|| Problem::field(field, format!("is `{text}`, which is not a thread of this list")))
    };
    let (from, to) = match &page.cursor {
        Cursor::Start => (0, page.limit),
        Cursor::After(text) => {
            let from = place(text, "page")? + 1;
            (from, from + page.limit)
        }
        Cursor::Before(text) => {
            let to = place(text, "before_id")?;
            (to.saturating_sub(page.limit), to)
        }
    };
    let (has_before, has_more) = (from > 0, to < threads.len());
    let shown: Vec<Thread> = threads.into_iter().take(to).skip(from).collect();
    let ids: Vec<String> = shown.iter().map(|thread| thread.id.to_string()).collect();
    let view = view(&app, &request);
    let data: Vec<Value> = shown.iter().map(|thread| thread.view(&session, view)).collect();
    edge::json(&edge::page_of_ids(&ids, has_more, has_before, &data))
}

pub(in crate::api) async fn read(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let (session, threads) = all(&app, &request).await?;
    let thread = find(threads, id(&request)?)?;
    edge::json(&thread.view(&session, view(&app, &request)))
}

pub(in crate::api) async fn archive(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let (session, thread) = (sessions::id(&request)?, id(&request)?);
    if thread == ThreadId::primary(session) {
        let message = "The primary thread is archived with its session: use `POST /sessions/{id}/archive`.";
        return Err(Refusal::conflict(message).into());
    }
    let row = app.store.db.session(request.principal.tenant_id(), session).await?;
    let (owner, by) = (app::opened(&row, &app.data_key(&request)?), view(&app, &request));
    let once = edge::once(&request, move |thread: &Thread| edge::kept(&thread.view(&owner, by)));
    let tenant = request.principal.tenant_id();
    let done = app.store.db.archive_thread(tenant, session, thread, once).await?;
    Ok(edge::rendered(done.answer()))
}

pub(in crate::api) async fn events(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let thread = check(&app, &request, sessions::id(&request)?, id(&request)?).await?;
    super::page(&app, &request, thread).await
}

pub(in crate::api) async fn stream(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let thread = check(&app, &request, sessions::id(&request)?, id(&request)?).await?;
    stream::follow(app, &request, thread).await
}
