//! How the server is doing: for load balancers and for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use serde_json::json;

use super::app::App;
use crate::http::{self as edge, ApiError, ApiRequest, Scope};

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

/// Numbers for Prometheus.
pub(super) async fn metrics(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let mut text = app.metrics.text();
    if let Ok(counts) = app.store.db.counts().await {
        let end = text.rfind("# EOF").unwrap_or(text.len());
        text.truncate(end);
        text.push_str(
            "# HELP qoder_sessions Sessions by status, and pending actions.\n# TYPE qoder_sessions gauge\n",
        );
        for (name, count) in counts {
            text.push_str(&format!("qoder_sessions{{status=\"{name}\"}} {count}\n"));
        }
        text.push_str("# EOF\n");
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
