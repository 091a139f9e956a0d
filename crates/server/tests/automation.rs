//! Webhook endpoints with their outbox, and deployments with their runs.

use qoder_server::model::delivery::{Attempt, DeliveryState, RetrySchedule};
use qoder_server::model::deployment::{DeploymentFields, Paused};
use qoder_server::model::endpoint::{EndpointBody, MOST_ENDPOINTS};
use qoder_server::model::ids::{DeploymentId, DeploymentRunId, NodeId, TenantId, WebhookEndpointId};
use qoder_server::model::run::{Run, RunError, Trigger};
use qoder_server::model::status::{Status, StopReason};
use qoder_server::model::time::Time;
use qoder_server::store::{
    ClaimDeliveries, CreateSession, DeliveryQuery, DeploymentChange, DeploymentQuery, DueDelivery,
    EndpointChange, NewDeployment, NewEndpoint, NextDeployment, RunQuery, SessionQuery,
};
use serde_json::{Value, json};

use super::support::{
    Stage, behaviours, event, is_conflict, is_not_found, message, node_row, now, plain, rest,
};

behaviours!(
    endpoints_are_changed_listed_and_deleted,
    notices_are_queued_with_what_they_are_about,
    a_notice_is_taken_by_one_node,
    a_notice_is_tried_until_it_is_given_up,
    notices_of_a_node_that_is_gone_are_due,
    deployments_are_changed_and_listed,
    a_schedule_that_is_due_runs_once,
    a_run_ends_once_with_its_session,
    a_run_that_fails_pauses_its_schedule,
);

const EAGER: RetrySchedule = RetrySchedule { first_pause_ms: -1, tries: 2 };

async fn endpoint(stage: &Stage, events: Value) -> WebhookEndpointId {
    let body = EndpointBody::create(&json!({ "url": "https://example.com/hook", "events": events })).unwrap();
    let new = NewEndpoint { tenant: stage.tenant, id: WebhookEndpointId::random(), body, sealed: vec![5] };
    now(stage.db.create_endpoint(new, plain()).await.unwrap()).id
}

async fn deliveries(
    stage: &Stage,
    endpoint: WebhookEndpointId,
    state: Option<DeliveryState>,
) -> Vec<(String, DeliveryState)> {
    let query = DeliveryQuery { list: stage.list(), endpoint, state };
    let mut items = stage.db.list_deliveries(query).await.unwrap().items;
    items.reverse();
    items.into_iter().map(|delivery| (delivery.kind, delivery.state)).collect()
}

async fn kinds(stage: &Stage, endpoint: WebhookEndpointId) -> Vec<String> {
    let mut kinds: Vec<String> =
        deliveries(stage, endpoint, None).await.into_iter().map(|(kind, _)| kind).collect();
    // Those of one moment have no order.
    kinds.sort_unstable();
    kinds
}

fn taking(node: NodeId, most: usize) -> ClaimDeliveries {
    ClaimDeliveries { node, most, most_of_one: 2, except: Vec::new(), until: Time::now().after(60_000) }
}

fn active(is_active: bool) -> EndpointChange {
    Box::new(move |endpoint| Ok((endpoint.body.clone(), Some(is_active))))
}

async fn endpoints_are_changed_listed_and_deleted(stage: Stage) {
    let (tenant, one) = (stage.tenant, endpoint(&stage, json!(["session.*"])).await);
    let two = endpoint(&stage, json!(["*"])).await;
    let listed = stage.db.list_endpoints(stage.list()).await.unwrap().items;
    assert_eq!(listed.iter().map(|endpoint| endpoint.id).collect::<Vec<_>>(), [two, one]);
    assert!(listed[0].is_active && listed[0].failures == 0);
    let rename: EndpointChange = Box::new(|endpoint| {
        Ok((EndpointBody { description: "mine".to_owned(), ..endpoint.body.clone() }, Some(false)))
    });
    let changed = now(stage.db.update_endpoint(tenant, one, rename, plain()).await.unwrap());
    assert_eq!((changed.body.description.as_str(), changed.is_active), ("mine", false));
    assert_eq!(changed.disabled_reason.as_deref(), Some("manual"));
    assert_eq!(stage.db.endpoint(tenant, one).await.unwrap(), changed);
    assert!(is_conflict(&stage.db.test_endpoint(tenant, one, plain()).await), "it is disabled");
    now(stage.db.test_endpoint(tenant, two, plain()).await.unwrap());
    assert_eq!(kinds(&stage, two).await, ["webhook.test"]);
    now(stage.db.delete_endpoint(tenant, two, plain()).await.unwrap());
    assert!(is_not_found(&stage.db.endpoint(tenant, two).await));
    assert!(stage.db.next_delivery().await.unwrap().is_none(), "nothing waits for it");
    assert!(is_not_found(&stage.db.endpoint(TenantId::random(), one).await));
    for _ in 1..MOST_ENDPOINTS {
        endpoint(&stage, json!(["session.*"])).await;
    }
    let body = EndpointBody::create(&json!({ "url": "https://example.com/", "events": ["*"] })).unwrap();
    let new = NewEndpoint { tenant, id: WebhookEndpointId::random(), body, sealed: Vec::new() };
    assert!(is_conflict(&stage.db.create_endpoint(new, plain()).await), "there are too many");
}

