//! The sessions on disk: finding, listing, deleting, forking and repairing them. Lists read the beginning and the end
//! of a file only, as other programs do.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use qoder_core::ports::LogStore;
use qoder_types::Record;
use qoder_types::record::{RecordBody, SessionStarted};
use serde_json::value::RawValue;

use crate::error::StoreError;
use crate::jsonl::line::{self, Line, VERSION, timestamp};
use crate::jsonl::{Durability, JsonlStore, scan};
use crate::layout::{LOG_ENDING, SessionPaths, project_folder, projects};
use crate::lease::Lease;

/// How much of the beginning and end of a file a list reads.
const GLANCE: u64 = 64 * 1024;
/// How far a first prompt is looked for that does not end in the usual beginning: it may be long itself, or follow the
/// descriptions of many tools.
const LONG_GLANCE: u64 = 4 * 1024 * 1024;

/// What a list shows of a session.
#[derive(Debug, Clone)]
pub struct SessionInfo {
    /// Its id.
    pub id: String,
    /// Its files.
    pub paths: SessionPaths,
    /// When it was last written.
    pub modified: SystemTime,
    /// Size of its log.
    pub size: u64,
    /// Its title, where one was given.
    pub title: Option<String>,
    /// Its first prompt.
    pub first_prompt: Option<String>,
    /// The directory it was started in.
    pub cwd: Option<String>,
    /// The branch it was last on.
    pub branch: Option<String>,
}

impl SessionInfo {
    /// One line that identifies a session in a list.
    #[must_use]
    pub fn summary(&self) -> &str {
        self.title.as_deref().or(self.first_prompt.as_deref()).unwrap_or("(no prompt)")
    }
}

/// True for the text of a UUID.
#[must_use]
pub fn is_session_id(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

/// The sessions of one project, or of all, newest first.
#[must_use]
pub fn list(config_root: &Path, cwd: Option<&Path>) -> Vec<SessionInfo> {
    newest_first(&folders(config_root, cwd)).collect()
}

/// The sessions of several projects, or of all, newest first. The iterator reads each session when it yields it: a caller
/// that wants the newest few of many thousands does not wait for the rest.
pub fn newest_of(config_root: &Path, cwds: Option<&[PathBuf]>) -> impl Iterator<Item = SessionInfo> + use<> {
    let folders = match cwds {
        Some(cwds) => cwds.iter().map(|cwd| project_folder(config_root, cwd)).collect(),
        None => folders(config_root, None),
    };
    newest_first(&folders)
}

/// What a list would show of one session, without looking at others.
#[must_use]
pub fn info(config_root: &Path, cwd: Option<&Path>, id: &str) -> Option<SessionInfo> {
    let folders = folders(config_root, cwd);
    let found = folders.iter().filter_map(|folder| glance(&SessionPaths::new(folder, id).log));
    found.max_by_key(|session| session.modified)
}

fn folders(config_root: &Path, cwd: Option<&Path>) -> Vec<PathBuf> {
    match cwd {
        Some(cwd) => vec![project_folder(config_root, cwd)],
        None => entries(&projects(config_root)),
    }
}

/// The sessions in one project's folder, newest first.
pub fn in_folder(folder: &Path) -> impl Iterator<Item = SessionInfo> + use<> {
    newest_first(&[folder.to_path_buf()])
}

fn newest_first(folders: &[PathBuf]) -> impl Iterator<Item = SessionInfo> + use<> {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
    let dated = |path: PathBuf| Some((path.metadata().ok()?.modified().ok()?, path));
    let files = folders.iter().flat_map(|folder| entries(folder)).filter(is_log);
    let mut logs: Vec<(SystemTime, PathBuf)> = files.filter_map(dated).collect();
    logs.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.file_name().cmp(&b.file_name())));
    logs.into_iter().filter_map(|(_, path)| glance(&path))
}

pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path()).collect()
}

fn glance(path: &Path) -> Option<SessionInfo> {
    let id = path.file_name()?.to_str()?.strip_suffix(LOG_ENDING).filter(|id| is_session_id(id))?.to_owned();
    // Only regular files: opening a pipe would wait for a writer.
    let metadata = path.metadata().ok().filter(|metadata| metadata.is_file() && metadata.len() > 0)?;
    let mut file = File::open(path).ok()?;
    let head = part(&mut file, 0, GLANCE)?;
    let tail = match metadata.len().checked_sub(GLANCE) {
        Some(start) => Cow::Owned(part(&mut file, start, GLANCE)?),
        None => Cow::Borrowed(head.as_str()),
    };
    if head.lines().next().is_some_and(|line| line.contains("\"isSidechain\":true")) {
        return None;
    }
    let mut prompt = head.lines().find_map(first_prompt);
    if prompt.is_none() && metadata.len() > GLANCE {
        prompt = part(&mut file, 0, LONG_GLANCE)?.lines().find_map(first_prompt);
    }
    let last = |key: &str| tail.lines().rev().chain(head.lines().rev()).find_map(|line| field(line, key));
    Some(SessionInfo {
        paths: SessionPaths::new(path.parent()?, &id),
        id,
        modified: metadata.modified().ok()?,
        size: metadata.len(),
        title: last("customTitle").or_else(|| last("aiTitle")),
        first_prompt: prompt,
        cwd: head.lines().find_map(|line| field(line, "cwd")),
        branch: last("gitBranch"),
    })
}

