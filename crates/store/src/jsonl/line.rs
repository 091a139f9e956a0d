//! The text of a record: one JSON object a line, with the record's number, version and, at the end, a CRC-32 of
//! everything before it. Decoding reads the head first and then exactly the type it names, so that a long log is read
//! in one pass without building generic trees.

use qoder_types::record::{RECORD_VERSION, Record, RecordBody, Unknown, UserEntry, UserOrigin};
use qoder_types::{Behavior, ContentBlock, MessageContent, PermissionUpdate};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::blob;

/// Version of the program, as sessions record it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The present moment as records write it.
#[must_use]
pub fn timestamp() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// How the content of a line of this version ends.
const OWN_VERSION: &[u8] = b",\"v\":1";
const CRC_KEY: &[u8] = b",\"crc\":\"";
/// `,"crc":"` + eight digits + `"}`.
const CRC_TAIL: usize = CRC_KEY.len() + 8 + 2;

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Not a JSON object.
    #[error("it is not a JSON object ({0})")]
    NotJson(String),
    /// The checksum does not fit.
    #[error("its checksum does not match its content")]
    Checksum,
    /// Content that was moved out of the line is gone.
    #[error("part of it is missing: {0}")]
    Blob(String),
    /// The record's fields are not those of its type.
    #[error("it is not a well-formed `{kind}` record ({problem})")]
    Shape {
        /// The record's type.
        kind: String,
        /// What is wrong.
        problem: String,
    },
}

/// A decoded line.
#[derive(Debug, Clone)]
pub enum Line {
    /// One of our records.
    Record(Record),
    /// A transcript entry or note of another program, without a number.
    Foreign(RecordBody),
}

#[derive(Serialize)]
struct Envelope<'a, B: Serialize> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    body: &'a B,
    #[serde(flatten)]
    owner: Owner<'a>,
    timestamp: &'a str,
    seq: u64,
    v: u32,
}

/// Whose line it is.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner<'a> {
    /// The main session.
    pub session_id: &'a str,
    /// The agent, in the log of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<&'a str>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: std::borrow::Cow<'a, str>,
    seq: Option<u64>,
    v: Option<u32>,
    #[serde(borrow, default)]
    timestamp: std::borrow::Cow<'a, str>,
    #[serde(rename = "forkedFrom")]
    forked_from: Option<serde::de::IgnoredAny>,
}

/// The `type` of a record's line.
#[must_use]
pub fn kind(body: &RecordBody) -> &str {
    match body {
        RecordBody::SessionStarted(_) => "session-start",
        RecordBody::Epoch(_) => "epoch",
        RecordBody::InputAdmitted(_) => "input",
        RecordBody::InputWithdrawn(_) => "input-withdrawn",
        RecordBody::User(_) => "user",
        RecordBody::Assistant(_) => "assistant",
        RecordBody::System(_) => "system",
        RecordBody::ModelRequested(_) => "model-request",
        RecordBody::ModelFailed(_) => "model-failure",
        RecordBody::ModelNoticed(_) => "model-notice",
        RecordBody::Decided(_) => "decision",
        RecordBody::Asked(_) => "permission-ask",
        RecordBody::SideCalled(_) => "side-call",
        RecordBody::Answered(_) => "permission-answer",
        RecordBody::Elicited(_) => "elicitation",
        RecordBody::ElicitationAnswered(_) => "elicitation-answer",
        RecordBody::PermissionsChanged(_) => "permission-change",
        RecordBody::ToolStarted(_) => "tool-start",
        RecordBody::TaskStarted(_) => "task-start",
        RecordBody::TaskParked(_) => "task-parked",
        RecordBody::TaskEnded(_) => "task-end",
        RecordBody::Hooked(_) => "hook",
        RecordBody::Interrupted(_) => "interrupt",
        RecordBody::TurnEnded(_) => "turn-end",
        RecordBody::Cut(_) => "cut",
        RecordBody::FileKept(_) => "file-kept",
        RecordBody::FilesRewound(_) => "files-rewound",
        RecordBody::Unknown(unknown) => &unknown.kind,
    }
}

