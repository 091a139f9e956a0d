//! Requests with a key count once, also when they come at the same time.

use qoder_server::store::{Done, KeptAnswer};

use super::support::{Stage, behaviours, is_conflict, keyed, message};

behaviours!(a_second_request_gets_the_first_answer, twins_have_one_effect, a_refused_request_keeps_no_answer);

fn kept(body: &str) -> KeptAnswer {
    KeptAnswer { status: 200, body: body.as_bytes().to_vec() }
}

async fn a_second_request_gets_the_first_answer(stage: Stage) {
    let first = stage.db.create_session(stage.create(&[]), keyed("k", "d", "first")).await.unwrap();
    assert_eq!(first.answer(), kept("first"));
    let again = stage.db.create_session(stage.create(&[]), keyed("k", "d", "second")).await.unwrap();
    assert_eq!(again, Done::Before(kept("first")));
    let other = stage.db.create_session(stage.create(&[]), keyed("k", "another", "x")).await;
    assert!(is_conflict(&other), "the same key for something else");
    let query = qoder_server::store::SessionQuery {
        list: stage.list(),
        agent: None,
        agent_version: None,
        deployment: None,
        memory_store: None,
        statuses: Vec::new(),
    };
    assert_eq!(stage.db.list_sessions(query).await.unwrap().items.len(), 1);
}

async fn twins_have_one_effect(stage: Stage) {
    let (id, key) = stage.session().await;
    let twins = (0..8).map(|_| {
        let stage = stage.clone();
        tokio::spawn(async move {
            let sending = stage.sending(id, &[message("go")], None);
            stage.db.send_inputs(sending, keyed("k", "d", "sent")).await.unwrap()
        })
    });
    let mut happened = 0;
    for twin in futures::future::join_all(twins).await {
        let done = twin.unwrap();
        happened += usize::from(matches!(done, Done::Now(..)));
        assert_eq!(done.answer(), kept("sent"));
    }
    assert_eq!(happened, 1);
    assert_eq!(stage.kinds(key).await, ["user.message", "session.status_running"]);
}

async fn a_refused_request_keeps_no_answer(stage: Stage) {
    let (id, _) = stage.session().await;
    let unknown = qoder_server::model::ids::EventId::now();
    let confirm = serde_json::json!({ "type": "user.tool_confirmation", "tool_use_id": unknown.to_string(),
        "result": "allow" });
    let refused = stage.db.send_inputs(stage.sending(id, &[confirm], None), keyed("k", "d", "x")).await;
    assert!(refused.is_err());
    let served = stage.db.send_inputs(stage.sending(id, &[message("go")], None), keyed("k", "d", "y")).await;
    assert_eq!(served.unwrap().answer(), kept("y"), "the key is free");
}
