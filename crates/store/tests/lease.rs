//! Who holds a session: found out without waiting, and an older holder can append nothing.

use std::time::{Duration, SystemTime};

use qoder_core::ports::{LogStore, LogStoreError};
use qoder_store::StoreError;
use qoder_store::jsonl::{Durability, JsonlStore};
use qoder_store::layout::SessionPaths;
use qoder_store::lease::holder;
use qoder_types::Record;
use qoder_types::record::{Interrupted, RecordBody};

fn record(seq: u64) -> Record {
    let body = RecordBody::Interrupted(Interrupted { by: qoder_types::Actor::Named("x".repeat(100)) });
    Record { seq, timestamp: String::new(), body }
}

fn open(paths: &SessionPaths) -> Result<JsonlStore, StoreError> {
    JsonlStore::open(paths, "s", Durability::Process, |_| ())
}

#[test]
fn a_holder_is_known_by_its_process_and_since_when() {
    let folder = tempfile::tempdir().unwrap();
    let paths = SessionPaths::new(folder.path(), "s");
    assert_eq!(holder(&paths), None, "there is no session");
    let before = SystemTime::now() - Duration::from_secs(2);
    let store = open(&paths).unwrap();
    let found = holder(&paths).unwrap();
    assert_eq!(found.pid, Some(std::process::id()));
    assert!(found.since.is_some_and(|since| since > before), "{found:?}");
    drop(store);
    assert_eq!(holder(&paths), None, "the file stays, the lease does not");
}

#[test]
fn looking_for_a_holder_never_keeps_another_process_from_opening() {
    let folder = tempfile::tempdir().unwrap();
    let paths = SessionPaths::new(folder.path(), "s");
    drop(open(&paths).unwrap());
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = holder(&paths);
                    std::thread::sleep(Duration::from_micros(50));
                }
            });
        }
        let opened: Vec<_> = (0..200).map(|_| open(&paths).map(drop)).collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        opened.into_iter().for_each(|opened| opened.unwrap());
    });
}

#[test]
fn two_who_append_while_the_lease_changes_hands_leave_a_log_without_gap_or_repeat() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let paths = SessionPaths::new(folder.path(), "s");
        let mut older = open(&paths).unwrap();
        let (newer, fenced) = std::thread::scope(|scope| {
            let appending =
                scope.spawn(move || (1..100_000).find_map(|seq| older.append(&[record(seq)]).err()));
            std::thread::sleep(Duration::from_micros(300));
            let mut last = 0;
            let mut newer = JsonlStore::take_over(&paths, "s", Durability::Process, |line| {
                last = match line {
                    qoder_store::line::Line::Record(record) => record.seq,
                    qoder_store::line::Line::Foreign(_) => last,
                };
            })
            .unwrap();
            newer.append(&[record(last + 1)]).unwrap();
            newer.append(&[record(last + 2)]).unwrap();
            (last + 2, appending.join().unwrap())
        });
        assert!(matches!(fenced, Some(LogStoreError::Fenced { .. })), "{fenced:?}");
        let scan = qoder_store::scan(&paths, |_| ()).expect("the log is whole");
        assert_eq!((scan.last_seq, scan.torn), (newer, 0));
    }
}

#[test]
fn a_removed_lock_file_does_not_end_a_session_that_nobody_took_over() {
    let folder = tempfile::tempdir().unwrap();
    let paths = SessionPaths::new(folder.path(), "s");
    let mut store = open(&paths).unwrap();
    std::fs::remove_file(paths.lock()).unwrap();
    store.append(&[record(1)]).unwrap();
    let _other = open(&paths).unwrap();
    assert!(matches!(store.append(&[record(2)]), Err(LogStoreError::Fenced { .. })));
    assert!(matches!(store.append(&[record(2)]), Err(LogStoreError::Ended { .. })));
}
