//! The example lines of docs/session-log.md are records as this version writes them: each one is read as
//! the type it names, and writing it again gives the same fields. So the page cannot drift away from the
//! types.

use std::collections::BTreeSet;

use qoder_types::record::{
    Answered, Asked, AssistantEntry, Cut, Decided, ElicitationAnswered, Elicited, Epoch, FileKept,
    FilesRewound, InputAdmitted, Interrupted, ModelFailed, ModelNoticed, ModelRequested, PermissionsChanged,
    SessionStarted, SideCalled, SystemEntry, ToolStarted, TurnEnded, UserEntry,
};
use qoder_types::{Hooked, TaskEnded, TaskParked, TaskStarted};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const ENVELOPE: [&str; 6] = ["type", "sessionId", "timestamp", "seq", "v", "crc"];

fn lines() -> Vec<Value> {
    let page = include_str!("../../../docs/session-log.md");
    page.lines()
        .filter(|line| line.starts_with("{\"type\":") && line.contains("\"crc\":"))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

/// The line without its envelope, read as `T` and written again.
fn again<T: DeserializeOwned + Serialize>(line: &Value) -> serde_json::Result<Value> {
    let record: T = serde_json::from_str(&line.to_string())?;
    serde_json::from_str(&serde_json::to_string(&record)?)
}

#[test]
fn every_example_is_read_and_written_alike() {
    let mut kinds = BTreeSet::new();
    for line in lines() {
        let kind = line["type"].as_str().unwrap().to_owned();
        let written = match kind.as_str() {
            "session-start" => again::<SessionStarted>(&line),
            "epoch" => again::<Epoch>(&line),
            "input" => again::<InputAdmitted>(&line),
            "user" => again::<UserEntry>(&line),
            "assistant" => again::<AssistantEntry>(&line),
            "system" => again::<SystemEntry>(&line),
            "model-request" => again::<ModelRequested>(&line),
            "model-failure" => again::<ModelFailed>(&line),
            "model-notice" => again::<ModelNoticed>(&line),
            "decision" => again::<Decided>(&line),
            "permission-ask" => again::<Asked>(&line),
            "permission-answer" => again::<Answered>(&line),
            "elicitation" => again::<Elicited>(&line),
            "elicitation-answer" => again::<ElicitationAnswered>(&line),
            "permission-change" => again::<PermissionsChanged>(&line),
            "side-call" => again::<SideCalled>(&line),
            "tool-start" => again::<ToolStarted>(&line),
            "task-start" => again::<TaskStarted>(&line),
            "task-parked" => again::<TaskParked>(&line),
            "task-end" => again::<TaskEnded>(&line),
            "hook" => again::<Hooked>(&line),
            "interrupt" => again::<Interrupted>(&line),
            "cut" => again::<Cut>(&line),
            "file-kept" => again::<FileKept>(&line),
            "files-rewound" => again::<FilesRewound>(&line),
            "turn-end" => again::<TurnEnded>(&line),
            other => panic!("the page shows a record of an unknown type: {other}"),
        };
        let mut documented = line.clone();
        for field in ENVELOPE {
            assert!(documented.as_object_mut().unwrap().remove(field).is_some(), "{kind} has no {field}");
        }
        assert_eq!(written.unwrap(), documented, "{kind}");
        kinds.insert(kind);
    }
    assert_eq!(kinds.len(), 26, "every type has an example: {kinds:?}");
}

#[test]
fn the_envelope_stands_where_the_page_says() {
    let page = include_str!("../../../docs/session-log.md");
    let examples = page.lines().filter(|line| line.contains("\"crc\":")).filter(|line| line.starts_with('{'));
    let mut count = 0;
    for line in examples {
        let (_, checksum) = line.rsplit_once(",\"crc\":\"").unwrap();
        assert_eq!(checksum.len(), "00000000\"}".len(), "the checksum is the last field: {line}");
        count += 1;
    }
    assert!(count >= 20);
}
