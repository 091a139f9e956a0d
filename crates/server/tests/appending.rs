//! Appending: one commit with everything, under a fence, and once however often it is tried.

use qoder_server::model::ids::NodeId;
use qoder_server::model::status::{Status, StopReason};
use qoder_server::store::{DbError, RecordRow};
use serde_json::json;

use super::support::{Stage, behaviours, event, message, record, rest};

behaviours!(
    everything_of_a_commit_is_there,
    an_older_lease_or_another_place_appends_nothing,
    a_session_rests_only_when_nothing_was_left_meanwhile,
    what_is_repeated_counts_once,
    rest_is_news_once,
    parts_are_kept_once_and_put_back,
    a_turn_that_begins_by_itself_is_reported,
);

async fn everything_of_a_commit_is_there(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    let before = stage.db.seat(claim.key).await.unwrap();
    assert_eq!((before.inbox.len(), before.inbox_seq, before.records.len()), (1, 1, 0));
    assert_eq!((before.tenant, before.data_key), (stage.tenant, vec![7; 32]));
    assert_eq!(before.session.sealed, Some(vec![1, 2, 3]));
    let mut append = stage.append(&claim, 0, 3);
    append.taken = 1;
    append.usage = Some(json!({ "web_fetches": 5 }).to_string());
    append.is_progress = true;
    append.events[1].blob = Some("a-blob".to_owned());
    append.events[2].is_previewed = true;
    let ids: Vec<_> = append.events.iter().map(|event| event.id).collect();
    let appended = stage.db.append(append).await.unwrap();
    assert!(!appended.rests && appended.inbox.is_empty());
    assert_eq!(appended.events.iter().map(|event| event.seq).collect::<Vec<_>>(), [3, 4, 5]);
    let stored = stage.db.events_after(claim.key, 2, 10).await.unwrap().unwrap();
    assert_eq!(stored.iter().map(|event| event.id).collect::<Vec<_>>(), ids);
    assert_eq!(stored[0], appended.events[0]);
    assert_eq!((stored[1].body.as_str(), stored[1].blob.as_deref()), ("", Some("a-blob")));
    assert!(stored[2].is_previewed && stored[2].processed_at.is_some());
    let seat = stage.db.seat(claim.key).await.unwrap();
    assert_eq!((seat.inbox.len(), seat.records.len(), seat.inbox_seq), (0, 3, 1));
    let (tenant, exported) = stage.db.export(id).await.unwrap();
    assert_eq!(tenant, stage.tenant);
    let wanted: Vec<RecordRow> =
        (1..4).map(|seq| RecordRow { seq, line: record(seq, "x").body, blob: None }).collect();
    assert_eq!((&seat.records, &exported), (&wanted, &wanted));
    let row = stage.db.session(stage.tenant, id).await.unwrap();
    assert_eq!(row.session.usage.web_fetches, 5);
}

async fn an_older_lease_or_another_place_appends_nothing(stage: Stage) {
    let (_, claim, node) = stage.claimed().await;
    stage.db.append(stage.append(&claim, 0, 2)).await.unwrap();
    let before = stage.kinds(claim.key).await;
    for expected in [0, 1, 3] {
        let refused = stage.db.append(stage.append(&claim, expected, 1)).await;
        assert_eq!(refused, Err(DbError::Fenced(claim.key)), "expected {expected}");
    }
    stage.db.release(claim.key, claim.fence, false).await.unwrap();
    let (claims, _) = stage.db.claim(node, 10).await.unwrap();
    assert_eq!((claims[0].fence, claims[0].record_seq), (claim.fence + 1, 2));
    let refused = stage.db.append(stage.append(&claim, 2, 1)).await;
    assert_eq!(refused, Err(DbError::Fenced(claim.key)), "the same node with an older lease");
    assert_eq!(stage.kinds(claim.key).await, before);
    stage.db.append(stage.append(&claims[0], 2, 1)).await.unwrap();
    let refused =
        stage.db.append(stage.append(&qoder_server::store::Claim { key: 999_999, ..claim }, 0, 1)).await;
    assert_eq!(refused, Err(DbError::Fenced(999_999)));
}

