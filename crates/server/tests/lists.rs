//! Lists: pages in both directions, filters, and versions.

use qoder_server::model::agent::AgentBody;
use qoder_server::model::environment::EnvironmentBody;
use qoder_server::model::ids::{AgentId, TenantId};
use qoder_server::model::status::Status;
use qoder_server::model::time::Time;
use qoder_server::store::{AgentQuery, EventQuery, ListQuery, Place, SessionQuery};
use serde_json::json;

use super::support::{Stage, behaviours, is_conflict, is_not_found, message, now, plain};

behaviours!(
    agents_have_versions_and_are_listed_in_pages,
    environments_are_changed_and_deleted_when_unused,
    sessions_are_listed_by_agent_and_status,
    events_are_listed_in_both_directions,
);

async fn agents_have_versions_and_are_listed_in_pages(stage: Stage) {
    let body = |name: &str| AgentBody::create(&json!({ "name": name, "model": "auto" })).unwrap();
    let mut ids = vec![stage.agent];
    for number in 0..4 {
        ids.push(
            now(stage.db.create_agent(stage.tenant, body(&format!("a{number}")), plain()).await.unwrap()).id,
        );
    }
    ids.reverse();
    let page = |place, ascending| {
        let query = ListQuery { limit: 2, place, ascending, ..stage.list() };
        let stage = stage.clone();
        async move {
            let page = stage.db.list_agents(query).await.unwrap();
            (page.items.iter().map(|agent| agent.id).collect::<Vec<_>>(), page.has_more, page.has_before)
        }
    };
    assert_eq!(page(Place::Start, false).await, (ids[..2].to_vec(), true, false));
    assert_eq!(page(Place::After(ids[1].0), false).await, (ids[2..4].to_vec(), true, true));
    assert_eq!(page(Place::After(ids[3].0), false).await, (ids[4..].to_vec(), false, true));
    assert_eq!(page(Place::Before(ids[3].0), false).await, (ids[1..3].to_vec(), true, true));
    assert_eq!(page(Place::Before(ids[2].0), false).await, (ids[..2].to_vec(), true, false));
    assert_eq!(page(Place::Start, true).await.0, [ids[4], ids[3]]);
    let stranger = ListQuery { tenant: TenantId::random(), ..stage.list() };
    assert!(stage.db.list_agents(stranger).await.unwrap().items.is_empty());
    let (tenant, id) = (stage.tenant, ids[0]);
    let rename = |name: &'static str| -> qoder_server::store::AgentChange {
        Box::new(move |agent| Ok(AgentBody { name: name.to_owned(), ..agent.body.clone() }))
    };
    let second = now(stage.db.update_agent(tenant, id, Some(1), rename("b"), plain()).await.unwrap());
    assert_eq!((second.version, second.body.name.as_str()), (2, "b"));
    let same = now(stage.db.update_agent(tenant, id, None, rename("b"), plain()).await.unwrap());
    assert_eq!(same.version, 2, "an equal body is no version");
    assert!(is_conflict(&stage.db.update_agent(tenant, id, Some(1), rename("c"), plain()).await));
    let old = stage.db.agent(AgentQuery { tenant, id, version: Some(1) }).await.unwrap();
    assert_eq!(old.body.name, "a3");
    let versions = stage.db.list_agent_versions(tenant, id, None, 1).await.unwrap();
    assert_eq!((versions.items[0].version, versions.has_more), (2, true));
    let versions = stage.db.list_agent_versions(tenant, id, Some(2), 5).await.unwrap();
    assert_eq!((versions.items[0].version, versions.items.len()), (1, 1));
    assert!(now(stage.db.archive_agent(tenant, id, plain()).await.unwrap()).archived_at.is_some());
    assert!(is_conflict(&stage.db.update_agent(tenant, id, None, rename("d"), plain()).await));
    assert_eq!(
        stage.db.list_agents(stage.list()).await.unwrap().items.len(),
        4,
        "archived ones are left out"
    );
    let missing = AgentQuery { tenant, id: AgentId::random(), version: None };
    assert!(is_not_found(&stage.db.agent(missing).await));
    let foreign = AgentQuery { tenant: TenantId::random(), id, version: None };
    assert!(is_not_found(&stage.db.agent(foreign).await));
    let later = ListQuery { created_from: Some(Time::now().after(60_000)), ..stage.list() };
    assert!(stage.db.list_agents(later).await.unwrap().items.is_empty());
}

