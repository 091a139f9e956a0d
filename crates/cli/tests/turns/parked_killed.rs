//! A session that waits survives kill -9 at any point: while it waits, right after the answer, and while the answered call
//! runs. No call runs twice, and none without its answer.

use qoder_testkit::{Reply, Sandbox, ScriptedServer};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::turns::parked::{SESSION, answer, explained, model, park, pending, resume, sandbox, turn};
use crate::turns::support::{Live, assert_calls_in_order, bodies, calls, records, results_in, wait_until};

fn waits_for_go() -> Vec<Reply> {
    let command = "echo ran >> ran.txt; until [ -e go ]; do sleep 0.02; done";
    vec![calls(&[("toolu_run", "Bash", json!({ "command": command }))]), Reply::text("done")]
}

fn runs(sandbox: &Sandbox) -> String {
    std::fs::read_to_string(sandbox.project().join("ran.txt")).unwrap_or_default()
}

/// Starts a turn and kills the program once the log has a record of this type.
fn kill_at(sandbox: &Sandbox, server: &ScriptedServer, arguments: &[&str], kind: &str) {
    let live = Live::start(turn(sandbox, server, arguments));
    // The log may have no complete last line while it is written.
    let has = || {
        let logs = sandbox.session_files();
        let mark = format!("\"type\":\"{kind}\"");
        logs.iter().any(|log| std::fs::read_to_string(log).is_ok_and(|text| text.contains(&mark)))
    };
    wait_until(kind, has);
    // A program that has ended already cannot be killed; both are the same to the log.
    live.signal(Signal::KILL);
    drop(live);
}

#[test]
fn while_it_waits() {
    let (sandbox, server) = (sandbox(), model(waits_for_go()));
    kill_at(&sandbox, &server, &["go", "--session-id", SESSION], "permission-ask");
    assert_eq!(pending(&sandbox), ["toolu_run"]);
    answer(&sandbox, "toolu_run", &["allow"]);
    sandbox.write("go", "");
    assert_eq!(resume(&sandbox, &server, &[]).success()["result"], "done");
    assert_eq!(runs(&sandbox), "ran\n");
    assert_eq!(records(&sandbox, "permission-ask").len(), 1);
}

#[test]
fn right_after_the_answer_was_decided_upon() {
    let (sandbox, server) = (sandbox(), model(waits_for_go()));
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_run", &["allow"]);
    kill_at(&sandbox, &server, &["--resume", SESSION], "decision");
    sandbox.write("go", "");
    assert_eq!(resume(&sandbox, &server, &[]).success()["result"], "done");
    // Killed before the start it ran once now; killed after it, its outcome is unknown and it ran once then.
    let outcome = explained(&sandbox, "toolu_run")["outcome"].clone();
    assert!(outcome == "completed" || outcome == "unknown", "{outcome}");
    assert!(runs(&sandbox).len() <= "ran\n".len(), "{}", runs(&sandbox));
    assert_calls_in_order(&sandbox);
}

#[test]
fn while_the_answered_call_runs() {
    let (sandbox, server) = (sandbox(), model(waits_for_go()));
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_run", &["allow"]);
    let live = Live::start(turn(&sandbox, &server, &["--resume", SESSION]));
    wait_until("the command runs", || !runs(&sandbox).is_empty());
    live.signal(Signal::KILL);
    drop(live);
    sandbox.write("go", "");
    assert_eq!(resume(&sandbox, &server, &[]).success()["result"], "done");
    assert_eq!(runs(&sandbox), "ran\n", "it is never run again");
    assert_eq!(explained(&sandbox, "toolu_run")["outcome"], json!("unknown"));
    let told: Vec<Value> = bodies(&server);
    let results = results_in(&told[1]);
    assert!(results[0].2 && results[0].1.starts_with("Outcome unknown"), "{results:?}");
}
