//! What is refused, with a text that says why: a turn that runs, unknown messages, sessions without checkpoints,
//! a damaged store, and requests that make no sense.

use serde_json::json;

use crate::checkpoints::host::{Host, QODERCLI};
use crate::checkpoints::support::{ON, Place, SESSION, bash, edit, id, read, steps};

#[test]
fn a_turn_that_runs_is_not_rewound() {
    let place = Place::new();
    let mut session = place.start();
    session.turn(1, "alpha");
    session.send(2, &steps(&[bash("touch started; until [ -e go ]; do sleep 0.02; done")]));
    while place.read("started").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    for error in [session.rewind_files(1).unwrap_err(), session.rewind(1, "both").unwrap_err()] {
        assert!(error.contains("while a turn is running"), "{error}");
    }
    assert_eq!(session.preview(1)["canRewind"], false);
    place.write("go", "");
    session.host.result();
    assert_eq!(session.preview(1)["canRewind"], true);
}

#[test]
fn a_message_that_nobody_knows_is_named() {
    let place = Place::new();
    let mut session = place.start();
    session.turn(1, "alpha");
    let preview = session.preview(7);
    assert_eq!(preview["canRewind"], false);
    assert!(preview["error"].as_str().unwrap().contains(&id(7)), "{preview}");
    assert!(session.rewind_files(7).unwrap_err().contains("no file checkpoint found"));
    assert!(session.rewind(7, "conversation").unwrap_err().contains("no user message"));
}

#[test]
fn without_checkpoints_there_is_nothing_to_go_back_to() {
    let place = Place::new();
    place.write("file.txt", "one\n");
    let mut session = place.start_with(&["--session-id", SESSION], &[]);
    session.turn(1, &steps(&[read("file.txt"), edit("file.txt", "one", "two")]));
    let error = session.rewind_files(1).unwrap_err();
    assert!(error.contains("not enabled") && error.contains("enable_file_checkpointing"), "{error}");
    assert!(session.rewind(1, "both").unwrap_err().contains("not enabled"));
    assert_eq!(place.read("file.txt").unwrap(), "two\n");
    assert!(!place.side().join("checkpoints").exists());
    // The conversation needs none.
    session.rewind(1, "conversation").unwrap();
}

#[test]
fn requests_that_make_no_sense_are_answered() {
    let place = Place::new();
    let mut session = place.start();
    session.turn(1, "alpha");
    let error = session.rewind(1, "everything").unwrap_err();
    assert!(error.contains("both, conversation, files"), "{error}");
    let error = session.host.request(&json!({ "subtype": "rewind_files" })).unwrap_err();
    assert!(error.contains("user_message_id"), "{error}");
}

#[test]
fn a_damaged_store_changes_nothing() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.write("b.txt", "other\n");
    let mut session = place.start();
    let calls =
        [read("a.txt"), edit("a.txt", "one", "two"), read("b.txt"), edit("b.txt", "other", "changed")];
    session.turn(1, &steps(&calls));
    let blobs = place.side().join("checkpoints/blobs");
    for blob in std::fs::read_dir(&blobs).unwrap().map(|entry| entry.unwrap().path()) {
        if std::fs::read_to_string(&blob).unwrap() == "other\n" {
            std::fs::write(&blob, "forged\n").unwrap();
        }
    }
    let error = session.rewind_files(1).unwrap_err();
    assert!(error.contains("damaged"), "{error}");
    assert_eq!(place.read("a.txt").unwrap(), "two\n");
    assert_eq!(place.read("b.txt").unwrap(), "changed\n");
}

#[test]
fn a_session_that_leaves_no_trace_has_no_place_for_them() {
    let place = Place::new();
    let mut command = place.sandbox.command_with(QODERCLI, &place.server);
    command.args(["-p", "alpha", "--no-session-persistence"]).env(ON.0, ON.1);
    let output = qoder_testkit::Sandbox::finish(command);
    assert_eq!(output.status.code(), Some(42), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("checkpoints"), "{output:?}");
    // A setting is a wish and not an order: such a session simply keeps nothing.
    let setting = r#"{"general":{"fileCheckpointing":{"enabled":true}}}"#;
    place.write("file.txt", "one\n");
    let mut host = Host::spawn(place.command(&["--no-session-persistence", "--settings", setting]));
    host.initialize(json!({}));
    host.prompt(&steps(&[read("file.txt"), edit("file.txt", "one", "two")]));
    host.result();
    assert_eq!(place.read("file.txt").unwrap(), "two\n");
}
