//! Going back to a message: files as they were when it began to be worked on, the conversation as it was before it, or
//! both. First everything is looked at and nothing is changed; then the intent is put on record; then files go back one
//! by one. A rewind that was cut off is repeated and comes to the same end. What a rewind changes is kept too, so that it
//! can be taken back by another one.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use qoder_tools::restore::{self, Present};
use qoder_tools::{LineChanges, line_changes};
use qoder_types::Actor;
use qoder_types::record::{FilesRewound, RecordBody};
use serde::Serialize;

use super::index::{Before, CheckpointIndex, Folder, Line, blob_name};
use super::{CheckpointError, Checkpoints, ENABLED, needed};
use crate::error::SessionError;
use crate::session::Session;
use crate::session::cut;

/// How long the shortest differences are looked for, in all files together.
const LONGEST_COUNT: Duration = Duration::from_secs(2);

/// What goes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RewindScope {
    /// Conversation and files.
    #[default]
    Both,
    /// The conversation alone.
    Conversation,
    /// Files alone.
    Files,
}

impl RewindScope {
    /// The words that are accepted.
    pub const ACCEPTED: &'static str = "both, conversation, files";

    /// The scope that a word names.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "both" => Some(Self::Both),
            "conversation" => Some(Self::Conversation),
            "files" => Some(Self::Files),
            _ => None,
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindRequest {
    /// The user's message to go back to.
    pub user_message_id: String,
    /// What goes back.
    pub scope: RewindScope,
    /// True: only say what would change.
    pub dry_run: bool,
    /// Who asks, for people.
    pub by: Actor,
}

/// What a rewind changed, or would change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindReport {
    /// Always true; what cannot be done is an error.
    pub can_rewind: bool,
    /// The files that change; `None` when files are not concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<Vec<String>>,
    /// Lines that come back into files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insertions: Option<u64>,
    /// Lines that go from files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
    /// Places that are left alone because a link leads elsewhere by now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped_links: Vec<String>,
    /// Files that something else than a file tool has changed as well; that goes too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_elsewhere: Vec<String>,
    /// Messages that are no longer part of the conversation; `None` when the conversation is not concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_removed: Option<u64>,
}

/// Why a rewind is not made. Nothing has changed then, unless it says so.
#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    /// The session is at work.
    #[error("a session cannot be rewound while a turn is running or waits to")]
    Busy,
    /// Nothing was ever kept.
    #[error("file checkpointing is not enabled for this session, so there is nothing to rewind files to")]
    NotEnabled,
    /// Nothing was kept for this message.
    #[error("no file checkpoint found for the message {0}")]
    NoCheckpoint(String),
    /// The conversation has no such message.
    #[error("the conversation has no user message {0}")]
    NoMessage(String),
    /// Something else is where a file was.
    #[error("{} cannot be restored: {kind} is in its place", path.display())]
    InTheWay {
        /// The place.
        path: PathBuf,
        /// What is there.
        kind: &'static str,
    },
    /// What was there could not be kept.
    #[error("{} cannot be restored: what it was then could not be kept", .0.display())]
    NotKept(PathBuf),
    /// A place cannot be looked at.
    #[error("{} cannot be restored: {problem}", path.display())]
    Unusable {
        /// The place.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A file could not be put back; others may have been.
    #[error("{} could not be restored: {problem}; {done} of {all} files were", path.display())]
    Unfinished {
        /// The place.
        path: PathBuf,
        /// What is wrong.
        problem: String,
        /// Files that were put back.
        done: usize,
        /// Files that were to be.
        all: usize,
    },
    /// The checkpoints cannot be used.
    #[error(transparent)]
    Store(#[from] CheckpointError),
    /// The session cannot be used.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl RewindError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Busy => "rewind_busy",
            Self::NotEnabled => "rewind_not_enabled",
            Self::NoCheckpoint(_) => "rewind_no_checkpoint",
            Self::NoMessage(_) => "rewind_no_message",
            Self::InTheWay { .. } => "rewind_in_the_way",
            Self::NotKept(_) => "rewind_not_kept",
            Self::Unusable { .. } => "rewind_unusable",
            Self::Unfinished { .. } => "rewind_unfinished",
            Self::Store(error) => error.code(),
            Self::Session(error) => error.code(),
        }
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Busy => "wait until it has ended, or interrupt it".to_owned(),
            Self::NotEnabled => {
                format!(
                    "set {ENABLED}, or enable_file_checkpointing in an SDK, before the first change; the scope `conversation` needs none"
                )
            }
            Self::NoCheckpoint(_) => {
                "take the uuid of a user's message that was worked on with checkpoints enabled".to_owned()
            }
            Self::NoMessage(_) => {
                "one that a summary replaced, or that was left out before, cannot be gone back to".to_owned()
            }
            Self::InTheWay { .. } => "move it away and rewind again; nothing was changed".to_owned(),
            Self::NotKept(_) => "go back to a later message; nothing was changed".to_owned(),
            Self::Unusable { .. } => "nothing was changed".to_owned(),
            Self::Unfinished { .. } => {
                "remove the cause and rewind again; it continues where it stopped".to_owned()
            }
            Self::Store(error) => error.hint().to_owned(),
            Self::Session(error) => error.hint(),
        }
    }
}

