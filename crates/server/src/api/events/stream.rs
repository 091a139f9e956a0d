//! `/sessions/{id}/events/stream`: events as they happen, from now on or from the last one that the client has.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::api::app::{App, OpenStream};
use crate::api::environments::rights;
use crate::api::sessions;
use crate::fanout::{self, Deltas, Frame, Next, Subscription};
use crate::http::{ApiError, ApiRequest, Scope};
use crate::model::dialect::Dialect;
use crate::model::event::Event;
use crate::model::ids::{EventId, SessionId, TenantId, ThreadId};
use crate::model::refusal::Refusal;
use crate::model::time::Time;

/// Events that are read from the store at once.
const READ_TOGETHER: usize = 200;
/// How often a quiet stream says that it is there.
const COMMENT_PAUSE: Duration = Duration::from_secs(15);
/// How often it is looked whether the token is still good.
const RECHECK: Duration = Duration::from_secs(3);
/// How long the store may fail before a stream ends.
const READ_PATIENCE: Duration = Duration::from_secs(30);
const READ_PAUSE: Duration = Duration::from_millis(250);
/// The most streams of a token.
const MOST_STREAMS: usize = 1_000;
/// How long clients wait before they connect again.
const RETRY_MS: u64 = 1_000;

pub(in crate::api) async fn open(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    rights::needs_session(&app, &request, Scope::Read, sessions::id(&request)?).await?;
    follow(app, &request, None).await
}