/// Appends the line of `record`, newline included, to `out`.
pub fn encode(record: &Record, owner: Owner<'_>, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    match &record.body {
        RecordBody::SessionStarted(body) => write(record, owner, body, out),
        RecordBody::Epoch(body) => write(record, owner, body, out),
        RecordBody::InputAdmitted(body) => write(record, owner, body, out),
        RecordBody::InputWithdrawn(body) => write(record, owner, body, out),
        RecordBody::User(body) => write(record, owner, &**body, out),
        RecordBody::Assistant(body) => write(record, owner, &**body, out),
        RecordBody::System(body) => write(record, owner, &**body, out),
        RecordBody::ModelRequested(body) => write(record, owner, body, out),
        RecordBody::ModelFailed(body) => write(record, owner, body, out),
        RecordBody::ModelNoticed(body) => write(record, owner, &**body, out),
        RecordBody::Decided(body) => write(record, owner, body, out),
        RecordBody::SideCalled(body) => write(record, owner, &**body, out),
        RecordBody::Asked(body) => write(record, owner, &**body, out),
        RecordBody::Answered(body) => write(record, owner, &**body, out),
        RecordBody::Elicited(body) => write(record, owner, &**body, out),
        RecordBody::ElicitationAnswered(body) => write(record, owner, body, out),
        RecordBody::PermissionsChanged(body) => write(record, owner, body, out),
        RecordBody::ToolStarted(body) => write(record, owner, body, out),
        RecordBody::TaskStarted(body) => write(record, owner, body, out),
        RecordBody::TaskParked(body) => write(record, owner, &**body, out),
        RecordBody::TaskEnded(body) => write(record, owner, body, out),
        RecordBody::Hooked(body) => write(record, owner, &**body, out),
        RecordBody::Interrupted(body) => write(record, owner, body, out),
        RecordBody::TurnEnded(body) => write(record, owner, &**body, out),
        RecordBody::Cut(body) => write(record, owner, &**body, out),
        RecordBody::FileKept(body) => write(record, owner, &**body, out),
        RecordBody::FilesRewound(body) => write(record, owner, &**body, out),
        RecordBody::Unknown(unknown) => {
            out.extend_from_slice(unknown.raw.get().as_bytes());
            out.push(b'\n');
            Ok(())
        }
    }
}

fn write<B: Serialize>(
    record: &Record,
    owner: Owner<'_>,
    body: &B,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    let start = out.len();
    let envelope = Envelope {
        kind: kind(&record.body),
        body,
        owner,
        timestamp: &record.timestamp,
        seq: record.seq,
        v: RECORD_VERSION,
    };
    serde_json::to_writer(&mut *out, &envelope)?;
    seal(out, start);
    Ok(())
}

/// Puts the checksum and the newline at the end of the JSON object that starts at `start`.
pub fn seal(out: &mut Vec<u8>, start: usize) {
    out.pop();
    let crc = crc32fast::hash(&out[start..]);
    out.extend_from_slice(CRC_KEY);
    out.extend_from_slice(format!("{crc:08x}\"}}\n").as_bytes());
}

fn checksum_fits(line: &[u8]) -> bool {
    let Some(at) = line.len().checked_sub(CRC_TAIL) else { return false };
    let (content, tail) = line.split_at(at);
    tail.starts_with(CRC_KEY)
        && tail[CRC_KEY.len()..CRC_KEY.len() + 8] == *format!("{:08x}", crc32fast::hash(content)).as_bytes()
}

/// The number of a record's line, without reading the rest of it; `None` for lines of other programs.
pub fn number(line: &[u8]) -> Result<Option<u64>, LineError> {
    let head: Head<'_> =
        serde_json::from_slice(line).map_err(|error| LineError::NotJson(error.to_string()))?;
    Ok(numbered(&head))
}

/// The version of the schema that a record's line names, when it is later than the one this program writes and the kind is
/// one of ours, whose meaning may have changed. Records of unknown kinds are kept and mean nothing here. Lines of this
/// version are recognised by their last bytes; only others are read.
#[must_use]
pub fn later_version(line: &[u8]) -> Option<u32> {
    let content = line.len().checked_sub(CRC_TAIL).map_or(line, |at| &line[..at]);
    if content.ends_with(OWN_VERSION) {
        return None;
    }
    let head: Head<'_> = serde_json::from_slice(line).ok()?;
    let version = head.v.filter(|version| *version > RECORD_VERSION && numbered(&head).is_some())?;
    let is_unknown = matches!(body(&head.kind, line), Ok(RecordBody::Unknown(_)));
    (!is_unknown).then_some(version)
}

