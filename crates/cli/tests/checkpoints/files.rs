//! What goes back: files that tools changed, created ones, removed ones, with their permission bits; and what does not,
//! because no tool for files changed it.

use serde_json::json;

use crate::checkpoints::support::{Place, bash, edit, mode, read, set_mode, steps, write};

#[test]
fn changed_files_go_back_and_created_ones_go() {
    let place = Place::new();
    let kept = place.write("kept.txt", "one\ntwo\nthree\n");
    set_mode(&kept, 0o640);
    let mut session = place.start();
    session.turn(
        1,
        &steps(&[read("kept.txt"), edit("kept.txt", "two", "2"), write("new.txt", "fresh\nlines\n")]),
    );
    session.turn(2, &steps(&[edit("kept.txt", "three", "3")]));

    let preview = session.preview(2);
    let expected = json!({ "canRewind": true, "filesChanged": [place.shown("kept.txt")], "insertions": 1, "deletions": 1 });
    assert_eq!(preview, expected);
    let preview = session.preview(1);
    let both = json!([place.shown("kept.txt"), place.shown("new.txt")]);
    assert_eq!(
        (&preview["filesChanged"], &preview["insertions"], &preview["deletions"]),
        (&both, &json!(2), &json!(4))
    );
    assert_eq!(place.read("kept.txt").unwrap(), "one\n2\n3\n", "a dry run changes nothing");

    assert_eq!(session.rewind_files(2).unwrap(), expected);
    assert_eq!(place.read("kept.txt").unwrap(), "one\n2\nthree\n");
    session.rewind_files(1).unwrap();
    assert_eq!(place.read("kept.txt").unwrap(), "one\ntwo\nthree\n");
    assert_eq!((mode(&kept), place.read("new.txt")), (0o640, None));
    assert_eq!(
        session.rewind_files(1).unwrap()["filesChanged"],
        json!([]),
        "there is nothing left to change"
    );
    let records = place.records("files-rewound");
    assert_eq!(records.len(), 2, "{records:#?}");
    assert_eq!(
        (&records[1]["to"], &records[1]["files"]),
        (&json!(crate::checkpoints::support::id(1)), &both)
    );
}

#[test]
fn a_rewind_is_taken_back_by_another() {
    let place = Place::new();
    place.write("a.txt", "a0\n");
    place.write("b.txt", "b0\n");
    let mut session = place.start();
    session.turn(1, &steps(&[read("a.txt"), edit("a.txt", "a0", "a1")]));
    session.turn(2, &steps(&[read("b.txt"), edit("b.txt", "b0", "b1")]));
    session.rewind_files(1).unwrap();
    assert_eq!(
        (place.read("a.txt").unwrap().as_str(), place.read("b.txt").unwrap().as_str()),
        ("a0\n", "b0\n")
    );
    // As it was when the second message began: the first one's change was there, the second one's not yet.
    session.rewind_files(2).unwrap();
    assert_eq!(
        (place.read("a.txt").unwrap().as_str(), place.read("b.txt").unwrap().as_str()),
        ("a1\n", "b0\n")
    );
    // Work after a rewind has a checkpoint of its own.
    session.turn(3, &steps(&[read("a.txt"), edit("a.txt", "a1", "a3")]));
    session.rewind_files(3).unwrap();
    assert_eq!(place.read("a.txt").unwrap(), "a1\n");
    session.rewind_files(1).unwrap();
    assert_eq!(place.read("a.txt").unwrap(), "a0\n");
}

#[test]
fn what_a_command_removed_comes_back_with_its_folder_and_mode() {
    let place = Place::new();
    let script = place.write("tools/run.sh", "#!/bin/sh\necho one\n");
    set_mode(&script, 0o751);
    let mut session = place.start();
    session.turn(1, &steps(&[read("tools/run.sh"), edit("tools/run.sh", "one", "two"), bash("rm -r tools")]));
    assert!(!script.exists());
    assert_eq!(session.rewind_files(1).unwrap()["insertions"], 2);
    assert_eq!(place.read("tools/run.sh").unwrap(), "#!/bin/sh\necho one\n");
    assert_eq!(mode(&script), 0o751);
}

#[test]
fn a_changed_mode_goes_back_too() {
    let place = Place::new();
    let file = place.write("file.txt", "one\n");
    set_mode(&file, 0o600);
    let mut session = place.start();
    let calls = [
        read("file.txt"),
        edit("file.txt", "one", "two"),
        edit("file.txt", "two", "one"),
        bash("chmod 755 file.txt"),
    ];
    session.turn(1, &steps(&calls));
    let report = session.rewind_files(1).unwrap();
    assert_eq!(
        (&report["filesChanged"], &report["insertions"]),
        (&json!([place.shown("file.txt")]), &json!(0))
    );
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn a_notebook_goes_back_byte_for_byte() {
    let place = Place::new();
    let text = r#"{"cells":[{"cell_type":"code","id":"c1","metadata":{},"outputs":[],"source":["a = 1"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}"#;
    place.write("n.ipynb", text);
    let change =
        ("NotebookEdit", json!({ "notebook_path": "n.ipynb", "cell_id": "c1", "new_source": "a = 2" }));
    let mut session = place.start();
    session.turn(1, &steps(&[read("n.ipynb"), change]));
    assert!(place.read("n.ipynb").unwrap().contains("a = 2"));
    session.rewind_files(1).unwrap();
    assert_eq!(place.read("n.ipynb").unwrap(), text);
}

#[test]
fn what_no_tool_for_files_changed_stays() {
    let place = Place::new();
    place.write("refused.txt", "one\n");
    place.write("by-command.txt", "one\n");
    let mut session = place.start();
    // Not read before: the edit is refused, so nothing was about to change.
    let results =
        session.turn(1, &steps(&[edit("refused.txt", "one", "two"), bash("echo two > by-command.txt")]));
    assert!(results[0].contains("has not been read yet"), "{results:?}");
    place.write("refused.txt", "a person's change\n");
    assert_eq!(session.rewind_files(1).unwrap()["filesChanged"], json!([]));
    assert_eq!(place.read("refused.txt").unwrap(), "a person's change\n");
    assert_eq!(place.read("by-command.txt").unwrap(), "two\n");
}

#[test]
fn a_file_is_kept_once_a_message() {
    let place = Place::new();
    place.write("file.txt", "0\n");
    let mut session = place.start();
    session.turn(
        1,
        &steps(&[
            read("file.txt"),
            edit("file.txt", "0", "1"),
            edit("file.txt", "1", "2"),
            edit("file.txt", "2", "3"),
        ]),
    );
    session.turn(2, &steps(&[edit("file.txt", "3", "4"), edit("file.txt", "4", "5")]));
    session.end();
    let manifest = std::fs::read_to_string(place.side().join("checkpoints/manifest.jsonl")).unwrap();
    let kind = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["type"].as_str().unwrap().to_owned()
    };
    let kinds: Vec<String> = manifest.lines().map(kind).collect();
    let expected =
        ["message", "file", "written", "written", "written", "message", "file", "written", "written"];
    assert_eq!(kinds, expected, "{manifest}");
    let blobs = place.side().join("checkpoints/blobs");
    assert_eq!((std::fs::read_dir(&blobs).unwrap().count(), mode(&blobs)), (2, 0o700));
}
