//! The queue: an item is handed out, acknowledged, kept by heartbeats and stopped; what a lost worker had is handed out again; who
//! has which token reaches what.

use qoder_testkit::Reply;
use serde_json::{Value, json};

use super::support::{Queue, self_hosted, session_in, token_of, tool_result, with_token};
use crate::serve::support::{Cluster, Server, confirm, id, message, toolset};

fn server() -> Server {
    Server::replying(vec![Reply::text("hello"), Reply::text("again")])
}

#[test]
fn an_item_lives_from_the_poll_to_the_stop() {
    let server = server();
    let environment = self_hosted(&server);
    let queue = Queue::of(&server, &environment);
    assert_eq!(queue.get("/poll").ok(), Value::Null);
    let session = session_in(&server, &environment, &json!([]));
    let stats = queue.get("/stats").ok();
    assert_eq!((&stats["depth"], &stats["pending"]), (&json!(1), &json!(0)), "{stats}");
    for wrong in ["block_ms=0", "block_ms=1000", "block_ms=x", "reclaim_older_than_ms=-1"] {
        queue.get(&format!("/poll?{wrong}")).error(400);
    }
    let bearer = format!("Bearer {}", queue.key);
    let headers = [("authorization", bearer.as_str()), ("worker-id", "host-7")];
    let item = server.bare("GET", &format!("{}/poll", queue.path), &headers, b"").ok();
    assert_eq!(item["data"], json!({ "type": "session", "id": session }));
    assert_eq!((&item["state"], &item["environment_id"]), (&json!("queued"), &json!(environment)));
    assert!(!token_of(&item).is_empty());
    assert_eq!(queue.get("/poll?block_ms=50").ok(), Value::Null, "another worker was asked");
    assert_eq!(id(&queue.get("/poll?reclaim_older_than_ms=0").ok()), id(&item), "it does not answer");
    let stats = queue.get("/stats").ok();
    assert_eq!(
        (&stats["depth"], &stats["pending"], &stats["workers_polling"]),
        (&json!(0), &json!(1), &json!(1))
    );
    let path = format!("/{}", id(&item));
    let taken = queue.post(&format!("{path}/ack"), &Value::Null).ok();
    assert_eq!((&taken["state"], &taken["secret"]), (&json!("starting"), &Value::Null));
    queue.post(&format!("{path}/ack"), &Value::Null).error(409);
    let first = queue.beat(&item, "NO_HEARTBEAT", 60).ok();
    assert_eq!(
        (&first["lease_extended"], &first["state"], &first["ttl_seconds"]),
        (&json!(true), &json!("active"), &json!(60))
    );
    let known = first["last_heartbeat"].as_str().unwrap();
    let refused = queue.beat(&item, "NO_HEARTBEAT", 60);
    refused.error(412);
    let details = &refused.json()["error"]["details"];
    let state =
        json!({ "last_heartbeat": known, "lease_extended": false, "state": "active", "ttl_seconds": 60 });
    assert_eq!(
        (&details["error_code"], &details["current_state"]),
        (&json!("heartbeat_precondition_failed"), &state)
    );
    queue.beat(&item, known, 60).ok();
    queue.beat(&item, known, 60).error(412);
    queue.beat(&item, known, 0).error(400);
    let noted = queue.post(&path, &json!({ "metadata": { "host": "seven" } })).ok();
    assert_eq!(noted["metadata"], json!({ "host": "seven" }));
    let stopping = queue.post(&format!("{path}/stop"), &json!({})).ok();
    assert_eq!(stopping["state"], "stopping");
    queue.post(&format!("{path}/stop"), &json!({})).error(409);
    let end = queue.beat(&item, "whatever", 60).ok();
    assert_eq!((&end["lease_extended"], &end["state"]), (&json!(false), &json!("stopping")));
    let stopped = queue.post(&format!("{path}/stop"), &json!({ "force": true })).ok();
    assert!(stopped["stopped_at"].is_string(), "{stopped}");
    let again = queue.post(&format!("{path}/stop"), &json!({ "force": true }));
    again.error(409);
    assert_eq!(again.header("x-should-retry"), Some("false"));
    // A session that rests needs no worker; a message queues it again.
    assert_eq!(queue.states(), ["stopped"]);
    server.ask(&session, "hi");
    assert_eq!(queue.states(), ["queued", "stopped"]);
    assert_eq!(queue.get("?limit=1").ok()["has_more"], true);
    queue.get("/work_00000000000000000000000000000000").error(404);
    server.get(&format!("/v1/environments/{}/work", server.environment())).error(400);
}

