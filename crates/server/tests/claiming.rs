//! Claims, sessions that lost their node, and sessions that are given up.

use qoder_server::model::ids::{NodeId, SessionId};
use qoder_server::model::status::{Status, StopReason};
use qoder_server::store::DbError;

use super::support::{Stage, behaviours, message, node_row, rest};

behaviours!(
    a_session_is_claimed_once,
    a_front_with_room_claims_with_the_message,
    the_sessions_of_a_node_that_is_gone_are_due,
    a_lease_that_is_given_back_counts_no_attempt,
    a_session_that_stops_its_node_too_often_is_quarantined,
    a_session_that_cannot_run_ends_with_an_error,
);

async fn a_session_is_claimed_once(stage: Stage) {
    let node = NodeId::random();
    assert_eq!(stage.db.next_due(NodeId([9; 16])).await.unwrap(), None);
    let mut keys = Vec::new();
    for _ in 0..3 {
        let (id, key) = stage.session().await;
        assert!(stage.send(id, &[message("go")]).await.unwrap().is_due);
        keys.push(key);
    }
    assert_eq!(stage.db.next_due(NodeId([9; 16])).await.unwrap(), Some(std::time::Duration::ZERO));
    let (first, _) = stage.db.claim(node, 2).await.unwrap();
    assert_eq!(first.iter().map(|claim| claim.key).collect::<Vec<_>>(), keys[..2], "the oldest first");
    let (second, _) = stage.db.claim(NodeId::random(), 10).await.unwrap();
    assert_eq!(second.iter().map(|claim| claim.key).collect::<Vec<_>>(), keys[2..]);
    assert!(stage.db.claim(node, 10).await.unwrap().0.is_empty());
    assert_eq!(stage.db.next_due(NodeId([9; 16])).await.unwrap(), None);
    assert_eq!((first[0].fence, first[0].record_seq), (1, 0));
}

async fn a_front_with_room_claims_with_the_message(stage: Stage) {
    let (id, key) = stage.session().await;
    let node = NodeId::random();
    let sending = stage.sending(id, &[message("go")], Some(node));
    let sent = super::support::now(stage.db.send_inputs(sending, super::support::plain()).await.unwrap());
    let claim = sent.claim.unwrap();
    assert!((claim.key, claim.fence) == (key, 1) && !sent.is_due && sent.leased_by.is_none());
    let leases = stage.db.leases(node).await.unwrap();
    assert_eq!((leases.len(), leases[0].fence, leases[0].inbox_seq), (1, 1, 1));
    let later = stage.send(id, &[message("more")]).await.unwrap();
    assert_eq!((later.claim, later.leased_by, later.is_due), (None, Some(node), false));
    assert_eq!(stage.db.leases(node).await.unwrap()[0].inbox_seq, 2);
}

async fn the_sessions_of_a_node_that_is_gone_are_due(stage: Stage) {
    let (id, claim, gone) = stage.claimed().await;
    let (parked, other, _) = stage.claimed().await;
    stage.asks(&other, "ask").await;
    let here = NodeId::random();
    stage.db.register_node(node_row(here, here)).await.unwrap();
    let recovered = stage.db.void_leases(here).await.unwrap();
    assert_eq!(recovered.len(), 1, "what only waits is left alone");
    assert_eq!(recovered[0].key, claim.key);
    assert_eq!(recovered[0].events[0].kind, "session.status_rescheduled");
    let status = |id: SessionId| {
        let stage = stage.clone();
        async move { stage.db.session(stage.tenant, id).await.unwrap().session.status }
    };
    assert_eq!((status(id).await, status(parked).await), (Status::Rescheduling, Status::Idle));
    assert!(stage.db.leases(gone).await.unwrap().is_empty());
    let refused = stage.db.release(claim.key, claim.fence, false).await;
    assert_eq!(refused, Err(DbError::Fenced(claim.key)), "there is no lease to give back");
    let (claims, reported) = stage.db.claim(here, 10).await.unwrap();
    assert_eq!((claims.len(), claims[0].fence), (1, claim.fence + 1));
    assert_eq!(reported[0].events[0].kind, "session.status_running");
    assert!(stage.db.void_leases(here).await.unwrap().is_empty(), "its own sessions are not gone");
    assert_eq!(
        stage.db.append(stage.append(&claim, 0, 1)).await,
        Err(DbError::Fenced(claim.key)),
        "the one that was gone writes nothing"
    );
    assert_eq!(
        stage.kinds(claim.key).await,
        ["user.message", "session.status_running", "session.status_rescheduled", "session.status_running"]
    );
}

