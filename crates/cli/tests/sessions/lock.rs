//! One session, one writer: a second process is refused with an error that names the holder, and the lock is free as soon as
//! its holder is dead.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};

use crate::sessions::support::{
    ID, assert_failure, assert_success, log_text, online, run, run_with, side_of, stalled, start, wait_for,
};

#[test]
fn a_second_process_is_refused_and_told_who_is_first() {
    let sandbox = Sandbox::new();
    let server =
        ScriptedServer::start(Script::by(
            |_, number| {
                if number == 0 { stalled() } else { Reply::text("now me") }
            },
        ));
    let mut first = start(online(&sandbox, &server, &["-p", "wait", "--session-id", ID]));
    wait_for("the request", || !server.requests().is_empty());
    let before = log_text(&sandbox, ID);
    let holder = format!("Session {ID} is in use by process {}", first.id());

    let second = run_with(&sandbox, &server, &["-p", "me too", "--resume", ID]).exits(55);
    assert_eq!(second.stdout, "");
    second.says(&[&holder, "--fork-session"]);
    for format in ["json", "stream-json"] {
        let arguments = ["-p", "me too", "--resume", ID, "--output-format", format];
        assert_failure(&run_with(&sandbox, &server, &arguments).exits(55).json(), &holder);
    }
    run_with(&sandbox, &server, &["-p", "x", "--session-id", ID]).exits(55).says(&[&holder]);
    run(&sandbox, &["sessions", "delete", ID]).exits(55).says(&[&holder]);
    assert_eq!(log_text(&sandbox, ID), before, "the refused processes changed nothing");
    assert!(first.try_wait().unwrap().is_none(), "the first continues");
    assert_eq!(server.requests().len(), 1);

    first.kill().unwrap();
    first.wait().unwrap();
    assert!(side_of(&sandbox, ID).join("lock").exists(), "the file stays, the lock does not");
    let freed = run_with(&sandbox, &server, &["--resume", ID, "--output-format", "json"]).exits(0);
    assert_success(&freed.json(), ID, "now me");
}

#[test]
fn reading_and_copying_need_no_lock() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by(|_, number| match number {
        0 => Reply::text("a"),
        1 => stalled(),
        _ => Reply::text("copied"),
    }));
    run_with(&sandbox, &server, &["-p", "one", "--session-id", ID]).exits(0);
    let mut first = start(online(&sandbox, &server, &["-p", "two", "--resume", ID]));
    wait_for("the second request", || server.requests().len() == 2);
    let shown = run(&sandbox, &["sessions", "show", ID]).exits(0);
    assert!(shown.stdout.contains("unfinished: continue with --resume"), "{}", shown.stdout);
    assert!(run(&sandbox, &["sessions", "list"]).exits(0).stdout.starts_with(ID));
    let fork = ["-p", "three", "--resume", ID, "--fork-session", "--output-format", "json"];
    let copy = run_with(&sandbox, &server, &fork).exits(0).json();
    assert_eq!(copy["result"], "copied");
    first.kill().unwrap();
    first.wait().unwrap();
}