async fn notices_are_queued_with_what_they_are_about(stage: Stage) {
    let all = endpoint(&stage, json!(["*"])).await;
    let few = endpoint(&stage, json!(["session.requires_action", "agent.*"])).await;
    let (session, claim, _) = stage.claimed().await;
    let mut append = stage.append(&claim, 0, 1);
    append.session = session;
    append.taken = 1;
    append.begins = true;
    append.events = vec![event("agent.tool_use", 1)];
    append.rest = Some(rest(1, StopReason::RequiresAction { event_ids: Vec::new() }));
    assert!(stage.db.append(append).await.unwrap().rests);
    now(stage.db.archive_session(stage.tenant, session, plain()).await.unwrap());
    assert_eq!(
        kinds(&stage, all).await,
        [
            "session.archived",
            "session.created",
            "session.idled",
            "session.requires_action",
            "session.running",
            "session.status_idled",
            "session.status_run_started",
        ]
    );
    assert_eq!(kinds(&stage, few).await, ["session.requires_action"]);
    now(stage.db.archive_agent(stage.tenant, stage.agent, plain()).await.unwrap());
    assert_eq!(kinds(&stage, few).await, ["agent.archived", "session.requires_action"]);
    let due = stage.db.claim_deliveries(taking(NodeId::random(), 100)).await.unwrap();
    for due in due.iter().filter(|due| due.kind.starts_with("session.")) {
        let notice: Value = serde_json::from_str(&due.body).unwrap();
        assert_eq!((&notice["data"]["id"], &notice["data"]["type"]), (&json!(session), &json!(due.kind)));
    }
    assert_eq!((due[0].sealed.as_slice(), due[0].data_key.len()), (&[5][..], 32));
    let refused = stage.append(&claim, 7, 1);
    assert!(stage.db.append(refused).await.is_err());
    assert_eq!(kinds(&stage, all).await.len(), 8, "what is not stored is worth no notice");
}

async fn test_notices(stage: &Stage, endpoint: WebhookEndpointId, count: usize) {
    for _ in 0..count {
        now(stage.db.test_endpoint(stage.tenant, endpoint, plain()).await.unwrap());
    }
}

async fn a_notice_is_taken_by_one_node(stage: Stage) {
    let [one, two] = [endpoint(&stage, json!(["vault.*"])).await, endpoint(&stage, json!(["vault.*"])).await];
    test_notices(&stage, one, 4).await;
    test_notices(&stage, two, 1).await;
    let several = (0..4).map(|_| {
        let stage = stage.clone();
        tokio::spawn(async move { stage.db.claim_deliveries(taking(NodeId::random(), 3)).await.unwrap() })
    });
    let mut taken: Vec<DueDelivery> =
        futures::future::join_all(several).await.into_iter().flat_map(Result::unwrap).collect();
    // Nodes leave alone what others look at.
    taken.extend(stage.db.claim_deliveries(taking(NodeId::random(), 3)).await.unwrap());
    taken.extend(stage.db.claim_deliveries(taking(NodeId::random(), 3)).await.unwrap());
    let mut ids: Vec<_> = taken.iter().map(|due| due.id.0).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((taken.len(), ids.len()), (5, 5));
    assert!(stage.db.next_delivery().await.unwrap().unwrap() > Time::now().after(30_000));
    test_notices(&stage, one, 3).await;
    let busy = ClaimDeliveries { except: vec![one], ..taking(NodeId::random(), 9) };
    assert!(stage.db.claim_deliveries(busy).await.unwrap().is_empty());
    assert_eq!(stage.db.claim_deliveries(taking(NodeId::random(), 9)).await.unwrap().len(), 2, "of one");
}

