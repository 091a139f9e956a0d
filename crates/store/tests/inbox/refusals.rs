//! What is not an entry: out of the way, with a reason, and the session continues.

use std::fs::{File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use qoder_store::inbox::{Inbox, InboxError, Item, LARGEST_ENTRY, leave};
use qoder_types::InboxOutcome;

use crate::inbox::{Place, entry, taken_ids};

const NAME: &str = "00000000000000000001-bad.json";

/// Puts something into an inbox that has one entry; answers with why it was refused.
fn refused(put: impl FnOnce(&Path)) -> (String, Place) {
    let place = Place::new();
    place.leave("good");
    put(&place.paths.inbox());
    let mut inbox = Inbox::open(&place.paths);
    let (mut reasons, mut ids) = (Vec::new(), Vec::new());
    for item in inbox.take() {
        match item {
            Item::Entry(entry) => ids.push(entry.id),
            Item::Refused { reason, .. } => reasons.push(reason),
        }
    }
    assert_eq!(ids, ["good"], "the good one is not disturbed: {reasons:?}");
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert_eq!(place.waiting().len(), 1, "what is refused does not come back");
    assert_eq!(place.names("refused").len(), 1);
    (reasons.remove(0), place)
}

#[test]
fn files_that_are_not_entries_are_refused_with_a_reason() {
    let text = serde_json::to_string(&entry("bad")).unwrap();
    let torn = text[..text.len() - 9].to_owned();
    let unknown = text.replace("\"input\"", "\"reboot\"");
    let other_id = text.replace("\"bad\"", "\"worse\"");
    let long = usize::try_from(LARGEST_ENTRY).unwrap() + 1;
    let huge = " ".repeat(long);
    for (content, expected) in [
        (torn.as_str(), "not a valid entry"),
        ("", "not a valid entry"),
        ("no JSON", "not a valid entry"),
        ("[]", "not a valid entry"),
        (unknown.as_str(), "not a valid entry"),
        (other_id.as_str(), "not the one in its name"),
        (huge.as_str(), "more than"),
    ] {
        let (reason, place) = refused(|inbox| std::fs::write(inbox.join(NAME), content).unwrap());
        assert!(reason.contains(expected), "{reason}");
        let mut waiting = leave(&place.paths, &entry("bad")).unwrap();
        let reply = waiting.wait(Duration::ZERO).expect("the sender learns of it");
        assert_eq!((reply.outcome, reply.message), (InboxOutcome::Refused, reason));
    }
}

#[test]
fn names_that_are_not_those_of_entries_are_refused() {
    let text = serde_json::to_string(&entry("bad")).unwrap();
    for name in ["bad.json", "1-b d.json", "1-.json", "x-bad.json", "00000000000000000001-bad"] {
        let (reason, _) = refused(|inbox| std::fs::write(inbox.join(name), &text).unwrap());
        assert!(reason.contains("its name"), "{name}: {reason}");
    }
}

#[test]
fn links_folders_and_pipes_are_refused_unread() {
    let (reason, _) = refused(|inbox| symlink("/dev/zero", inbox.join(NAME)).unwrap());
    assert_eq!(reason, "it is a symbolic link");
    let (reason, _) = refused(|inbox| std::fs::create_dir(inbox.join(NAME)).unwrap());
    assert_eq!(reason, "it is not a regular file");
    let (reason, _) = refused(|inbox| {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, inbox.join(NAME), fifo, mode, 0).unwrap();
    });
    assert_eq!(reason, "it is not a regular file");
}

#[test]
fn at_most_sixteen_refused_files_are_kept() {
    let place = Place::new();
    place.leave("good");
    for number in 0..40 {
        std::fs::write(place.paths.inbox().join(format!("{number:03}.json")), "x").unwrap();
    }
    let mut inbox = Inbox::open(&place.paths);
    assert_eq!(inbox.take().len(), 41);
    assert_eq!(place.names("refused").len(), 16);
    assert_eq!(place.waiting().len(), 1);
}

#[test]
fn a_folder_that_others_could_write_to_is_not_used() {
    let unsafe_folder = |spoil: fn(&Path)| {
        let place = Place::new();
        place.leave("a");
        spoil(&place.paths.inbox());
        let mut inbox = Inbox::open(&place.paths);
        let items = inbox.take();
        assert!(matches!(items.as_slice(), [Item::Refused { .. }]), "{items:?}");
        assert_eq!(inbox.take(), [], "it is said once");
        let error = leave(&place.paths, &entry("b")).unwrap_err();
        assert!(matches!(error, InboxError::Unsafe { .. }), "{error}");
        assert_eq!(error.code(), "inbox_unsafe");
    };
    unsafe_folder(|inbox| std::fs::set_permissions(inbox, Permissions::from_mode(0o770)).unwrap());
    unsafe_folder(|inbox| std::fs::set_permissions(inbox, Permissions::from_mode(0o707)).unwrap());
    unsafe_folder(|inbox| {
        let moved = inbox.with_file_name("elsewhere");
        std::fs::rename(inbox, &moved).unwrap();
        symlink(&moved, inbox).unwrap();
    });
    unsafe_folder(|inbox| {
        std::fs::remove_dir_all(inbox).unwrap();
        std::fs::write(inbox, "a file").unwrap();
    });
}

#[test]
fn an_inbox_that_is_full_takes_no_more() {
    let place = Place::new();
    place.leave("a");
    for number in 1..1_000 {
        std::fs::write(place.paths.inbox().join(format!("{number}")), "").unwrap();
    }
    let error = leave(&place.paths, &entry("b")).unwrap_err();
    assert!(matches!(error, InboxError::Full { .. }), "{error}");
}

#[test]
fn replies_that_nobody_fetches_go_after_a_day() {
    let place = Place::new();
    place.leave("a");
    let replies = place.paths.inbox().join("replies");
    std::fs::create_dir(&replies).unwrap();
    for (name, hours) in [("old.json", 25), ("new.json", 23)] {
        let file = File::create(replies.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(hours * 60 * 60)).unwrap();
    }
    let unfinished = place.paths.inbox().join(".1-1");
    let day = Duration::from_secs(25 * 60 * 60);
    File::create(&unfinished).unwrap().set_modified(SystemTime::now() - day).unwrap();
    assert_eq!(taken_ids(&mut Inbox::open(&place.paths)), ["a"]);
    assert_eq!(place.names("replies"), ["new.json"]);
    assert!(!unfinished.exists());
}
