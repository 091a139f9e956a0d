//! The functions on sessions, for sessions in a session store: the same answers, from there. A store cannot say which
//! projects it has, so one project is meant: that of a directory, or of the current one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use qoder_runtime::catalog::is_session_id;
use qoder_runtime::sessions::new_id;
use qoder_runtime::store::StoreError;
use serde_json::Value;

use super::page::Page;
use super::transcript::{PREFIX, Shown, read_entries};
use super::{SessionInfo, SessionMessage, fork_title, milliseconds, tag_entry, title_entry};
use crate::error::{Error, Result};
use crate::session_store::{
    SessionKey, SessionStore, SessionStoreError, SharedSessionStore, answer, fork_entries, load_log,
    project_key, stored_sessions, stored_subpaths,
};

/// How much of a first prompt is shown.
const PROMPT: usize = 200;

/// The sessions of one project in a store.
///
/// ```
/// use qoder_agent_sdk::{InMemorySessionStore, StoredSessions};
///
/// # futures::executor::block_on(async {
/// let sessions = StoredSessions::new(InMemorySessionStore::new());
/// assert!(sessions.list_sessions().await?.is_empty());
/// # Ok::<(), qoder_agent_sdk::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct StoredSessions {
    store: SharedSessionStore,
    directory: Option<PathBuf>,
    include_system_messages: bool,
    page: Page,
}

impl StoredSessions {
    /// The sessions of the current directory.
    pub fn new(store: impl SessionStore) -> Self {
        Self {
            store: SharedSessionStore::new(store),
            directory: None,
            include_system_messages: false,
            page: Page::default(),
        }
    }

    /// Those of another directory.
    #[must_use]
    pub fn of(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// With or without messages of the runtime.
    #[must_use]
    pub fn include_system_messages(mut self, included: bool) -> Self {
        self.include_system_messages = included;
        self
    }

    /// So many sessions or messages at most.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.page.limit = Some(limit);
        self
    }

    /// So many sessions or messages are passed over first.
    #[must_use]
    pub fn offset(mut self, offset: usize) -> Self {
        self.page.offset = offset;
        self
    }

    /// The sessions, newest first.
    ///
    /// # Errors
    /// When the store fails or has no `list_sessions`.
    pub async fn list_sessions(&self) -> Result<Vec<SessionInfo>> {
        let project = project_key(self.directory.as_deref())?;
        let mut sessions: Vec<_> = stored_sessions(&self.store, &project).await?.into_iter().collect();
        sessions.sort_by_key(|(_, changed)| std::cmp::Reverse(*changed));
        let most = self.page.limit.map_or(usize::MAX, |limit| limit.saturating_add(self.page.offset));
        let mut infos = Vec::new();
        for (id, changed) in sessions {
            // A log is loaded as a whole, so no more of them than the list shows.
            if infos.len() >= most {
                break;
            }
            let key = SessionKey::new(project.as_str(), id);
            infos.extend(load_log(&self.store, &key).await?.map(|log| info(&key, &log, Some(changed))));
        }
        Ok(self.page.of(infos))
    }

    /// One session; `None` when the store has none of this id.
    ///
    /// # Errors
    /// When the id is not one, or the store fails.
    pub async fn get_session_info(&self, session_id: &str) -> Result<Option<SessionInfo>> {
        let key = self.key(session_id)?;
        let changed = match self.store.list_sessions(&key.project_key).await {
            Ok(rows) => rows.into_iter().find(|row| row.session_id == session_id).map(|row| row.mtime),
            // Then the last entry says.
            Err(SessionStoreError::LeftOut(_) | SessionStoreError::Failed(_)) => None,
        };
        Ok(load_log(&self.store, &key).await?.map(|log| info(&key, &log, changed)))
    }

    /// The messages of a session; none when the store does not have it.
    ///
    /// # Errors
    /// When the id is not one, or the store fails.
    pub async fn get_session_messages(&self, session_id: &str) -> Result<Vec<SessionMessage>> {
        let log = load_log(&self.store, &self.key(session_id)?).await?.unwrap_or_default();
        Ok(self.page.of(read_entries(&log, session_id, Shown::Main(self.include_system_messages))))
    }

    /// The ids of a session's subagents.
    ///
    /// # Errors
    /// When the id is not one, or the store fails.
    pub async fn list_subagents(&self, session_id: &str) -> Result<Vec<String>> {
        Ok(self.agents(&self.key(session_id)?).await?.into_keys().collect())
    }

    /// The messages of a subagent; none when the store does not have it.
    ///
    /// # Errors
    /// When the id is not one, or the store fails.
    pub async fn get_subagent_messages(
        &self,
        session_id: &str,
        agent_id: &str,
    ) -> Result<Vec<SessionMessage>> {
        let key = self.key(session_id)?;
        let agents = self.agents(&key).await?;
        let Some(subpath) = agents.get(agent_id.strip_prefix(PREFIX).unwrap_or(agent_id)) else {
            return Ok(Vec::new());
        };
        let log = load_log(&self.store, &key.with_subpath(subpath.as_str())).await?.unwrap_or_default();
        Ok(self.page.of(read_entries(&log, session_id, Shown::Agent)))
    }