/// Follows what a session shows, or a thread of it. Threads have no deltas.
pub(super) async fn follow(
    app: Arc<App>,
    request: &ApiRequest,
    thread: Option<ThreadId>,
) -> Result<Response, ApiError> {
    let (tenant, session) = (request.principal.tenant_id(), sessions::id(request)?);
    let last = last_event(request)?;
    let asked = deltas(request)?;
    let deltas = if thread.is_some() { Deltas::default() } else { asked };
    let token = request.principal.token_id.clone();
    let Some(counted) = app.open_stream(&token, MOST_STREAMS) else {
        let message = "The token has too many streams open. Close some, or try again later.";
        let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        error.retry_after = Some(10);
        return Err(error);
    };
    // Subscribed first and read then, so that nothing is missed in between.
    let key = app.store.db.session(tenant, session).await?.session.key;
    let mut subscription = app.hub.subscribe(key, deltas);
    subscription.start_after(app.store.db.stream_start(tenant, session, last).await?.after);
    let stream = EventStream {
        app,
        subscription,
        tenant,
        session,
        thread,
        dialect: request.dialect,
        token,
        waiting: vec![fanout::retry(RETRY_MS)],
        beat_at: Instant::now() + COMMENT_PAUSE,
        check_at: Instant::now() + RECHECK,
        is_over: false,
        _counted: counted,
    };
    let body = futures::stream::unfold(stream, |mut stream| async move {
        let bytes = stream.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(bytes), stream))
    });
    let mut response = Response::new(Body::from_stream(body.fuse()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// The last event that the client has.
fn last_event(request: &ApiRequest) -> Result<Option<EventId>, ApiError> {
    let Some(value) = request.headers.get("last-event-id").filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or("\u{fffd}");
    EventId::parse(text).map(Some).ok_or_else(|| Refusal::not_found("event", text).into())
}

fn deltas(request: &ApiRequest) -> Result<Deltas, ApiError> {
    let mut deltas = Deltas::default();
    for kind in request.query.all("event_deltas") {
        match kind.as_str() {
            "agent.message" => deltas.message = true,
            "agent.thinking" => deltas.thinking = true,
            other => {
                let message =
                    format!("`event_deltas` is `{other}`; accepted are agent.message and agent.thinking");
                let mut error = ApiError::invalid(message);
                error.field = Some("event_deltas".to_owned());
                return Err(error);
            }
        }
    }
    Ok(deltas)
}

/// A stream that is open.
struct EventStream {
    app: Arc<App>,
    subscription: Subscription,
    tenant: TenantId,
    session: SessionId,
    /// The thread that it shows; none for the session itself.
    thread: Option<ThreadId>,
    dialect: Dialect,
    token: String,
    /// Frames that are ready, the last one first.
    waiting: Vec<Bytes>,
    beat_at: Instant,
    check_at: Instant,
    is_over: bool,
    _counted: OpenStream,
}

impl EventStream {
    fn stops(&self) -> bool {
        *self.app.stop.borrow()
    }

    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.waiting.pop() {
                return Some(bytes);
            }
            if self.is_over || self.stops() {
                return None;
            }
            match self.subscription.advance() {
                Next::Send(frame) if frame.is_in(self.thread) => return Some(frame.bytes(self.dialect)),
                Next::Send(_) => {}
                Next::Preview(bytes) => return Some(bytes),
                Next::Read => self.read().await?,
                Next::Deleted => {
                    self.is_over = true;
                    return Some(self.deleted());
                }
                Next::Wait => {
                    if let Some(bytes) = self.wait().await {
                        return Some(bytes);
                    }
                }
            }
        }
    }

    /// Reads events from the store. `None` when it does not answer for too long.
    async fn read(&mut self) -> Option<()> {
        let until = Instant::now() + READ_PATIENCE;
        let events = loop {
            match self.read_once().await {
                Ok(events) => break events,
                Err(_) if Instant::now() < until && !self.stops() => {
                    tokio::time::sleep(READ_PAUSE).await;
                }
                Err(_) => return None,
            }
        };
        let Some(events) = events else {
            self.is_over = true;
            self.waiting.push(self.deleted());
            return Some(());
        };
        let last = events.last().map_or(self.subscription.cursor(), |event| event.seq);
        self.subscription.have_read(last, events.len() < READ_TOGETHER);
        for event in events.iter().filter(|event| event.is_previewed) {
            self.subscription.have_shown(event.id);
        }
        let (dialect, thread) = (self.dialect, self.thread);
        self.waiting.extend(
            events
                .into_iter()
                .rev()
                .filter(|event| event.is_in(thread))
                .map(|event| Frame::new(event).bytes(dialect)),
        );
        Some(())
    }

    async fn read_once(&self) -> Result<Option<Vec<Event>>, crate::store::DbError> {
        let (key, cursor) = (self.subscription.key(), self.subscription.cursor());
        let mut events = self.app.store.db.events_after(key, cursor, READ_TOGETHER).await?;
        if let Some(events) = &mut events {
            self.app.store.fill_events(self.tenant, events).await?;
        }
        Ok(events)
    }

    /// Waits for news; a quiet stream says that it is there.
    async fn wait(&mut self) -> Option<Bytes> {
        let mut stop = self.app.stop.clone();
        let stopped = async move { drop(stop.wait_for(|stops| *stops).await) };
        tokio::select! {
            () = self.subscription.changed() => None,
            () = stopped => None,
            () = sleep_until(self.check_at) => {
                self.check_at = Instant::now() + RECHECK;
                self.is_over = !self.app.edge.tokens.is_good(&self.token).await;
                None
            }
            () = sleep_until(self.beat_at) => {
                self.beat_at = Instant::now() + COMMENT_PAUSE;
                Some(fanout::comment("heartbeat"))
            }
        }
    }

    /// The last event of a session that is gone; it is not stored.
    fn deleted(&self) -> Bytes {
        let event = Event {
            seq: 0,
            id: EventId::now(),
            kind: "session.deleted".to_owned(),
            at: Time::now(),
            processed_at: Some(Time::now()),
            is_previewed: false,
            body: json!({ "session_id": self.session }).to_string(),
            blob: None,
            thread: None,
            is_posted: false,
        };
        Frame::new(event).bytes(self.dialect)
    }
}
