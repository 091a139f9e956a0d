//! Which path and method leads where.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use super::app::App;
use super::{
    agents, credentials, environments, events, files, memory, models, session_resources, sessions, skills,
    status, vaults,
};
use crate::http::{ApiError, pass};

/// Every route, behind the edge. A node that does not answer clients only says how it is.
pub fn router(app: Arc<App>, answers: bool) -> Router {
    let edge = Arc::clone(&app.edge);
    let api = Router::new()
        .route("/agents", get(agents::list).post(agents::create))
        .route(
            "/agents/{id}",
            get(agents::read).post(agents::update).put(agents::update).patch(agents::update),
        )
        .route("/agents/{id}/versions", get(agents::versions))
        .route("/agents/{id}/archive", post(agents::archive))
        .route("/environments", get(environments::list).post(environments::create))
        .route(
            "/environments/{id}",
            get(environments::read)
                .post(environments::update)
                .put(environments::update)
                .patch(environments::update)
                .delete(environments::delete),
        )
        .route("/environments/{id}/archive", post(environments::archive))
        .route("/sessions", get(sessions::list).post(sessions::create))
        .route(
            "/sessions/{id}",
            get(sessions::read)
                .post(sessions::update)
                .put(sessions::update)
                .patch(sessions::update)
                .delete(sessions::delete),
        )
        .route("/sessions/{id}/cancel", post(sessions::cancel))
        .route("/sessions/{id}/archive", post(sessions::archive))
        .route("/sessions/{id}/resources", get(session_resources::list).post(session_resources::add))
        .route(
            "/sessions/{id}/resources/{resource}",
            get(session_resources::read).post(session_resources::update).delete(session_resources::delete),
        )
        .route("/sessions/{id}/events", get(events::list).post(events::send))
        .route("/sessions/{id}/events/stream", get(events::stream::open))
        .route("/sessions/{id}/stream", get(events::stream::open))
        .merge(resources())
        .route("/models", get(models::list))
        .route("/models/{*id}", get(models::read));
    let routes = if answers {
        Router::new().nest("/api/v1/cloud", api.clone()).nest("/v1", api)
    } else {
        Router::new()
    };
    routes
        .route("/health", get(status::health))
        .route("/ready", get(status::ready))
        .route("/metrics", get(status::metrics))
        .route("/files/{id}/{ticket}", get(files::linked))
        .fallback(|| async { ApiError::not_found("There is no such path.") })
        .layer(from_fn_with_state(edge, pass))
        .with_state(app)
}

/// What sessions are given beside their agents and environments.
fn resources() -> Router<Arc<App>> {
    Router::new()
        .route("/files", get(files::list).post(files::create).layer(DefaultBodyLimit::disable()))
        .route("/files/{id}", get(files::read).delete(files::delete))
        .route("/files/{id}/content", get(files::content))
        .merge(memory())
        .merge(threads())
        .route("/skills", get(skills::list).post(skills::create).layer(DefaultBodyLimit::disable()))
        .route("/skills/{id}", get(skills::read).delete(skills::delete))
        .route(
            "/skills/{id}/versions",
            get(skills::list_versions).post(skills::create_version).layer(DefaultBodyLimit::disable()),
        )
        .route("/skills/{id}/versions/{version}", get(skills::read_version).delete(skills::delete_version))
        .route("/skills/{id}/versions/{version}/content", get(skills::download))
        .route("/vaults", get(vaults::list).post(vaults::create))
        .route("/vaults/{id}", get(vaults::read).post(vaults::update).delete(vaults::delete))
        .route("/vaults/{id}/archive", post(vaults::archive))
        .route("/vaults/{id}/credentials", get(credentials::list).post(credentials::create))
        .route(
            "/vaults/{id}/credentials/{credential}",
            get(credentials::read).post(credentials::update).delete(credentials::delete),
        )
        .route("/vaults/{id}/credentials/{credential}/archive", post(credentials::archive))
        .route("/vaults/{id}/credentials/{credential}/mcp_oauth_validate", post(credentials::validate))
}

/// Threads of sessions.
fn threads() -> Router<Arc<App>> {
    use events::threads;
    Router::new()
        .route("/sessions/{id}/threads", get(threads::list))
        .route("/sessions/{id}/threads/{thread}", get(threads::read))
        .route("/sessions/{id}/threads/{thread}/archive", post(threads::archive))
        .route("/sessions/{id}/threads/{thread}/events", get(threads::events))
        .route("/sessions/{id}/threads/{thread}/stream", get(threads::stream))
        .route("/sessions/{id}/threads/{thread}/events/stream", get(threads::stream))
}

/// Memory stores and what is in them.
fn memory() -> Router<Arc<App>> {
    use memory::{memories, stores, versions};
    Router::new()
        .route("/memory_stores", get(stores::list).post(stores::create))
        .route("/memory_stores/{id}", get(stores::read).post(stores::update).delete(stores::delete))
        .route("/memory_stores/{id}/archive", post(stores::archive))
        .route("/memory_stores/{id}/memories", get(memories::list).post(memories::create))
        .route(
            "/memory_stores/{id}/memories/{memory}",
            get(memories::read).post(memories::update).delete(memories::delete),
        )
        .route("/memory_stores/{id}/memory_versions", get(versions::list))
        .route("/memory_stores/{id}/memory_versions/{version}", get(versions::read))
        .route("/memory_stores/{id}/memory_versions/{version}/redact", post(versions::redact))
}
