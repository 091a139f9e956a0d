//! A store that is full or cannot be used: the call fails with a text that names it, and the file is not changed.

use std::process::Command;

use serde_json::json;

use crate::checkpoints::host::Host;
use crate::checkpoints::support::{ON, Place, Process, SESSION, edit, read, steps, write};

#[test]
fn a_full_store_refuses_the_change() {
    let place = Place::new();
    let original = "a line\n".repeat(1_000);
    place.write("file.txt", &original);
    let settings = json!({ "general": { "fileCheckpointing": { "maxBytes": 2_000 } } }).to_string();
    let flags = ["--session-id", SESSION, "--settings", &settings];
    let mut session = place.start_with(&flags, &[ON]);
    let results = session
        .turn(1, &steps(&[read("file.txt"), write("file.txt", "short\n"), write("new.txt", "fresh\n")]));
    assert!(results[1].contains("is full") && results[1].contains("maxBytes"), "{results:?}");
    assert!(results[1].contains(&place.side().join("checkpoints").display().to_string()), "{results:?}");
    assert_eq!(place.read("file.txt").unwrap(), original);
    // A file that is created takes no room for content; it is kept that there was none.
    assert_eq!(place.read("new.txt").unwrap(), "fresh\n");
    session.rewind_files(1).unwrap();
    assert_eq!(place.read("new.txt"), None);
}

#[test]
fn the_oldest_session_makes_room() {
    let place = Place::new();
    place.write("file.txt", &"old\n".repeat(1_000));
    let mut session = place.start();
    session.turn(1, &steps(&[read("file.txt"), write("file.txt", &"new\n".repeat(1_000))]));
    session.end();
    let settings = json!({ "general": { "fileCheckpointing": { "maxBytes": 6_000 } } }).to_string();
    let mut other = place.start_with(&["--settings", &settings], &[ON]);
    other.turn(2, &steps(&[read("file.txt"), edit("file.txt", &"new\n".repeat(1_000), "newest\n")]));
    assert_eq!(place.read("file.txt").unwrap(), "newest\n");
    other.end();
    assert!(!place.side().join("checkpoints").exists());
    let mut session = place.resume();
    let preview = session.preview(1);
    assert_eq!(preview["canRewind"], false, "{preview}");
}

#[test]
fn going_back_is_possible_when_there_is_no_room_left() {
    let place = Place::new();
    place.write("file.txt", "one\n");
    let mut session = place.start();
    session.turn(1, &steps(&[read("file.txt"), edit("file.txt", "one", "two")]));
    session.end();
    let settings = json!({ "general": { "fileCheckpointing": { "maxBytes": 1 } } }).to_string();
    let mut session = place.start_with(&["--resume", SESSION, "--settings", &settings], &[ON]);
    session.rewind_files(1).unwrap();
    assert_eq!(place.read("file.txt").unwrap(), "one\n");
}

#[test]
fn a_store_that_cannot_be_used_refuses_the_change() {
    let place = Place::new();
    place.write("file.txt", "one\n");
    let mut session = place.start_with(&["--session-id", SESSION], &[]);
    session.turn(1, &steps(&[read("file.txt")]));
    session.end();
    std::fs::write(place.side().join("checkpoints"), "in the way").unwrap();
    let mut session = place.resume();
    let results = session.turn(2, &steps(&[edit("file.txt", "one", "two"), write("new.txt", "fresh\n")]));
    for result in &results {
        assert!(result.contains("was not changed") && result.contains("checkpoints"), "{results:?}");
    }
    assert_eq!((place.read("file.txt").unwrap().as_str(), place.read("new.txt")), ("one\n", None));
}

/// The same command, which can write no file longer than so many kilobytes.
fn limited(command: &Command, kilobytes: u32) -> Command {
    let mut limited = Command::new("bash");
    let script = format!("ulimit -f {kilobytes}; trap '' XFSZ; exec \"$@\"");
    limited.args(["-c", &script, "bash"]).arg(command.get_program()).args(command.get_args());
    limited.current_dir(command.get_current_dir().unwrap()).env_clear();
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited
}

#[test]
fn a_disk_that_is_full_in_the_middle_of_a_blob_leaves_nothing_behind() {
    let place = Place::new();
    let original = format!("one\n{}", "long".repeat(200_000));
    place.write("file.txt", &original);
    let mut command = place.command(&["--session-id", SESSION]);
    command.env(ON.0, ON.1);
    let mut host = Host::spawn(limited(&command, 400));
    host.initialize(json!({}));
    let mut session = Process { host };
    let first_line = ("Read", json!({ "file_path": "file.txt", "limit": 1 }));
    let results = session.turn(1, &steps(&[first_line, edit("file.txt", "one", "two")]));
    assert!(results[1].contains("could not be kept as a checkpoint"), "{results:?}");
    assert_eq!(place.read("file.txt").unwrap(), original);
    let left = std::fs::read_dir(place.side().join("checkpoints/blobs")).unwrap().count();
    assert_eq!(left, 0, "half a blob takes room that something else needs");
}

#[test]
fn what_a_dead_process_left_of_a_blob_is_removed() {
    let place = Place::new();
    place.write("file.txt", "one\n");
    let mut session = place.start();
    session.turn(1, &steps(&[read("file.txt"), edit("file.txt", "one", "two")]));
    session.end();
    let half = place.side().join("checkpoints/blobs").join(format!("{}.4242", "a".repeat(64)));
    std::fs::write(&half, "half").unwrap();
    let mut session = place.resume();
    session.turn(2, &steps(&[edit("file.txt", "two", "three")]));
    assert!(!half.exists());
    session.rewind_files(1).unwrap();
    assert_eq!(place.read("file.txt").unwrap(), "one\n");
}
