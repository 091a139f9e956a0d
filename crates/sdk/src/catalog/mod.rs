//! Sessions on disk: listing them, reading them, giving them titles and tags, copying and deleting them. Nothing here
//! starts a session; what another process drives right now can be read and tagged, but not deleted. `stored` does the
//! same with sessions in a store.

mod fork;
mod glance;
mod page;
mod stored;
mod transcript;

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use qoder_runtime::catalog;
use qoder_runtime::config::home;
use qoder_runtime::layout::SessionPaths;
use qoder_runtime::store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use page::Page;

pub use fork::fork_session;
pub use stored::StoredSessions;
pub use transcript::{SessionMessage, get_session_messages, get_subagent_messages, list_subagents};

use crate::error::{Error, Result};

/// The most characters of a title or a tag.
const LONGEST_NAME: usize = 1_000;

/// Where to look for sessions, and how much of what is found to show. `Default` is everything, below the usual
/// configuration directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPlace {
    /// The project whose sessions are meant; `None` is any.
    pub directory: Option<PathBuf>,
    /// The configuration directory; `None` is the one of the environment, usually `~/.qoder`.
    pub config_dir: Option<PathBuf>,
    /// Lists have the sessions of the project's other git worktrees too.
    pub include_worktrees: bool,
    /// Messages of the runtime, such as the mark of a compaction, are shown as well.
    pub include_system_messages: bool,
    /// So many sessions or messages at most.
    pub limit: Option<usize>,
    /// So many sessions or messages are passed over first.
    pub offset: usize,
}

impl Default for SessionPlace {
    fn default() -> Self {
        Self {
            directory: None,
            config_dir: None,
            include_worktrees: true,
            include_system_messages: false,
            limit: None,
            offset: 0,
        }
    }
}

impl SessionPlace {
    /// The sessions of one project.
    #[must_use]
    pub fn of(directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), ..Self::default() }
    }

    /// The same, below another configuration directory.
    #[must_use]
    pub fn in_config_dir(mut self, config_dir: impl Into<PathBuf>) -> Self {
        self.config_dir = Some(config_dir.into());
        self
    }

    /// The same, with or without the project's other git worktrees in lists.
    #[must_use]
    pub fn include_worktrees(mut self, included: bool) -> Self {
        self.include_worktrees = included;
        self
    }

    /// The same, with or without messages of the runtime.
    #[must_use]
    pub fn include_system_messages(mut self, included: bool) -> Self {
        self.include_system_messages = included;
        self
    }

    /// The same, with so many sessions or messages at most.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The same, after so many sessions or messages.
    #[must_use]
    pub fn offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }

    /// The part of what was found that is asked for.
    fn part<T>(&self, found: impl IntoIterator<Item = T>) -> Vec<T> {
        Page { limit: self.limit, offset: self.offset }.of(found)
    }

    /// The projects whose sessions a list has; `None` is all.
    fn projects(&self) -> Result<Option<Vec<PathBuf>>> {
        let Some(project) = self.project()? else { return Ok(None) };
        let mut projects = vec![project.clone()];
        if self.include_worktrees {
            let others = worktrees(&project).into_iter().filter_map(|folder| folder.canonicalize().ok());
            projects.extend(others.filter(|folder| *folder != project));
        }
        Ok(Some(projects))
    }

    fn root(&self) -> PathBuf {
        let usual = || {
            let names = ["QODER_CONFIG_DIR", "CLAUDE_CONFIG_DIR", "CLAUDE_AGENT_SDK_VERSION", "HOME"];
            let known = names.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
            home::config_root(&known.collect::<BTreeMap<_, _>>())
        };
        self.config_dir.clone().unwrap_or_else(usual)
    }

    fn project(&self) -> Result<Option<PathBuf>> {
        let Some(directory) = &self.directory else { return Ok(None) };
        directory.canonicalize().map(Some).map_err(|error| {
            Error::option("directory", format!("{}: {error}", directory.display()), "check the path")
        })
    }

    /// The files of a session.
    fn find(&self, id: &str) -> Result<SessionPaths> {
        let (root, project) = (self.root(), self.project()?);
        if let Some(project) = project {
            return Ok(catalog::find_session(&root, &project, id)?);
        }
        if !catalog::is_session_id(id) {
            return Err(StoreError::BadId { id: id.to_owned() }.into());
        }
        let found = catalog::info(&root, None, id);
        let missing =
            || StoreError::NotFound { id: id.to_owned(), project: PathBuf::from("."), elsewhere: None };
        Ok(found.map(|session| session.paths).ok_or_else(missing)?)
    }
}

/// What a list shows of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Its id.
    pub session_id: String,
    /// One line that identifies the session in a list.
    pub summary: String,
    /// When it was last written, in milliseconds since 1970.
    pub last_modified: u64,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_title: Option<String>,
    /// Its first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_prompt: Option<String>,
    /// The branch it was last on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_branch: Option<String>,
    /// The directory it was started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Its tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// When it was started, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<u64>,
    /// Size of its log; a store does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_size: Option<u64>,
}

