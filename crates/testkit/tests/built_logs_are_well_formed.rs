//! Logs of the builder are numbered without gaps, their entries form
//! one chain that a compaction restarts, and two logs built alike are
//! equal.

use qoder_testkit::LogBuilder;
use qoder_types::{Behavior, CallOutcome, ModelFailureClass, Record, RecordBody, ReplayClass};
use serde_json::json;

fn long_log() -> Vec<Record> {
    LogBuilder::new()
        .prompt("read a file")
        .finished_call("call_1", "Read", json!({ "file_path": "a" }), "text")
        .model_requested()
        .tool_calls(vec![("call_2", "Read", json!({})), ("call_3", "Bash", json!({ "command": "true" }))])
        .decision("call_2", "Read", Behavior::Deny)
        .tool_result("call_2", "denied", CallOutcome::Denied)
        .decision("call_3", "Bash", Behavior::Allow)
        .tool_started("call_3", "Bash", ReplayClass::Effectful)
        .input("input_1", "and then?")
        .tool_result("call_3", "", CallOutcome::Completed)
        .notice("mind the gap")
        .model_failed(ModelFailureClass::Overloaded, "busy")
        .assistant_text("done")
        .turn_ended("done")
        .compaction("what happened so far")
        .epoch("compaction")
        .unknown("tag")
        .prompt_from_input("input_1", "and then?")
        .interrupted("host")
        .build()
}

/// The id and parent of a transcript entry.
fn link(record: &Record) -> Option<(String, Option<String>)> {
    match &record.body {
        RecordBody::User(entry) => Some((entry.uuid.clone(), entry.parent_uuid.clone())),
        RecordBody::Assistant(entry) => Some((entry.uuid.clone(), entry.parent_uuid.clone())),
        RecordBody::System(entry) => Some((entry.uuid.clone(), entry.parent_uuid.clone())),
        RecordBody::SessionStarted(_)
        | RecordBody::Epoch(_)
        | RecordBody::InputAdmitted(_)
        | RecordBody::InputWithdrawn(_)
        | RecordBody::ModelRequested(_)
        | RecordBody::ModelFailed(_)
        | RecordBody::ModelNoticed(_)
        | RecordBody::Decided(_)
        | RecordBody::Asked(_)
        | RecordBody::SideCalled(_)
        | RecordBody::Answered(_)
        | RecordBody::Elicited(_)
        | RecordBody::ElicitationAnswered(_)
        | RecordBody::PermissionsChanged(_)
        | RecordBody::ToolStarted(_)
        | RecordBody::TaskStarted(_)
        | RecordBody::TaskParked(_)
        | RecordBody::TaskEnded(_)
        | RecordBody::Hooked(_)
        | RecordBody::Interrupted(_)
        | RecordBody::TurnEnded(_)
        | RecordBody::Cut(_)
        | RecordBody::FileKept(_)
        | RecordBody::FilesRewound(_)
        | RecordBody::Unknown(_) => None,
    }
}

#[test]
fn records_are_numbered_without_gaps() {
    for (index, record) in long_log().iter().enumerate() {
        assert_eq!(record.seq, index as u64 + 1);
        assert!(record.timestamp.ends_with('Z'));
    }
}

#[test]
fn entries_form_a_chain_that_a_compaction_restarts() {
    let mut previous: Option<String> = None;
    let mut entries = 0;
    for record in long_log() {
        let Some((uuid, parent)) = link(&record) else { continue };
        if matches!(record.body, RecordBody::System(_)) {
            assert_eq!(parent, None);
        } else {
            assert_eq!(parent, previous);
        }
        previous = Some(uuid);
        entries += 1;
    }
    assert_eq!(entries, 11);
}

#[test]
fn denied_results_are_errors() {
    let log = long_log();
    let denied = log.iter().find_map(|record| match &record.body {
        RecordBody::User(entry) if entry.outcome == Some(CallOutcome::Denied) => Some(entry),
        _ => None,
    });
    let content = serde_json::to_value(&denied.unwrap().message.content).unwrap();
    assert_eq!(content[0]["is_error"], true);
    assert_eq!(content[0]["tool_use_id"], "call_2");
}

#[test]
fn logs_built_alike_are_equal() {
    assert_eq!(format!("{:?}", long_log()), format!("{:?}", long_log()));
}
