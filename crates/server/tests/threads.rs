//! Threads: logs of agents beside the log of their session, and the events that only they show.

use qoder_server::model::ids::{SessionId, ThreadId};
use qoder_server::model::status::{Status, StopReason};
use qoder_server::store::{Claim, DbError, EventQuery, NewAction, ThreadAppend};
use qoder_types::InboxBody;
use serde_json::json;

use super::support::{Stage, behaviours, event, is_conflict, is_not_found, keyed, now, plain, record, rest};

behaviours!(
    a_thread_has_records_of_its_own,
    a_thread_elsewhere_appends_nothing,
    what_is_repeated_in_a_thread_counts_once,
    events_of_a_thread_are_shown_there,
    an_answer_goes_to_the_thread_that_asked,
    a_thread_is_stopped_alone,
    a_thread_is_archived_once_it_is_over,
);

fn new_thread() -> ThreadId {
    ThreadId(SessionId::random().0)
}

/// What a seat commits of a thread: a number of records behind those it knows.
fn of_thread(thread: ThreadId, expected: u64, count: u64) -> ThreadAppend {
    ThreadAppend {
        thread,
        agent_name: "reviewer".to_owned(),
        sidecar: (expected == 0).then(|| json!({ "call": "call_1" })),
        expected,
        records: (1..=count).map(|number| record(expected + number, "in a thread")).collect(),
        is_running: true,
        usage: json!({ "web_fetches": count }).to_string(),
        is_over: false,
    }
}

async fn a_thread_has_records_of_its_own(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    assert!(stage.db.threads(stage.tenant, id).await.unwrap().is_empty());
    let [one, other] = [new_thread(), new_thread()];
    let mut append = stage.append(&claim, 0, 2);
    append.threads = vec![of_thread(one, 0, 2), of_thread(other, 0, 1)];
    stage.db.append(append).await.unwrap();
    let mut append = stage.append(&claim, 2, 0);
    append.threads = vec![ThreadAppend { is_running: false, is_over: true, ..of_thread(other, 1, 1) }];
    stage.db.append(append).await.unwrap();
    let seat = stage.db.seat(claim.key).await.unwrap();
    assert_eq!(seat.records.len(), 2, "the session has its own");
    let [first, second] = &seat.threads[..] else { panic!("{:?}", seat.threads) };
    assert_eq!((first.thread, first.agent_name.as_str(), first.record_seq), (one, "reviewer", 2));
    assert_eq!(
        (first.is_running, first.is_over, &first.sidecar),
        (true, false, &json!({ "call": "call_1" }))
    );
    let lines: Vec<_> = first.records.iter().map(|row| (row.seq, row.line.clone())).collect();
    assert_eq!(lines, [1, 2].map(|seq| (seq, record(seq, "in a thread").body)));
    assert_eq!((second.thread, second.record_seq, second.records.len()), (other, 2, 0), "it is over");
    assert_eq!(&second.sidecar, &json!({ "call": "call_1" }), "what was there stays");
    let threads = stage.db.threads(stage.tenant, id).await.unwrap();
    let seen: Vec<_> =
        threads.iter().map(|thread| (thread.id, thread.status, thread.usage.web_fetches)).collect();
    assert_eq!(seen, [(one, Status::Running, 2), (other, Status::Idle, 1)]);
    assert!(threads[0].running_since.is_some() && threads[1].running_since.is_none());
    assert!(is_not_found(&stage.db.threads(stage.tenant, SessionId::random()).await));
}

