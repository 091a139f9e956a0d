//! Other processes: checkpoints lie on the disk beside the session's log, and go with it.

use serde_json::json;

use crate::checkpoints::host::QODERCLI;
use crate::checkpoints::support::{Place, SESSION, edit, id, read, steps};

#[test]
fn a_session_is_resumed_and_rewound() {
    let place = Place::new();
    place.write("file.txt", "one\n");
    let mut session = place.start();
    session.turn(1, &steps(&[read("file.txt"), edit("file.txt", "one", "two")]));
    session.end();
    let mut session = place.resume();
    session.turn(2, &steps(&[edit("file.txt", "two", "three")]));
    assert_eq!(session.preview(1)["filesChanged"], json!([place.shown("file.txt")]));
    session.end();
    // What was kept counts, also in a process that keeps nothing itself.
    let mut session = place.start_with(&["--resume", SESSION], &[]);
    session.rewind_files(2).unwrap();
    assert_eq!(place.read("file.txt").unwrap(), "two\n");
    session.rewind_files(1).unwrap();
    assert_eq!(place.read("file.txt").unwrap(), "one\n");
}

#[test]
fn the_sibling_variable_and_the_setting_switch_them_on() {
    let setting = r#"{"general":{"fileCheckpointing":{"enabled":true}}}"#;
    let variable = ("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true");
    let (none, flags) = (Vec::new(), vec!["--settings", setting]);
    for (flags, environment) in [(none, vec![variable]), (flags, Vec::new())] {
        let place = Place::new();
        place.write("file.txt", "one\n");
        let mut session = place.start_with(&flags, &environment);
        session.turn(1, &steps(&[read("file.txt"), edit("file.txt", "one", "two")]));
        session.rewind_files(1).unwrap();
        assert_eq!(place.read("file.txt").unwrap(), "one\n", "{flags:?}");
    }
}

#[test]
fn checkpoints_go_with_their_session_and_not_into_a_copy() {
    let place = Place::new();
    place.write("file.txt", "one\n");
    let mut session = place.start();
    session.turn(1, &steps(&[read("file.txt"), edit("file.txt", "one", "two")]));
    session.end();
    let mut copy = place.start_with(&["--resume", SESSION, "--fork-session"], &[]);
    assert_eq!(copy.preview(1)["canRewind"], false);
    copy.end();
    let side = place.side();
    assert!(side.join("checkpoints").exists());
    let deleted = place.sandbox.run(QODERCLI, &["sessions", "delete", SESSION]);
    assert!(deleted.status.success(), "{deleted:?}");
    assert!(!side.exists(), "{}", id(1));
}
