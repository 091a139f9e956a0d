//! What a session's log and its timeline say about checkpoints: which file was kept before which call, and each rewind;
//! and what a rewind says about changes that no tool made.

use serde_json::{Value, json};

use crate::checkpoints::host::QODERCLI;
use crate::checkpoints::support::{Place, SESSION, bash, edit, id, read, set_mode, steps, write};

fn place_of(lines: &[Value], fits: impl Fn(&Value) -> bool) -> usize {
    lines.iter().position(fits).unwrap_or_else(|| panic!("it is not there: {lines:#?}"))
}

fn shown(place: &Place, more: &[&str]) -> String {
    let arguments = [&["sessions", "show", SESSION], more].concat();
    let output = place.sandbox.run(QODERCLI, &arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_log_says_which_file_was_kept_before_which_call() {
    let place = Place::new();
    set_mode(&place.write("kept.txt", "one\n"), 0o640);
    let mut session = place.start();
    session.turn(
        1,
        &steps(&[
            read("kept.txt"),
            edit("kept.txt", "one", "two"),
            edit("kept.txt", "two", "three"),
            write("new.txt", "fresh\n"),
        ]),
    );
    session.turn(2, &steps(&[edit("kept.txt", "three", "four")]));
    session.end();
    let kept = place.records("file-kept");
    let told: Vec<(&Value, &Value)> =
        kept.iter().map(|record| (&record["path"], &record["message"])).collect();
    let (old, new) = (json!(place.shown("kept.txt")), json!(place.shown("new.txt")));
    let (first, second) = (json!(id(1)), json!(id(2)));
    assert_eq!(told, [(&old, &first), (&new, &first), (&old, &second)], "once a file and message");
    assert_eq!((&kept[0]["mode"], &kept[1]["sha256"]), (&json!(0o640), &Value::Null));
    let blob = place.side().join("checkpoints/blobs").join(kept[0]["sha256"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(blob).unwrap(), "one\n");

    let lines = place.sandbox.transcript_lines();
    let call = kept[0]["toolUseId"].clone();
    let start = place_of(&lines, |line| line["type"] == "tool-start" && line["toolUseId"] == call);
    let record = place_of(&lines, |line| line["type"] == "file-kept");
    let result = place_of(&lines, |line| {
        line["type"] == "user" && line["message"]["content"][0]["tool_use_id"] == call
    });
    assert!(start < record && record < result, "{start} {record} {result}");
}

#[test]
fn the_timeline_shows_what_was_kept_and_what_went_back() {
    let place = Place::new();
    place.write("kept.txt", "one\n");
    let mut session = place.start();
    session.turn(1, &steps(&[read("kept.txt"), edit("kept.txt", "one", "two"), write("new.txt", "fresh\n")]));
    session.rewind_files(1).unwrap();
    session.end();
    let text = shown(&place, &["--full"]);
    let sha256 = place.records("file-kept")[0]["sha256"].as_str().unwrap().to_owned();
    for part in [
        format!("kept {} as {}", place.shown("kept.txt"), &sha256[..12]),
        format!("kept {} as not being there", place.shown("new.txt")),
        format!("(files go back to what they were before {}: {}", id(1), place.shown("kept.txt")),
    ] {
        assert!(text.contains(&part), "`{part}` is not in {text}");
    }
    let data: Value = serde_json::from_str(&shown(&place, &["--json"])).unwrap();
    let spans = data["turns"].as_array().unwrap().iter().flat_map(|turn| turn["spans"].as_array().unwrap());
    let spans: Vec<&Value> = spans.collect();
    let edited = spans.iter().find(|span| span["name"] == "Edit").unwrap();
    assert_eq!(edited["kept"], json!([{ "path": place.shown("kept.txt"), "sha256": sha256 }]));
    assert!(spans.iter().any(|span| span["mark"] == "rewound"), "{spans:#?}");
}

#[test]
fn what_an_agent_changed_is_on_record_in_its_own_log() {
    let place = Place::new();
    place.write("file.txt", "one\n");
    let task = steps(&[read("file.txt"), edit("file.txt", "one", "two")]);
    let mut session = place.start();
    session.turn(1, &steps(&[("Agent", json!({ "prompt": task, "description": "change" }))]));
    session.end();
    assert_eq!(place.records("file-kept").len(), 0, "the session itself changed nothing");
    let folder = std::fs::read_dir(place.side().join("subagents")).unwrap();
    let logs = folder
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let log: String = logs.map(|log| std::fs::read_to_string(log).unwrap()).collect();
    let line = log.lines().find(|line| line.starts_with("{\"type\":\"file-kept\"")).unwrap();
    let record: Value = serde_json::from_str(line).unwrap();
    assert_eq!((&record["path"], &record["message"]), (&json!(place.shown("file.txt")), &json!(id(1))));
    assert!(shown(&place, &["--full"]).contains(&format!("kept {} as ", place.shown("file.txt"))));
}

#[test]
fn what_others_changed_in_between_is_told_and_stays_among_the_blobs() {
    let place = Place::new();
    place.write("mine.txt", "one\n");
    place.write("plain.txt", "one\n");
    let mut session = place.start();
    let edits = |from: &str, to: &str| {
        steps(&[read("mine.txt"), edit("mine.txt", from, to), read("plain.txt"), edit("plain.txt", from, to)])
    };
    session.turn(1, &edits("one", "two"));
    session.turn(2, &edits("two", "three"));
    assert_eq!(session.preview(1)["changedElsewhere"], Value::Null, "tools alone have changed anything");
    place.write("mine.txt", "three, and by hand\n");
    let told = json!([place.shown("mine.txt")]);
    assert_eq!(session.preview(1)["changedElsewhere"], told);
    let report = session.rewind_files(1).unwrap();
    assert_eq!(report["changedElsewhere"], told, "a dry run says the same");
    assert_eq!(place.records("files-rewound")[0]["changedElsewhere"], told);
    assert_eq!(place.read("mine.txt").unwrap(), "one\n");
    let blobs = std::fs::read_dir(place.side().join("checkpoints/blobs")).unwrap();
    let mut contents = blobs.map(|blob| std::fs::read_to_string(blob.unwrap().path()).unwrap());
    assert!(contents.any(|content| content == "three, and by hand\n"));
    assert_eq!(session.preview(2)["changedElsewhere"], Value::Null, "what a rewind left is known");
}

#[test]
fn what_a_command_changed_in_between_is_told() {
    let place = Place::new();
    place.write("file.txt", "one\n");
    let mut session = place.start();
    session
        .turn(1, &steps(&[read("file.txt"), edit("file.txt", "one", "two"), bash("echo three >> file.txt")]));
    session.end();
    let dry = ["sessions", "rewind", SESSION, "--to", &id(1), "--scope", "files", "--dry-run"];
    let output = place.sandbox.run(QODERCLI, &dry);
    let text = String::from_utf8(output.stdout).unwrap();
    let line = format!(
        "{} was also changed by something else than a file tool; that would go too",
        place.shown("file.txt")
    );
    assert!(text.contains(&line), "{text}");
}