impl From<catalog::SessionInfo> for SessionInfo {
    fn from(session: catalog::SessionInfo) -> Self {
        let modified = session.modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        Self {
            summary: session.summary().to_owned(),
            last_modified: u64::try_from(modified).unwrap_or(u64::MAX),
            tag: glance::tag(&session.paths.log),
            created_at: glance::created(&session.paths.log).as_deref().and_then(milliseconds),
            session_id: session.id,
            custom_title: session.title,
            first_prompt: session.first_prompt,
            git_branch: session.branch,
            cwd: session.cwd,
            file_size: Some(session.size),
        }
    }
}

/// The sessions of a place, newest first.
///
/// ```
/// # use qoder_agent_sdk::{SessionPlace, list_sessions};
/// # let folder = tempfile::tempdir().unwrap();
/// let place = SessionPlace::of(folder.path()).in_config_dir(folder.path());
/// assert!(list_sessions(&place)?.is_empty());
/// # Ok::<(), qoder_agent_sdk::Error>(())
/// ```
///
/// # Errors
/// When the directory does not exist.
pub fn list_sessions(place: &SessionPlace) -> Result<Vec<SessionInfo>> {
    let root = place.root();
    let projects = place.projects()?;
    let sessions = catalog::newest_of(&root, projects.as_deref());
    Ok(place.part(sessions).into_iter().map(SessionInfo::from).collect())
}

/// The git worktrees of a project; none without git or a repository.
fn worktrees(project: &Path) -> Vec<PathBuf> {
    let mut git = std::process::Command::new("git");
    git.arg("-C").arg(project).args(["worktree", "list", "--porcelain"]);
    let Ok(output) = git.stdin(std::process::Stdio::null()).output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.strip_prefix("worktree ")).map(PathBuf::from).collect()
}

/// A time of a log in milliseconds since 1970.
fn milliseconds(stamp: &str) -> Option<u64> {
    let time: jiff::Timestamp = stamp.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}

/// One session; `None` for an unknown ID.
///
/// # Errors
/// When the id is not one or the directory does not exist.
pub fn get_session_info(session_id: &str, place: &SessionPlace) -> Result<Option<SessionInfo>> {
    if !catalog::is_session_id(session_id) {
        return Err(StoreError::BadId { id: session_id.to_owned() }.into());
    }
    let found = catalog::info(&place.root(), place.project()?.as_deref(), session_id);
    Ok(found.map(SessionInfo::from))
}

/// Gives a session a title.
///
/// # Errors
/// When the title is empty, or the session does not exist or cannot be written.
pub fn rename_session(session_id: &str, title: &str, place: &SessionPlace) -> Result<()> {
    let entry = title_entry(session_id, title)?;
    append(&place.find(session_id)?.log, &entry)
}

fn title_entry(session_id: &str, title: &str) -> Result<Value> {
    let title = title.trim();
    if title.is_empty() {
        return Err(Error::option("title", "the title is empty", "give one, or leave the session as it is"));
    }
    check_length("title", title)?;
    Ok(json!({ "type": "custom-title", "customTitle": title, "sessionId": session_id }))
}

/// The title of a copy that was given none.
fn fork_title(summary: &str) -> String {
    const MARK: &str = " (fork)";
    let kept: String = summary.chars().take(LONGEST_NAME - MARK.len()).collect();
    format!("{kept}{MARK}")
}

/// Lists look at the end of a log only, and a longer text would not be found there.
fn check_length(what: &'static str, text: &str) -> Result<()> {
    let length = text.chars().count();
    if length <= LONGEST_NAME {
        return Ok(());
    }
    let problem = format!("the {what} has {length} characters, and {LONGEST_NAME} are accepted");
    Err(Error::option(what, problem, "give a shorter one"))
}

fn tag_entry(session_id: &str, tag: Option<&str>) -> Result<Value> {
    let tag = tag.map(str::trim);
    if tag == Some("") {
        return Err(Error::option("tag", "the tag is empty", "None takes a tag away"));
    }
    check_length("tag", tag.unwrap_or_default())?;
    Ok(json!({ "type": "tag", "tag": tag.unwrap_or_default(), "sessionId": session_id }))
}

/// Gives a session a tag; `None` takes it away.
///
/// # Errors
/// When the tag is empty, or the session does not exist or cannot be written.
pub fn tag_session(session_id: &str, tag: Option<&str>, place: &SessionPlace) -> Result<()> {
    let entry = tag_entry(session_id, tag)?;
    append(&place.find(session_id)?.log, &entry)
}

/// Deletes a session that no process drives.
///
/// # Errors
/// When it does not exist, or a process drives it.
pub fn delete_session(session_id: &str, place: &SessionPlace) -> Result<()> {
    Ok(catalog::delete(&place.find(session_id)?, session_id)?)
}

/// Appends a whole line in one call, because another process may be writing too.
fn append(log: &Path, line: &Value) -> Result<()> {
    let failed = |error: std::io::Error| Error::Io {
        what: format!("write {}", log.display()),
        problem: error.to_string(),
    };
    let mut file = std::fs::OpenOptions::new().append(true).mode(0o600).open(log).map_err(failed)?;
    file.write_all(format!("{line}\n").as_bytes()).map_err(failed)
}