/// A line that was copied from another session has that one's number.
fn numbered(head: &Head<'_>) -> Option<u64> {
    head.seq.filter(|_| head.forked_from.is_none() || head.kind == "session-start")
}

/// Reads a line (without its newline); content in blobs is taken from `blobs`.
pub fn decode(line: &[u8], blobs: &std::path::Path) -> Result<Line, LineError> {
    let head: Head<'_> =
        serde_json::from_slice(line).map_err(|error| LineError::NotJson(error.to_string()))?;
    let kind = head.kind.as_ref();
    let Some(seq) = numbered(&head) else {
        return Ok(Line::Foreign(foreign(kind, line)?));
    };
    if !checksum_fits(line) {
        return Err(LineError::Checksum);
    }
    let restored;
    let line = if blob::has_blobs(line) {
        restored = blob::restore(line, blobs).map_err(|error| LineError::Blob(error.to_string()))?;
        &restored
    } else {
        line
    };
    let body = if head.v.is_some_and(|version| version > RECORD_VERSION) && !is_chained(kind) {
        unknown(kind, line)?
    } else {
        body(kind, line)?
    };
    Ok(Line::Record(Record { seq, timestamp: head.timestamp.into_owned(), body }))
}

fn is_chained(kind: &str) -> bool {
    matches!(kind, "user" | "assistant" | "system")
}

/// Lines of other programs, and our own that came back from a store: transcript entries are read, and so are cuts, because
/// what was cut off must not come back, and changes of permissions as far as they forbid. Everything else is kept as it is.
fn foreign(kind: &str, line: &[u8]) -> Result<RecordBody, LineError> {
    if kind == "cut" {
        // Another program may mean something else by it.
        return body(kind, line).or_else(|_| unknown(kind, line));
    }
    if kind == "permission-change" {
        return Ok(match body(kind, line) {
            Ok(RecordBody::PermissionsChanged(mut changed)) => {
                changed.updates.retain(forbids);
                RecordBody::PermissionsChanged(changed)
            }
            Ok(_) | Err(_) => unknown(kind, line)?,
        });
    }
    if !is_chained(kind) {
        return unknown(kind, line);
    }
    let mut body = body(kind, line)?;
    if let RecordBody::User(entry) = &mut body {
        entry.origin = foreign_origin(entry);
    }
    Ok(body)
}

/// A store is not trusted to allow anything. What was forbidden for the session stays so.
fn forbids(update: &PermissionUpdate) -> bool {
    match update {
        PermissionUpdate::AddRules { behavior, .. } => *behavior != Behavior::Allow,
        PermissionUpdate::ReplaceRules { .. }
        | PermissionUpdate::RemoveRules { .. }
        | PermissionUpdate::SetMode { .. }
        | PermissionUpdate::AddDirectories { .. }
        | PermissionUpdate::RemoveDirectories { .. } => false,
    }
}

/// Other programs do not say why a user entry exists; its content does.
fn foreign_origin(entry: &UserEntry) -> UserOrigin {
    let results = matches!(&entry.message.content, MessageContent::Blocks(blocks)
        if blocks.iter().any(|block| matches!(block, ContentBlock::ToolResult { .. })));
    if results {
        UserOrigin::ToolResult
    } else if entry.is_compact_summary {
        UserOrigin::Summary
    } else if entry.is_meta {
        UserOrigin::Notice
    } else {
        UserOrigin::Prompt
    }
}