async fn a_lease_that_is_given_back_counts_no_attempt(stage: Stage) {
    let (id, mut claim, node) = stage.claimed().await;
    for _ in 0..8 {
        stage.db.release(claim.key, claim.fence, false).await.unwrap();
        let (claims, recovered) = stage.db.claim(node, 1).await.unwrap();
        assert!(recovered.is_empty());
        claim = claims[0];
    }
    assert_eq!(stage.db.session(stage.tenant, id).await.unwrap().session.status, Status::Running);
    assert_eq!(stage.kinds(claim.key).await, ["user.message", "session.status_running"]);
}

/// Claims and fails until the session is not due at once.
async fn fail_until_late(stage: &Stage, claim: qoder_server::store::Claim, node: NodeId) -> u32 {
    let (mut claim, mut count) = (claim, 1);
    loop {
        stage.db.release(claim.key, claim.fence, true).await.unwrap();
        let (claims, _) = stage.db.claim(node, 1).await.unwrap();
        match claims.first() {
            Some(next) => claim = *next,
            None => return count,
        }
        count += 1;
    }
}

async fn a_session_that_stops_its_node_too_often_is_quarantined(stage: Stage) {
    let (_, claim, node) = stage.claimed().await;
    assert_eq!(fail_until_late(&stage, claim, node).await, 3, "from the third attempt on it waits");
    let until = stage.db.next_due(NodeId([9; 16])).await.unwrap().unwrap();
    assert!(
        until > std::time::Duration::from_secs(3) && until <= std::time::Duration::from_secs(5),
        "{until:?}"
    );
    let (_, progressing, node) = stage.claimed().await;
    let mut append = stage.append(&progressing, 0, 1);
    append.is_progress = true;
    stage.db.append(append).await.unwrap();
    assert_eq!(fail_until_late(&stage, progressing, node).await, 4, "progress begins the count anew");
    assert!(stage.db.quarantined().await.unwrap().is_empty());
    assert!(!stage.db.release_quarantined(SessionId::random()).await.unwrap());
}

async fn a_session_that_cannot_run_ends_with_an_error(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    let wrong = stage.db.fail(claim.key, claim.fence + 1, "x".to_owned()).await;
    assert_eq!(wrong, Err(DbError::Fenced(claim.key)));
    let events = stage.db.fail(claim.key, claim.fence, "no such model".to_owned()).await.unwrap();
    assert_eq!(events[0].kind, "session.error");
    assert!(events[0].body.contains("no such model") && events[1].kind == "session.status_idle");
    let row = stage.db.session(stage.tenant, id).await.unwrap();
    assert_eq!((row.session.status, row.stop), (Status::Idle, Some(StopReason::RetriesExhausted)));
    assert!(stage.db.inbox_after(claim.key, 0).await.unwrap().is_empty());
    let again = stage.send(id, &[message("again")]).await.unwrap();
    assert!(again.is_due, "the next message tries again");
    let (claims, _) = stage.db.claim(NodeId::random(), 1).await.unwrap();
    let mut append = stage.append(&claims[0], 0, 1);
    append.taken = 2;
    append.rest = Some(rest(2, StopReason::EndTurn));
    assert!(stage.db.append(append).await.unwrap().rests);
}
