//! What happens at the same time: one answer counts, no session is claimed twice, no input is lost while a session comes to rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use qoder_server::model::ids::NodeId;
use qoder_server::model::status::StopReason;
use qoder_server::store::DbError;
use serde_json::json;

use super::support::{Stage, behaviours, message, node_row, rest};

behaviours!(
    of_many_answers_one_counts,
    no_session_is_claimed_twice,
    an_input_during_the_park_is_taken_or_wakes,
    of_two_holders_one_appends,
    events_of_many_writers_have_no_gap,
    many_sweeps_take_a_session_over_once,
);

async fn of_many_answers_one_counts(stage: Stage) {
    for _ in 0..10 {
        let (id, claim, _) = stage.claimed().await;
        let ask = stage.asks(&claim, "ask").await.to_string();
        let answers = ["allow", "deny", "allow", "deny"].map(|word| {
            let (stage, ask) = (stage.clone(), ask.clone());
            tokio::spawn(async move {
                let answer = json!({ "type": "user.tool_confirmation", "tool_use_id": ask, "result": word });
                stage.send(id, &[answer]).await.is_ok()
            })
        });
        let counted = join_all(answers).await.into_iter().filter(|done| *done.as_ref().unwrap()).count();
        assert_eq!(counted, 1);
        assert_eq!(stage.db.inbox_after(claim.key, 1).await.unwrap().len(), 1);
        let (claims, _) = stage.db.claim(NodeId::random(), 1).await.unwrap();
        assert_eq!(claims.len(), 1);
    }
}

async fn no_session_is_claimed_twice(stage: Stage) {
    let mut wanted = Vec::new();
    for _ in 0..40 {
        let (id, key) = stage.session().await;
        stage.send(id, &[message("go")]).await.unwrap();
        wanted.push(key);
    }
    let nodes = (0..4).map(|_| {
        let stage = stage.clone();
        tokio::spawn(async move {
            let (node, mut own) = (NodeId::random(), Vec::new());
            loop {
                let (claims, _) = stage.db.claim(node, 3).await.unwrap();
                own.extend(claims.iter().map(|claim| claim.key));
                if claims.is_empty() && stage.db.next_due(NodeId([9; 16])).await.unwrap().is_none() {
                    return own;
                }
            }
        })
    });
    let mut claimed: Vec<i64> = join_all(nodes).await.into_iter().flat_map(Result::unwrap).collect();
    claimed.sort_unstable();
    assert_eq!(claimed, wanted);
}

async fn an_input_during_the_park_is_taken_or_wakes(stage: Stage) {
    for _ in 0..25 {
        let (id, claim, node) = stage.claimed().await;
        let mut park = stage.append(&claim, 0, 1);
        park.taken = 1;
        park.rest = Some(rest(1, StopReason::EndTurn));
        let (parking, sending) = (stage.clone(), stage.clone());
        let parked = tokio::spawn(async move { parking.db.append(park).await.unwrap() });
        let sent = tokio::spawn(async move { sending.send(id, &[message("more")]).await.unwrap() });
        let (parked, sent) = (parked.await.unwrap(), sent.await.unwrap());
        if parked.rests {
            assert!(sent.is_due && sent.leased_by.is_none(), "it rested, so the message wakes it");
            assert_eq!(stage.db.claim(node, 1).await.unwrap().0.len(), 1);
        } else {
            assert_eq!(parked.inbox.len(), 1, "it did not rest, and got the message");
            assert_eq!(sent.leased_by, Some(node));
        }
    }
}

async fn of_two_holders_one_appends(stage: Stage) {
    for _ in 0..15 {
        let (_, claim, _) = stage.claimed().await;
        let appends = (0..4).map(|_| {
            let (stage, append) = (stage.clone(), stage.append(&claim, 0, 2));
            tokio::spawn(async move { stage.db.append(append).await })
        });
        let done: Vec<_> = join_all(appends).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 1);
        assert!(done.iter().all(|done| done.is_ok() || *done == Err(DbError::Fenced(claim.key))), "{done:?}");
        assert_eq!(stage.kinds(claim.key).await.len(), 4);
    }
}

async fn events_of_many_writers_have_no_gap(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    let writers = (0..6).map(|_| {
        let stage = stage.clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                stage.send(id, &[message("more")]).await.unwrap();
            }
        })
    });
    let writers = join_all(writers);
    let (seat, sent) = (stage.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&sent);
    let appending = tokio::spawn(async move {
        for expected in 0..30 {
            seat.db.append(seat.append(&claim, expected, 1)).await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    // A reader that sees an event has all before it.
    let mut seen = 0;
    while sent.load(Ordering::Relaxed) < 30 {
        let events = stage.db.events_after(claim.key, seen, 100).await.unwrap().unwrap();
        assert!(events.iter().zip(seen + 1..).all(|(event, seq)| event.seq == seq), "a gap behind {seen}");
        seen += events.len() as u64;
    }
    appending.await.unwrap();
    writers.await;
    assert_eq!(stage.kinds(claim.key).await.len(), 2 + 60 + 30);
    assert_eq!(stage.db.seat(claim.key).await.unwrap().inbox.len(), 61);
}

async fn many_sweeps_take_a_session_over_once(stage: Stage) {
    let mut keys = Vec::new();
    for _ in 0..20 {
        keys.push(stage.claimed().await.1.key);
    }
    let nodes: Vec<NodeId> = (0..3).map(|_| NodeId::random()).collect();
    for node in &nodes {
        stage.db.register_node(node_row(*node, *node)).await.unwrap();
    }
    let sweeps = nodes.into_iter().map(|node| {
        let stage = stage.clone();
        tokio::spawn(async move { stage.db.void_leases(node).await.unwrap() })
    });
    let mut recovered: Vec<i64> =
        join_all(sweeps).await.into_iter().flat_map(Result::unwrap).map(|session| session.key).collect();
    recovered.sort_unstable();
    assert_eq!(recovered, keys);
    for key in keys {
        let kinds = stage.kinds(key).await;
        assert_eq!(kinds.iter().filter(|kind| *kind == "session.status_rescheduled").count(), 1);
    }
    let due = stage.db.claim(NodeId::random(), 100).await.unwrap().0;
    assert_eq!(due.len(), 20);
}
