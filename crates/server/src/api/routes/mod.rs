//! Which path and method leads where. One table makes the router and the OpenAPI document, so that neither has a route that the other
//! one lacks.

mod document;
mod notation;
mod operation;
mod resources;
mod schemas;
mod sessions;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use serde_json::Value;

use self::operation::{Operation, Route, at};
use super::app::App;
use super::{events, files, status};
use crate::http::{self as edge, ApiError, pass};

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| document::write(&routes(), &outside()));

/// Every route, behind the edge. A node that does not answer clients only says how it is.
pub fn router(app: Arc<App>, answers: bool) -> Router {
    let entry = Arc::clone(&app.edge);
    let api =
        routes().into_iter().fold(Router::new(), |router, route| router.route(route.path, route.handler));
    let outside =
        outside().into_iter().fold(Router::new(), |router, route| router.route(route.path, route.handler));
    // Other nodes call it, and no client.
    let outside = outside.route("/internal/sessions/{key}/pieces", axum::routing::get(events::pieces::read));
    let all = if answers { outside.nest("/api/v1/cloud", api.clone()).nest("/v1", api) } else { outside };
    all.fallback(|| async { ApiError::not_found("There is no such path.") })
        .layer(from_fn_with_state(entry, pass))
        .with_state(app)
}

/// The OpenAPI document of the server.
#[must_use]
pub fn openapi() -> &'static Value {
    &DOCUMENT
}

async fn read_document() -> Result<Response, ApiError> {
    edge::json(openapi())
}

/// The routes below the two prefixes.
fn routes() -> Vec<Route> {
    [sessions::agents(), sessions::work(), sessions::sessions(), sessions::threads(), resources::given()]
        .into_iter()
        .chain([
            resources::memory(),
            resources::vaults(),
            resources::deployments(),
            resources::webhooks(),
            resources::models(),
        ])
        .flatten()
        .collect()
}

/// The routes beside them.
fn outside() -> Vec<Route> {
    vec![
        at("/health")
            .get(status::health, Operation::new("Check that the server runs").gives("Health").open()),
        at("/ready")
            .get(status::ready, Operation::new("Check that the server takes work").gives("Health").open()),
        at("/metrics").get(status::metrics, Operation::new("Read metrics for Prometheus").text()),
        at("/openapi.json").get(read_document, Operation::new("Read this document").gives("Document").open()),
        at("/files/{id}/{ticket}")
            .get(files::linked, Operation::new("Download a file by a link that was signed").bytes().open()),
    ]
}
