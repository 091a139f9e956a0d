//! How long sessions are kept: old ones go with everything beside them, never one in use or younger than the least time,
//! after a run at most once a day, and by a command at once.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use qoder_testkit::Sandbox;

use crate::sessions::support::{
    ID, OTHER_ID, log_of, offline, online, run, server, side_of, stalled, start, wait_for,
};

const DAY: u64 = 24 * 60 * 60;

fn make_old(sandbox: &Sandbox, id: &str, days: u64) {
    let log = std::fs::File::options().append(true).open(log_of(sandbox, id)).unwrap();
    log.set_modified(SystemTime::now() - Duration::from_secs(days * DAY)).unwrap();
}

/// A session that was last used so many days ago.
fn old(sandbox: &Sandbox, id: &str, days: u64) -> (PathBuf, PathBuf) {
    run(sandbox, &["-p", "hello", "--session-id", id]).exits(0);
    make_old(sandbox, id, days);
    (log_of(sandbox, id), side_of(sandbox, id))
}

fn stamp(sandbox: &Sandbox) -> PathBuf {
    sandbox.config().join("last-prune")
}

#[test]
fn a_run_deletes_old_sessions_with_everything_beside_them() {
    let sandbox = Sandbox::new();
    let (log, side) = old(&sandbox, ID, 31);
    std::fs::create_dir_all(side.join("checkpoints")).unwrap();
    std::fs::write(side.join("checkpoints/kept"), "x").unwrap();
    std::fs::remove_file(stamp(&sandbox)).unwrap();
    let (young, _) = old(&sandbox, OTHER_ID, 29);
    assert!(!log.exists() && !side.exists());
    assert!(young.exists());
}

#[test]
fn what_a_run_deleted_is_told() {
    let sandbox = Sandbox::new();
    old(&sandbox, ID, 40);
    std::fs::remove_file(stamp(&sandbox)).unwrap();
    run(&sandbox, &["-p", "hello"])
        .exits(0)
        .says(&["1 old sessions were deleted (general.sessionRetention)"]);
}

#[test]
fn runs_look_once_a_day() {
    let sandbox = Sandbox::new();
    let (log, _) = old(&sandbox, ID, 31);
    run(&sandbox, &["-p", "hello"]).exits(0);
    assert!(log.exists(), "the first run has looked today");
    let file = std::fs::File::options().append(true).open(stamp(&sandbox)).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(2 * DAY)).unwrap();
    run(&sandbox, &["-p", "hello"]).exits(0);
    assert!(!log.exists());
}

#[test]
fn a_session_in_use_stays() {
    let sandbox = Sandbox::new();
    let server = server(vec![stalled()]);
    let mut first = start(online(&sandbox, &server, &["-p", "one", "--session-id", ID]));
    wait_for("the request", || server.requests().len() == 1);
    make_old(&sandbox, ID, 90);
    let told = run(&sandbox, &["sessions", "prune"]).exits(0).stdout;
    assert!(told.contains(&format!("kept {ID}  a process uses it")), "{told}");
    assert!(told.contains("deleted 0 sessions"), "{told}");
    assert!(log_of(&sandbox, ID).exists());
    first.kill().unwrap();
    first.wait().unwrap();
    make_old(&sandbox, ID, 90);
    run(&sandbox, &["sessions", "prune"]).exits(0);
    assert!(sandbox.session_files().is_empty());
}

#[test]
fn a_dry_run_only_says_what_would_go() {
    let sandbox = Sandbox::new();
    let (log, _) = old(&sandbox, ID, 31);
    old(&sandbox, OTHER_ID, 1);
    let told = run(&sandbox, &["sessions", "prune", "--dry-run"]).exits(0).stdout;
    assert!(told.contains(&format!("would delete {ID}")) && !told.contains(OTHER_ID), "{told}");
    let data = run(&sandbox, &["sessions", "prune", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(
        (data["sessions"][0]["sessionId"].as_str(), data["maxAgeSeconds"].as_u64()),
        (Some(ID), Some(30 * DAY))
    );
    assert!(log.exists());
}

#[test]
fn nothing_younger_than_min_retention_goes() {
    let sandbox = Sandbox::new();
    let (log, _) = old(&sandbox, ID, 2);
    let settings = |least: &str| {
        let text = format!(
            r#"{{"general": {{"sessionRetention": {{"maxAge": "1h", "minRetention": "{least}"}}}}}}"#
        );
        std::fs::write(sandbox.config().join("settings.json"), text).unwrap();
    };
    settings("3d");
    run(&sandbox, &["sessions", "prune"]).exits(0);
    assert!(log.exists());
    settings("1d");
    run(&sandbox, &["sessions", "prune"]).exits(0);
    assert!(!log.exists());
}

#[test]
fn it_can_be_switched_off() {
    let sandbox = Sandbox::new();
    let (log, _) = old(&sandbox, ID, 400);
    let text = r#"{"general": {"sessionRetention": {"enabled": false}}}"#;
    std::fs::write(sandbox.config().join("settings.json"), text).unwrap();
    run(&sandbox, &["sessions", "prune"]).exits(0).says(&["general.sessionRetention.enabled is false"]);
    std::fs::remove_file(stamp(&sandbox)).unwrap();
    run(&sandbox, &["-p", "hello"]).exits(0);
    assert!(log.exists());
}

#[test]
fn bad_durations_are_told_and_a_project_has_no_say() {
    let sandbox = Sandbox::new();
    let (log, _) = old(&sandbox, ID, 2);
    for bad in ["soon", "30", "-1d", "1.5d", ""] {
        let text = format!(r#"{{"general": {{"sessionRetention": {{"maxAge": "{bad}"}}}}}}"#);
        let refused = run(&sandbox, &["-p", "hello", "--settings", &text]).exits(52);
        refused.says(&["general.sessionRetention.maxAge", "such as \"30d\""]);
    }
    std::fs::remove_file(stamp(&sandbox)).unwrap();
    sandbox.write(
        ".qoder/settings.json",
        r#"{"general": {"sessionRetention": {"maxAge": "0s", "minRetention": "0s"}}}"#,
    );
    let told = crate::sessions::support::finish(offline(&sandbox, &["-p", "hello", "--trust"])).exits(0);
    told.says(&["`general.sessionRetention` cannot be set by a project"]);
    assert!(log.exists());
}

#[test]
fn what_a_deletion_left_that_was_cut_off_goes_with_the_next_one() {
    let sandbox = Sandbox::new();
    let (log, side) = old(&sandbox, ID, 31);
    std::fs::remove_file(&log).unwrap();
    std::fs::write(side.join("left"), "x").unwrap();
    std::fs::remove_file(side.join("lock")).unwrap();
    let told = run(&sandbox, &["sessions", "prune"]).exits(0).stdout;
    assert!(told.contains("deleted 0 sessions") && side.exists(), "it is young: {told}");
    let long_ago = SystemTime::now() - Duration::from_secs(31 * DAY);
    std::fs::File::open(&side).unwrap().set_modified(long_ago).unwrap();
    let told = run(&sandbox, &["sessions", "prune"]).exits(0).stdout;
    assert!(told.contains(&format!("deleted {ID}")) && !side.exists(), "{told}");
}
