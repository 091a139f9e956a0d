//! `kill -9` around checkpoints: what is to be changed is on the disk before it is changed, so whenever the process dies,
//! going back finds every file as it was; and a rewind that dies in the middle is repeated and comes to its end.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::checkpoints::host::QODERCLI;
use crate::checkpoints::support::{Place, SESSION, edit, id, read, steps, write};

const FILES: usize = 12;
const HANG_LIMIT: Duration = Duration::from_secs(60);

fn name(number: usize) -> String {
    format!("file-{number}.txt")
}

fn original(number: usize) -> String {
    format!("line of {number}\n").repeat(20)
}

/// Waits until something is so.
fn wait_until(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < HANG_LIMIT, "it never came to that");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn lines(manifest: &Path) -> usize {
    std::fs::read_to_string(manifest).map_or(0, |text| text.lines().count())
}

/// Every file as it was, and nothing that was created.
fn assert_restored(place: &Place) {
    for number in 0..FILES {
        assert_eq!(place.read(&name(number)).unwrap(), original(number), "{}", name(number));
        assert_eq!(place.read(&format!("new-{number}.txt")), None);
    }
}

fn prompt() -> String {
    let calls: Vec<(&str, Value)> = (0..FILES)
        .flat_map(|number| {
            let file = name(number);
            let first = format!("line of {number}\n");
            let all = original(number);
            [
                read(&file),
                edit(&file, &all, &all.replacen(&first, "changed\n", 1)),
                write(&format!("new-{number}.txt"), "fresh\n"),
            ]
        })
        .collect();
    steps(&calls)
}

#[test]
fn killed_at_any_file_everything_goes_back() {
    for killed_after in [2, 3, 7, 12, 18, 24] {
        let place = Place::new();
        for number in 0..FILES {
            place.write(&name(number), &original(number));
        }
        let mut session = place.start();
        session.turn(1, "alpha");
        let manifest = place.side().join("checkpoints/manifest.jsonl");
        session.send(2, &prompt());
        // The line of the file is there; whether the file was changed is not known.
        wait_until(|| lines(&manifest) >= killed_after);
        drop(session);
        let output = place.sandbox.run(QODERCLI, &["sessions", "rewind", SESSION, "--to", &id(2)]);
        assert!(output.status.success(), "{output:?}");
        assert_restored(&place);
        // The turn that died is no longer part of the conversation, and the session continues.
        let mut session = place.resume();
        session.turn(3, "beta");
        assert_eq!(place.last_request(), ["alpha", "done", "beta"]);
    }
}

#[test]
fn a_rewind_that_was_killed_is_repeated_to_its_end() {
    let place = Place::new();
    for number in 0..FILES {
        place.write(&name(number), &original(number));
    }
    let mut session = place.start();
    session.turn(1, &prompt());
    session.end();
    let manifest = place.side().join("checkpoints/manifest.jsonl");
    let before = lines(&manifest);
    for killed_after in [1, 5, 2 * FILES + 1] {
        let mut command = place.sandbox.command(QODERCLI);
        command.args(["sessions", "rewind", SESSION, "--to", &id(1), "--scope", "files"]);
        let mut child = command.spawn().unwrap();
        let enough = |child: &mut std::process::Child| child.try_wait().unwrap().is_some();
        let start = Instant::now();
        while lines(&manifest) < before + killed_after && !enough(&mut child) {
            assert!(start.elapsed() < HANG_LIMIT, "it never came to that");
        }
        // It may have come to its end before.
        let _ = child.kill();
        child.wait().unwrap();
    }
    let output = place.sandbox.run(QODERCLI, &["sessions", "rewind", SESSION, "--to", &id(1)]);
    assert!(output.status.success(), "{output:?}");
    assert_restored(&place);
}
