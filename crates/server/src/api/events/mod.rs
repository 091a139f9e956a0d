//! `/sessions/{id}/events`.

pub(super) mod pieces;
pub(super) mod stream;
pub(super) mod threads;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;

use super::app::App;
use super::environments::rights;
use super::{files, sessions};
use crate::http::{self as edge, ApiError, ApiRequest, Cursor, PageRequest, Scope};
use crate::model::event;
use crate::model::ids::{EventId, ThreadId};
use crate::model::inputs::{self, Effect};
use crate::model::problem::Problem;
use crate::store::{Done, EventQuery, SendInputs, Sent};

const MOST: u64 = 1_000;

/// Events as they were sent.
#[derive(Serialize)]
struct SentEvents {
    data: Vec<Box<RawValue>>,
}

/// A page of events.
#[derive(Serialize)]
struct EventPage {
    data: Vec<Box<RawValue>>,
    next_page: Option<String>,
    prev_page: Option<String>,
    first_id: Option<String>,
    last_id: Option<String>,
    has_more: bool,
}

pub(super) async fn send(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    let session = sessions::id(&request)?;
    let body = request.json()?;
    let given = files::given(&app, request.principal.tenant_id(), &body).await?;
    let mut sent = inputs::read(&body, &given)?;
    let mut brings = false;
    for input in &mut sent {
        if let Effect::Interrupt { thread: Some(named) } = input.effect {
            let thread = threads::check(&app, &request, session, named).await?;
            input.effect = Effect::Interrupt { thread };
        }
        match input.effect {
            Effect::Confirm { .. } => request.needs(Scope::Approve)?,
            Effect::Message(_) | Effect::Outcome(_) | Effect::System(_) | Effect::Interrupt { .. } => {
                request.needs(Scope::Run)?;
            }
            Effect::Result { .. } => brings = true,
        }
    }
    if brings {
        // Results are all that a worker sends.
        rights::needs_session(&app, &request, Scope::Run, session).await?;
    }
    let tenant = request.principal.tenant_id();
    app.store.spill_inputs(tenant, &mut sent).await?;
    let (admit, actions) = sessions::admit(&request, sent);
    let offered = app.node.offer();
    let send = SendInputs {
        tenant,
        session,
        admit,
        actions,
        sender: sessions::sender(&app, &request, offered.is_some()),
    };
    let dialect = request.dialect;
    let once = edge::once(&request, move |sent: &Sent| {
        edge::kept(&SentEvents { data: event::render_all(&sent.inputs, dialect) })
    });
    match app.store.db.send_inputs(send, once).await? {
        Done::Now(sent, answer) => {
            app.node.sent(sent, offered);
            Ok(edge::rendered(answer))
        }
        Done::Before(answer) => Ok(edge::rendered(answer)),
    }
}

pub(super) async fn list(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    rights::needs_session(&app, &request, Scope::Read, sessions::id(&request)?).await?;
    page(&app, &request, None).await
}

/// A page of the events that a session shows, or a thread of it.
pub(super) async fn page(
    app: &App,
    request: &ApiRequest,
    thread: Option<ThreadId>,
) -> Result<Response, ApiError> {
    let (query, tenant) = (&request.query, request.principal.tenant_id());
    let page = PageRequest::read(query, MOST)?;
    let id = |text: &str, field: &str| {
        EventId::parse(text)
            .ok_or_else(|| Problem::field(field, format!("is `{text}`, which is not an event")))
    };
    let (after, before) = match &page.cursor {
        Cursor::Start => (None, None),
        Cursor::After(text) => (Some(id(text, "page")?), None),
        Cursor::Before(text) => (None, Some(id(text, "before_id")?)),
    };
    let descending = match query.one("order")? {
        None | Some("asc") => false,
        Some("desc") => true,
        Some(other) => {
            return Err(Problem::field("order", format!("is `{other}`; accepted are asc and desc")).into());
        }
    };
    let (from, to) = query.times("created_at")?;
    let wanted = EventQuery {
        tenant,
        session: sessions::id(request)?,
        thread,
        after,
        before,
        limit: page.limit,
        descending,
        kinds: [query.all("type"), query.all("types")].concat(),
        from,
        to,
    };
    let mut listed = app.store.db.list_events(wanted).await?;
    app.store.fill_events(tenant, &mut listed.items).await?;
    let ids: Vec<String> = listed.items.iter().map(|event| event.id.to_string()).collect();
    let (first, last) = (ids.first().cloned(), ids.last().cloned());
    edge::json(&EventPage {
        data: event::render_all(&listed.items, request.dialect),
        next_page: last.clone().filter(|_| listed.has_more),
        prev_page: first.clone().filter(|_| listed.has_before).map(|id| format!("before.{id}")),
        first_id: first,
        last_id: last,
        has_more: listed.has_more,
    })
}