    /// Gives a session a title.
    ///
    /// # Errors
    /// When the title is empty, or the store does not have the session or fails.
    pub async fn rename_session(&self, session_id: &str, title: &str) -> Result<()> {
        self.add(session_id, title_entry(session_id, title)?).await
    }

    /// Gives a session a tag; `None` takes it away.
    ///
    /// # Errors
    /// When the tag is empty, or the store does not have the session or fails.
    pub async fn tag_session(&self, session_id: &str, tag: Option<&str>) -> Result<()> {
        self.add(session_id, tag_entry(session_id, tag)?).await
    }

    /// Copies a session inside of the store, up to and including a message when one is named. Returns the copy's id.
    ///
    /// # Errors
    /// When the session or the message does not exist, or the store fails.
    pub async fn fork_session(
        &self,
        session_id: &str,
        up_to_message_id: Option<&str>,
        title: Option<&str>,
    ) -> Result<String> {
        let key = self.key(session_id)?;
        let log = self.existing(&key).await?;
        let id = new_id();
        let mut copy = fork_entries(&log, session_id, &id, up_to_message_id)?;
        let summary = || fork_title(&info(&key, &log, None).summary);
        copy.push(title_entry(&id, &title.map_or_else(summary, str::to_owned))?);
        let to = SessionKey::new(key.project_key.as_str(), id.as_str());
        answer(self.store.append(&to, &copy), || format!("take a copy of {}", key.describe())).await?;
        Ok(id)
    }

    /// Deletes a session and the logs of its agents from the store; local logs stay. A store that cannot delete keeps
    /// them.
    ///
    /// # Errors
    /// When the id is not one, or the store fails.
    pub async fn delete_session(&self, session_id: &str) -> Result<()> {
        let key = self.key(session_id)?;
        let deleting = async {
            match self.store.delete(&key).await {
                Err(SessionStoreError::LeftOut(_)) => Ok(()),
                other => other,
            }
        };
        answer(deleting, || format!("delete {}", key.describe())).await
    }

    fn key(&self, session_id: &str) -> Result<SessionKey> {
        if !is_session_id(session_id) {
            return Err(StoreError::BadId { id: session_id.to_owned() }.into());
        }
        Ok(SessionKey::new(project_key(self.directory.as_deref())?, session_id))
    }

    async fn existing(&self, key: &SessionKey) -> Result<Vec<Value>> {
        let missing = || Error::SessionStore {
            problem: format!("the session store has no session {} for {}", key.session_id, key.project_key),
        };
        load_log(&self.store, key).await?.ok_or_else(missing)
    }

    async fn add(&self, session_id: &str, entry: Value) -> Result<()> {
        let key = self.key(session_id)?;
        self.existing(&key).await?;
        let entries = [entry];
        answer(self.store.append(&key, &entries), || format!("take a change of {}", key.describe())).await
    }

    /// The subpaths of agents, by id.
    async fn agents(&self, key: &SessionKey) -> Result<BTreeMap<String, String>> {
        let subpaths = stored_subpaths(&self.store, key).await?;
        let agent = |subpath: String| {
            let id = subpath.rsplit('/').next()?.strip_prefix(PREFIX).filter(|id| !id.is_empty())?;
            Some((id.to_owned(), subpath))
        };
        Ok(subpaths.into_iter().filter_map(agent).collect())
    }
}

/// What a list shows of a log.
fn info(key: &SessionKey, log: &[Value], changed: Option<u64>) -> SessionInfo {
    let text = |entry: &Value, field: &str| {
        entry.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let last = |field: &str| log.iter().rev().find_map(|entry| text(entry, field));
    let first = |field: &str| log.iter().find_map(|entry| text(entry, field));
    let title = last("customTitle").or_else(|| last("aiTitle"));
    let prompt = log.iter().find_map(first_prompt);
    let tag = log.iter().rev().find(|entry| entry["type"] == "tag").and_then(|entry| text(entry, "tag"));
    SessionInfo {
        session_id: key.session_id.clone(),
        summary: title.clone().or_else(|| prompt.clone()).unwrap_or_else(|| "(no prompt)".to_owned()),
        last_modified: changed.or_else(|| milliseconds(&last("timestamp")?)).unwrap_or_default(),
        custom_title: title,
        first_prompt: prompt,
        git_branch: last("gitBranch"),
        cwd: first("cwd"),
        tag,
        created_at: first("timestamp").as_deref().and_then(milliseconds),
        file_size: None,
    }
}

fn first_prompt(entry: &Value) -> Option<String> {
    let marked = |field: &str| entry.get(field) == Some(&Value::Bool(true));
    if entry["type"] != "user" || marked("isMeta") || marked("isCompactSummary") {
        return None;
    }
    let message: qoder_protocol::Message = serde_json::from_value(entry.get("message")?.clone()).ok()?;
    let is_result = |block: &Value| block["type"] == "tool_result";
    if entry["message"]["content"].as_array().is_some_and(|blocks| blocks.iter().any(is_result)) {
        return None;
    }
    let text = message.content.to_text();
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(PROMPT).collect();
    (!text.is_empty()).then_some(text)
}