#[test]
fn a_lost_workers_item_is_handed_out_again_and_nothing_is_lost_in_a_crash() {
    let mut server = server();
    let environment = self_hosted(&server);
    let session = session_in(&server, &environment, &json!([]));
    let item = {
        let queue = Queue::of(&server, &environment);
        let item = queue.take();
        queue.beat(&item, "NO_HEARTBEAT", 1).ok();
        item
    };
    server.kill();
    server.start_again();
    let queue = Queue::of(&server, &environment);
    let again = queue.take();
    assert_eq!(id(&again), id(&item), "its lease was over");
    assert_eq!(again["latest_heartbeat_at"], Value::Null);
    queue.beat(&again, "NO_HEARTBEAT", 60).ok();
    queue.beat(&item, "NO_HEARTBEAT", 60).error(412);
    // The end of a session ends its work.
    server.post(&format!("/v1/sessions/{session}/archive"), &json!({})).ok();
    assert_eq!(queue.states(), ["stopping"]);
    let other = session_in(&server, &environment, &json!([]));
    server.delete(&format!("/v1/sessions/{other}")).ok();
    assert_eq!(queue.states(), ["stopped", "stopping"]);
    assert_eq!(queue.get("/poll").ok(), Value::Null);
}

#[test]
fn tokens_of_workers_reach_their_work_and_nothing_else() {
    let server = Server::replying(vec![Reply::tool("bash", json!({ "command": "ls" })), Reply::text("done")]);
    let environment = self_hosted(&server);
    let tools = json!([toolset(&[("bash", "always_ask")])]);
    let session = session_in(&server, &environment, &tools);
    let other = session_in(&server, &environment, &tools);
    let foreign = session_in(&server, &self_hosted(&server), &tools);
    let queue = Queue::of(&server, &environment);
    let item = queue.take();
    let token = token_of(&item);
    let call = crate::serve::support::pending(&server.ask(&session, "go")).remove(0);
    let events = |session: &str| format!("/v1/sessions/{session}/events");
    let send = |token: &str, session: &str, event: Value| {
        with_token(&server, token, "POST", &events(session), &json!({ "events": [event] }))
    };
    for token in [&queue.key, &token] {
        with_token(&server, token, "GET", &format!("/v1/sessions/{session}"), &Value::Null).ok();
        with_token(&server, token, "GET", &events(&session), &Value::Null).ok();
        with_token(&server, token, "GET", &format!("/v1/environments/{environment}"), &Value::Null).ok();
        with_token(&server, token, "GET", &format!("{}/{}", queue.path, id(&item)), &Value::Null).ok();
        with_token(&server, token, "GET", &events(&foreign), &Value::Null).error(404);
        send(token, &foreign, tool_result(&call, "x")).error(404);
        for path in ["/v1/agents", "/v1/sessions", "/v1/files", "/v1/vaults", "/v1/environments"] {
            with_token(&server, token, "GET", path, &Value::Null).error(403);
        }
        send(token, &session, confirm(&call, "allow")).error(403);
        send(token, &session, message("hello")).error(403);
        send(token, &session, json!({ "type": "user.interrupt" })).error(403);
    }
    with_token(&server, &queue.key, "GET", &events(&other), &Value::Null).ok();
    with_token(&server, &token, "GET", &events(&other), &Value::Null).error(404);
    with_token(&server, &token, "GET", &format!("{}/poll", queue.path), &Value::Null).error(403);
    with_token(&server, &format!("{token}x"), "GET", &events(&session), &Value::Null).error(401);
    queue.post(&format!("/{}/stop", id(&item)), &json!({ "force": true })).ok();
    with_token(&server, &token, "GET", &events(&session), &Value::Null).error(403);
    let refused = server.operate(&["token", "create", "--user", "x", "--scopes", "environment:other"]);
    assert!(!refused.status.success());
}

#[test]
fn two_nodes_share_one_queue() {
    let cluster =
        Cluster::start(2, Some(qoder_testkit::Script::by_assistant_count(vec![Reply::text("hello")])));
    let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
    let environment = self_hosted(one);
    session_in(one, &environment, &json!([]));
    let queue = Queue::of(one, &environment);
    let at_two = Queue { server: two, key: queue.key.clone(), path: queue.path.clone() };
    let item = at_two.next();
    assert_eq!(queue.get("/poll").ok(), Value::Null);
    queue.post(&format!("/{}/ack", id(&item)), &Value::Null).ok();
    let first = at_two.beat(&item, "NO_HEARTBEAT", 1).ok();
    queue.beat(&item, "NO_HEARTBEAT", 1).error(412);
    queue.beat(&item, first["last_heartbeat"].as_str().unwrap(), 1).ok();
    assert_eq!(id(&at_two.next()), id(&item), "its lease is over");
    at_two.post(&format!("/{}/stop", id(&item)), &json!({ "force": true })).ok();
    assert_eq!(queue.states(), ["stopped"]);
}
