//! Several nodes on one database: what one drives another streams and answers; what one leaves another takes over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use qoder_testkit::{Reply, Script};
use rustix::process::Signal;
use serde_json::json;

use crate::serve::support::{Cluster, PATIENCE, custom, id, kind, message, pending, result};

/// A model whose replies take longer than any test while the switch is on.
fn slow_while(is_slow: &Arc<AtomicBool>) -> Script {
    let is_slow = Arc::clone(is_slow);
    Script::by(move |_, _| {
        let late = Reply::SlowFirstByte { ms: 120_000, reply: Box::new(Reply::text("late")) };
        if is_slow.load(Ordering::SeqCst) { late } else { Reply::text("continued") }
    })
}

/// Others count the node at this address as gone, as they would 15 s after its last beat.
fn expire(cluster: &Cluster, address: &str) {
    let _ = cluster.postgres.query(&format!("UPDATE nodes SET expires_at = 0 WHERE address = '{address}'"));
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_one_node_drives_another_streams_interrupts_and_answers() {
    let is_slow = Arc::new(AtomicBool::new(false));
    let slow = Arc::clone(&is_slow);
    let script = Script::by(move |_, count| {
        let late = Reply::SlowFirstByte { ms: 120_000, reply: Box::new(Reply::text("late")) };
        match count {
            _ if slow.load(Ordering::SeqCst) => late,
            0 => Reply::tool("weather", json!({ "city": "Oslo" })),
            _ => Reply::text("done"),
        }
    });
    let cluster = Cluster::start(2, Some(script));
    let (one, other) = (&cluster.nodes[0], &cluster.nodes[1]);
    let session = one.session(&json!([custom("weather")]));
    let mut stream = other.stream(&session, None);
    one.send(&session, &json!([message("go")])).ok();
    let asked = pending(&stream.until("session.status_idle"));
    let mut here = one.stream(&session, None);
    other.send(&session, &json!([result(&asked[0], "rain")])).ok();
    stream.until_end_of_turn();
    here.until_end_of_turn();
    assert_eq!(stream.ids(), one.events(&session).iter().map(id).collect::<Vec<_>>(), "every event, once");
    is_slow.store(true, Ordering::SeqCst);
    one.send(&session, &json!([message("again")])).ok();
    stream.until("span.model_request_start");
    other.send(&session, &json!([{ "type": "user.interrupt" }])).ok();
    stream.until_end_of_turn();
    assert_eq!(other.status(&session), "idle");
    assert_eq!(other.delete(&format!("/v1/sessions/{session}")).status, 200);
    here.until("session.deleted");
    let nodes = one.operate(&["nodes"]);
    let nodes = String::from_utf8(nodes.stdout).unwrap();
    assert!(nodes.contains(one.address()) && nodes.contains(other.address()), "{nodes}");
}

#[test]
fn a_killed_node_is_taken_over_when_its_beats_stay_away() {
    let is_slow = Arc::new(AtomicBool::new(true));
    let mut cluster = Cluster::start(2, Some(slow_while(&is_slow)));
    let (sessions, mut streams): (Vec<_>, Vec<_>) = (0..3)
        .map(|_| {
            let session = cluster.nodes[0].session(&json!([]));
            let mut stream = cluster.nodes[1].stream(&session, None);
            cluster.nodes[0].send(&session, &json!([message("go")])).ok();
            stream.until("span.model_request_start");
            (session, stream)
        })
        .unzip();
    is_slow.store(false, Ordering::SeqCst);
    cluster.nodes[0].kill();
    let killed = Instant::now();
    for (session, stream) in sessions.iter().zip(&mut streams) {
        stream.until("session.status_rescheduled");
        stream.until("session.status_running");
        stream.until_end_of_turn();
        let kinds = cluster.nodes[1].kinds(session);
        assert_eq!(kinds.iter().filter(|kind| *kind == "agent.message").count(), 1, "{kinds:?}");
        assert_eq!(kinds.iter().filter(|kind| *kind == "session.status_rescheduled").count(), 1, "{kinds:?}");
    }
    assert!(killed.elapsed() > Duration::from_secs(8), "a node is not given up before its time: {killed:?}");
    let listed = cluster.nodes[1].operate(&["nodes"]);
    assert_eq!(String::from_utf8(listed.stdout).unwrap().lines().count(), 1);
    cluster.nodes[0].start_again();
    assert_eq!(cluster.nodes[0].kinds(&sessions[0]), cluster.nodes[1].kinds(&sessions[0]));
}

#[test]
fn a_frozen_node_writes_nothing_more_and_comes_back_as_another() {
    let is_slow = Arc::new(AtomicBool::new(true));
    let cluster = Cluster::start(2, Some(slow_while(&is_slow)));
    let (frozen, other) = (&cluster.nodes[0], &cluster.nodes[1]);
    let session = frozen.session(&json!([]));
    let mut stream = other.stream(&session, None);
    frozen.send(&session, &json!([message("go")])).ok();
    stream.until("span.model_request_start");
    let before =
        cluster.postgres.query(&format!("SELECT id FROM nodes WHERE address = '{}'", frozen.address()));
    frozen.signal(Signal::STOP);
    is_slow.store(false, Ordering::SeqCst);
    expire(&cluster, frozen.address());
    stream.until("session.status_rescheduled");
    stream.until_end_of_turn();
    frozen.signal(Signal::CONT);
    let row =
        || cluster.postgres.query(&format!("SELECT id FROM nodes WHERE address = '{}'", frozen.address()));
    until("the node comes back", || !row().is_empty());
    assert_ne!(row(), before, "under another id");
    until("the node is ready", || frozen.get("/ready").status == 200);
    assert_eq!(frozen.kinds(&session), other.kinds(&session));
    let kinds = other.kinds(&session);
    assert_eq!(kinds.iter().filter(|kind| *kind == "agent.message").count(), 1, "{kinds:?}");
    frozen.ask(&session, "and on");
}

#[test]
fn a_stopping_node_hands_its_sessions_over() {
    let is_slow = Arc::new(AtomicBool::new(true));
    let mut cluster = Cluster::start(2, Some(slow_while(&is_slow)));
    let session = cluster.nodes[0].session(&json!([]));
    let mut stream = cluster.nodes[1].stream(&session, None);
    cluster.nodes[0].send(&session, &json!([message("go")])).ok();
    stream.until("span.model_request_start");
    is_slow.store(false, Ordering::SeqCst);
    assert!(cluster.nodes[0].stop().success());
    stream.until_end_of_turn();
    let kinds = stream.kinds();
    assert!(!kinds.contains(&"session.status_rescheduled".to_owned()), "a stop is no fault: {kinds:?}");
    assert_eq!(cluster.postgres.query("SELECT count(*) FROM nodes"), "1");
}

#[test]
fn nodes_without_a_listener_poll() {
    let script = Script::by_assistant_count(vec![Reply::tool("weather", json!({})), Reply::text("done")]);
    let arguments = ["--listen-url", "postgres://tester@127.0.0.1:1/postgres"];
    let cluster = Cluster::with(2, Some(script), &arguments);
    let (one, other) = (&cluster.nodes[0], &cluster.nodes[1]);
    let session = one.session(&json!([custom("weather")]));
    let mut stream = other.stream(&session, None);
    one.send(&session, &json!([message("go")])).ok();
    let asked = pending(&stream.until("session.status_idle"));
    one.send(&session, &json!([result(&asked[0], "rain")])).ok();
    stream.until_end_of_turn();
    assert_eq!(stream.ids(), one.events(&session).iter().map(id).collect::<Vec<_>>());
    let log = std::fs::read_to_string(one.sandbox.home().join("serve.log")).unwrap();
    assert!(log.contains("listener_failed"), "{log}");
}

#[test]
fn roles_share_the_work() {
    let script = Script::by_assistant_count(vec![Reply::text("one"), Reply::text("two")]);
    let mut cluster = Cluster::with(1, Some(script), &["--roles", "api"]);
    cluster.add(&["--roles", "drive,sweep"]);
    let (front, back) = (&cluster.nodes[0], &cluster.nodes[1]);
    let session = front.session(&json!([]));
    assert_eq!(front.ask(&session, "go")["stop_reason"]["type"], "end_turn");
    assert_eq!(back.get(&format!("/v1/sessions/{session}")).status, 404, "it does not answer clients");
    assert_eq!(back.get("/ready").status, 200);
    let wakes = |node: &crate::serve::support::Server| {
        let metrics = String::from_utf8(node.get("/metrics").body).unwrap();
        metrics.lines().find_map(|line| line.strip_prefix("qoder_session_wakes_total ").map(str::to_owned))
    };
    assert_eq!((wakes(front).as_deref(), wakes(back).as_deref()), (Some("0"), Some("1")));
}

#[test]
fn of_answers_on_two_nodes_at_once_one_counts() {
    let script = Script::by_assistant_count(vec![Reply::tool("weather", json!({})), Reply::text("done")]);
    let cluster = Cluster::start(2, Some(script));
    let session_of = |_| cluster.nodes[0].session(&json!([custom("weather")]));
    for session in (0..8).map(session_of) {
        let asked = pending(&cluster.nodes[0].ask(&session, "weather?"));
        let mut stream = cluster.nodes[0].stream(&session, None);
        let codes: Vec<u16> = std::thread::scope(|scope| {
            let answers: Vec<_> = cluster
                .nodes
                .iter()
                .zip(["rain", "snow"])
                .map(|(node, word)| {
                    let answer = json!([result(&asked[0], word)]);
                    let session = &session;
                    scope.spawn(move || node.send(session, &answer).status)
                })
                .collect();
            answers.into_iter().map(|answer| answer.join().unwrap()).collect()
        });
        assert!(codes.contains(&200) && codes.contains(&409), "{codes:?}");
        stream.until_end_of_turn();
        let events = cluster.nodes[1].events(&session);
        let results = events.iter().filter(|event| kind(event) == "user.custom_tool_result").count();
        assert_eq!(results, 1);
    }
}

#[test]
fn a_token_that_is_revoked_beside_one_node_ends_streams_of_the_other() {
    let cluster = Cluster::start(2, None);
    let session = cluster.nodes[0].session(&json!([]));
    let token = cluster.nodes[0].token(&["--user", "bob", "--tenant", "ana"]);
    let bearer = format!("Bearer {token}");
    let path = format!("/v1/sessions/{session}/events/stream");
    let mut stream = cluster.nodes[1].open_stream(&path, &[("authorization", &bearer)]).unwrap();
    let revoked = cluster.nodes[0].operate(&["token", "revoke", token.split('-').nth(1).unwrap()]);
    assert!(revoked.status.success());
    while stream.next().is_some() {}
    assert!(stream.is_over);
}
