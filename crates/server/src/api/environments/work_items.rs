//! `/environments/{id}/work`: the queue that workers of a self-hosted environment serve.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::rights;
use crate::api::app::App;
use crate::http::{self as edge, ApiError, ApiRequest, PageRequest, Scope};
use crate::model::fields::Fields;
use crate::model::ids::WorkId;
use crate::model::metadata::{self, EmptyText, Metadata};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::work_items::{Beat, Beaten, RECLAIM, TTLS, Work};
use crate::store::{ListQuery, Once, PollWork, WorkPlace};

const MOST: u64 = 100;
/// How often a poll that waits looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
const LONGEST_WORKER: usize = 256;
const LONGEST_RECLAIM: u64 = 24 * 60 * 60 * 1000;

fn place(request: &ApiRequest) -> Result<WorkPlace, ApiError> {
    let text = request.parameter(1);
    let id = WorkId::parse(text).ok_or_else(|| Refusal::not_found("work item", text))?;
    Ok(WorkPlace { tenant: request.principal.tenant_id(), environment: super::id(request)?, id })
}

fn answered(request: &ApiRequest) -> Once<Work> {
    edge::once(request, |work: &Work| edge::kept(&work.view(None)))
}

/// The environment of a request, which has to be one that workers serve.
async fn check(app: &App, request: &ApiRequest) -> Result<(), ApiError> {
    let id = super::id(request)?;
    let found = app.store.db.environment(request.principal.tenant_id(), id).await?;
    if found.body.is_self_hosted() {
        return Ok(());
    }
    let problem =
        format!("is `{id}`, which is not self-hosted; only sessions of self-hosted environments are queued");
    Err(Problem::field("environment_id", problem).into())
}

/// Who polls, when it says so.
fn worker(request: &ApiRequest) -> Result<Option<String>, Problem> {
    let names = ["worker-id", "anthropic-worker-id"];
    let Some(value) = names.iter().find_map(|name| request.headers.get(*name)) else { return Ok(None) };
    let name = value.to_str().ok().filter(|name| (1..=LONGEST_WORKER).contains(&name.len()));
    let problem = format!("must have 1 to {LONGEST_WORKER} visible ASCII characters");
    name.map(|name| Some(name.to_owned())).ok_or_else(|| Problem::field("Worker-ID", problem))
}

/// What a worker needs for one item: the token for its session, in the shape that workers read.
fn secret(app: &App, work: &Work) -> String {
    let payload = json!({ "sessions_token": app.edge.tokens.token_of_work(work.id) });
    URL_SAFE_NO_PAD.encode(payload.to_string())
}

pub(in crate::api) async fn poll(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    let environment = super::id(&request)?;
    rights::needs_all_work(&request, Scope::Run, environment)?;
    let query = &request.query;
    let block = query.number("block_ms", 1..=999)?.unwrap_or(0);
    let reclaim = query.number("reclaim_older_than_ms", 0..=LONGEST_RECLAIM)?.unwrap_or(RECLAIM);
    let poll =
        PollWork { tenant: request.principal.tenant_id(), environment, worker: worker(&request)?, reclaim };
    check(&app, &request).await?;
    let until = Instant::now() + Duration::from_millis(block);
    let mut stop = app.stop.clone();
    loop {
        if let Some(work) = app.store.db.poll_work(poll.clone()).await? {
            return edge::json(&work.view(Some(&secret(&app, &work))));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || *stop.borrow() {
            return edge::json(&Value::Null);
        }
        tokio::select! {
            () = sleep(left.min(LOOK_AGAIN)) => {}
            _ = stop.changed() => {}
        }
    }
}

pub(in crate::api) async fn acknowledge(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    let place = place(&request)?;
    rights::needs_work(&request, Scope::Run, place)?;
    Ok(edge::rendered(app.store.db.acknowledge_work(place, answered(&request)).await?.answer()))
}

pub(in crate::api) async fn beat(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    let place = place(&request)?;
    rights::needs_work(&request, Scope::Run, place)?;
    let query = &request.query;
    let ttl = query.number("desired_ttl_seconds", TTLS)?;
    let beat = Beat {
        expected: query.one("expected_last_heartbeat")?.map(str::to_owned),
        ttl: ttl.and_then(|ttl| u32::try_from(ttl).ok()),
    };
    let (work, beaten) = app.store.db.beat_work(place, beat).await?;
    match beaten {
        Beaten::Extended => edge::json(&work.beat_view(true)),
        Beaten::Ends => edge::json(&work.beat_view(false)),
        Beaten::Refused => {
            let message = "`expected_last_heartbeat` is not the last heartbeat of the work item: another worker may have it.";
            let mut error = ApiError::new(StatusCode::PRECONDITION_FAILED, "invalid_request_error", message);
            error.code = Some("heartbeat_precondition_failed");
            error.current_state = Some(Box::new(work.lease_view()));
            Err(error)
        }
    }
}

pub(in crate::api) async fn stop(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    let place = place(&request)?;
    rights::needs_work(&request, Scope::Run, place)?;
    let body = request.json()?;
    let force = Fields::of_body(&body)?.flag("force")?.unwrap_or(false);
    Ok(edge::rendered(app.store.db.stop_work(place, force, answered(&request)).await?.answer()))
}

pub(in crate::api) async fn read(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    let place = place(&request)?;
    rights::needs_work(&request, Scope::Read, place)?;
    edge::json(&app.store.db.work(place).await?.view(None))
}

pub(in crate::api) async fn update(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    let place = place(&request)?;
    rights::needs_work(&request, Scope::Run, place)?;
    let body = request.json()?;
    let patch = body.get("metadata").cloned().ok_or_else(|| Problem::field("metadata", "is required"))?;
    let change =
        move |before: &Metadata| metadata::patched(before, &patch, EmptyText::Kept).map_err(Refusal::from);
    let done = app.store.db.update_work(place, Box::new(change), answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(in crate::api) async fn list(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    let environment = super::id(&request)?;
    rights::needs_all_work(&request, Scope::Read, environment)?;
    let page = PageRequest::read(&request.query, MOST)?;
    let parse = |text: &str| WorkId::parse(text).map(|id| id.0);
    let query = page.list(request.principal.tenant_id(), &request.query, parse)?;
    check(&app, &request).await?;
    let query = ListQuery { include_archived: true, ..query };
    let listed = app.store.db.list_work(environment, query).await?;
    edge::json(&edge::page(&listed, |work| work.id.to_string(), |work| work.view(None)))
}

pub(in crate::api) async fn stats(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    let environment = super::id(&request)?;
    rights::needs_all_work(&request, Scope::Read, environment)?;
    check(&app, &request).await?;
    edge::json(&app.store.db.work_stats(environment).await?.view())
}