fn part(file: &mut File, from: u64, length: u64) -> Option<String> {
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.by_ref().take(length).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The text of a field of a line, not of anything inside of it: what a tool was called with must not name a session.
fn field(line: &str, key: &str) -> Option<String> {
    if !line.contains(key) {
        return None;
    }
    let fields: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(line).ok()?;
    let text: String = serde_json::from_str(fields.get(key)?.get()).ok()?;
    (!text.is_empty()).then_some(text)
}

fn first_prompt(line: &str) -> Option<String> {
    let plain = line.contains("\"type\":\"user\"")
        && !line.contains("\"tool_result\"")
        && !line.contains("\"isMeta\":true")
        && !line.contains("\"isCompactSummary\":true");
    if !plain {
        return None;
    }
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let message: qoder_types::Message = serde_json::from_value(value.get("message")?.clone()).ok()?;
    let text = message.content.to_text();
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
    (!text.is_empty()).then_some(text)
}

/// The least that an id may be shortened to.
const SHORTEST_PREFIX: usize = 4;

/// The whole id of a session that is named by it or by its beginning. Sessions of the project at `cwd` come first; only the
/// names of logs are read.
pub fn complete_id(config_root: &Path, cwd: &Path, given: &str) -> Result<String, StoreError> {
    if is_session_id(given) {
        return Ok(given.to_owned());
    }
    let prefix = given.to_ascii_lowercase();
    let may_be_one = prefix.len() >= SHORTEST_PREFIX
        && prefix.len() < 36
        && prefix.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if !may_be_one {
        return Err(StoreError::BadId { id: given.to_owned() });
    }
    for place in [Some(cwd), None] {
        let files = folders(config_root, place).into_iter().flat_map(|folder| entries(&folder));
        let names =
            files.filter_map(|path| Some(path.file_name()?.to_str()?.strip_suffix(LOG_ENDING)?.to_owned()));
        let mut ids: Vec<String> =
            names.filter(|id| is_session_id(id) && id.to_ascii_lowercase().starts_with(&prefix)).collect();
        ids.sort();
        ids.dedup();
        match ids.as_slice() {
            [] => {}
            [id] => return Ok(id.clone()),
            [_, _, ..] => return Err(StoreError::Ambiguous { prefix: given.to_owned(), ids }),
        }
    }
    Err(StoreError::NotFound { id: given.to_owned(), project: cwd.to_path_buf(), elsewhere: None })
}

/// The files of session `id` of the project at `cwd`. The error says where else the session is.
pub fn find_session(config_root: &Path, cwd: &Path, id: &str) -> Result<SessionPaths, StoreError> {
    if !is_session_id(id) {
        return Err(StoreError::BadId { id: id.to_owned() });
    }
    let paths = SessionPaths::new(&project_folder(config_root, cwd), id);
    if paths.log.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        return Ok(paths);
    }
    let elsewhere = info(config_root, None, id);
    Err(StoreError::NotFound {
        id: id.to_owned(),
        project: cwd.to_path_buf(),
        elsewhere: elsewhere.map(|session| session.cwd.unwrap_or_else(|| "another project".to_owned())),
    })
}

/// Deletes a session that no process drives. A log that cannot be read can be deleted too.
pub fn delete(paths: &SessionPaths, id: &str) -> Result<(), StoreError> {
    // Only the holder of the lock writes.
    let _lease = Lease::take(paths, id)?;
    remove(paths)
}

/// Removes the files of a session whose lock is held.
pub(crate) fn remove(paths: &SessionPaths) -> Result<(), StoreError> {
    match std::fs::remove_file(&paths.log) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(StoreError::io("delete", &paths.log, &error));
        }
        Ok(()) | Err(_) => {}
    }
    if paths.side.exists() {
        std::fs::remove_dir_all(&paths.side)
            .map_err(|error| StoreError::io("delete", &paths.side, &error))?;
    }
    Ok(())
}

