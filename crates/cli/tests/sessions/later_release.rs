//! A log in which a later release has changed what a record means is shown and copied, never continued.

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::sessions::support::{ID, append, assert_failure, log_of, records, run, run_with, sealed, server};

#[test]
fn it_is_refused_with_its_line_and_left_alone() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("first answer"), Reply::text("second answer")]);
    run_with(&sandbox, &server, &["-p", "first prompt", "--session-id", ID]).exits(0);
    // A record of a kind that exists, such as the end of a turn.
    let count = records(&sandbox, ID).len();
    let mut later: Value = records(&sandbox, ID).pop().unwrap();
    later.as_object_mut().unwrap().remove("crc");
    later["seq"] = json!(count + 1);
    later["uuid"] = json!("33333333-3333-4333-8333-333333333333");
    later["v"] = json!(2);
    append(&sandbox, ID, &sealed(&later));
    let before = std::fs::read(log_of(&sandbox, ID)).unwrap();

    let place = format!("(schema 2, from line {} on)", count + 1);
    let text = run_with(&sandbox, &server, &["-p", "second", "--resume", ID]).exits(55);
    text.says(&["records of a later release", &place, "hint: ", "--fork-session"]);
    let json = run_with(&sandbox, &server, &["-p", "x", "--resume", ID, "--output-format", "json"]).exits(55);
    assert_failure(&json.json(), "later release");
    run(&sandbox, &["sessions", "show", ID]).exits(0);
    run(&sandbox, &["sessions", "export", ID]).exits(0);
    assert!(run(&sandbox, &["sessions", "list"]).exits(0).stdout.contains("first prompt"));
    assert_eq!(std::fs::read(log_of(&sandbox, ID)).unwrap(), before);

    let fork = run_with(&sandbox, &server, &["-p", "second", "--resume", ID, "--fork-session"]).exits(0);
    assert!(fork.stdout.contains("second answer"), "{}", fork.stdout);
    assert_eq!(std::fs::read(log_of(&sandbox, ID)).unwrap(), before);
}