/// A file that goes back.
struct Change {
    path: PathBuf,
    before: Before,
}

/// What a rewind of files comes to.
#[derive(Default)]
struct Plan {
    changes: Vec<Change>,
    links: Vec<String>,
    /// Places whose content no tool and no rewind has left.
    elsewhere: Vec<String>,
    lines: LineChanges,
}

/// What is on record of a place.
struct OnRecord {
    /// What it was at the message.
    before: Before,
    /// The names of all contents that it ever had by tools and rewinds, or before them.
    known: HashSet<String>,
    /// True when tools have said what they wrote; indexes of old do not have that.
    is_told: bool,
}

/// Goes back to a message of a session in which nothing happens meanwhile. A turn that a crash left open does not matter:
/// it continues, or is cut off with the conversation.
///
/// # Errors
/// When it cannot be done.
pub fn rewind(
    session: &mut Session,
    request: &RewindRequest,
    checkpoints: &Checkpoints,
) -> Result<RewindReport, RewindError> {
    let id = &request.user_message_id;
    let conversation = match request.scope {
        RewindScope::Both | RewindScope::Conversation => {
            Some(cut::before_prompt(session, id)?.ok_or_else(|| RewindError::NoMessage(id.clone()))?)
        }
        RewindScope::Files => None,
    };
    let files = match (request.scope, session.folder()) {
        (RewindScope::Conversation, _) => None,
        (RewindScope::Both | RewindScope::Files, None) => return Err(RewindError::NotEnabled),
        (RewindScope::Both | RewindScope::Files, Some(side)) => {
            let folder = Folder::of_session(side);
            Some((plan(&folder, id)?, folder))
        }
    };
    let mut report = RewindReport { can_rewind: true, ..RewindReport::default() };
    if let Some((plan, _)) = &files {
        report.files_changed = Some(plan.changes.iter().map(|change| shown(&change.path)).collect());
        report.insertions = Some(plan.lines.added);
        report.deletions = Some(plan.lines.removed);
        report.skipped_links.clone_from(&plan.links);
        report.changed_elsewhere.clone_from(&plan.elsewhere);
    }
    report.messages_removed = conversation.as_ref().map(|back| back.removed);
    if request.dry_run {
        return Ok(report);
    }
    if let Some((plan, folder)) = files.filter(|(plan, _)| !plan.changes.is_empty()) {
        announce(session, request, &plan)?;
        apply(&plan, &folder, id, checkpoints)?;
    }
    // The conversation goes last: until then the message is there and the rewind can be repeated.
    if let Some(back) = conversation {
        cut::go_back(session, back, &request.by)?;
    }
    session.sync().map_err(SessionError::Store)?;
    Ok(report)
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// What each file was when a message began to be worked on: what is on record of its first change since.
fn states(folder: &Folder, id: &str) -> Result<BTreeMap<PathBuf, OnRecord>, RewindError> {
    let lines = folder.lines()?.ok_or(RewindError::NotEnabled)?;
    let begins = |line: &Line| matches!(line, Line::Message { uuid } if uuid == id);
    let start = lines.iter().position(begins).ok_or_else(|| RewindError::NoCheckpoint(id.to_owned()))?;
    let mut states: BTreeMap<PathBuf, OnRecord> = BTreeMap::new();
    for line in &lines[start..] {
        if let Line::File { path, before } = line {
            states.entry(path.clone()).or_insert_with(|| OnRecord {
                before: before.clone(),
                known: HashSet::new(),
                is_told: false,
            });
        }
    }
    for line in lines {
        match line {
            Line::File { path, before: Before::File { sha256, .. } } => {
                states.get_mut(&path).map(|state| state.known.insert(sha256));
            }
            Line::Written { path, sha256 } => {
                if let Some(state) = states.get_mut(&path) {
                    state.is_told = true;
                    state.known.insert(sha256);
                }
            }
            Line::File { before: Before::Absent | Before::NotKept, .. }
            | Line::Message { .. }
            | Line::Rewind { .. } => {}
        }
    }
    Ok(states)
}

/// Compares what was with what is. One file at a time is in memory.
fn plan(folder: &Folder, id: &str) -> Result<Plan, RewindError> {
    let deadline = Instant::now() + LONGEST_COUNT;
    let mut plan = Plan::default();
    for (path, OnRecord { before, known, is_told }) in states(folder, id)? {
        let (now, mode) = match look(&path)? {
            Present::Link => {
                plan.links.push(shown(&path));
                continue;
            }
            Present::Other(kind) => return Err(RewindError::InTheWay { path, kind }),
            Present::Absent => (None, 0),
            Present::File { bytes, mode } => (Some(bytes), mode),
        };
        let (then, then_mode) = match &before {
            Before::Absent => (None, 0),
            Before::File { sha256, mode } => (Some(folder.content(sha256)?), *mode),
            Before::NotKept => return Err(RewindError::NotKept(path)),
        };
        if now == then && mode == then_mode {
            continue;
        }
        let lines =
            line_changes(now.as_deref().unwrap_or_default(), then.as_deref().unwrap_or_default(), deadline);
        plan.lines.added += lines.added;
        plan.lines.removed += lines.removed;
        if is_told && now.is_some_and(|bytes| !known.contains(&blob_name(&bytes))) {
            plan.elsewhere.push(shown(&path));
        }
        plan.changes.push(Change { path, before });
    }
    Ok(plan)
}

fn look(path: &Path) -> Result<Present, RewindError> {
    restore::present(path)
        .map_err(|error| RewindError::Unusable { path: path.to_path_buf(), problem: error.to_string() })
}

/// Puts the intent on record, where it survives a loss of power.
fn announce(session: &mut Session, request: &RewindRequest, plan: &Plan) -> Result<(), SessionError> {
    session.append(RecordBody::FilesRewound(Box::new(FilesRewound {
        to: request.user_message_id.clone(),
        files: plan.changes.iter().map(|change| shown(&change.path)).collect(),
        skipped_links: plan.links.clone(),
        changed_elsewhere: plan.elsewhere.clone(),
        by: request.by.clone(),
    })))?;
    session.sync()?;
    Ok(())
}

/// Keeps what is there now, then puts back what was. Files that are as they should be are passed over, so that repeating
/// it after a crash continues where it stopped.
fn apply(plan: &Plan, folder: &Folder, id: &str, checkpoints: &Checkpoints) -> Result<(), RewindError> {
    let mut inner = checkpoints.lock();
    // The next caller that keeps a file has to find out that a rewind came between.
    inner.index = None;
    let mut index = CheckpointIndex::open(folder)?;
    index.append(&[Line::Rewind { to: id.to_owned() }])?;
    for change in &plan.changes {
        let before = match look(&change.path)? {
            Present::Absent => Before::Absent,
            Present::File { bytes, mode } => match inner.space.take(folder, needed(folder, Some(&bytes))) {
                Ok(()) => Before::File { sha256: index.keep(&bytes)?, mode },
                // Going back must be possible when there is no room left.
                Err(CheckpointError::Full { .. }) => Before::NotKept,
                Err(error) => return Err(error.into()),
            },
            // It has just become that; putting back refuses it.
            Present::Link | Present::Other(_) => continue,
        };
        index.append(&[Line::File { path: change.path.clone(), before }])?;
    }
    for (done, change) in plan.changes.iter().enumerate() {
        put_back(change, folder).map_err(|problem| RewindError::Unfinished {
            path: change.path.clone(),
            problem,
            done,
            all: plan.changes.len(),
        })?;
    }
    Ok(())
}

fn put_back(change: &Change, folder: &Folder) -> Result<(), String> {
    let restored = match &change.before {
        Before::Absent => restore::remove(&change.path),
        Before::File { sha256, mode } => {
            let content = folder.content(sha256).map_err(|error| error.to_string())?;
            restore::put_back(&change.path, &content, *mode)
        }
        // Planning has refused it.
        Before::NotKept => Ok(()),
    };
    restored.map_err(|error| error.to_string())
}
