//! Inputs that wait behind a parked call are not lost: they are in the log, and get their turns once the call has been
//! answered and its turn has ended.

use std::io::Write;
use std::process::Stdio;

use qoder_testkit::{Reply, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::parked::{SESSION, answer, resume, sandbox, turn};
use crate::turns::support::{Live, bodies, calls, wait_until};

#[test]
fn an_input_behind_a_parked_call_gets_its_turn_later() {
    let sandbox = sandbox();
    let projects = sandbox.config().join("projects");
    let server = ScriptedServer::start(Script::by(move |request, _| {
        match qoder_testkit::assistant_count(request) {
            0 => {
                // The reply comes only when the second input is in the log.
                wait_until("the second input is taken", || holds(&projects, "SECOND INPUT"));
                calls(&[("toolu_run", "Bash", json!({ "command": "mkdir made" }))])
            }
            _ => Reply::text("said"),
        }
    }));
    let mut command = turn(&sandbox, &server, &["--input-format", "stream-json", "--session-id", SESSION]);
    command.stdin(Stdio::piped());
    let mut live = Live::start_as_set(command);
    let mut stdin = live.take_stdin();
    for text in ["FIRST INPUT", "SECOND INPUT"] {
        writeln!(stdin, "{}", json!({ "type": "user", "message": { "role": "user", "content": text } }))
            .unwrap();
    }
    let parked = live.finish();
    assert_eq!(parked.code, 54, "{}\n{}", parked.stdout, parked.stderr);
    drop(stdin);
    answer(&sandbox, "toolu_run", &["allow"]);
    let finished = resume(&sandbox, &server, &[]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(finished.of("result").len(), 2, "{}", finished.stdout);
    assert!(sandbox.project().join("made").exists());
    let last: Value = bodies(&server).pop().unwrap();
    assert!(last["messages"].to_string().contains("SECOND INPUT"), "{last:#}");
}

/// True when a session's log has this text.
fn holds(projects: &std::path::Path, text: &str) -> bool {
    let folders = std::fs::read_dir(projects).into_iter().flatten().flatten();
    let mut files =
        folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files.any(|file| std::fs::read_to_string(file.path()).is_ok_and(|log| log.contains(text)))
}
