//! `/memory_stores` with their memories and versions.

pub(super) mod memories;
pub(super) mod stores;
pub(super) mod versions;

use super::app::App;
use crate::http::{ApiError, ApiRequest};
use crate::model::ids::TenantId;
use crate::model::memories::Actor;
use crate::model::memory_mount::MOST_STORES;
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::resources::{Mounted, NewResource};
use crate::store::MemoryChange;

/// Who changes memories of the store that a request names.
fn change(app: &App, request: &ApiRequest) -> Result<MemoryChange, ApiError> {
    Ok(MemoryChange {
        tenant: request.principal.tenant_id(),
        store: stores::id(request)?,
        by: Actor::Token(request.principal.token_id.clone()),
        quota: app.storage_quota,
    })
}

/// True when content is wanted; `is_default` counts without a word about it.
fn is_full(request: &ApiRequest, is_default: bool) -> Result<bool, Problem> {
    match request.query.one("view")? {
        None => Ok(is_default),
        Some("full") => Ok(true),
        Some("basic") => Ok(false),
        Some(other) => Err(Problem::field("view", format!("is `{other}`; accepted are `basic`, `full`"))),
    }
}

/// Looks up the memory stores that are mounted with these resources beside those at `mounted`, and gives each its place.
pub(super) async fn complete(
    app: &App,
    tenant: TenantId,
    new: &mut [NewResource],
    mounted: Vec<String>,
) -> Result<(), ApiError> {
    let is_memory = |path: &String| path.starts_with("/mnt/memory/");
    let mut taken: Vec<String> = mounted.into_iter().filter(is_memory).collect();
    for resource in new.iter_mut().map(|new| &mut new.resource) {
        let Mounted::MemoryStore(mount) = &mut resource.mounted else { continue };
        let id = mount.id().ok_or_else(|| Refusal::not_found("memory store", &mount.store))?;
        let store = app.store.db.memory_store(tenant, id).await?;
        resource.mount_path = mount.complete(&store, &taken)?;
        taken.push(resource.mount_path.clone());
    }
    if taken.len() > MOST_STORES {
        let problem = format!("have more than {MOST_STORES} memory stores");
        return Err(Problem::field("resources", problem).into());
    }
    Ok(())
}
