//! Titles and tags that other programs append stay in the last 64 KiB of the log, also those that come while a session
//! runs, and a session without them gets none.

use qoder_testkit::{Reply, Sandbox};
use serde_json::json;

use crate::sessions::support::{
    ID, append, kinds, log_has, log_text, online, run_with, server, start, wait_for,
};

const TITLE: &str = "{\"type\":\"custom-title\",\"customTitle\":\"My title\",\"sessionId\":\"x\"}\n";
const NEW_TITLE: &str = "{\"type\":\"custom-title\",\"customTitle\":\"Better title\",\"sessionId\":\"x\"}\n";
const TAG: &str = "{\"type\":\"tag\",\"tag\":\"experiment\",\"sessionId\":\"x\"}\n";
const AI_TITLE: &str = "{\"type\": \"ai-title\", \"aiTitle\": \"With spaces\"}\n";

fn long() -> Reply {
    Reply::text("long ".repeat(14_000))
}

/// The last 64 KiB of the log.
fn tail(sandbox: &Sandbox) -> String {
    let log = log_text(sandbox, ID);
    String::from_utf8_lossy(&log.as_bytes()[log.len().saturating_sub(64 * 1024)..]).into_owned()
}

#[test]
fn titles_and_tags_stay_near_the_end() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("one"), Reply::text("two"), long(), long()]);
    run_with(&sandbox, &server, &["-p", "first", "--session-id", ID]).exits(0);
    append(&sandbox, ID, TITLE);
    append(&sandbox, ID, TAG);
    append(&sandbox, ID, AI_TITLE);
    append(&sandbox, ID, NEW_TITLE);
    run_with(&sandbox, &server, &["-p", "second", "--resume", ID]).exits(0);
    assert_eq!(log_text(&sandbox, ID).matches(NEW_TITLE).count(), 1, "they are near enough");
    for count in 2..4 {
        run_with(&sandbox, &server, &["-p", "more", "--resume", ID]).exits(0);
        for note in [NEW_TITLE, TAG, AI_TITLE] {
            assert_eq!(log_text(&sandbox, ID).matches(note).count(), count, "{note}");
            assert!(tail(&sandbox).contains(&format!("\n{note}")), "{note}");
        }
        assert_eq!(log_text(&sandbox, ID).matches(TITLE).count(), 1);
    }
}

#[test]
fn a_title_that_comes_while_a_turn_runs_counts() {
    let sandbox = Sandbox::new();
    let wait = json!({"command": "until test -e go; do sleep 0.01; done"});
    let server = server(vec![Reply::tool("Bash", wait), long()]);
    let arguments = ["-p", "first", "--session-id", ID, "--allowed-tools", "Bash"];
    let mut child = start(online(&sandbox, &server, &arguments));
    wait_for("the command", || log_has(&sandbox, "\"type\":\"tool-start\""));
    append(&sandbox, ID, TITLE);
    sandbox.write("go", "");
    assert!(child.wait().unwrap().success());
    assert_eq!(log_text(&sandbox, ID).matches(TITLE).count(), 2);
    assert!(log_text(&sandbox, ID).ends_with(TITLE));
}

#[test]
fn a_session_without_notes_gets_none() {
    let sandbox = Sandbox::new();
    let server = server(vec![long(), long()]);
    run_with(&sandbox, &server, &["-p", "first", "--session-id", ID]).exits(0);
    run_with(&sandbox, &server, &["-p", "second", "--resume", ID]).exits(0);
    assert_eq!(kinds(&sandbox, ID).last().unwrap(), "turn-end");
    assert!(!log_text(&sandbox, ID).contains("title"));
}
