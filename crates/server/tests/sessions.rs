//! Sessions: creation with first inputs, changes, and where streams begin.

use qoder_server::model::ids::{EventId, TenantId};
use qoder_server::model::status::Status;
use qoder_server::model::time::Time;
use qoder_server::store::SessionChange;

use super::support::{Stage, behaviours, is_conflict, is_not_found, message, now, plain};

behaviours!(
    what_rests_for_too_long_is_deleted,
    a_session_begins_with_its_first_message,
    a_session_is_changed_and_says_so,
    a_stream_begins_where_it_is_asked_to,
    an_archived_agent_or_environment_starts_nothing,
);

async fn a_session_begins_with_its_first_message(stage: Stage) {
    let create = stage.create(&[message("hello\u{1F600}")]);
    let (row, sent) = now(stage.db.create_session(create, plain()).await.unwrap());
    assert_eq!((row.session.status, sent.events.len(), sent.is_due), (Status::Running, 2, true));
    assert_eq!((row.session.title.as_deref(), row.sealed), (Some("a title"), Some(vec![1, 2, 3])));
    assert!(row.session.running_since.is_some());
    let stored = stage.db.events_after(row.session.key, 0, 10).await.unwrap().unwrap();
    assert_eq!(stored, sent.events);
    assert!(stored[0].body.contains('\u{1F600}'));
    let foreign = stage.db.session(TenantId::random(), row.session.id).await;
    assert!(is_not_found(&foreign));
}

async fn a_session_is_changed_and_says_so(stage: Stage) {
    let (id, key) = stage.session().await;
    let change = |title: &'static str, updated: Option<&'static str>| -> qoder_server::store::ChangeSession {
        Box::new(move |row| {
            Ok(SessionChange {
                title: Some(title.to_owned()),
                metadata: row.session.metadata.clone(),
                body: row.session.body.clone(),
                sealed: Some(vec![5]),
                updated: updated.map(str::to_owned),
            })
        })
    };
    let changed = change("other", Some(r#"{"title":"other"}"#));
    let (row, events) = now(stage.db.update_session(stage.tenant, id, changed, plain()).await.unwrap());
    assert_eq!((row.session.title.as_deref(), row.sealed), (Some("other"), Some(vec![5])));
    assert_eq!((events[0].kind.as_str(), events[0].seq), ("session.updated", 1));
    assert_eq!(events[0].body, r#"{"title":"other"}"#, "the order of fields stays");
    let silent = change("quiet", None);
    let (_, events) = now(stage.db.update_session(stage.tenant, id, silent, plain()).await.unwrap());
    assert!(events.is_empty() && stage.kinds(key).await.len() == 1);
    now(stage.db.archive_session(stage.tenant, id, plain()).await.unwrap());
    assert!(is_conflict(&stage.db.update_session(stage.tenant, id, change("x", None), plain()).await));
}

async fn a_stream_begins_where_it_is_asked_to(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    let mut append = stage.append(&claim, 0, 2);
    append.events[1].is_previewed = true;
    let stored = stage.db.append(append).await.unwrap().events;
    let start = |last| {
        let stage = stage.clone();
        async move { stage.db.stream_start(stage.tenant, id, last).await.map(|start| start.after) }
    };
    assert_eq!(start(None).await, Ok(4));
    assert_eq!(start(Some(stored[0].id)).await, Ok(3));
    assert_eq!(start(Some(stored[1].id)).await, Ok(3), "what was shown in pieces comes again");
    // An id is made to a millisecond, and what was stored in the same one may have come later.
    let is_later = |id: &EventId| id.milliseconds() > u64::try_from(stored[1].at.0 / 1000).ok();
    let announced = std::iter::repeat_with(EventId::now).find(is_later);
    assert_eq!(start(announced).await, Ok(4), "announced and not stored");
    assert!(is_not_found(&start(Some(EventId([7; 16]))).await));
}

async fn an_archived_agent_or_environment_starts_nothing(stage: Stage) {
    now(stage.db.archive_environment(stage.tenant, stage.environment, plain()).await.unwrap());
    let refused = stage.db.create_session(stage.create(&[]), plain()).await.unwrap_err();
    assert!(refused.to_string().contains("archived"), "{refused}");
    now(stage.db.archive_agent(stage.tenant, stage.agent, plain()).await.unwrap());
    let refused = stage.db.create_session(stage.create(&[]), plain()).await.unwrap_err();
    assert!(refused.to_string().contains("agent"), "{refused}");
}

async fn what_rests_for_too_long_is_deleted(stage: Stage) {
    let (resting, key) = stage.session().await;
    let (waiting, asked, _) = stage.claimed().await;
    stage.asks(&asked, "ask").await;
    let (running, _, _) = stage.claimed().await;
    let (due, _) = stage.session().await;
    stage.send(due, &[message("go")]).await.unwrap();
    let (earlier, later) = (Time::now().after(-60_000), Time::now().after(60_000));
    assert!(stage.db.delete_stale(stage.tenant, earlier, 10).await.unwrap().is_empty());
    assert!(
        stage.db.delete_stale(TenantId([9; 16]), later, 10).await.unwrap().is_empty(),
        "of another tenant"
    );
    assert_eq!(stage.db.delete_stale(stage.tenant, later, 10).await.unwrap(), [(key, resting)]);
    assert!(is_not_found(&stage.db.session(stage.tenant, resting).await));
    for kept in [waiting, running, due] {
        assert!(stage.db.session(stage.tenant, kept).await.is_ok(), "it has work, or waits for an answer");
    }
}
