//! Following a log: what another process writes arrives without gap or repeat, in whatever pieces it is written.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use proptest::prelude::*;
use qoder_core::ports::LogStore;
use qoder_store::StoreError;
use qoder_store::follow::{Follow, Followed};
use qoder_store::jsonl::{Durability, JsonlStore};
use qoder_store::layout::SessionPaths;
use qoder_store::line::{self, Line, Owner};
use qoder_types::Record;
use qoder_types::record::{Interrupted, RecordBody};

const NOTE: &str = "{\"type\":\"tag\",\"tag\":\"t\",\"sessionId\":\"s\"}\n";

fn record(seq: u64, length: usize) -> Record {
    let body = RecordBody::Interrupted(Interrupted { by: qoder_types::Actor::Named("x".repeat(length)) });
    Record { seq, timestamp: String::new(), body }
}

fn text(seq: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    line::encode(&record(seq, length), Owner { session_id: "s", agent_id: None }, &mut bytes).unwrap();
    bytes
}

struct Log {
    paths: SessionPaths,
    _folder: tempfile::TempDir,
}

impl Log {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let paths = SessionPaths::new(folder.path(), "s");
        std::fs::write(&paths.log, "").unwrap();
        Self { paths, _folder: folder }
    }

    fn write(&self, bytes: &[u8]) {
        OpenOptions::new().append(true).open(&self.paths.log).unwrap().write_all(bytes).unwrap();
    }

    fn follow(&self, after: Option<u64>) -> Follow {
        Follow::open(&self.paths, after).unwrap()
    }
}

/// What has come by now: numbers of records, and 0 for lines of other programs.
fn numbers(follow: &mut Follow) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        match follow.try_next().unwrap() {
            Followed::Line(Line::Record(record)) => seen.push(record.seq),
            Followed::Line(Line::Foreign(_)) => seen.push(0),
            Followed::Nothing => return seen,
            Followed::Deleted => panic!("it is there"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_pieces_each_record_comes_once_and_in_order(
        lengths in prop::collection::vec(prop_oneof![4 => 0_usize..200, 1 => 60_000_usize..200_000], 1..12),
        pieces in prop::collection::vec(1_usize..30_000, 1..200),
        after in prop::option::of(0_u64..14),
    ) {
        let log = Log::new();
        let mut bytes = Vec::new();
        for (seq, length) in (1..).zip(&lengths) {
            bytes.extend(text(seq, *length));
        }
        let mut follow = log.follow(after);
        let (mut at, mut seen) = (0, Vec::new());
        for piece in pieces.iter().cycle() {
            let end = bytes.len().min(at + piece);
            log.write(&bytes[at..end]);
            at = end;
            seen.extend(numbers(&mut follow));
            if at == bytes.len() {
                break;
            }
        }
        let first = after.unwrap_or(0) + 1;
        prop_assert_eq!(seen, (first..=lengths.len() as u64).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_follower_keeps_up_with_a_writer_of_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let paths = SessionPaths::new(folder.path(), "s");
    let mut store = JsonlStore::open(&paths, "s", Durability::Process, |_| ()).unwrap();
    let mut follow = Follow::open(&paths, Some(10)).unwrap();
    let writer = std::thread::spawn(move || {
        for seq in 1..=500 {
            store.append(&[record(seq, 1_000)]).unwrap();
            if seq % 50 == 0 {
                std::thread::sleep(Duration::from_millis(3));
            }
        }
        store
    });
    for expected in 11..=500 {
        let next =
            tokio::time::timeout(Duration::from_secs(60), follow.next()).await.expect("it stands still");
        match next.unwrap() {
            Some(Line::Record(record)) => assert_eq!(record.seq, expected),
            other => panic!("{other:?}"),
        }
    }
    drop(writer.join().unwrap());
    std::fs::remove_file(&paths.log).unwrap();
    let end = tokio::time::timeout(Duration::from_secs(60), follow.next()).await.expect("it stands still");
    assert!(end.unwrap().is_none(), "the session was deleted");
}

#[test]
fn a_torn_record_is_waited_for_until_the_next_process_repairs_the_log() {
    let log = Log::new();
    log.write(&text(1, 10));
    let torn = text(2, 5_000);
    log.write(&torn[..2_000]);
    let mut follow = log.follow(None);
    assert_eq!(numbers(&mut follow), [1]);
    assert_eq!(numbers(&mut follow), Vec::<u64>::new());
    // The next process cuts it off and writes another record in its place.
    let mut store = JsonlStore::open(&log.paths, "s", Durability::Process, |_| ()).unwrap();
    assert_eq!(numbers(&mut follow), Vec::<u64>::new());
    store.append(&[record(2, 7_000), record(3, 10)]).unwrap();
    assert_eq!(numbers(&mut follow), [2, 3]);
}

#[test]
fn lines_of_other_programs_behind_a_torn_record_come_once() {
    let log = Log::new();
    log.write(&text(1, 10));
    log.write(&text(2, 5_000)[..2_000]);
    log.write(NOTE.as_bytes());
    let mut follow = log.follow(None);
    assert_eq!(numbers(&mut follow), [1, 0]);
    let mut store = JsonlStore::open(&log.paths, "s", Durability::Process, |_| ()).unwrap();
    store.append(&[record(2, 10)]).unwrap();
    assert_eq!(numbers(&mut follow), [2]);
    assert_eq!(numbers(&mut log.follow(Some(1))), [0, 2], "what is behind the record is not left out");
}

#[test]
fn damage_before_another_record_is_reported_with_its_line() {
    let corrupt = |follow: &mut Follow| loop {
        match follow.try_next() {
            Ok(Followed::Line(_)) => {}
            Ok(other) => panic!("{other:?}"),
            Err(StoreError::Corrupt { line, .. }) => return line,
            Err(error) => panic!("{error}"),
        }
    };
    let log = Log::new();
    log.write(&text(1, 10));
    log.write(b"no JSON\n");
    let mut follow = log.follow(None);
    assert_eq!(numbers(&mut follow), [1], "it may be repaired yet");
    log.write(&text(2, 10));
    assert_eq!(corrupt(&mut follow), 2);
    let log = Log::new();
    log.write(&text(1, 10));
    log.write(&text(3, 10));
    assert_eq!(corrupt(&mut log.follow(None)), 2, "a number is missing");
    assert!(matches!(
        Follow::open(&SessionPaths::new(std::path::Path::new("/nowhere"), "s"), None),
        Err(StoreError::Io { .. })
    ));
}
