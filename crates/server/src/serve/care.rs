//! What is done now and then while a server runs: what no one needs is removed.

use std::sync::Arc;
use std::time::Duration;

use crate::api::App;
use crate::config::Retention;
use crate::http::Authenticator;
use crate::model::time::Time;
use crate::observe::Log;
use crate::store::{DbError, Store};

/// How often.
const PAUSE: Duration = Duration::from_secs(60);
/// Sessions that one transaction deletes.
const DELETED_TOGETHER: usize = 100;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Takes care of the database until the server stops.
pub(super) async fn care(app: Arc<App>, tokens: Arc<Authenticator>, retention: Retention, log: Log) {
    loop {
        let expired = expire(&app, &retention).await;
        let done = expired.and(clean(&app.store).await).and(tokens.note_used().await);
        if let Err(error) = done {
            log.warn("care_failed", &[("error", &error.to_string())]);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Removes rows and files, a few at a time, so that no transaction is long.
async fn clean(store: &Store) -> Result<(), DbError> {
    while store.db.clean(Time::now()).await? > 0 {}
    while store.clean_files(Time::now()).await? > 0 {}
    while store.clean_archives().await? > 0 {}
    while store.clean_workspaces(Time::now()).await? > 0 {}
    Ok(())
}

/// Deletes sessions that have rested for as long as their tenant keeps them.
async fn expire(app: &App, retention: &Retention) -> Result<(), DbError> {
    if *retention == Retention::default() {
        return Ok(());
    }
    for tenant in app.store.db.list_tenants().await? {
        let Some(days) = retention.of(&tenant.name) else { continue };
        let before = Time::now().after(-i64::from(days) * DAY_MS);
        loop {
            let deleted = app.store.db.delete_stale(tenant.id, before, DELETED_TOGETHER).await?;
            if deleted.is_empty() {
                break;
            }
            for (key, session) in deleted {
                app.hub.deleted(key);
                app.node.remove_workspace(session).await;
            }
        }
    }
    Ok(())
}
