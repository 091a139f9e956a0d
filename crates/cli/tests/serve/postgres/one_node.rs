//! One node on PostgreSQL: the same server, another database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use qoder_testkit::{PostgresServer, Reply, Script};
use serde_json::{Value, json};

use crate::serve::support::{Cluster, Server, bash, confirm, custom, id, message, pending, result, toolset};

fn text(output: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_turn_with_every_kind_of_call_runs_and_survives_a_restart() {
    let script = Script::by_assistant_count(vec![
        bash("echo effect >> effects.txt"),
        Reply::ToolCalls(vec![
            ("weather".to_owned(), json!({ "city": "Oslo" })),
            ("Write".to_owned(), json!({ "file_path": "w.txt", "content": "x" })),
        ]),
        Reply::text("done"),
        Reply::text("again"),
    ]);
    let mut cluster = Cluster::start(1, Some(script));
    let server = &mut cluster.nodes[0];
    let session = server.session(&json!([toolset(&[("Write", "always_ask")]), custom("weather")]));
    let mut waits = pending(&server.ask(&session, "go"));
    server.kill();
    server.start_again();
    assert_eq!(server.status(&session), "idle");
    let mut stream = server.stream(&session, None);
    let events = server.events(&session);
    waits.sort_by_key(|wait| events.iter().position(|event| id(event) == *wait));
    server.send(&session, &json!([result(&waits[0], "sunny"), confirm(&waits[1], "allow")])).ok();
    stream.until_end_of_turn();
    assert_eq!(std::fs::read_to_string(server.workspace(&session).join("effects.txt")).unwrap(), "effect\n");
    assert!(server.workspace(&session).join("w.txt").exists());
    assert!(server.stop().success());
    server.start_again();
    server.ask(&session, "and on");
    let kinds = server.kinds(&session);
    assert_eq!(kinds.iter().filter(|kind| *kind == "agent.message").count(), 2, "{kinds:?}");
    assert!(!kinds.contains(&"session.status_rescheduled".to_owned()), "{kinds:?}");
}

#[test]
fn a_killed_node_takes_its_sessions_up_at_once_when_it_starts_again() {
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = Arc::clone(&is_slow);
    let script = Script::by(move |_, _| {
        let late = Reply::SlowFirstByte { ms: 120_000, reply: Box::new(Reply::text("late")) };
        if slow.load(Ordering::SeqCst) { late } else { Reply::text("hi") }
    });
    let mut cluster = Cluster::start(1, Some(script));
    let server = &mut cluster.nodes[0];
    let session = server.session(&json!([]));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("go")])).ok();
    let begun = stream.until("span.model_request_start");
    server.kill();
    is_slow.store(false, Ordering::SeqCst);
    server.start_again();
    let mut stream = server.stream(&session, Some(&id(&begun)));
    stream.until("session.status_rescheduled");
    stream.until_end_of_turn();
}

#[test]
fn operators_see_the_schema_the_server_and_what_to_do_about_backups() {
    let cluster = Cluster::start(1, None);
    let server = &cluster.nodes[0];
    let checked = server.operate(&["migrate", "--check"]);
    assert!(checked.status.success(), "{}", text(&checked));
    let checked = server.operate(&["doctor"]);
    assert!(checked.status.success(), "{}", text(&checked));
    for part in [
        "master key",
        "schema",
        "PostgreSQL",
        "encoding",
        "clock",
        "pooler",
        "listener",
        "durability",
        "connections",
    ] {
        assert!(text(&checked).contains(&format!("ok    {part}")), "{part}: {}", text(&checked));
    }
    let nodes = server.operate(&["nodes"]);
    assert!(text(&nodes).contains(server.address()), "{}", text(&nodes));
    let refused = server.operate(&["backup", "copy.db"]);
    assert!(!refused.status.success() && text(&refused).contains("pg_dump"), "{}", text(&refused));
    let rotated = server.operate(&["keys", "rotate"]);
    assert!(rotated.status.success(), "{}", text(&rotated));
    assert_eq!(server.operate(&["token", "list"]).status.code(), Some(0), "the new key opens what it seals");
    let rows: Value = serde_json::from_slice(&server.operate(&["doctor", "--json"]).stdout).unwrap();
    assert_eq!(rows["ok"], true);
}

#[test]
fn a_database_that_cannot_be_reached_or_is_not_one_is_named() {
    let sandbox = qoder_testkit::Sandbox::new();
    let run = |url: &str| {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_qodercli"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--database-url", url]);
        qoder_testkit::Sandbox::finish(command)
    };
    let refused = run("postgres://stranger:secret@127.0.0.1:1/x");
    assert!(text(&refused).contains("database is not available"), "{}", text(&refused));
    assert!(!text(&refused).contains("secret"), "{}", text(&refused));
    let refused = run("mysql://h/x");
    assert!(text(&refused).contains("postgres://"), "{}", text(&refused));
    let empty = PostgresServer::start();
    let mut check = sandbox.command(env!("CARGO_BIN_EXE_qodercli"));
    check.args(["serve", "migrate", "--check", "--database-url", &empty.url()]);
    let check = qoder_testkit::Sandbox::finish(check);
    assert_eq!(check.status.code(), Some(1), "{}", text(&check));
    assert!(text(&check).contains("schema 0"), "{}", text(&check));
}

#[test]
fn several_nodes_may_start_on_an_empty_database_at_once() {
    let postgres = PostgresServer::start();
    let url = postgres.url();
    let starting: Vec<_> = (0..4)
        .map(|_| {
            let url = url.clone();
            std::thread::spawn(move || Server::with(None, &[], &[("QODER_SERVE_DATABASE_URL", &url)]))
        })
        .collect();
    let nodes: Vec<Server> = starting.into_iter().map(|start| start.join().unwrap()).collect();
    let session = nodes[0].session(&json!([]));
    nodes[0].ask(&session, "hello");
    for node in &nodes {
        assert_eq!(node.get("/ready").status, 200);
    }
    assert_eq!(postgres.query("SELECT count(*) FROM migrations WHERE number = 1"), "1");
    assert_eq!(postgres.query("SELECT count(*) FROM nodes"), "4");
}
