//! Webhooks: notices about what happens, signed, tried until they are taken, and kept over the end of the server.

use std::time::{Duration, Instant};

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::receiver::Receiver;
use crate::serve::support::{PATIENCE, Server, bash, id, toolset};

const ENDPOINTS: &str = "/api/v1/cloud/webhook/endpoints";

/// A server that tries a notice again soon, this often.
fn server(replies: Vec<Reply>, first_pause_ms: u32, tries: u32) -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("serve.yaml");
    let webhooks = json!({ "webhooks": { "first_pause_ms": first_pause_ms, "tries": tries } });
    std::fs::write(&config, webhooks.to_string()).unwrap();
    let script = Script::by_assistant_count(replies);
    (Server::with(Some(script), &["--config", config.to_str().unwrap()], &[]), folder)
}

fn endpoint(server: &Server, receiver: &Receiver, events: &[&str]) -> String {
    id(&server.post(ENDPOINTS, &json!({ "url": receiver.url, "events": events })).ok())
}

/// Waits until the endpoint reads as it should.
fn wait(server: &Server, path: &str, is_enough: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let value = server.get(path).ok();
        if is_enough(&value) {
            return value;
        }
        assert!(Instant::now() < until, "{value}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn endpoints_are_kept_and_show_their_secret_once() {
    let server = Server::offline();
    let body = json!({ "url": "http://127.0.0.1:9/hook", "events": ["agent.*", "session.created"],
        "description": "ours", "metadata": { "team": "docs" } });
    let created = server.post(ENDPOINTS, &body).ok();
    assert!(created["signing_secret"].as_str().unwrap().starts_with("whsec_"), "{created}");
    assert_eq!((&created["active"], &created["consecutive_fail"]), (&json!(true), &json!(0)));
    let path = format!("{ENDPOINTS}/{}", id(&created));
    let read = server.get(&path).ok();
    assert_eq!((read.get("signing_secret"), &read["metadata"]["team"]), (None, &json!("docs")));
    let update = json!({ "events": ["*"], "metadata": { "team": null }, "active": false }).to_string();
    let updated = server.request("PUT", &path, &[], update.as_bytes()).ok();
    assert_eq!((&updated["events"], &updated["metadata"]), (&json!(["*"]), &json!({})));
    assert_eq!((&updated["active"], &updated["disabled_reason"]), (&json!(false), &json!("manual")));
    assert_eq!(server.post(&format!("{path}/test"), &json!({})).error(409).0, "conflict_error");
    assert_eq!(server.post(&format!("{path}/enable"), &json!({})).ok()["disabled_reason"], Value::Null);
    assert_eq!(server.post(&format!("{path}/disable"), &json!({})).ok()["active"], false);
    let listed = server.claude("GET", "/v1/webhook/endpoints?limit=1", &json!({})).ok();
    assert_eq!((&listed["data"][0]["id"], &listed["has_more"]), (&created["id"], &json!(false)));
    for (wrong, field) in [
        (json!({ "url": "http://127.0.0.1:9", "events": ["session.x"] }), "events"),
        (json!({ "url": "http://127.0.0.1:9" }), "events"),
        (json!({ "url": "http://example.com/", "events": ["*"] }), "url"),
        (json!({ "events": ["*"] }), "url"),
    ] {
        assert!(server.post(ENDPOINTS, &wrong).error(400).1.contains(field), "{wrong}");
    }
    let other = server.token(&["--user", "bob"]);
    let bearer = format!("Bearer {other}");
    assert_eq!(server.bare("GET", &path, &[("authorization", &bearer)], b"").status, 404);
    assert_eq!(server.delete(&path).ok()["type"], "webhook_endpoint_deleted");
    assert_eq!(server.get(&path).error(404).0, "not_found_error");
}

#[test]
fn an_endpoint_gets_what_it_asked_for() {
    let (server, _folder) = server(vec![bash("echo hi"), Reply::text("done")], 100, 8);
    let everything = Receiver::answering(&[204]);
    let asked = Receiver::answering(&[200]);
    endpoint(&server, &everything, &["*"]);
    let sessions = endpoint(&server, &asked, &["session.requires_action", "vault.*"]);
    let session = server.session(&json!([toolset(&[("Bash", "always_ask")])]));
    server.ask(&session, "go");
    let notices =
        everything.wait(|notices| notices.iter().any(|notice| notice.kind() == "session.requires_action"));
    let kinds: Vec<String> = notices.iter().map(super::receiver::Notice::kind).collect();
    for kind in ["agent.created", "environment.created", "session.created"] {
        assert!(kinds.iter().any(|other| other == kind), "{kind}: {kinds:?}");
    }
    let waits = asked.wait(|notices| !notices.is_empty()).remove(0);
    assert_eq!((&waits.body["data"]["id"], &waits.body["type"]), (&json!(session), &json!("event")));
    assert_eq!(waits.header("webhook-id"), waits.body["id"].as_str().unwrap());
    assert_eq!(waits.header("webhook-event-type"), "session.requires_action");
    assert!(waits.header("webhook-signature").starts_with("v1,"));
    assert_eq!(waits.header("user-agent"), "QoderCloudAgents-Webhook/1.0");
    assert_eq!(waits.header("content-type"), "application/json; charset=utf-8");
    server.post("/v1/vaults", &json!({ "display_name": "Ana's" })).ok();
    asked.wait(|notices| notices.iter().any(|notice| notice.kind() == "vault.created"));
    let test = server.post(&format!("{ENDPOINTS}/{sessions}/test"), &json!({}));
    assert_eq!((test.status, &test.json()["delivery_rows"]), (202, &json!(1)));
    let tested = asked.wait(|notices| notices.len() == 3).pop().unwrap();
    assert_eq!((tested.kind().as_str(), &tested.body["id"]), ("webhook.test", &test.json()["event_id"]));
    let path = format!("{ENDPOINTS}/{sessions}/deliveries");
    let done = wait(&server, &format!("{path}?status=delivered"), |page| {
        page["data"].as_array().unwrap().len() == 3
    });
    assert_eq!(
        (&done["data"][0]["event_type"], &done["data"][0]["attempts"]),
        (&json!("webhook.test"), &json!(1))
    );
    assert_eq!(done["data"][0]["response_status"], 200);
    assert_eq!(asked.count(), 3, "no notice comes twice");
}

#[test]
fn a_notice_is_tried_until_it_is_taken_also_by_the_next_server() {
    let (mut server, _folder) = server(vec![], 200, 8);
    let receiver = Receiver::answering(&[500, 503, 200]);
    let endpoint = endpoint(&server, &receiver, &["vault.created"]);
    server.post("/v1/vaults", &json!({ "display_name": "Ana's" })).ok();
    receiver.wait(|notices| !notices.is_empty());
    server.kill();
    server.start_again();
    let tries = receiver.wait(|notices| notices.len() == 3);
    let ids: Vec<&str> = tries.iter().map(|notice| notice.header("webhook-id")).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert!(tries.iter().all(|notice| notice.body == tries[0].body));
    let path = format!("{ENDPOINTS}/{endpoint}");
    let healthy = wait(&server, &path, |endpoint| !endpoint["last_success_at"].is_null());
    assert_eq!((&healthy["active"], &healthy["consecutive_fail"]), (&json!(true), &json!(0)));
    assert!(!healthy["last_failure_at"].is_null());
}

#[test]
fn an_endpoint_that_never_takes_a_notice_is_disabled_until_its_owner_enables_it() {
    let (server, _folder) = server(vec![], 20, 3);
    let receiver = Receiver::answering(&[500, 500, 500, 200]);
    let endpoint = endpoint(&server, &receiver, &["vault.*"]);
    let path = format!("{ENDPOINTS}/{endpoint}");
    server.post("/v1/vaults", &json!({ "display_name": "one" })).ok();
    let disabled = wait(&server, &path, |endpoint| endpoint["active"] == false);
    assert_eq!(
        (&disabled["disabled_reason"], &disabled["consecutive_fail"]),
        (&json!("delivery_failed"), &json!(3))
    );
    let failed = server.get(&format!("{path}/deliveries?status=failed")).ok();
    assert_eq!(
        (&failed["data"][0]["attempts"], &failed["data"][0]["response_status"]),
        (&json!(3), &json!(500))
    );
    assert!(failed["data"][0]["error"].as_str().unwrap().contains("500"));
    server.post("/v1/vaults", &json!({ "display_name": "two" })).ok();
    assert_eq!(server.get(&format!("{path}/deliveries?status=pending")).ok()["data"], json!([]));
    server.post(&format!("{path}/enable"), &json!({})).ok();
    server.post("/v1/vaults", &json!({ "display_name": "three" })).ok();
    receiver.wait(|notices| notices.len() == 4);
}

#[test]
fn an_endpoint_that_is_gone_is_disabled_at_once() {
    let (server, _folder) = server(vec![], 20, 8);
    let receiver = Receiver::answering(&[410]);
    let endpoint = endpoint(&server, &receiver, &["vault.*"]);
    server.post("/v1/vaults", &json!({ "display_name": "one" })).ok();
    let path = format!("{ENDPOINTS}/{endpoint}");
    let disabled = wait(&server, &path, |endpoint| endpoint["active"] == false);
    assert_eq!((&disabled["disabled_reason"], receiver.count()), (&json!("gone"), 1));
}
