//! `/internal/sessions/{key}/pieces`: pieces of replies for other nodes, which prove with a ticket that they belong to the cluster.
//! It is not part of the interface for clients, so no document lists it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, header};

use crate::api::app::App;
use crate::fanout::Pieces;
use crate::http::ApiError;

/// How often a quiet stream says that it is there.
const BEAT: Duration = Duration::from_secs(15);

pub(in crate::api) async fn read(
    State(app): State<Arc<App>>,
    Path(key): Path<i64>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let ticket = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if !ticket.is_some_and(|ticket| app.tickets.opens(ticket, app.node.id(), key)) {
        return Err(ApiError::unauthenticated());
    }
    let pieces = app.hub.pieces(key);
    let body = futures::stream::unfold((app, pieces), |(app, mut pieces)| async move {
        let bytes = next(&app, &mut pieces).await?;
        Some((Ok::<Bytes, std::convert::Infallible>(bytes), (app, pieces)))
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(body)).into_response())
}

async fn next(app: &App, pieces: &mut Pieces) -> Option<Bytes> {
    let mut stop = app.stop.clone();
    tokio::select! {
        lines = pieces.next() => lines,
        _ = stop.wait_for(|stops| *stops) => None,
        () = tokio::time::sleep(BEAT) => Some(Bytes::from_static(b"\n")),
    }
}
