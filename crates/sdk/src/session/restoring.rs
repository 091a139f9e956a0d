//! Resumes a session that another host has left in a store. The logs are written to a configuration directory of
//! their own, beside copies of the person's settings, and the engine is pointed there. The directory lives as long as
//! the session; what happens meanwhile goes to the store.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use qoder_runtime::config::home;
use qoder_runtime::layout::{self, LOG_ENDING, SessionPaths};
use qoder_runtime::sessions::new_id;
use serde_json::{Map, Value};

use super::private_files::{PrivateFiles, write_private};
use crate::error::{Error, Result};
use crate::options::QoderAgentOptions;
use crate::session_store::{
    SessionKey, SessionStore, SharedSessionStore, answer, fork_entries, load_log, project_key,
    stored_sessions, stored_subpaths,
};

/// A store that does not answer for so long is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many logs of agents are restored.
const MOST_AGENTS: usize = 10_000;

/// Options that resume the stored session; the same when nothing is to be restored.
pub(crate) async fn restored(
    options: &QoderAgentOptions,
    store: &SharedSessionStore,
    files: &mut PrivateFiles,
) -> Result<QoderAgentOptions> {
    let mut options = options.clone();
    if options.resume.is_none() && !options.continue_conversation {
        return Ok(options);
    }
    let project_key = project_key(options.cwd.as_deref())?;
    let session_id = match options.resume.clone() {
        Some(id) => id,
        None => match newest(store, &project_key).await? {
            Some(id) => id,
            None => {
                (options.continue_conversation, options.fork_session) = (false, false);
                return Ok(options);
            }
        },
    };
    let key = SessionKey::new(project_key, session_id);
    let Some(mut entries) = in_time(load_log(store, &key)).await? else {
        return Err(Error::option(
            "resume",
            format!(
                "the session store has no session {} for this project ({})",
                key.session_id, key.project_key
            ),
            "run it in the working directory of the first host; StoredSessions lists what the store has",
        ));
    };
    options.continue_conversation = false;
    options.resume = Some(key.session_id.clone());
    let forks = options.fork_session;
    if forks {
        entries = forked(&mut options, store, &key, &entries).await?;
    }
    let root = files.folder("config")?;
    copy_settings(&home::config_root(&options.environment()), &root)?;
    let logs = layout::projects(&root).join(&key.project_key);
    let resumed = options.resume.as_deref().unwrap_or(&key.session_id);
    write_log(&SessionPaths::new(&logs, resumed).log, &entries)?;
    if !forks {
        restore_agents(store, &key, &logs.join(&key.session_id)).await?;
    }
    options.env.insert("QODER_CONFIG_DIR".to_owned(), Some(root.display().to_string()));
    Ok(options)
}

async fn in_time<T>(asked: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| {
        let problem = format!("the session store did not answer within {} s", PATIENCE.as_secs());
        Err(Error::SessionStore { problem })
    })
}

async fn newest(store: &SharedSessionStore, project_key: &str) -> Result<Option<String>> {
    let sessions = in_time(stored_sessions(store, project_key)).await?;
    Ok(sessions.into_iter().max_by_key(|(_, mtime)| *mtime).map(|(id, _)| id))
}

/// Copies in the store: the engine reports only what it adds to a copy, so the copied part has to be there before.
async fn forked(
    options: &mut QoderAgentOptions,
    store: &SharedSessionStore,
    key: &SessionKey,
    entries: &[Value],
) -> Result<Vec<Value>> {
    let new_session = options.session_id.take().unwrap_or_else(new_id);
    let copies = fork_entries(entries, &key.session_id, &new_session, None)?;
    let to = SessionKey::new(&key.project_key, &new_session);
    in_time(answer(store.append(&to, &copies), || format!("take a copy of {}", key.describe()))).await?;
    options.resume = Some(new_session);
    options.fork_session = false;
    // Messages have new ids in a copy.
    for name in [&mut options.resume_session_at, &mut options.resume_drops_turn] {
        let Some(original) = name.as_deref() else { continue };
        let copy = copies.iter().find(|copy| copy["forkedFrom"]["messageUuid"] == original);
        if let Some(id) = copy.and_then(|copy| copy["uuid"].as_str()) {
            *name = Some(id.to_owned());
        }
    }
    Ok(copies)
}

async fn restore_agents(store: &SharedSessionStore, key: &SessionKey, folder: &Path) -> Result<()> {
    let subpaths = in_time(stored_subpaths(store, key)).await?;
    for subpath in subpaths.into_iter().take(MOST_AGENTS) {
        let plain = Path::new(&subpath).components().all(|part| matches!(part, Component::Normal(_)));
        if !plain || subpath.is_empty() {
            // A store is not trusted to name places outside of the session.
            let problem = format!("the session store names `{subpath}`, which is outside of the session");
            return Err(Error::SessionStore { problem });
        }
        let entries = in_time(load_log(store, &key.with_subpath(subpath.as_str()))).await?;
        let is_about = |entry: &Value| entry["type"] == "agent_metadata";
        let (about, lines): (Vec<Value>, Vec<Value>) =
            entries.unwrap_or_default().into_iter().partition(is_about);
        if !lines.is_empty() {
            write_log(&folder.join(format!("{subpath}{LOG_ENDING}")), &lines)?;
        }
        // What is known of an agent is a file beside its log; the newest counts.
        if let Some(Value::Object(mut fields)) = about.into_iter().next_back() {
            fields.shift_remove("type");
            let text = Value::Object(fields).to_string();
            write_private(&folder.join(format!("{subpath}.meta.json")), text.as_bytes())?;
        }
    }
    Ok(())
}

fn write_log(path: &Path, entries: &[Value]) -> Result<()> {
    let mut text = String::new();
    for entry in entries {
        text.push_str(&as_line(entry));
        text.push('\n');
    }
    write_private(path, text.as_bytes())
}

/// An entry as a line of a log. Stores may change the order of keys, but readers look for the type at the start.
fn as_line(entry: &Value) -> String {
    let Some(fields) = entry.as_object() else { return entry.to_string() };
    let mut ordered = Map::new();
    ordered.extend(fields.get("type").map(|kind| ("type".to_owned(), kind.clone())));
    ordered.extend(fields.iter().map(|(key, value)| (key.clone(), value.clone())));
    Value::Object(ordered).to_string()
}

/// Settings and credentials are files at the top of the configuration directory; agents and the like are folders.
fn copy_settings(from: &Path, to: &Path) -> Result<()> {
    let Ok(listed) = fs::read_dir(from) else { return Ok(()) };
    for path in listed.filter_map(std::result::Result::ok).map(|entry| entry.path()) {
        let Some(name) = path.file_name() else { continue };
        let target = to.join(name);
        let done = if path.is_file() {
            fs::copy(&path, &target).map(|_| ())
        } else if path.is_dir() && name != "projects" {
            std::path::absolute(&path).and_then(|path: PathBuf| std::os::unix::fs::symlink(path, &target))
        } else {
            Ok(())
        };
        done.map_err(|error| Error::Io {
            what: format!("copy {} for the restored session", path.display()),
            problem: error.to_string(),
        })?;
    }
    Ok(())
}
