//! A question of a subagent waits like one of the session itself: `permissions pending` prints it with its agent,
//! `permissions answer` takes the answer, and `--resume` continues the agent from its log and then its parent.

use qoder_testkit::{Reply, Sandbox, ScriptedServer};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::turns::agents::{agent, child_logs, family, lines};
use crate::turns::parked::{self, SESSION, permissions, resume, sandbox};
use crate::turns::support::{Live, bodies, calls, records, results_in, wait_until};

const ALLOWED: [&str; 2] = ["--allowed-tools", "Agent"];

fn write() -> (&'static str, &'static str, Value) {
    ("toolu_write", "Write", json!({ "file_path": "made.txt", "content": "x" }))
}

fn server(agents: &[(&'static str, &'static str, Value)]) -> ScriptedServer {
    let parent = vec![calls(agents), Reply::text("done"), Reply::text("heard of it")];
    family(parent, vec![calls(&[write()]), Reply::text("answer of the child")])
}

fn rows(sandbox: &Sandbox) -> Vec<Value> {
    let finished = permissions(sandbox, &["pending", SESSION, "--json"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

fn made(sandbox: &Sandbox) -> bool {
    sandbox.project().join("made.txt").exists()
}

#[test]
fn it_is_shown_answered_and_resumed() {
    let (sandbox, server) = (sandbox(), server(&[agent("toolu_agent", &json!({}))]));
    let finished = parked::park(&sandbox, &server, &ALLOWED);
    let pending = rows(&sandbox);
    assert_eq!(pending.len(), 1, "{pending:?}");
    let id = pending[0]["agentId"].as_str().unwrap().to_owned();
    assert_eq!(
        (&pending[0]["toolUseId"], &pending[0]["kind"]),
        (&json!("toolu_write"), &json!("permission"))
    );
    assert!(finished.stderr.contains(&format!("--agent {id}")), "{}", finished.stderr);
    let text = permissions(&sandbox, &["pending", SESSION]);
    assert!(text.stdout.contains(&id), "{}", text.stdout);
    // Without an answer it waits again, and asks no model.
    let asked = bodies(&server).len();
    assert_eq!(resume(&sandbox, &server, &ALLOWED).code, 54);
    assert_eq!(bodies(&server).len(), asked);
    // It is the only one, so it need not be named.
    parked::answer(&sandbox, "toolu_write", &["allow", "--by", "maria"]);
    assert_eq!(rows(&sandbox), Vec::<Value>::new());
    let again = permissions(&sandbox, &["answer", SESSION, "toolu_write", "deny", "--agent", &id]);
    assert!(again.code == 42 && again.stderr.contains("answered before: allow by maria"), "{}", again.stderr);
    assert_eq!(resume(&sandbox, &server, &ALLOWED).success()["result"], "done");
    assert!(made(&sandbox));
    let told = results_in(bodies(&server).last().unwrap());
    assert_eq!(told, [("toolu_agent".to_owned(), "answer of the child".to_owned(), false)]);
    assert_eq!((records(&sandbox, "task-start").len(), records(&sandbox, "task-end").len()), (1, 1));
    let why = parked::explained(&sandbox, "toolu_write");
    assert_eq!((&why["agentId"], &why["answer"]["by"]), (&json!(id), &json!("maria")));
}

#[test]
fn several_agents_wait_with_the_same_call_and_each_is_named() {
    let sandbox = sandbox();
    let server = server(&[agent("toolu_a", &json!({})), agent("toolu_b", &json!({}))]);
    parked::park(&sandbox, &server, &ALLOWED);
    let agents: Vec<String> =
        rows(&sandbox).iter().map(|row| row["agentId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(agents.len(), 2);
    let unclear = permissions(&sandbox, &["answer", SESSION, "toolu_write", "allow"]);
    assert!(unclear.code == 42 && unclear.stderr.contains("--agent"), "{}", unclear.stderr);
    for id in &agents {
        parked::answer(&sandbox, "toolu_write", &["deny", "--agent", id, "--message", "not now"]);
    }
    resume(&sandbox, &server, &ALLOWED).success();
    assert!(!made(&sandbox));
    assert_eq!(child_logs(&sandbox).len(), 2);
    assert_eq!(results_in(bodies(&server).last().unwrap()).len(), 2);
}

#[test]
fn one_in_the_background_waits_after_the_turn() {
    let background = agent("toolu_agent", &json!({ "run_in_background": true }));
    let (sandbox, server) = (sandbox(), server(&[background]));
    let finished = parked::park(&sandbox, &server, &ALLOWED);
    assert_eq!(finished.of("result")[0]["result"], "done", "the turn itself has ended");
    parked::answer(&sandbox, "toolu_write", &["allow"]);
    let finished = resume(&sandbox, &server, &ALLOWED);
    assert_eq!(finished.success()["result"], "heard of it", "{}", finished.stdout);
    assert!(made(&sandbox));
    assert_eq!(records(&sandbox, "task-end")[0]["status"], "completed");
}

#[test]
fn a_process_that_is_killed_while_it_waits_loses_nothing() {
    let (sandbox, server) = (sandbox(), server(&[agent("toolu_agent", &json!({}))]));
    let arguments = [&["go", "--session-id", SESSION], &ALLOWED[..]].concat();
    let live = Live::start(parked::turn(&sandbox, &server, &arguments));
    let has_asked = || {
        let logs = child_logs(&sandbox);
        logs.iter().any(|log| std::fs::read_to_string(log).is_ok_and(|text| text.contains("permission-ask")))
    };
    wait_until("the agent asks", has_asked);
    live.signal(Signal::KILL);
    drop(live);
    assert_eq!(rows(&sandbox).len(), 1);
    parked::answer(&sandbox, "toolu_write", &["allow"]);
    assert_eq!(resume(&sandbox, &server, &ALLOWED).success()["result"], "done");
    assert!(made(&sandbox));
    let asks = lines(&child_logs(&sandbox)[0]).into_iter().filter(|line| line["type"] == "permission-ask");
    assert_eq!(asks.count(), 1, "it is asked once");
}

#[test]
fn a_call_of_the_session_takes_no_result() {
    let (sandbox, server) = (sandbox(), parked::model(vec![calls(&[write()]), Reply::text("done")]));
    parked::park(&sandbox, &server, &[]);
    for (arguments, problem) in [
        (&["result", "--content", "x"][..], "waits for permission"),
        (&["result"], "needs `--content`"),
        (&["allow", "--content", "x"], "can only be used with `result`"),
    ] {
        let finished = permissions(&sandbox, &[&["answer", SESSION, "toolu_write"], arguments].concat());
        assert!(finished.code == 42 && finished.stderr.contains(problem), "{}", finished.stderr);
    }
}
