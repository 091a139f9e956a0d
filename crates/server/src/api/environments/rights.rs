//! What workers may do: serve the queue of their environment, and take part in the sessions that are in it. The token of an item
//! reaches the session of that item and nothing else.

use crate::api::app::App;
use crate::http::{ApiError, ApiRequest, Scope};
use crate::model::ids::{EnvironmentId, SessionId, SkillId};
use crate::model::refusal::Refusal;
use crate::store::WorkPlace;

/// The environment itself, for a user who has the scope or a worker of it.
pub(in crate::api) fn needs_environment(
    request: &ApiRequest,
    scope: Scope,
    environment: EnvironmentId,
) -> Result<(), ApiError> {
    match request.principal.worker() {
        Some(worker) if worker.serves(environment) => Ok(()),
        Some(_) | None => request.needs(scope),
    }
}

/// The queue of an environment, for a user who has the scope or a worker with the environment's key.
pub(in crate::api) fn needs_all_work(
    request: &ApiRequest,
    scope: Scope,
    environment: EnvironmentId,
) -> Result<(), ApiError> {
    match request.principal.worker() {
        Some(worker) if worker.item().is_none() && worker.serves(environment) => Ok(()),
        Some(_) | None => request.needs(scope),
    }
}

/// One item, for a user who has the scope, a worker with the environment's key, or the worker that has the item's token.
pub(in crate::api) fn needs_work(
    request: &ApiRequest,
    scope: Scope,
    place: WorkPlace,
) -> Result<(), ApiError> {
    match request.principal.worker() {
        Some(worker)
            if worker.serves(place.environment) && worker.item().is_none_or(|item| item.work == place.id) =>
        {
            Ok(())
        }
        Some(_) | None => request.needs(scope),
    }
}

/// A session, for a user who has the scope or a worker that serves it. Other sessions do not exist for a worker.
pub(in crate::api) async fn needs_session(
    app: &App,
    request: &ApiRequest,
    scope: Scope,
    session: SessionId,
) -> Result<(), ApiError> {
    let Some(worker) = request.principal.worker() else { return request.needs(scope) };
    if request.needs(scope).is_ok() {
        return Ok(());
    }
    if worker.item().is_some_and(|item| item.is_over) {
        return Err(ApiError::forbidden("The work item of this token is stopped."));
    }
    let row = app.store.db.session(request.principal.tenant_id(), session).await?.session;
    let is_own = worker.item().is_none_or(|item| item.session == session);
    if is_own && worker.serves(row.environment_id) {
        Ok(())
    } else {
        Err(Refusal::not_found("session", session).into())
    }
}

/// A skill, for a user who has the scope or a worker. The token of an item reaches the skills of its session.
pub(in crate::api) async fn needs_skill(
    app: &App,
    request: &ApiRequest,
    scope: Scope,
    skill: SkillId,
) -> Result<(), ApiError> {
    let Some(worker) = request.principal.worker() else { return request.needs(scope) };
    let Some(item) = worker.item().filter(|_| request.needs(scope).is_err()) else { return Ok(()) };
    if item.is_over {
        return Err(ApiError::forbidden("The work item of this token is stopped."));
    }
    let row = app.store.db.session(request.principal.tenant_id(), item.session).await?.session;
    let name = skill.to_string();
    if row.body.skills().any(|choice| choice.skill_id == name) {
        Ok(())
    } else {
        Err(Refusal::not_found("skill", skill).into())
    }
}
