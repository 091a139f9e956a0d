//! When the holder of the lease finds out: soon, but not before the session has run for a moment.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use futures::FutureExt;
use qoder_store::inbox::{Inbox, leave};

use crate::inbox::{Place, entry, reply, taken_ids};

/// A guard against hanging.
async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("nothing has arrived")
}

#[tokio::test]
async fn what_is_left_later_is_announced_also_when_there_was_no_folder() {
    let place = Place::new();
    let mut inbox = Inbox::open(&place.paths);
    assert!(inbox.arrived().now_or_never().is_none());
    // The watch begins before the folder is there.
    assert!(tokio::time::timeout(Duration::from_millis(100), inbox.arrived()).await.is_err());
    for id in ["a", "b", "c"] {
        place.leave(id);
        let mut taken = Vec::new();
        while taken.is_empty() {
            within(inbox.arrived()).await;
            taken = taken_ids(&mut inbox);
        }
        assert_eq!(taken, [id]);
        inbox.settle(&reply(id)).unwrap();
    }
    assert_eq!(place.waiting(), Vec::<String>::new());
}

#[tokio::test]
async fn what_waited_before_the_session_was_opened_is_announced() {
    let place = Place::new();
    place.leave("a");
    let mut inbox = Inbox::open(&place.paths);
    within(inbox.arrived()).await;
    assert_eq!(taken_ids(&mut inbox), ["a"]);
}

#[tokio::test]
async fn more_than_one_look_takes_is_announced_again() {
    let place = Place::new();
    let ids: Vec<String> = (0..150).map(|number| format!("id-{number}")).collect();
    ids.iter().for_each(|id| place.leave(id));
    let mut inbox = Inbox::open(&place.paths);
    let mut taken = Vec::new();
    while taken.len() < ids.len() {
        within(inbox.arrived()).await;
        taken.extend(taken_ids(&mut inbox));
    }
    assert_eq!(taken, ids);
}

#[tokio::test]
async fn a_short_run_does_not_touch_the_inbox() {
    let place = Place::new();
    place.leave("a");
    // Opening a folder with unsafe permissions would be an error.
    std::fs::set_permissions(place.paths.inbox(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let inbox = Inbox::open(&place.paths);
    assert!(inbox.arrived().now_or_never().is_none(), "it waits before it looks");
    drop(inbox);
}

#[test]
fn whoever_left_an_entry_hears_what_became_of_it() {
    let place = Place::new();
    let mut ticket = leave(&place.paths, &entry("a")).unwrap();
    assert_eq!(ticket.wait(Duration::from_millis(5)), None);
    let paths = place.paths.clone();
    let holder = std::thread::spawn(move || {
        let mut inbox = Inbox::open(&paths);
        assert_eq!(taken_ids(&mut inbox), ["a"]);
        inbox.settle(&reply("a")).unwrap();
    });
    assert_eq!(ticket.wait(Duration::from_secs(60)), Some(reply("a")));
    holder.join().unwrap();
    assert_eq!(place.names("replies"), Vec::<String>::new(), "a reply is removed when it is read");
    let mode = |path: std::path::PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(place.paths.inbox()), 0o700);
    assert_eq!(mode(place.paths.inbox().join("replies")), 0o700);
}

#[test]
fn entries_of_many_processes_all_arrive() {
    let place = Place::new();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let place = &place;
            scope.spawn(move || (0..10).for_each(|number| place.leave(&format!("{writer}-{number}"))));
        }
    });
    let mut inbox = Inbox::open(&place.paths);
    let mut ids = taken_ids(&mut inbox);
    ids.extend(taken_ids(&mut inbox));
    for writer in 0..8 {
        let of_writer = ids.iter().filter(|id| id.starts_with(&format!("{writer}-")));
        let expected: Vec<String> = (0..10).map(|number| format!("{writer}-{number}")).collect();
        assert_eq!(of_writer.cloned().collect::<Vec<_>>(), expected, "in the order of their writer");
    }
}