/// Copies a session's records into a new one. The original is only read.
pub fn fork(from: &SessionPaths, from_id: &str, to: &SessionPaths, to_id: &str) -> Result<(), StoreError> {
    let mut copy = Copy::start(from_id, to, to_id)?;
    let mut fault = None;
    scan(from, |line| {
        if fault.is_none() {
            fault = copy.take(line).err();
        }
    })?;
    fault.map_or_else(|| copy.finish(), Err)
}

/// Copies a session's records up to and including a message into a new one; false, and no copy, when the session has no
/// such message. The original is only read.
pub fn fork_up_to(
    from: &SessionPaths,
    from_id: &str,
    message: &str,
    to: &SessionPaths,
    to_id: &str,
) -> Result<bool, StoreError> {
    let mut found = false;
    scan(from, |line| found |= is_message(&line, message))?;
    if !found {
        return Ok(false);
    }
    let mut copy = Copy::start(from_id, to, to_id)?;
    let (mut fault, mut done) = (None, false);
    scan(from, |line| {
        if fault.is_none() && !done {
            done = is_message(&line, message);
            fault = copy.take(line).err();
        }
    })?;
    fault.map_or_else(|| copy.finish(), Err)?;
    Ok(true)
}

fn is_message(line: &Line, message: &str) -> bool {
    let body = match line {
        Line::Record(record) => &record.body,
        Line::Foreign(body) => body,
    };
    if let RecordBody::User(entry) = body {
        return entry.uuid == message;
    }
    matches!(body, RecordBody::Assistant(entry) if entry.uuid == message)
}

/// What a repair saved.
#[derive(Debug)]
pub struct Repair {
    /// Records that were saved.
    pub saved: u64,
    /// Numbers of the lines that were lost.
    pub lost: Vec<u64>,
}

/// Copies every readable record of a damaged session into a new one. The original is only read.
pub fn repair(
    from: &SessionPaths,
    from_id: &str,
    to: &SessionPaths,
    to_id: &str,
) -> Result<Repair, StoreError> {
    let file = File::open(&from.log).map_err(|error| StoreError::io("read", &from.log, &error))?;
    let mut copy = Copy::start(from_id, to, to_id)?;
    let mut repair = Repair { saved: 0, lost: Vec::new() };
    for (number, text) in (1..).zip(BufReader::new(file).split(b'\n')) {
        let text = text.map_err(|error| StoreError::io("read", &from.log, &error))?;
        let text = text.trim_ascii();
        if text.is_empty() {
            continue;
        }
        match line::decode(text, &from.blobs()) {
            Ok(line) => {
                copy.take(line)?;
                repair.saved += 1;
            }
            Err(_) => repair.lost.push(number),
        }
    }
    copy.finish()?;
    Ok(repair)
}

/// Writes records of one session into another, numbered anew.
struct Copy {
    store: JsonlStore,
    pending: Vec<Record>,
    seq: u64,
}

impl Copy {
    fn start(from_id: &str, to: &SessionPaths, to_id: &str) -> Result<Self, StoreError> {
        if to.log.exists() {
            return Err(StoreError::Exists { id: to_id.to_owned() });
        }
        let store = JsonlStore::open(to, to_id, Durability::Process, |_| ())?;
        let mut copy = Self { store, pending: Vec::new(), seq: 0 };
        copy.push(RecordBody::SessionStarted(SessionStarted {
            cwd: String::new(),
            version: VERSION.to_owned(),
            forked_from: Some(from_id.to_owned()),
        }))?;
        Ok(copy)
    }

    fn take(&mut self, line: Line) -> Result<(), StoreError> {
        let body = match line {
            Line::Record(record) => record.body,
            Line::Foreign(body) => body,
        };
        match body {
            // The copy has a start of its own; only the place is taken over.
            RecordBody::SessionStarted(started) => self.set_cwd(started.cwd),
            // Titles and marks of other programs belong to the original.
            RecordBody::Unknown(_) => {}
            body => self.push(body)?,
        }
        Ok(())
    }

    fn set_cwd(&mut self, cwd: String) {
        if let Some(RecordBody::SessionStarted(start)) =
            self.pending.first_mut().map(|record| &mut record.body)
        {
            start.cwd = cwd;
        }
    }

    fn push(&mut self, body: RecordBody) -> Result<(), StoreError> {
        self.seq += 1;
        self.pending.push(Record { seq: self.seq, timestamp: timestamp(), body });
        if self.pending.len() >= 256 {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.store.append(&self.pending)?;
        self.pending.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), StoreError> {
        self.flush()?;
        self.store.sync()?;
        Ok(())
    }
}
