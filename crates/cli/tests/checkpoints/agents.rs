//! Subagents: what they change goes back with the message of the session that started them.

use serde_json::json;

use crate::checkpoints::support::{Place, edit, read, steps, write};

#[test]
fn what_a_subagent_changed_goes_back() {
    let place = Place::new();
    place.write("file.txt", "one\n");
    let task = steps(&[read("file.txt"), edit("file.txt", "one", "two"), write("new.txt", "by the agent\n")]);
    let mut session = place.start();
    session.turn(1, &steps(&[("Agent", json!({ "prompt": task, "description": "change" }))]));
    assert_eq!(place.read("file.txt").unwrap(), "two\n");
    let report = session.rewind_files(1).unwrap();
    assert_eq!(report["filesChanged"], json!([place.shown("file.txt"), place.shown("new.txt")]));
    assert_eq!((place.read("file.txt").unwrap().as_str(), place.read("new.txt")), ("one\n", None));
}