async fn a_session_rests_only_when_nothing_was_left_meanwhile(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    stage.send(id, &[message("more")]).await.unwrap();
    let mut append = stage.append(&claim, 0, 1);
    append.taken = 1;
    append.rest = Some(rest(1, StopReason::EndTurn));
    let appended = stage.db.append(append).await.unwrap();
    assert!(!appended.rests, "something was left");
    assert_eq!((appended.inbox.len(), appended.inbox_seq), (1, 2));
    assert_eq!(appended.inbox, stage.db.inbox_after(claim.key, 1).await.unwrap());
    assert_eq!(stage.db.session(stage.tenant, id).await.unwrap().session.status, Status::Running);
    let mut append = stage.append(&claim, 1, 1);
    append.taken = 2;
    append.rest = Some(rest(2, StopReason::EndTurn));
    let appended = stage.db.append(append).await.unwrap();
    assert!(appended.rests);
    assert_eq!(appended.events.last().unwrap().kind, "session.status_idle");
    let row = stage.db.session(stage.tenant, id).await.unwrap();
    assert_eq!((row.session.status, row.stop), (Status::Idle, Some(StopReason::EndTurn)));
    assert!(stage.db.leases(NodeId::random()).await.unwrap().is_empty());
    assert_eq!(stage.db.next_due(NodeId([9; 16])).await.unwrap(), None, "nothing is left to do");
}

async fn what_is_repeated_counts_once(stage: Stage) {
    let (_, claim, _) = stage.claimed().await;
    let mut append = stage.append(&claim, 0, 2);
    append.is_repeated = true;
    let first = stage.db.append(append.clone()).await.unwrap();
    if stage.db.is_shared() {
        let second = stage.db.append(append.clone()).await.unwrap();
        assert_eq!(first.events, second.events, "the outcome is found again");
    }
    assert_eq!(stage.kinds(claim.key).await.len(), 4);
    let mut other = append.clone();
    other.records[1] = record(2, "another text");
    assert_eq!(
        stage.db.append(other).await,
        Err(DbError::Fenced(claim.key)),
        "another one's record is there"
    );
    let mut park = stage.append(&claim, 2, 1);
    park.taken = 1;
    park.is_repeated = true;
    park.rest = Some(rest(1, StopReason::EndTurn));
    assert!(stage.db.append(park.clone()).await.unwrap().rests);
    if stage.db.is_shared() {
        assert!(stage.db.append(park).await.unwrap().rests);
    }
    assert_eq!(stage.kinds(claim.key).await.len(), 6);
}

async fn rest_is_news_once(stage: Stage) {
    let (_, claim, _) = stage.claimed().await;
    let mut append = stage.append(&claim, 0, 1);
    append.taken = 1;
    append.rest = Some(qoder_server::store::Rest { releases: false, ..rest(1, StopReason::EndTurn) });
    assert!(stage.db.append(append).await.unwrap().rests);
    let mut append = stage.append(&claim, 1, 0);
    append.rest = Some(rest(1, StopReason::EndTurn));
    let appended = stage.db.append(append).await.unwrap();
    assert!(appended.rests && appended.events.is_empty(), "it rested for the same reason");
    let kinds = stage.kinds(claim.key).await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "session.status_idle").count(), 1, "{kinds:?}");
}

async fn parts_are_kept_once_and_put_back(stage: Stage) {
    let (one, claim, _) = stage.claimed().await;
    let mut append = stage.append(&claim, 0, 2);
    for record in &mut append.records {
        let body = record.body.clone();
        record.parts = vec![(3, [9; 32], b"-part-".to_vec()), (5, [8; 32], vec![0, 255])];
        record.body = body;
    }
    let plain = append.records[0].body.clone();
    stage.db.append(append).await.unwrap();
    let (_, lines) = stage.db.export(one).await.unwrap();
    let wanted = [&plain[..3], b"-part-", &plain[3..5], &[0, 255], &plain[5..]].concat();
    assert_eq!(lines[0].line, wanted);
    let (_, other, _) = stage.claimed().await;
    let mut append = stage.append(&other, 0, 1);
    append.records[0].parts = vec![(0, [9; 32], b"-part-".to_vec())];
    stage.db.append(append).await.unwrap();
    assert!(stage.db.seat(other.key).await.unwrap().records[0].line.starts_with(b"-part-{"));
}

async fn a_turn_that_begins_by_itself_is_reported(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    let queued = stage.send(id, &[message("queued")]).await.unwrap().inputs[0].clone();
    assert_eq!(queued.processed_at, None);
    let mut append = stage.append(&claim, 0, 1);
    append.taken = 2;
    append.rest = Some(qoder_server::store::Rest { releases: false, ..rest(2, StopReason::EndTurn) });
    stage.db.append(append).await.unwrap();
    let mut append = stage.append(&claim, 1, 1);
    append.begins = true;
    append.processed = vec![queued.id];
    append.events = vec![event("span.model_request_start", 1)];
    let kinds: Vec<String> =
        stage.db.append(append).await.unwrap().events.into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, ["session.status_running", "span.model_request_start"]);
    assert_eq!(stage.db.session(stage.tenant, id).await.unwrap().session.status, Status::Running);
    let events = stage.db.events_after(claim.key, 0, 100).await.unwrap().unwrap();
    let stored = events.iter().find(|event| event.id == queued.id).unwrap();
    assert!(stored.processed_at.is_some(), "it is processed now");
}
