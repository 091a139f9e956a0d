//! Pieces of replies for subscribers of one node while another one drives the session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use crate::serve::support::{Cluster, PATIENCE, Server, id, kind, message};

const DELTAS: &str = "?event_deltas%5B%5D=agent.message";

/// Waits until someone asks this node for the events or pieces of a session.
fn until_watched(node: &Server) {
    let end = Instant::now() + PATIENCE;
    loop {
        let metrics = String::from_utf8(node.get("/metrics").body).unwrap();
        if metrics.lines().any(|line| line == "qoder_watched_sessions 1") {
            return;
        }
        assert!(Instant::now() < end, "no one asks for pieces");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A model that answers the request with this number as soon as the gate is as high.
fn gated(gate: &Arc<AtomicUsize>) -> Script {
    let gate = Arc::clone(gate);
    Script::by(move |_, count| {
        let end = Instant::now() + PATIENCE;
        while gate.load(Ordering::SeqCst) <= count && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
        let pieces = || Box::new(Reply::Deltas { count: 400, text: "ab ".to_owned() });
        match count {
            0 => *pieces(),
            _ if gate.load(Ordering::SeqCst) > 2 => Reply::text("continued"),
            _ => Reply::PacedStream { events: 1, ms: 20, reply: pieces() },
        }
    })
}

/// The texts of pieces, by the event that they belong to.
fn text_of(pieces: &[Value], event: &str) -> String {
    let of = pieces.iter().filter(|piece| piece["event_id"] == event);
    of.map(|piece| piece["delta"]["content"]["text"].as_str().unwrap()).collect()
}

#[test]
fn pieces_reach_subscribers_of_another_node_and_a_kill_between_them_changes_no_event() {
    let gate = Arc::new(AtomicUsize::new(0));
    let mut cluster = Cluster::start(2, Some(gated(&gate)));
    let session = cluster.nodes[0].session(&json!([]));
    let mut stream = cluster.nodes[1].stream_with(&session, None, DELTAS);
    let mut plain = cluster.nodes[1].stream(&session, None);
    cluster.nodes[0].send(&session, &json!([message("go")])).ok();
    until_watched(&cluster.nodes[0]);
    gate.store(1, Ordering::SeqCst);
    let whole = stream.until("agent.message");
    let started = stream.seen.iter().find(|event| kind(event) == "event_start").expect("a piece came");
    assert_eq!(started["event"]["id"], whole["id"], "{started}");
    let text = whole["content"][0]["text"].as_str().unwrap();
    let pieces = text_of(&stream.seen, whole["id"].as_str().unwrap());
    assert!(!pieces.is_empty() && text.starts_with(&pieces), "{} of {}", pieces.len(), text.len());
    stream.until_end_of_turn();

    cluster.nodes[0].send(&session, &json!([message("again")])).ok();
    gate.store(2, Ordering::SeqCst);
    stream.until("event_delta");
    let cut = stream.until("event_delta")["event_id"].as_str().unwrap().to_owned();
    cluster.nodes[0].kill();
    gate.store(3, Ordering::SeqCst);
    let _ = cluster.postgres.query("UPDATE nodes SET expires_at = 0 WHERE address <> ''");
    stream.until("session.status_rescheduled");
    stream.until_end_of_turn();
    plain.until_end_of_turn();
    plain.until_end_of_turn();
    let events = cluster.nodes[1].events(&session);
    let stored: Vec<String> = events.iter().map(id).collect();
    assert!(!stored.contains(&cut), "the reply that was cut is not stored");
    let seen: Vec<String> =
        stream.seen.iter().filter(|event| !kind(event).starts_with("event_")).map(id).collect();
    assert_eq!(seen, stored[stored.len() - seen.len()..], "every event, once, in order");
    assert_eq!(plain.ids(), seen, "who asked for no pieces got none");
    let messages = events.iter().filter(|event| kind(event) == "agent.message").count();
    assert_eq!(messages, 2);
}

#[test]
fn only_nodes_of_the_cluster_read_pieces() {
    let cluster = Cluster::start(1, None);
    let node = &cluster.nodes[0];
    let bearer = format!("Bearer {}", node.token);
    for headers in [
        vec![],
        vec![("authorization", bearer.as_str())],
        vec![("authorization", "Qoder-Node 99999999999.AA")],
    ] {
        assert_eq!(node.bare("GET", "/internal/sessions/1/pieces", &headers, b"").status, 401, "{headers:?}");
    }
    assert_eq!(node.get("/v1/internal/sessions/1/pieces").status, 404);
}
