//! Links: a change through one is a change of its target, and nothing is ever written through one that appeared later.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::checkpoints::support::{Place, bash, edit, read, steps, write};

#[test]
fn a_change_through_a_link_is_one_of_its_target() {
    let place = Place::new();
    place.write("target.txt", "one\n");
    symlink("target.txt", place.path("link.txt")).unwrap();
    let mut session = place.start();
    session.turn(1, &steps(&[read("link.txt"), edit("link.txt", "one", "two")]));
    assert_eq!(place.read("target.txt").unwrap(), "two\n");
    assert_eq!(session.rewind_files(1).unwrap()["filesChanged"], json!([place.shown("target.txt")]));
    assert_eq!(place.read("target.txt").unwrap(), "one\n");
    assert!(place.path("link.txt").is_symlink());
}

#[test]
fn nothing_is_written_through_a_link_that_appeared_later() {
    let place = Place::new();
    place.write("file.txt", "one\n");
    place.write("folder/inner.txt", "one\n");
    place.write("victim.txt", "a person's file\n");
    place.write("victims/inner.txt", "a person's file\n");
    let mut session = place.start();
    let calls = [
        read("file.txt"),
        edit("file.txt", "one", "two"),
        read("folder/inner.txt"),
        edit("folder/inner.txt", "one", "two"),
        write("created.txt", "fresh\n"),
    ];
    session.turn(1, &steps(&calls));
    for name in ["file.txt", "created.txt"] {
        std::fs::remove_file(place.path(name)).unwrap();
        symlink("victim.txt", place.path(name)).unwrap();
    }
    std::fs::remove_dir_all(place.path("folder")).unwrap();
    symlink("victims", place.path("folder")).unwrap();
    let links = json!([place.shown("created.txt"), place.shown("file.txt"), place.shown("folder/inner.txt")]);
    assert_eq!(session.preview(1)["skippedLinks"], links);
    let report = session.rewind_files(1).unwrap();
    assert_eq!((&report["canRewind"], &report["filesChanged"]), (&json!(true), &json!([])));
    assert_eq!(report["skippedLinks"], links);
    assert_eq!(place.read("victim.txt").unwrap(), "a person's file\n");
    assert_eq!(place.read("victims/inner.txt").unwrap(), "a person's file\n");
    assert!(place.path("created.txt").is_symlink());
}

#[test]
fn a_folder_in_the_place_of_a_file_stops_the_whole_rewind() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.write("b.txt", "one\n");
    let mut session = place.start();
    let calls = [
        read("a.txt"),
        edit("a.txt", "one", "two"),
        read("b.txt"),
        edit("b.txt", "one", "two"),
        bash("rm b.txt && mkdir b.txt"),
    ];
    session.turn(1, &steps(&calls));
    let preview = session.preview(1);
    assert_eq!(preview["canRewind"], false);
    assert!(preview["error"].as_str().unwrap().contains("a directory is in its place"), "{preview}");
    let error = session.rewind_files(1).unwrap_err();
    assert!(error.contains(&place.shown("b.txt")), "{error}");
    assert_eq!(place.read("a.txt").unwrap(), "two\n", "nothing was changed");
}
