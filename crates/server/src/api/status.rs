//! How the server is doing: for load balancers and for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use serde_json::json;

use super::app::App;
use crate::http::{self as edge, ApiError, ApiRequest, Scope};
use crate::store::Counts;

/// How long the database may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The process is there.
pub(super) async fn health() -> Result<Response, ApiError> {
    edge::json(&json!({ "status": "ok" }))
}

/// The server takes work.
pub(super) async fn ready(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    if app.readiness.is_draining() {
        return Err(ApiError::unavailable("The server is stopping."));
    }
    if !app.node.is_member() {
        return Err(ApiError::unavailable("The node has lost contact with the database."));
    }
    match tokio::time::timeout(PATIENCE, app.store.db.probe()).await {
        Ok(Ok(())) => edge::json(&json!({ "status": "ready" })),
        Ok(Err(_)) | Err(_) => Err(ApiError::unavailable("The database cannot be written.")),
    }
}

/// What the database counts, as every node sees it.
fn of_database(counts: &Counts) -> String {
    let mut text =
        "# HELP qoder_sessions Sessions by status, and pending actions.\n# TYPE qoder_sessions gauge\n"
            .to_owned();
    for (name, count) in &counts.sessions {
        text.push_str(&format!("qoder_sessions{{status=\"{name}\"}} {count}\n"));
    }
    let seconds = |micros: u64| Duration::from_micros(micros).as_secs_f64();
    for (name, unit, help, value) in [
        (
            "due_age",
            "_seconds",
            "Age of the session that waits longest for a node",
            seconds(counts.due_micros),
        ),
        ("pending_age", "_seconds", "Age of the oldest pending action", seconds(counts.pending_micros)),
    ] {
        let unit_name = unit.trim_start_matches('_');
        text.push_str(&format!(
            "# HELP qoder_{name}{unit} {help}.\n# TYPE qoder_{name}{unit} gauge\n# UNIT qoder_{name}{unit} {unit_name}\n\
             qoder_{name}{unit} {value:.3}\n"
        ));
    }
    let bytes = counts.file_bytes;
    text.push_str(&format!(
        "# HELP qoder_file_bytes Bytes of the files of all tenants.\n# TYPE qoder_file_bytes gauge\n\
         # UNIT qoder_file_bytes bytes\nqoder_file_bytes {bytes}\n"
    ));
    text
}

/// Numbers for Prometheus.
pub(super) async fn metrics(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let mut text = app.metrics.text();
    if let Ok(counts) = app.store.db.counts().await {
        let end = text.rfind("# EOF").unwrap_or(text.len());
        text.truncate(end);
        text.push_str(&of_database(&counts));
        text.push_str("# EOF\n");
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
