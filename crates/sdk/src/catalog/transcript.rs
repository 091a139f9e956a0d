//! The messages of a session and of its subagents, in order: the chain from the last message back over its parents,
//! as every reader of such files sees it. What stood before a summary is not part of it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub(super) use qoder_runtime::layout::AGENT_PREFIX as PREFIX;
use qoder_runtime::layout::{LOG_ENDING, SessionPaths};
use qoder_runtime::store::RecordBody;
use qoder_runtime::store::jsonl::scan;
use qoder_runtime::store::line::{self, Line};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SessionPlace;
use crate::error::{Error, Result};

/// How deep folders of subagents may lie in one another.
const DEPTH: usize = 8;

/// A message of a session on disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionMessage {
    /// `user` or `assistant`, or `system` when those are asked for.
    #[serde(rename = "type")]
    pub kind: String,
    /// The transcript entry.
    pub uuid: String,
    /// The session.
    pub session_id: String,
    /// Role and content, as the model read it.
    pub message: Value,
    /// Always null in a file of its own.
    #[serde(default)]
    pub parent_tool_use_id: Option<String>,
    /// When it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// What a message of the runtime is about, such as `compact_boundary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    /// What a compaction was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact_metadata: Option<Value>,
}

/// The messages of a session.
///
/// # Errors
/// When the session does not exist or cannot be read.
pub fn get_session_messages(session_id: &str, place: &SessionPlace) -> Result<Vec<SessionMessage>> {
    Ok(place.part(read(&place.find(session_id)?, session_id, Shown::Main(place.include_system_messages))?))
}

/// The ids of a session's subagents.
///
/// # Errors
/// When the session does not exist.
pub fn list_subagents(session_id: &str, place: &SessionPlace) -> Result<Vec<String>> {
    let mut ids: Vec<String> = files(&place.find(session_id)?).into_keys().collect();
    ids.sort();
    Ok(ids)
}

/// The messages of a subagent.
///
/// # Errors
/// When session or subagent do not exist or cannot be read.
pub fn get_subagent_messages(
    session_id: &str,
    agent_id: &str,
    place: &SessionPlace,
) -> Result<Vec<SessionMessage>> {
    let mut files = files(&place.find(session_id)?);
    let Some(log) = files.remove(agent_id.strip_prefix(PREFIX).unwrap_or(agent_id)) else {
        let hint = "list_subagents() shows those of a session";
        return Err(Error::option(
            "agent_id",
            format!("session {session_id} has no subagent {agent_id}"),
            hint,
        ));
    };
    let side = log.with_extension("");
    Ok(place.part(read(&SessionPaths { log, side }, session_id, Shown::Agent)?))
}

/// The files of a session's subagents, by id.
fn files(paths: &SessionPaths) -> HashMap<String, PathBuf> {
    let mut found = HashMap::new();
    collect(&paths.agents(), DEPTH, &mut found);
    found
}

fn collect(folder: &Path, depth: usize, found: &mut HashMap<String, PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(std::result::Result::ok).map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && depth > 0 {
            collect(&path, depth - 1, found);
        } else if let Some(stem) = name.strip_suffix(LOG_ENDING) {
            let id = stem.strip_prefix(PREFIX).unwrap_or(stem).to_owned();
            found.insert(id, path);
        }
    }
}

/// Which messages of a log are shown.
#[derive(Clone, Copy)]
pub(super) enum Shown {
    /// Those of the session itself, with those of the runtime if true.
    Main(bool),
    /// Those of a subagent.
    Agent,
}

struct Entry {
    message: SessionMessage,
    parent: Option<String>,
    shown: bool,
}

fn read(paths: &SessionPaths, session_id: &str, shown: Shown) -> Result<Vec<SessionMessage>> {
    let mut chain = Chain::new(session_id, shown);
    scan(paths, |line| match line {
        Line::Record(record) => chain.take(record.body, Some(record.timestamp)),
        Line::Foreign(body) => chain.take(body, None),
    })?;
    Ok(chain.messages())
}

/// The messages of entries of a store, in order. What cannot be read is no message.
pub(super) fn read_entries(entries: &[Value], session_id: &str, shown: Shown) -> Vec<SessionMessage> {
    let mut chain = Chain::new(session_id, shown);
    for entry in entries {
        let timestamp = entry.get("timestamp").and_then(Value::as_str).map(str::to_owned);
        match line::decode(entry.to_string().as_bytes(), Path::new("")) {
            Ok(Line::Record(record)) => chain.take(record.body, timestamp),
            Ok(Line::Foreign(body)) => chain.take(body, timestamp),
            Err(_) => {}
        }
    }
    chain.messages()
}

/// Links on their way to a chain.
struct Chain<'a> {
    session_id: &'a str,
    shown: Shown,
    entries: HashMap<String, Entry>,
    leaf: Option<String>,
}

impl<'a> Chain<'a> {
    fn new(session_id: &'a str, shown: Shown) -> Self {
        Self { session_id, shown, entries: HashMap::new(), leaf: None }
    }

    fn take(&mut self, body: RecordBody, timestamp: Option<String>) {
        // The conversation went back: what came after that entry is no longer part of it.
        if let RecordBody::Cut(cut) = body {
            self.leaf = cut.at;
            return;
        }
        let Some(mut entry) = entry(body, self.session_id, self.shown) else { return };
        entry.message.timestamp = timestamp;
        let id = entry.message.uuid.clone();
        if entry.shown && entry.message.kind != "system" {
            self.leaf = Some(id.clone());
        }
        self.entries.insert(id, entry);
    }

    fn messages(mut self) -> Vec<SessionMessage> {
        let mut chain = Vec::new();
        let mut next = self.leaf.take();
        // Taken out as it is walked, so that a chain which bites its own tail ends.
        while let Some(entry) = next.and_then(|id| self.entries.remove(&id)) {
            next = entry.parent;
            if entry.shown {
                chain.push(entry.message);
            }
        }
        chain.reverse();
        chain
    }
}

/// A link of the chain; other records are none. Notices of the runtime are links that are shown only on demand.
fn entry(body: RecordBody, session_id: &str, shown: Shown) -> Option<Entry> {
    let (sidechain, with_system) = match shown {
        Shown::Main(with_system) => (false, with_system),
        Shown::Agent => (true, false),
    };
    let link = |kind: &str, uuid: String, message: Value| SessionMessage {
        kind: kind.to_owned(),
        uuid,
        session_id: session_id.to_owned(),
        message,
        ..SessionMessage::default()
    };
    if let RecordBody::User(entry) = body {
        let message = serde_json::to_value(&entry.message).ok()?;
        let shown = !entry.is_meta && entry.is_sidechain == sidechain;
        return Some(Entry { message: link("user", entry.uuid, message), parent: entry.parent_uuid, shown });
    }
    if let RecordBody::Assistant(entry) = body {
        let message = serde_json::to_value(&entry.message).ok()?;
        let shown = entry.is_sidechain == sidechain;
        return Some(Entry {
            message: link("assistant", entry.uuid, message),
            parent: entry.parent_uuid,
            shown,
        });
    }
    let RecordBody::System(entry) = body else { return None };
    let mut message = link("system", entry.uuid, Value::from(entry.content));
    message.subtype = Some(entry.subtype);
    message.compact_metadata = entry.compact_metadata.and_then(|about| serde_json::to_value(about).ok());
    Some(Entry { message, parent: entry.parent_uuid, shown: with_system })
}