async fn a_thread_elsewhere_appends_nothing(stage: Stage) {
    let (_, claim, _) = stage.claimed().await;
    let thread = new_thread();
    let append = |claim: &Claim, of: ThreadAppend, expected: u64| {
        let mut append = stage.append(claim, expected, 1);
        append.threads = vec![of];
        append
    };
    stage.db.append(append(&claim, of_thread(thread, 0, 2), 0)).await.unwrap();
    let before = stage.kinds(claim.key).await;
    for known in [0, 1, 3] {
        let refused = stage.db.append(append(&claim, of_thread(thread, known, 1), 1)).await;
        assert_eq!(refused, Err(DbError::Fenced(claim.key)), "expected {known}");
    }
    let older = Claim { fence: claim.fence - 1, ..claim };
    for (claim, expected) in [(older, 1), (claim, 0)] {
        let refused = stage.db.append(append(&claim, of_thread(thread, 2, 1), expected)).await;
        assert_eq!(refused, Err(DbError::Fenced(claim.key)));
    }
    assert_eq!(stage.kinds(claim.key).await, before, "nothing else of the commit is there");
    let seat = stage.db.seat(claim.key).await.unwrap();
    assert_eq!((seat.records.len(), seat.threads[0].records.len()), (1, 2));
}

async fn what_is_repeated_in_a_thread_counts_once(stage: Stage) {
    if !stage.db.is_shared() {
        return;
    }
    let (_, claim, _) = stage.claimed().await;
    let thread = new_thread();
    let mut append = stage.append(&claim, 0, 0);
    append.threads = vec![of_thread(thread, 0, 2)];
    append.is_repeated = true;
    for _ in 0..3 {
        stage.db.append(append.clone()).await.unwrap();
    }
    append.threads[0].records[1] = record(2, "another text");
    assert_eq!(stage.db.append(append).await, Err(DbError::Fenced(claim.key)), "another one's record");
    let mut append = stage.append(&claim, 0, 1);
    append.threads = vec![of_thread(thread, 2, 1)];
    append.is_repeated = true;
    let first = stage.db.append(append.clone()).await.unwrap();
    assert_eq!(stage.db.append(append).await.unwrap(), first);
    let seat = stage.db.seat(claim.key).await.unwrap();
    assert_eq!((seat.records.len(), seat.threads[0].record_seq, seat.threads[0].records.len()), (1, 3, 3));
}

async fn events_of_a_thread_are_shown_there(stage: Stage) {
    let (session, claim, _) = stage.claimed().await;
    let thread = new_thread();
    let mut append = stage.append(&claim, 0, 1);
    append.events = vec![
        event("agent.message", 1),
        event("agent.message", 2).in_thread(thread, false),
        event("agent.tool_use", 3).in_thread(thread, true),
    ];
    append.threads = vec![of_thread(thread, 0, 1)];
    let appended = stage.db.append(append).await.unwrap();
    let stored = stage.db.events_after(claim.key, 2, 10).await.unwrap().unwrap();
    assert_eq!(stored, appended.events, "a stream reads all of them");
    let places: Vec<_> = stored.iter().map(|event| (event.thread, event.is_posted)).collect();
    assert_eq!(places, [(None, false), (Some(thread), false), (Some(thread), true)]);
    let query = EventQuery {
        tenant: stage.tenant,
        session,
        thread: None,
        after: None,
        before: None,
        limit: 10,
        descending: false,
        kinds: Vec::new(),
        from: None,
        to: None,
    };
    let seqs = |query| {
        let stage = stage.clone();
        async move {
            let page = stage.db.list_events(query).await.unwrap();
            page.items.iter().map(|event| event.seq).collect::<Vec<_>>()
        }
    };
    assert_eq!(seqs(query.clone()).await, [1, 2, 3, 5]);
    assert_eq!(seqs(EventQuery { thread: Some(thread), ..query.clone() }).await, [4, 5]);
    assert!(seqs(EventQuery { thread: Some(new_thread()), ..query }).await.is_empty());
}

