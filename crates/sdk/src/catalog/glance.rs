//! What a list shows and the runtime's own list does not have: the tag and the start of a session. Only the beginning
//! and the end of a log are read.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;

/// How much of the beginning and end of a log is read.
const GLANCE: u64 = 64 * 1024;

/// The newest tag; `None` when there is no tag or it was taken away.
pub(super) fn tag(log: &Path) -> Option<String> {
    let mut file = File::open(log).ok()?;
    let length = file.metadata().ok()?.len();
    let text = part(&mut file, length.saturating_sub(GLANCE))?;
    let line = text.lines().rev().find(|line| line.starts_with("{\"type\":\"tag\""))?;
    let value: Value = serde_json::from_str(line).ok()?;
    value.get("tag")?.as_str().filter(|tag| !tag.is_empty()).map(str::to_owned)
}

/// When the first line was written.
pub(super) fn created(log: &Path) -> Option<String> {
    let text = part(&mut File::open(log).ok()?, 0)?;
    let stamp = |line: &str| {
        let value: Value = serde_json::from_str(line).ok()?;
        value.get("timestamp")?.as_str().map(str::to_owned)
    };
    text.lines().find_map(stamp)
}

fn part(file: &mut File, from: u64) -> Option<String> {
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.by_ref().take(GLANCE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