async fn environments_are_changed_and_deleted_when_unused(stage: Stage) {
    let (tenant, id) = (stage.tenant, stage.environment);
    let rename = |name: &'static str| -> qoder_server::store::EnvironmentChange {
        Box::new(move |environment| Ok(EnvironmentBody { name: name.to_owned(), ..environment.body.clone() }))
    };
    let changed = now(stage.db.update_environment(tenant, id, rename("there"), plain()).await.unwrap());
    assert_eq!(changed.body.name, "there");
    assert_eq!(stage.db.environment(tenant, id).await.unwrap(), changed);
    let (session, _) = stage.session().await;
    assert!(is_conflict(&stage.db.delete_environment(tenant, id, plain()).await), "a session uses it");
    now(stage.db.delete_session(tenant, session, plain()).await.unwrap());
    now(stage.db.delete_environment(tenant, id, plain()).await.unwrap());
    assert!(is_not_found(&stage.db.environment(tenant, id).await));
    assert!(is_not_found(&stage.db.create_session(stage.create(&[]), plain()).await));
    let body = EnvironmentBody::create(&json!({ "name": "second" })).unwrap();
    let second = now(stage.db.create_environment(tenant, body, plain()).await.unwrap());
    now(stage.db.archive_environment(tenant, second.id, plain()).await.unwrap());
    assert!(is_conflict(&stage.db.update_environment(tenant, second.id, rename("x"), plain()).await));
    assert!(stage.db.list_environments(stage.list()).await.unwrap().items.is_empty());
    let all = ListQuery { include_archived: true, ..stage.list() };
    assert_eq!(stage.db.list_environments(all).await.unwrap().items.len(), 1);
}

async fn sessions_are_listed_by_agent_and_status(stage: Stage) {
    let (first, _) = stage.session().await;
    let (running, _) = stage.session().await;
    stage.send(running, &[message("go")]).await.unwrap();
    let query = |agent, version, statuses: &[Status]| SessionQuery {
        list: stage.list(),
        agent,
        agent_version: version,
        deployment: None,
        memory_store: None,
        statuses: statuses.to_vec(),
    };
    let ids = |query| {
        let stage = stage.clone();
        async move {
            let page = stage.db.list_sessions(query).await.unwrap();
            page.items.iter().map(|row| row.session.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(ids(query(None, None, &[])).await, [running, first], "the newest first");
    assert_eq!(ids(query(Some(stage.agent), Some(1), &[])).await, [running, first]);
    assert!(ids(query(Some(stage.agent), Some(2), &[])).await.is_empty());
    assert!(ids(query(Some(AgentId::random()), None, &[])).await.is_empty());
    assert_eq!(ids(query(None, None, &[Status::Running, Status::Rescheduling])).await, [running]);
    let after = SessionQuery {
        list: ListQuery { place: Place::After(running.0), ..stage.list() },
        ..query(None, None, &[])
    };
    assert_eq!(ids(after).await, [first]);
}

async fn events_are_listed_in_both_directions(stage: Stage) {
    let (session, claim, _) = stage.claimed().await;
    stage.db.append(stage.append(&claim, 0, 3)).await.unwrap();
    let all = stage.db.events_after(claim.key, 0, 100).await.unwrap().unwrap();
    assert_eq!(all.len(), 5);
    let query = EventQuery {
        tenant: stage.tenant,
        session,
        thread: None,
        after: None,
        before: None,
        limit: 2,
        descending: false,
        kinds: Vec::new(),
        from: None,
        to: None,
    };
    let seqs = |query| {
        let stage = stage.clone();
        async move {
            let page = stage.db.list_events(query).await.unwrap();
            (page.items.iter().map(|event| event.seq).collect::<Vec<_>>(), page.has_more, page.has_before)
        }
    };
    assert_eq!(seqs(query.clone()).await, (vec![1, 2], true, false));
    let after = EventQuery { after: Some(all[1].id), ..query.clone() };
    assert_eq!(seqs(after).await, (vec![3, 4], true, true));
    assert_eq!(seqs(EventQuery { descending: true, ..query.clone() }).await, (vec![5, 4], true, false));
    let before = EventQuery { before: Some(all[3].id), ..query.clone() };
    assert_eq!(seqs(before).await, (vec![2, 3], true, true));
    let kinds = EventQuery { kinds: vec!["agent.message".to_owned()], limit: 10, ..query.clone() };
    assert_eq!(seqs(kinds).await.0, [3, 4, 5]);
    let never = EventQuery { from: Some(Time::now().after(60_000)), ..query.clone() };
    assert!(seqs(never).await.0.is_empty());
    let unknown = EventQuery { after: Some(qoder_server::model::ids::EventId::now()), ..query };
    assert!(stage.db.list_events(unknown).await.is_err());
}
