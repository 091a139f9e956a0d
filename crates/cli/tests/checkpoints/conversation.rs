//! The conversation goes back: the next request of the model has nothing of what was taken back, in this process and in the
//! next, and the log still has all of it.

use serde_json::json;

use crate::checkpoints::support::{Place, edit, id, read, steps};

#[test]
fn the_model_sees_the_conversation_up_to_before_the_message() {
    let place = Place::new();
    let mut session = place.start();
    session.turn(1, "alpha");
    session.turn(2, "beta");
    session.turn(3, "gamma");
    let log = place.sandbox.session_files().remove(0);
    let before = std::fs::read(&log).unwrap();
    let report = session.rewind(2, "conversation").unwrap();
    assert_eq!(report, json!({ "canRewind": true, "messagesRemoved": 4 }));
    session.turn(4, "delta");
    assert_eq!(place.last_request(), ["alpha", "done", "delta"]);
    assert!(std::fs::read(&log).unwrap().starts_with(&before), "history is not rewritten");
    let cut = place.records("cut").remove(0);
    assert_eq!((&cut["messages"], &cut["by"]), (&json!(2), &json!("host")));
    session.end();

    let mut session = place.resume();
    session.turn(5, "epsilon");
    assert_eq!(place.last_request(), ["alpha", "done", "delta", "done", "epsilon"]);
    // To the very beginning.
    session.rewind(1, "conversation").unwrap();
    session.turn(6, "zeta");
    assert_eq!(place.last_request(), ["zeta"]);
    let error = session.rewind(2, "conversation").unwrap_err();
    assert!(error.contains(&id(2)), "what is gone cannot be gone back to: {error}");
}

#[test]
fn both_go_back_together() {
    let place = Place::new();
    place.write("file.txt", "one\n");
    let mut session = place.start();
    session.turn(1, "alpha");
    session.turn(2, &steps(&[read("file.txt"), edit("file.txt", "one", "two")]));
    let request = json!({ "subtype": "rewind", "user_message_id": id(2), "dry_run": true });
    let preview = session.host.request(&request).unwrap();
    assert_eq!((&preview["messagesRemoved"], &preview["insertions"]), (&json!(6), &json!(1)));
    assert_eq!(place.read("file.txt").unwrap(), "two\n");
    // Without a scope both are meant.
    let report = session.host.request(&json!({ "subtype": "rewind", "user_message_id": id(2) })).unwrap();
    assert_eq!(report, preview);
    assert_eq!(place.read("file.txt").unwrap(), "one\n");
    session.turn(3, "beta");
    assert_eq!(place.last_request(), ["alpha", "done", "beta"]);
}

#[test]
fn files_alone_leave_the_conversation() {
    let place = Place::new();
    place.write("file.txt", "one\n");
    let mut session = place.start();
    session.turn(1, &steps(&[read("file.txt"), edit("file.txt", "one", "two")]));
    let report = session.rewind(1, "files").unwrap();
    assert_eq!(report["messagesRemoved"], json!(null));
    assert_eq!(place.read("file.txt").unwrap(), "one\n");
    // What the model saw of the file is not what is there: it has to look again before it changes it.
    let results = session.turn(
        2,
        &steps(&[edit("file.txt", "one", "three"), read("file.txt"), edit("file.txt", "one", "three")]),
    );
    assert!(results[0].contains("changed since it was read"), "{results:?}");
    assert_eq!(place.read("file.txt").unwrap(), "three\n");
    assert_eq!(place.last_request().len(), 13);
}