/// A session that waits for an answer to a call of a thread, and for one to a call of its own.
async fn two_that_ask(stage: &Stage) -> (SessionId, Claim, ThreadId, [qoder_server::model::ids::EventId; 2]) {
    let (id, claim, _) = stage.claimed().await;
    let thread = new_thread();
    let asked = [event("agent.tool_use", 1).in_thread(thread, true), event("agent.tool_use", 2)];
    let ids = [asked[0].id, asked[1].id];
    let mut append = stage.append(&claim, 0, 1);
    append.threads = vec![ThreadAppend { is_running: false, ..of_thread(thread, 0, 1) }];
    append.actions = vec![
        NewAction { event: ids[0], call_id: "theirs".to_owned(), kind: "ask", thread: Some(thread) },
        NewAction { event: ids[1], call_id: "ours".to_owned(), kind: "ask", thread: None },
    ];
    append.events = asked.to_vec();
    append.taken = 1;
    let event_ids = ids.iter().map(ToString::to_string).collect();
    append.rest = Some(rest(1, StopReason::RequiresAction { event_ids }));
    assert!(stage.db.append(append).await.unwrap().rests);
    (id, claim, thread, ids)
}

/// The call that is answered, whose it is, and how.
fn answer(body: &InboxBody) -> (&str, Option<String>, bool) {
    let InboxBody::Answer { tool_use_id, agent_id, allow, .. } = body else { panic!("{body:?}") };
    (tool_use_id, agent_id.clone(), *allow)
}

async fn an_answer_goes_to_the_thread_that_asked(stage: Stage) {
    let (id, claim, thread, asked) = two_that_ask(&stage).await;
    let allow = |event| json!({ "type": "user.tool_confirmation", "tool_use_id": event, "result": "allow" });
    let sent = stage.send(id, &[allow(asked[1]), allow(asked[0])]).await.unwrap();
    let places: Vec<_> = sent.inputs.iter().map(|event| (event.thread, event.is_posted)).collect();
    assert_eq!(places, [(None, false), (Some(thread), true)]);
    let entries = stage.db.inbox_after(claim.key, 0).await.unwrap();
    let answers: Vec<_> = entries.iter().map(|row| answer(&row.entry.body)).collect();
    assert_eq!(answers, [("ours", None, true), ("theirs", Some(thread.agent()), true)]);
}

async fn a_thread_is_stopped_alone(stage: Stage) {
    let (id, claim, thread, asked) = two_that_ask(&stage).await;
    let stop = json!({ "type": "user.interrupt", "session_thread_id": thread });
    stage.send(id, &[stop]).await.unwrap();
    let open = stage.db.pending(stage.tenant, 10).await.unwrap();
    assert_eq!(open.iter().map(|pending| pending.event).collect::<Vec<_>>(), [asked[1]]);
    let entries = stage.db.inbox_after(claim.key, 0).await.unwrap();
    let answers: Vec<_> = entries.iter().map(|row| answer(&row.entry.body)).collect();
    assert_eq!(answers, [("theirs", Some(thread.agent()), false)]);
}

async fn a_thread_is_archived_once_it_is_over(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    let thread = new_thread();
    let mut append = stage.append(&claim, 0, 1);
    append.threads = vec![of_thread(thread, 0, 1)];
    stage.db.append(append).await.unwrap();
    assert!(is_conflict(&stage.db.archive_thread(stage.tenant, id, thread, plain()).await));
    let mut append = stage.append(&claim, 1, 1);
    append.threads = vec![ThreadAppend { is_running: false, is_over: true, ..of_thread(thread, 1, 0) }];
    stage.db.append(append).await.unwrap();
    let archived =
        now(stage.db.archive_thread(stage.tenant, id, thread, keyed("k", "d", "kept")).await.unwrap());
    assert!(archived.archived_at.is_some());
    assert_eq!(stage.db.threads(stage.tenant, id).await.unwrap(), std::slice::from_ref(&archived));
    let again = now(stage.db.archive_thread(stage.tenant, id, thread, plain()).await.unwrap());
    assert_eq!(again, archived);
    let unknown = stage.db.archive_thread(stage.tenant, id, new_thread(), plain()).await;
    assert!(is_not_found(&unknown));
}