async fn a_notice_is_tried_until_it_is_given_up(stage: Stage) {
    let (tenant, id, node) = (stage.tenant, endpoint(&stage, json!(["vault.*"])).await, NodeId::random());
    let tried = |status: Option<u16>, error: Option<&str>| {
        let attempt = Attempt { status, error: error.map(str::to_owned) };
        let stage = stage.clone();
        async move {
            let due = stage.db.claim_deliveries(taking(node, 1)).await.unwrap().remove(0);
            let strange = stage.db.finish_delivery(due.id, NodeId::random(), attempt.clone(), EAGER).await;
            assert!(!strange.unwrap(), "it is not its own");
            assert!(stage.db.finish_delivery(due.id, node, attempt.clone(), EAGER).await.unwrap());
            assert!(!stage.db.finish_delivery(due.id, node, attempt, EAGER).await.unwrap(), "twice");
            stage.db.endpoint(tenant, id).await.unwrap()
        }
    };
    test_notices(&stage, id, 1).await;
    let failed = tried(Some(500), Some("500\0")).await;
    assert_eq!((failed.failures, failed.is_active), (1, true));
    let fine = tried(Some(204), None).await;
    assert_eq!((fine.failures, fine.last_success_at.is_some()), (0, true));
    assert_eq!(deliveries(&stage, id, Some(DeliveryState::Delivered)).await.len(), 1);
    test_notices(&stage, id, 2).await;
    tried(None, Some("no answer")).await;
    let given_up = loop {
        let endpoint = tried(None, Some("no answer")).await;
        if !endpoint.is_active {
            break endpoint;
        }
    };
    assert_eq!(given_up.disabled_reason.as_deref(), Some("delivery_failed"));
    assert_eq!(deliveries(&stage, id, Some(DeliveryState::Failed)).await.len(), 1);
    assert_eq!(deliveries(&stage, id, Some(DeliveryState::Pending)).await.len(), 1, "it waits");
    assert!(stage.db.claim_deliveries(taking(node, 9)).await.unwrap().is_empty());
    assert!(stage.db.next_delivery().await.unwrap().is_none());
    let enabled = now(stage.db.update_endpoint(tenant, id, active(true), plain()).await.unwrap());
    assert_eq!((enabled.is_active, enabled.failures, enabled.disabled_reason), (true, 0, None));
    let gone = tried(Some(410), Some("gone")).await;
    assert_eq!((gone.is_active, gone.disabled_reason.as_deref()), (false, Some("gone")));
    let later = Time::now().after(31 * 24 * 60 * 60 * 1000);
    assert_eq!(stage.db.clean(later).await.unwrap(), 3);
}

async fn notices_of_a_node_that_is_gone_are_due(stage: Stage) {
    let (id, home) = (endpoint(&stage, json!(["vault.*"])).await, NodeId::random());
    let [gone, next] = [NodeId::random(), NodeId::random()];
    stage.db.register_node(node_row(gone, home)).await.unwrap();
    test_notices(&stage, id, 1).await;
    assert_eq!(stage.db.claim_deliveries(taking(gone, 9)).await.unwrap().len(), 1);
    stage.db.void_deliveries(gone).await.unwrap();
    assert!(stage.db.claim_deliveries(taking(gone, 9)).await.unwrap().is_empty(), "its own stay");
    stage.db.register_node(node_row(next, home)).await.unwrap();
    stage.db.void_deliveries(next).await.unwrap();
    assert_eq!(stage.db.claim_deliveries(taking(next, 9)).await.unwrap().len(), 1);
}

