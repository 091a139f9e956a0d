//! What clients send: answers count once, interrupts close what waits, sessions that ended take nothing.

use qoder_server::model::ids::{NodeId, SessionId};
use qoder_server::model::status::{Status, StopReason};
use serde_json::{Value, json};

use super::support::{Stage, behaviours, event, is_conflict, is_not_found, message, now, plain, rest};

behaviours!(
    an_answer_counts_once,
    a_partial_answer_wakes_no_one,
    an_interrupt_closes_what_waits,
    a_cancel_stops_what_there_is_to_stop,
    a_session_that_ended_takes_nothing,
    all_of_a_request_is_taken_or_nothing,
    a_session_has_one_outcome_at_a_time,
);

fn confirm(event: impl std::fmt::Display) -> Value {
    json!({ "type": "user.tool_confirmation", "tool_use_id": event.to_string(), "result": "allow" })
}

fn result(event: impl std::fmt::Display, text: &str) -> Value {
    json!({ "type": "user.custom_tool_result", "custom_tool_use_id": event.to_string(),
        "content": [{ "type": "text", "text": text }] })
}

async fn an_answer_counts_once(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    let ask = stage.asks(&claim, "ask").await;
    let pending = stage.db.pending(stage.tenant, 10).await.unwrap();
    assert_eq!((pending.len(), pending[0].event, pending[0].session), (1, ask, id));
    assert_eq!(pending[0].kind, "ask");
    let sent = stage.send(id, &[confirm(ask)]).await.unwrap();
    assert!(sent.is_due);
    let kinds: Vec<_> = sent.events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["user.tool_confirmation", "session.status_running"]);
    assert!(is_conflict(&stage.send(id, &[confirm(ask)]).await), "the same answer again");
    assert!(stage.db.pending(stage.tenant, 10).await.unwrap().is_empty());
    let inbox = stage.db.inbox_after(claim.key, 1).await.unwrap();
    assert_eq!(inbox.len(), 1);
    let custom = {
        let (id, claim, _) = stage.claimed().await;
        let call = stage.asks(&claim, "custom").await;
        let first = stage.send(id, &[result(call, "sunny")]).await.unwrap();
        let again = stage.send(id, &[result(call, "sunny")]).await.unwrap();
        assert_eq!(first.inputs, again.inputs, "the same result is replayed");
        assert!(again.events.is_empty() && again.claim.is_none());
        stage.send(id, &[result(call, "rain")]).await
    };
    assert!(is_conflict(&custom), "another result");
}

async fn a_partial_answer_wakes_no_one(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    let (one, other) = (event("agent.tool_use", 1), event("agent.tool_use", 2));
    let ids = [one.id, other.id];
    let mut append = stage.append(&claim, 0, 1);
    let action = |event| qoder_server::store::NewAction {
        event,
        call_id: format!("call {event}"),
        kind: "ask",
        thread: None,
    };
    append.actions = ids.into_iter().map(action).collect();
    append.events = vec![one, other];
    append.taken = 1;
    let event_ids = ids.iter().map(ToString::to_string).collect();
    append.rest = Some(rest(1, StopReason::RequiresAction { event_ids }));
    stage.db.append(append).await.unwrap();
    let sent = stage.send(id, &[confirm(ids[1])]).await.unwrap();
    assert!(!sent.is_due);
    let row = stage.db.session(stage.tenant, id).await.unwrap();
    let rest = StopReason::RequiresAction { event_ids: vec![ids[0].to_string()] };
    assert_eq!((row.session.status, row.stop), (Status::Idle, Some(rest)));
    assert!(stage.send(id, &[confirm(ids[0])]).await.unwrap().is_due);
}

async fn an_interrupt_closes_what_waits(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    let ask = stage.asks(&claim, "ask").await;
    stage.send(id, &[json!({ "type": "user.interrupt" })]).await.unwrap();
    assert!(stage.db.pending(stage.tenant, 10).await.unwrap().is_empty());
    assert!(stage.send(id, &[confirm(ask)]).await.is_err());
}

async fn a_cancel_stops_what_there_is_to_stop(stage: Stage) {
    let (id, _) = stage.session().await;
    let stop = || stage.sending(id, &[json!({ "type": "user.interrupt" })], None);
    let (sent, stops) = now(stage.db.cancel_session(stop(), plain()).await.unwrap());
    assert!(!stops && sent.events.is_empty());
    stage.send(id, &[message("go")]).await.unwrap();
    let (sent, stops) = now(stage.db.cancel_session(stop(), plain()).await.unwrap());
    assert!(stops && !sent.events.is_empty());
}

async fn a_session_that_ended_takes_nothing(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    let archived = now(stage.db.archive_session(stage.tenant, id, plain()).await.unwrap());
    assert!(archived.session.archived_at.is_some());
    assert!(is_conflict(&stage.send(id, &[message("hello?")]).await));
    assert!(stage.db.append(stage.append(&claim, 0, 1)).await.is_err(), "its node is cut off");
    assert!(stage.db.inbox_after(claim.key, 0).await.unwrap().is_empty());
    assert_eq!(stage.db.next_due(NodeId([9; 16])).await.unwrap(), None);
    let key = now(stage.db.delete_session(stage.tenant, id, plain()).await.unwrap());
    assert_eq!(key, claim.key);
    assert!(is_not_found(&stage.send(id, &[message("hello?")]).await));
    assert!(is_not_found(&stage.send(SessionId::random(), &[message("hello?")]).await));
}

async fn all_of_a_request_is_taken_or_nothing(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    let ask = stage.asks(&claim, "ask").await;
    let before = stage.kinds(claim.key).await;
    let unknown = qoder_server::model::ids::EventId::now();
    assert!(stage.send(id, &[confirm(ask), confirm(unknown)]).await.is_err());
    assert_eq!(stage.kinds(claim.key).await, before);
    assert_eq!(stage.db.pending(stage.tenant, 10).await.unwrap().len(), 1, "the good half does not count");
}

async fn a_session_has_one_outcome_at_a_time(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    assert!(stage.db.outcomes(claim.key).await.unwrap().is_empty());
    let define = serde_json::json!({ "type": "user.define_outcome", "description": "a report",
        "rubric": { "type": "text", "content": "It has a title." } });
    stage.send(id, std::slice::from_ref(&define)).await.unwrap();
    assert!(is_conflict(&stage.send(id, std::slice::from_ref(&define)).await), "the first one lasts");
    let mut outcomes = stage.db.outcomes(claim.key).await.unwrap();
    assert_eq!(stage.db.session(stage.tenant, id).await.unwrap().session.outcomes, outcomes);
    outcomes[0].interrupt(qoder_server::model::time::Time(5));
    let mut append = stage.append(&claim, 0, 1);
    append.outcomes = Some(outcomes.clone());
    stage.db.append(append).await.unwrap();
    stage.db.append(stage.append(&claim, 1, 1)).await.unwrap();
    assert_eq!(stage.db.outcomes(claim.key).await.unwrap(), outcomes, "what is not changed stays");
    stage.send(id, &[define]).await.unwrap();
    assert_eq!(stage.db.outcomes(claim.key).await.unwrap().len(), 2);
}
