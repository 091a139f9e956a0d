//! `allowed-tools` of a command: rules for that turn only, never above rules that deny or ask, and only of files that are
//! trusted.

use qoder_testkit::{Reply, Sandbox};
use serde_json::json;

use crate::commands::support::{answered, bodies, call, command, model, trusted, turn};

const COMMAND: &str = "---\nallowed-tools: [\"Bash(touch:*)\"]\n---\nMake it.";

fn touches(name: &str) -> Vec<Reply> {
    vec![call("toolu_1", "Bash", json!({ "command": format!("touch {name}") })), Reply::text("done")]
}

#[test]
fn allowed_tools_hold_for_that_turn_only() {
    let sandbox = trusted();
    command(&sandbox, "make", COMMAND);
    let server = model(touches("made"));
    turn(&sandbox, &server, &["/make"]);
    assert!(!answered(&bodies(&server)[1]).1 && sandbox.project().join("made").exists());
    let mut replies = vec![Reply::text(""), Reply::text("")];
    replies.extend(touches("again"));
    let server = model(replies);
    turn(&sandbox, &server, &["-c", "once more"]);
    assert!(answered(&bodies(&server)[1]).1 && !sandbox.project().join("again").exists());
}

#[test]
fn allowed_tools_never_beat_ask_or_deny_rules() {
    for behavior in ["ask", "deny"] {
        let sandbox = trusted();
        command(&sandbox, "make", COMMAND);
        let server = model(touches("made"));
        let settings = json!({ "permissions": { behavior: ["Bash(touch made)"] } }).to_string();
        turn(&sandbox, &server, &["/make", "--settings", &settings]);
        assert!(answered(&bodies(&server)[1]).1 && !sandbox.project().join("made").exists(), "{behavior}");
    }
}

#[test]
fn commands_of_an_untrusted_folder_are_not_read() {
    let sandbox = Sandbox::new();
    command(&sandbox, "make", COMMAND);
    let server = model(touches("made"));
    let error = turn(&sandbox, &server, &["/make"]).error();
    assert!(error.contains("There is no command /make"), "{error}");
    assert!(bodies(&server).is_empty());
}