async fn deployment(stage: &Stage, schedule: Value) -> DeploymentId {
    let fields =
        DeploymentFields::create(&json!({ "name": "nightly", "agent": stage.agent, "schedule": schedule,
        "environment_id": stage.environment, "initial_events": [message("go")] }))
        .unwrap();
    let body = fields.body((stage.agent, 1), ("ana", "t"));
    let id = DeploymentId::random();
    let new = NewDeployment { tenant: stage.tenant, id, agent: stage.agent, body, sealed: vec![6] };
    now(stage.db.create_deployment(new, plain()).await.unwrap()).deployment.id
}

fn daily() -> Value {
    json!({ "type": "cron", "expression": "0 9 * * *" })
}

fn becomes(paused: Option<Paused>, is_archived: bool) -> DeploymentChange {
    Box::new(move |row| {
        Ok(Some(NextDeployment {
            agent: row.deployment.agent,
            body: row.deployment.body.clone(),
            sealed: row.sealed.clone(),
            paused,
            is_archived,
            kind: "deployment.updated",
        }))
    })
}

async fn deployments_are_changed_and_listed(stage: Stage) {
    let tenant = stage.tenant;
    let [one, two] = [deployment(&stage, daily()).await, deployment(&stage, Value::Null).await];
    let row = stage.db.deployment(tenant, one).await.unwrap();
    assert!(row.deployment.next_at.unwrap() > Time::now() && row.sealed == [6]);
    assert_eq!(stage.db.next_run().await.unwrap(), row.deployment.next_at);
    let paused = now(stage
        .db
        .update_deployment(tenant, one, becomes(Some(Paused::Manual), false), plain())
        .await
        .unwrap());
    assert_eq!((paused.deployment.next_at, &paused.deployment.paused), (None, &Some(Paused::Manual)));
    assert_eq!(stage.db.next_run().await.unwrap(), None);
    let same: DeploymentChange = Box::new(|_| Ok(None));
    assert_eq!(now(stage.db.update_deployment(tenant, one, same, plain()).await.unwrap()), paused);
    let query = DeploymentQuery { list: stage.list(), agent: None, is_paused: None };
    let ids = |query| {
        let stage = stage.clone();
        async move {
            let page = stage.db.list_deployments(query).await.unwrap();
            page.items.iter().map(|deployment| deployment.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(ids(query).await, [two, one]);
    assert_eq!(
        ids(DeploymentQuery { is_paused: Some(true), agent: Some(stage.agent), ..query }).await,
        [one]
    );
    assert_eq!(ids(DeploymentQuery { is_paused: Some(false), ..query }).await, [two]);
    now(stage.db.update_deployment(tenant, two, becomes(None, true), plain()).await.unwrap());
    assert_eq!(ids(query).await, [one], "archived ones are left out");
    assert!(is_not_found(&stage.db.deployment(TenantId::random(), one).await));
    assert!(is_not_found(&stage.db.run(tenant, DeploymentRunId::random()).await));
}

/// Makes every schedule due.
async fn come_due(stage: &Stage) {
    stage.sql("UPDATE deployments SET next_at = 1000 WHERE next_at IS NOT NULL").await;
}

async fn a_schedule_that_is_due_runs_once(stage: Stage) {
    let (id, home) = (deployment(&stage, daily()).await, NodeId::random());
    let nodes = [NodeId::random(), NodeId::random()];
    stage.db.register_node(node_row(nodes[0], home)).await.unwrap();
    if stage.db.is_shared() {
        stage.db.register_node(node_row(nodes[1], NodeId::random())).await.unwrap();
    }
    assert!(stage.db.claim_runs(nodes[0], 9).await.unwrap().is_empty());
    come_due(&stage).await;
    let both = nodes.map(|node| {
        let stage = stage.clone();
        tokio::spawn(async move { stage.db.claim_runs(node, 9).await.unwrap() })
    });
    let [one, other] = both;
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    let holder = if one.is_empty() { nodes[1] } else { nodes[0] };
    let due: Vec<_> = one.into_iter().chain(other).collect();
    assert_eq!(due.len(), 1, "{due:?}");
    assert_eq!((due[0].run.trigger, due[0].run.deployment), (Trigger::Schedule(Time(1000)), id));
    assert_eq!((due[0].row.sealed.as_slice(), due[0].data_key.len()), (&[6][..], 32));
    assert!(stage.db.next_run().await.unwrap().unwrap() > Time::now(), "the next time");
    stage.db.void_runs(holder).await.unwrap();
    assert!(stage.db.claim_runs(holder, 9).await.unwrap().is_empty(), "its own stays");
    stage.db.remove_node(holder).await.unwrap();
    let next = NodeId::random();
    stage.db.register_node(node_row(next, NodeId::random())).await.unwrap();
    stage.db.void_runs(next).await.unwrap();
    assert_eq!(stage.db.next_run().await.unwrap(), Some(Time(0)), "it was left");
    let again = stage.db.claim_runs(next, 9).await.unwrap();
    assert_eq!((again.len(), &again[0].run), (1, &due[0].run));
}

fn manual(stage: &Stage, deployment: DeploymentId) -> Run {
    Run {
        id: DeploymentRunId::random(),
        tenant: stage.tenant,
        deployment,
        agent: stage.agent,
        agent_version: 1,
        trigger: Trigger::Manual,
        session: None,
        error: None,
        created_at: Time::now(),
    }
}

async fn a_run_ends_once_with_its_session(stage: Stage) {
    let (tenant, id) = (stage.tenant, deployment(&stage, daily()).await);
    let hook = endpoint(&stage, json!(["deployment_run.*"])).await;
    let run = manual(&stage, id);
    let create = || CreateSession { run: Some(run.clone()), ..stage.create(&[message("go")]) };
    let (row, _) = now(stage.db.create_session(create(), plain()).await.unwrap());
    assert_eq!(row.session.deployment, Some(id));
    let ended = stage.db.run(tenant, run.id).await.unwrap();
    assert_eq!((ended.session, ended.error), (Some(row.session.id), None));
    assert!(is_conflict(&stage.db.create_session(create(), plain()).await), "it ended");
    let (_, _) = stage.session().await;
    let query = |deployment| SessionQuery {
        list: stage.list(),
        agent: None,
        agent_version: None,
        deployment,
        memory_store: None,
        statuses: vec![Status::Running, Status::Idle],
    };
    let of_it = stage.db.list_sessions(query(Some(id))).await.unwrap().items;
    assert_eq!(of_it.iter().map(|row| row.session.id).collect::<Vec<_>>(), [row.session.id]);
    assert_eq!(stage.db.list_sessions(query(None)).await.unwrap().items.len(), 2);
    assert_eq!(kinds(&stage, hook).await, ["deployment_run.started", "deployment_run.succeeded"]);
    assert_eq!(stage.db.deployment(tenant, id).await.unwrap().deployment.last_run_at, Some(run.created_at));
    let runs = RunQuery { list: stage.list(), deployment: Some(id), has_error: None, is_scheduled: None };
    assert_eq!(stage.db.list_runs(runs).await.unwrap().items.len(), 1);
    assert!(
        stage.db.list_runs(RunQuery { is_scheduled: Some(true), ..runs }).await.unwrap().items.is_empty()
    );
    assert!(stage.db.list_runs(RunQuery { has_error: Some(true), ..runs }).await.unwrap().items.is_empty());
    let missing = RunQuery { deployment: Some(DeploymentId::random()), ..runs };
    assert!(is_not_found(&stage.db.list_runs(missing).await));
}

async fn a_run_that_fails_pauses_its_schedule(stage: Stage) {
    let (tenant, id) = (stage.tenant, deployment(&stage, daily()).await);
    let error = RunError::new(Some("agent_archived"), false, "it is archived");
    let failed = Run { error: Some(error.clone()), ..manual(&stage, id) };
    now(stage.db.fail_run(failed.clone(), plain()).await.unwrap());
    assert_eq!(stage.db.run(tenant, failed.id).await.unwrap(), failed);
    assert!(is_conflict(&stage.db.fail_run(failed, plain()).await), "it ended");
    assert!(stage.db.deployment(tenant, id).await.unwrap().deployment.paused.is_none(), "a client asked");
    come_due(&stage).await;
    let due = stage.db.claim_runs(NodeId::random(), 9).await.unwrap().remove(0);
    now(stage.db.fail_run(Run { error: Some(error.clone()), ..due.run }, plain()).await.unwrap());
    let paused = stage.db.deployment(tenant, id).await.unwrap().deployment;
    assert_eq!((paused.next_at, paused.paused), (None, Some(Paused::Error { error })));
    assert_eq!(stage.db.next_run().await.unwrap(), None);
}
