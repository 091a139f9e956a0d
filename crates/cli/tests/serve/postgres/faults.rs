//! Faults between a node and its database: a line that is cut, silent or deaf, and a database that restarts. Nothing is lost, nothing
//! counts twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::proxy::{Line, Proxy};
use crate::serve::support::{Cluster, PATIENCE, bash, id, kind, message, toolset};

/// One node behind a line, and one beside it that is not.
fn cluster(script: Script) -> (Cluster, Proxy) {
    let mut cluster = Cluster::start(1, Some(script));
    let proxy = Proxy::start(cluster.postgres.socket());
    cluster.add_at(&proxy.url(), &[]);
    cluster.nodes.swap(0, 1);
    (cluster, proxy)
}

fn turns(count: usize) -> Script {
    let mut replies = Vec::new();
    for _ in 0..count {
        replies.push(bash("echo effect >> effects.txt"));
        replies.push(Reply::text("done"));
    }
    Script::by_assistant_count(replies)
}

fn messages(events: &[Value]) -> usize {
    events.iter().filter(|event| kind(event) == "agent.message").count()
}

/// Sends until the server takes it. One with the same key counts once.
fn send_until_taken(node: &crate::serve::support::Server, session: &str, key: &str) {
    let end = Instant::now() + PATIENCE;
    loop {
        let body = json!({ "events": [message("go")] }).to_string();
        let path = format!("/v1/sessions/{session}/events");
        let answer = node.request("POST", &path, &[("idempotency-key", key)], body.as_bytes());
        if answer.status == 200 {
            return;
        }
        assert!(answer.status == 503 && Instant::now() < end, "{answer:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_line_that_is_cut_again_and_again_loses_and_doubles_nothing() {
    let (cluster, proxy) = cluster(turns(6));
    let (node, other) = (&cluster.nodes[0], &cluster.nodes[1]);
    let session = node.session(&json!([toolset(&[])]));
    let stops = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stops.load(Ordering::SeqCst) {
                proxy.set(Line::Cut);
                proxy.set(Line::Open);
                std::thread::sleep(Duration::from_millis(70));
            }
        });
        for turn in 0..6 {
            let last = other.events(&session).last().map(id);
            let mut stream = other.stream(&session, last.as_deref());
            send_until_taken(node, &session, &format!("turn {turn}"));
            stream.until_end_of_turn();
        }
        stops.store(true, Ordering::SeqCst);
    });
    let events = other.events(&session);
    assert_eq!(messages(&events), 6, "{:?}", events.iter().map(kind).collect::<Vec<_>>());
    let results = events.iter().filter(|event| kind(event) == "agent.tool_result").count();
    assert_eq!(results, 6, "one result a call");
    let effects: usize = cluster
        .nodes
        .iter()
        .map(|node| std::fs::read_to_string(node.workspace(&session).join("effects.txt")).unwrap_or_default())
        .map(|text| text.lines().count())
        .sum();
    assert!(effects <= 6, "no effect happens twice: {effects}");
    assert!(cluster.postgres.query("SELECT count(*) FROM inbox") == "0");
}

#[test]
fn a_commit_whose_answer_is_lost_counts_once() {
    let is_first = Arc::new(AtomicBool::new(true));
    let gate = Arc::clone(&is_first);
    let script = Script::by(move |_, count| match count {
        0 if gate.load(Ordering::SeqCst) => {
            Reply::SlowFirstByte { ms: 1_500, reply: Box::new(Reply::text("the only one")) }
        }
        _ => Reply::text("another"),
    });
    let (cluster, proxy) = cluster(script);
    let (node, other) = (&cluster.nodes[0], &cluster.nodes[1]);
    let session = node.session(&json!([]));
    let mut stream = other.stream(&session, None);
    node.send(&session, &json!([message("go")])).ok();
    stream.until("span.model_request_start");
    // The reply is committed, and no one says so; then the connection ends.
    proxy.set(Line::Deaf);
    stream.until("agent.message");
    is_first.store(false, Ordering::SeqCst);
    proxy.set(Line::Cut);
    proxy.set(Line::Open);
    stream.until_end_of_turn();
    let events = other.events(&session);
    assert_eq!(messages(&events), 1, "the outcome is found, and the model is not asked again");
    assert!(!events.iter().any(|event| kind(event) == "session.status_rescheduled"), "{events:?}");
}

#[test]
fn a_node_that_is_cut_off_ends_its_work_before_another_begins() {
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = Arc::clone(&is_slow);
    let script = Script::by(move |_, count| match count {
        0 if slow.load(Ordering::SeqCst) => {
            bash("for i in $(seq 600); do date +%s%N >> beats.txt; sleep 0.05; done")
        }
        _ => Reply::text("continued"),
    });
    let (cluster, proxy) = cluster(script);
    let (node, other) = (&cluster.nodes[0], &cluster.nodes[1]);
    let session = node.session(&json!([toolset(&[])]));
    let mut stream = other.stream(&session, None);
    node.send(&session, &json!([message("go")])).ok();
    stream.until("agent.tool_use");
    let beats = || std::fs::read_to_string(node.workspace(&session).join("beats.txt")).unwrap_or_default();
    let end = Instant::now() + PATIENCE;
    while beats().is_empty() {
        assert!(Instant::now() < end, "the command does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    is_slow.store(false, Ordering::SeqCst);
    proxy.set(Line::Silent);
    stream.until("session.status_rescheduled");
    let at_takeover = beats();
    assert_eq!(node.get("/ready").status, 503, "it knows that it is cut off");
    stream.until_end_of_turn();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(beats(), at_takeover, "its command ended before another node took the session");
    let results: Vec<_> =
        other.events(&session).into_iter().filter(|event| kind(event) == "agent.tool_result").collect();
    assert_eq!(results.len(), 1, "the command is not run again: {results:?}");
    proxy.set(Line::Cut);
    proxy.set(Line::Open);
    while node.get("/ready").status != 200 {
        assert!(Instant::now() < end + PATIENCE, "the node comes back");
        std::thread::sleep(Duration::from_millis(20));
    }
    node.ask(&session, "and on");
}

#[test]
fn a_database_that_restarts_is_a_pause() {
    let script = Script::by_assistant_count(vec![Reply::text("one"), Reply::text("two")]);
    let mut cluster = Cluster::start(1, Some(script));
    let session = cluster.nodes[0].session(&json!([]));
    cluster.nodes[0].ask(&session, "go");
    let mut stream = cluster.nodes[0].stream(&session, None);
    cluster.postgres.stop();
    let refused = cluster.nodes[0].send(&session, &json!([message("again")]));
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(refused.header("retry-after"), Some("1"));
    cluster.postgres.serve();
    send_until_taken(&cluster.nodes[0], &session, "again");
    stream.until_end_of_turn();
    assert_eq!(messages(&cluster.nodes[0].events(&session)), 2, "the stream stayed open");
}
