//! Going on with finished sessions: the newest, a copy, one by its title, one whose prompt never arrived, and every way
//! to name a session that cannot be had.

use qoder_testkit::{Reply, Sandbox};
use serde_json::json;

use crate::sessions::support::{
    ID, OTHER_ID, append, assert_failure, assert_success, kinds, log_of, log_text, records, run, run_with,
    server,
};

#[test]
fn a_session_goes_on_with_a_new_prompt() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("first answer"), Reply::text("second answer")]);
    run_with(&sandbox, &server, &["-p", "one", "--session-id", ID]).exits(0);
    let second =
        run_with(&sandbox, &server, &["-p", "two", "--resume", ID, "--output-format", "json"]).exits(0);
    assert_success(&second.json(), ID, "second answer");
    let requests = server.requests();
    let (first, last) = (requests[0].json(), requests[1].json());
    assert_eq!(first["messages"].as_array().unwrap().len(), 1);
    let roles: Vec<&str> = last["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(sandbox.session_files().len(), 1, "one session, one file");
    let numbers: Vec<u64> =
        records(&sandbox, ID).iter().map(|record| record["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_finished_session_without_a_prompt_prints_its_result_again() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("the answer")]);
    run_with(&sandbox, &server, &["-p", "ask", "--session-id", ID]).exits(0);
    let log = log_text(&sandbox, ID);
    let text = run_with(&sandbox, &server, &["--resume", ID]).exits(0);
    assert_eq!(text.stdout, "the answer\n");
    let json = run_with(&sandbox, &server, &["-p", "--resume", ID, "--output-format", "json"]).exits(0);
    assert_success(&json.json(), ID, "the answer");
    assert_eq!(server.requests().len(), 1, "the model is not asked again");
    assert_eq!(log_text(&sandbox, ID), log, "nothing is added to the log");
}

#[test]
fn a_failed_turn_is_printed_again_with_its_exit_code() {
    let sandbox = Sandbox::new();
    let body = json!({"type": "error", "error": {"type": "authentication_error", "message": "bad key"}});
    let denied = Reply::HttpError { status: 401, headers: Vec::new(), body: body.to_string() };
    let server = server(vec![denied]);
    run_with(&sandbox, &server, &["-p", "ask", "--session-id", ID]).exits(41);
    let again = run_with(&sandbox, &server, &["--resume", ID, "--output-format", "json"]).exits(41);
    assert_failure(&again.json(), "bad key");
}

#[test]
fn continue_takes_the_newest_session_of_the_directory() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("a"), Reply::text("b")]);
    run_with(&sandbox, &server, &["-p", "older", "--session-id", ID]).exits(0);
    run_with(&sandbox, &server, &["-p", "newer", "--session-id", OTHER_ID]).exits(0);
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    std::fs::File::options().append(true).open(log_of(&sandbox, ID)).unwrap().set_modified(old).unwrap();
    let went_on =
        run_with(&sandbox, &server, &["-p", "more", "--continue", "--output-format", "json"]).exits(0);
    assert_success(&went_on.json(), OTHER_ID, "b");
    let empty = Sandbox::new();
    let nothing = run(&empty, &["-p", "more", "--continue"]).exits(55);
    nothing.says(&["No conversation found to continue in", &empty.project().display().to_string(), "hint:"]);
}

#[test]
fn a_fork_is_a_copy_and_the_original_stays_as_it_is() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("a"), Reply::text("b")]);
    run_with(&sandbox, &server, &["-p", "one", "--session-id", ID]).exits(0);
    let before = log_text(&sandbox, ID);
    let arguments = ["-p", "two", "--resume", ID, "--fork-session", "--session-id", OTHER_ID];
    let fork = run_with(&sandbox, &server, &[&arguments[..], &["--output-format", "json"]].concat()).exits(0);
    assert_success(&fork.json(), OTHER_ID, "b");
    assert_eq!(log_text(&sandbox, ID), before);
    let copied = records(&sandbox, OTHER_ID);
    assert_eq!(copied[0]["type"], "session-start");
    assert_eq!(copied[0]["forkedFrom"], ID);
    assert_eq!(copied[0]["cwd"], sandbox.project().display().to_string());
    assert!(copied.iter().all(|record| record["sessionId"] == OTHER_ID));
    assert_eq!(server.requests()[1].json()["messages"].as_array().unwrap().len(), 3);

    let unnamed =
        run_with(&sandbox, &server, &["-p", "three", "-c", "--fork-session", "--output-format", "json"]);
    let id = unnamed.exits(0).json()["session_id"].as_str().unwrap().to_owned();
    assert!(id != ID && id != OTHER_ID && log_of(&sandbox, &id).exists(), "{id}");
    run(&sandbox, &["-p", "x", "--fork-session"]).exits(42).says(&["--fork-session needs --resume"]);
}

