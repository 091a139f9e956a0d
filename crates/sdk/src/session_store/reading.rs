//! Reads logs from a session store, which is not trusted: it may fail, panic, answer with something else than entries, or
//! hold an entry twice because its delivery was repeated. Everybody who reads from a store does it through this file.

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::future::Future;
use std::path::Path;

use qoder_runtime::catalog::is_session_id;
use qoder_runtime::layout;
use serde_json::Value;

use super::{SessionKey, SessionStore, SessionStoreError, StoreResult};
use crate::callback::guarded;
use crate::error::{Error, Result};

/// What the store answers; an error that says what was tried when it does not.
pub(crate) async fn answer<T>(
    asked: impl Future<Output = StoreResult<T>>,
    doing: impl FnOnce() -> String,
) -> Result<T> {
    optional(asked, doing).await?.map_err(|missing| {
        let problem = SessionStoreError::LeftOut(missing).to_string();
        Error::SessionStore { problem }
    })
}

/// The same for methods that may be missing; the inner error is the name of a missing one.
async fn optional<T>(
    asked: impl Future<Output = StoreResult<T>>,
    doing: impl FnOnce() -> String,
) -> Result<Result<T, &'static str>> {
    let caught = guarded("the session store", async { Ok::<_, Infallible>(asked.await) }).await;
    let problem = match caught {
        Ok(Ok(answer)) => return Ok(Ok(answer)),
        Ok(Err(SessionStoreError::LeftOut(name))) => return Ok(Err(name)),
        Ok(Err(SessionStoreError::Failed(problem))) | Err(problem) => problem,
    };
    Err(Error::SessionStore { problem: format!("the session store could not {}: {problem}", doing()) })
}

/// The entries of a log, each once; `None` when the log is empty or the store does not know it.
pub(crate) async fn load_log(store: &impl SessionStore, key: &SessionKey) -> Result<Option<Vec<Value>>> {
    let entries = answer(store.load(key), || format!("load {}", key.describe())).await?;
    let Some(entries) = entries.filter(|entries| !entries.is_empty()) else { return Ok(None) };
    if !entries.iter().all(Value::is_object) {
        let problem = format!("the session store must return {} as a list of objects", key.describe());
        return Err(Error::SessionStore { problem });
    }
    Ok(Some(without_repeats(entries)))
}

/// The sessions of a project, with the times of their last changes.
pub(crate) async fn stored_sessions(
    store: &impl SessionStore,
    project_key: &str,
) -> Result<BTreeMap<String, u64>> {
    let rows =
        answer(store.list_sessions(project_key), || format!("list the sessions of {project_key}")).await?;
    // Names that are no ids would become paths elsewhere.
    let rows = rows.into_iter().filter(|row| is_session_id(&row.session_id));
    Ok(rows.map(|row| (row.session_id, row.mtime)).collect())
}

/// The logs of a session's agents; none when the store cannot list them.
pub(crate) async fn stored_subpaths(store: &impl SessionStore, key: &SessionKey) -> Result<Vec<String>> {
    let listed =
        optional(store.list_subkeys(key), || format!("list the agents of {}", key.describe())).await?;
    Ok(listed.unwrap_or_default())
}

/// The entries without those that were delivered twice; one without a `uuid` cannot be recognised and stays.
pub(crate) fn without_repeats(mut entries: Vec<Value>) -> Vec<Value> {
    let mut seen = HashSet::new();
    entries.retain(|entry| match entry.get("uuid").and_then(Value::as_str) {
        Some(uuid) => seen.insert(uuid.to_owned()),
        None => true,
    });
    entries
}

/// The key of a project's directory.
pub(crate) fn project_key(directory: Option<&Path>) -> Result<String> {
    let directory = directory.unwrap_or(Path::new("."));
    let canonical = directory.canonicalize().map_err(|error| {
        Error::option("cwd", format!("{}: {error}", directory.display()), "check the path")
    })?;
    Ok(layout::project_key(&canonical))
}
