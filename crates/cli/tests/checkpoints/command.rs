//! `qodercli sessions rewind`: lists the messages, previews, and takes a session back that no process drives.

use serde_json::{Value, json};

use crate::checkpoints::host::QODERCLI;
use crate::checkpoints::support::{Place, SESSION, edit, id, read, steps};

fn run(place: &Place, more: &[&str]) -> (i32, String, String) {
    let arguments = [&["sessions", "rewind", SESSION], more].concat();
    let output = place.sandbox.run(QODERCLI, &arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_person_takes_a_session_back() {
    let place = Place::new();
    place.write("file.txt", "one\n");
    let mut session = place.start();
    session.turn(1, "hello there");
    session.turn(2, &steps(&[read("file.txt"), edit("file.txt", "one", "two")]));
    let (code, _, stderr) = run(&place, &["--to", &id(2)]);
    assert_eq!(code, 55, "a session that is driven cannot be rewound from outside: {stderr}");
    session.end();

    let (code, stdout, _) = run(&place, &[]);
    assert_eq!(code, 0);
    assert!(stdout.contains(&format!("{}  hello there", id(1))), "{stdout}");
    let (code, stdout, _) = run(&place, &["--to", &id(2), "--dry-run", "--json"]);
    assert_eq!(code, 0);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let expected = json!({ "canRewind": true, "filesChanged": [place.shown("file.txt")], "insertions": 1,
        "deletions": 1, "messagesRemoved": 6 });
    assert_eq!(report, expected);
    assert_eq!(place.read("file.txt").unwrap(), "two\n");
    let (code, stdout, _) = run(&place, &["--to", &id(2)]);
    assert_eq!(code, 0);
    assert!(stdout.starts_with("1 files changed, +1 -1 lines\n"), "{stdout}");
    assert_eq!(place.read("file.txt").unwrap(), "one\n");
    let (code, _, stderr) = run(&place, &["--to", &id(2)]);
    assert_eq!(code, 42, "the message is no longer part of the conversation: {stderr}");
}