#[test]
fn a_used_id_is_refused_and_an_unused_one_is_created() {
    let sandbox = Sandbox::new();
    let created = run(&sandbox, &["-p", "hello", "--session-id", ID, "--output-format", "json"]).exits(0);
    assert_eq!(created.json()["session_id"], ID);
    let before = log_text(&sandbox, ID);
    let again = run(&sandbox, &["-p", "hello", "--session-id", ID, "--output-format", "json"]).exits(42);
    assert_failure(&again.json(), "is already in use");
    again.says(&[ID, "--resume"]);
    assert_eq!(log_text(&sandbox, ID), before);
    run(&sandbox, &["-p", "hello", "--session-id", ID, "--resume", ID])
        .exits(42)
        .says(&["--session-id cannot be combined with --resume"]);
}

#[test]
fn an_id_whose_prompt_never_reached_the_log_is_started() {
    let sandbox = Sandbox::new();
    run(&sandbox, &["-p", "hello", "--session-id", ID]).exits(0);
    let text = log_text(&sandbox, ID);
    let first = text.lines().next().unwrap();
    std::fs::write(log_of(&sandbox, ID), format!("{first}\n")).unwrap();
    let without = run(&sandbox, &["--resume", ID]).exits(55);
    without.says(&["no unfinished turn", "--session-id"]);
    run(&sandbox, &["-p", "now", "--session-id", ID]).exits(0);
    assert_eq!(kinds(&sandbox, ID).iter().filter(|kind| *kind == "session-start").count(), 1);
    let prompts = records(&sandbox, ID).into_iter().filter(|record| record["origin"] == "prompt");
    assert_eq!(
        prompts.map(|record| record["message"]["content"].clone()).collect::<Vec<_>>(),
        [json!("now")]
    );
}

#[test]
fn an_unknown_session_is_told_in_every_format() {
    let sandbox = Sandbox::new();
    let reason = format!("No conversation found with session ID: {ID}");
    let text = run(&sandbox, &["-p", "continue", "--resume", ID]).exits(55);
    assert_eq!(text.stdout, "");
    text.says(&[&reason, "hint: `qodercli sessions list`"]);
    for format in ["json", "stream-json"] {
        let run = run(&sandbox, &["-p", "continue", "--resume", ID, "--output-format", format]).exits(55);
        assert_failure(&run.json(), &reason);
        assert_eq!(run.stdout.lines().count(), 1);
    }
    run(&sandbox, &["-p", "continue", "--resume", "no such title"]).exits(55).says(&["no such title"]);
    assert!(sandbox.session_files().is_empty());
}

#[test]
fn a_session_of_another_project_says_which() {
    let sandbox = Sandbox::new();
    let other = sandbox.home().join("other place");
    std::fs::create_dir(&other).unwrap();
    run(&sandbox, &["-p", "hello", "--session-id", ID]).exits(0);
    let there = other.display().to_string();
    let asked = run(&sandbox, &["-p", "continue", "--resume", ID, "--cwd", &there]).exits(55);
    asked.says(&[ID, &format!("it belongs to {}", sandbox.project().display())]);
    run(&sandbox, &["-p", "continue", "--resume", ID]).exits(0);
}

#[test]
fn a_directory_is_the_same_by_every_name() {
    let sandbox = Sandbox::new();
    let link = sandbox.home().join("link");
    std::os::unix::fs::symlink(sandbox.project(), &link).unwrap();
    run(&sandbox, &["-p", "hello", "--session-id", ID]).exits(0);
    let by_link = link.display().to_string();
    let resumed = run(&sandbox, &["--resume", ID, "--cwd", &by_link, "--output-format", "json"]).exits(0);
    assert_eq!(resumed.json()["session_id"], ID);
    assert_eq!(sandbox.session_files().len(), 1);
}

#[test]
fn a_title_stands_for_its_session() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("a"), Reply::text("b")]);
    run_with(&sandbox, &server, &["-p", "one", "--session-id", ID]).exits(0);
    let title = json!({"type": "custom-title", "customTitle": "My title", "sessionId": ID});
    append(&sandbox, ID, &format!("{title}\n"));
    let titled =
        run_with(&sandbox, &server, &["-p", "two", "--resume", "My title", "--output-format", "json"]);
    assert_success(&titled.exits(0).json(), ID, "b");
    assert!(log_text(&sandbox, ID).contains(&title.to_string()), "the line of the other program is kept");
}

#[test]
fn a_session_that_is_not_kept_leaves_nothing() {
    let sandbox = Sandbox::new();
    let temporary = sandbox.home().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = crate::sessions::support::offline(
        &sandbox,
        &["-p", "call Bash with {\"command\": \"seq 100000\"}", "--no-session-persistence", "--yolo"],
    );
    command.env("TMPDIR", &temporary);
    let run = crate::sessions::support::finish(command).exits(0);
    assert!(run.stdout.starts_with("Bash returned:"), "{}", run.stdout);
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "and nothing in the temporary folder");
    assert!(!sandbox.config().exists(), "nothing is written under the configuration directory");
    let conflict =
        crate::sessions::support::run(&sandbox, &["-p", "x", "--no-session-persistence", "--continue"]);
    conflict.exits(42).says(&["--no-session-persistence cannot be combined"]);
}