fn body(kind: &str, line: &[u8]) -> Result<RecordBody, LineError> {
    Ok(match kind {
        "session-start" => RecordBody::SessionStarted(parse(kind, line)?),
        "epoch" => RecordBody::Epoch(parse(kind, line)?),
        "input" => RecordBody::InputAdmitted(parse(kind, line)?),
        "input-withdrawn" => RecordBody::InputWithdrawn(parse(kind, line)?),
        "user" => RecordBody::User(Box::new(parse(kind, line)?)),
        "assistant" => RecordBody::Assistant(Box::new(parse(kind, line)?)),
        "system" => match parse(kind, line) {
            Ok(entry) => RecordBody::System(Box::new(entry)),
            // Other programs write system entries of many shapes; none of them changes our state.
            Err(_) => unknown(kind, line)?,
        },
        "model-request" => RecordBody::ModelRequested(parse(kind, line)?),
        "model-failure" => RecordBody::ModelFailed(parse(kind, line)?),
        "model-notice" => RecordBody::ModelNoticed(Box::new(parse(kind, line)?)),
        "decision" => RecordBody::Decided(parse(kind, line)?),
        "side-call" => RecordBody::SideCalled(Box::new(parse(kind, line)?)),
        "permission-ask" => RecordBody::Asked(Box::new(parse(kind, line)?)),
        "permission-answer" => RecordBody::Answered(Box::new(parse(kind, line)?)),
        "elicitation" => RecordBody::Elicited(Box::new(parse(kind, line)?)),
        "elicitation-answer" => RecordBody::ElicitationAnswered(parse(kind, line)?),
        "permission-change" => RecordBody::PermissionsChanged(parse(kind, line)?),
        "tool-start" => RecordBody::ToolStarted(parse(kind, line)?),
        "task-start" => RecordBody::TaskStarted(parse(kind, line)?),
        "task-parked" => RecordBody::TaskParked(Box::new(parse(kind, line)?)),
        "task-end" => RecordBody::TaskEnded(parse(kind, line)?),
        "hook" => RecordBody::Hooked(Box::new(parse(kind, line)?)),
        "interrupt" => RecordBody::Interrupted(parse(kind, line)?),
        "turn-end" => RecordBody::TurnEnded(Box::new(parse(kind, line)?)),
        "cut" => RecordBody::Cut(Box::new(parse(kind, line)?)),
        "file-kept" => RecordBody::FileKept(Box::new(parse(kind, line)?)),
        "files-rewound" => RecordBody::FilesRewound(Box::new(parse(kind, line)?)),
        _ => unknown(kind, line)?,
    })
}

fn parse<T: DeserializeOwned>(kind: &str, line: &[u8]) -> Result<T, LineError> {
    serde_json::from_slice(line)
        .map_err(|error| LineError::Shape { kind: kind.to_owned(), problem: error.to_string() })
}

fn unknown(kind: &str, line: &[u8]) -> Result<RecordBody, LineError> {
    let raw: Box<RawValue> =
        serde_json::from_slice(line).map_err(|error| LineError::NotJson(error.to_string()))?;
    Ok(RecordBody::Unknown(Unknown { kind: kind.to_owned(), raw }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_from_a_store_cuts_and_forbids_and_allows_nothing() {
        let read = |line: &str| match decode(line.as_bytes(), std::path::Path::new("/nowhere")).unwrap() {
            Line::Foreign(body) => body,
            Line::Record(record) => panic!("{record:?}"),
        };
        let rule = |behavior: &str| {
            let rules = r#"[{"toolName":"Bash"}]"#;
            format!(
                r#"{{"type":"addRules","rules":{rules},"behavior":"{behavior}","destination":"session"}}"#
            )
        };
        let mode = r#"{"type":"setMode","mode":"bypassPermissions","destination":"session"}"#;
        let updates = [rule("allow"), rule("deny"), mode.to_owned()].join(",");
        let line = format!(r#"{{"type":"permission-change","updates":[{updates}],"by":"host"}}"#);
        let RecordBody::PermissionsChanged(changed) = read(&line) else { panic!("{line}") };
        assert_eq!(changed.updates.len(), 1);
        assert!(matches!(&changed.updates[0], PermissionUpdate::AddRules { behavior: Behavior::Deny, .. }));
        assert!(matches!(read(r#"{"type":"cut","messages":0,"by":"x"}"#), RecordBody::Cut(_)));
        for other in
            [r#"{"type":"cut","length":"long"}"#, r#"{"type":"permission-change"}"#, r#"{"type":"epoch"}"#]
        {
            assert!(matches!(read(other), RecordBody::Unknown(_)), "{other}");
        }
    }
}
