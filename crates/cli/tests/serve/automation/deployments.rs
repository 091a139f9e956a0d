//! Deployments: sessions that a client or a schedule begins, each time once, also over the end of a server.

use std::time::{Duration, Instant};

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use crate::serve::support::{PATIENCE, Server, id, kind};

const DEPLOYMENTS: &str = "/api/v1/cloud/deployments";
const SECRET: &str = "token-that-is-never-shown";

fn server() -> Server {
    Server::scripted(Script::by_assistant_count(vec![Reply::text("done"), Reply::text("again")]))
}

fn body(server: &Server, schedule: &Value) -> Value {
    json!({ "name": "nightly", "agent": server.agent(&json!([])), "environment_id": server.environment(),
        "initial_events": [{ "type": "user.message", "content": "look around" }], "schedule": schedule,
        "environment_variables": { "KEY": SECRET }, "metadata": { "team": "docs" } })
}

fn cron(expression: &str) -> Value {
    json!({ "type": "cron", "expression": expression, "timezone": "Europe/Berlin" })
}

fn runs(server: &Server, deployment: &str) -> Vec<Value> {
    server.get(&format!("{DEPLOYMENTS}/{deployment}/runs")).ok()["data"].as_array().unwrap().clone()
}

/// Waits until a deployment has this many runs that ended.
fn wait(server: &Server, deployment: &str, count: usize) -> Vec<Value> {
    let until = Instant::now() + PATIENCE;
    loop {
        let runs = runs(server, deployment);
        let ended = runs.iter().filter(|run| !run["session_id"].is_null() || !run["error"].is_null());
        if ended.count() >= count {
            return runs;
        }
        assert!(Instant::now() < until, "{runs:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Changes the database of a server that does not run.
fn change(server: &Server, sql: &str) {
    rusqlite::Connection::open(server.data().join("server.db")).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_client_runs_a_deployment() {
    let server = server();
    let created = server.post(DEPLOYMENTS, &body(&server, &Value::Null)).ok();
    assert_eq!((&created["status"], &created["schedule"]), (&json!("active"), &Value::Null));
    assert_eq!(created["agent"]["version"], 1, "the version is fixed");
    assert!(!created.to_string().contains(SECRET));
    let deployment = id(&created);
    let path = format!("{DEPLOYMENTS}/{deployment}");
    let key = [("idempotency-key", "once")];
    let run = server.request("POST", &format!("{path}/run"), &key, b"").ok();
    assert_eq!((&run["trigger_context"]["type"], &run["error"]), (&json!("manual"), &Value::Null));
    let again = server.request("POST", &format!("{path}/run"), &key, b"").ok();
    assert_eq!(again, run, "a key makes a run count once");
    let session = run["session_id"].as_str().unwrap().to_owned();
    let until = Instant::now() + PATIENCE;
    while server.status(&session) != "idle" || !server.kinds(&session).contains(&"agent.message".to_owned()) {
        assert!(Instant::now() < until, "{:?}", server.kinds(&session));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(kind(&server.events(&session)[0]), "user.message");
    let read = server.get(&format!("/v1/sessions/{session}")).ok();
    assert_eq!(
        (&read["deployment_id"], &read["environment_variables"]["KEY"]),
        (&json!(deployment), &json!(SECRET))
    );
    let listed = server.get(&format!("/v1/sessions?deployment_id={deployment}")).ok();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    let listed = server.claude(
        "GET",
        &format!("/v1/deployment_runs?deployment_id={deployment}&has_error=false"),
        &json!({}),
    );
    assert_eq!(listed.ok()["data"], json!([run]));
    assert_eq!(server.get(&format!("{path}/runs/{}", id(&run))).ok(), run);
    assert_eq!(server.get(&format!("/v1/deployment_runs/{}", id(&run))).ok(), run);
    let none = server.get(&format!("{path}/runs?trigger_type=schedule")).ok();
    assert_eq!(none["data"], json!([]));
}

#[test]
fn a_deployment_is_changed_paused_and_archived() {
    let server = server();
    let created = server.post(DEPLOYMENTS, &body(&server, &cron("0 9 * * 1-5"))).ok();
    let (deployment, schedule) = (id(&created), &created["schedule"]);
    let path = format!("{DEPLOYMENTS}/{deployment}");
    assert_eq!(schedule["upcoming_runs_at"].as_array().unwrap().len(), 5, "{schedule}");
    assert_eq!(schedule["timezone"], "Europe/Berlin");
    let update = json!({ "name": "weekly", "schedule": cron("0 9 * * 1"), "metadata": { "team": null } });
    let updated = server.claude("POST", &path.replace("/api/v1/cloud", "/v1"), &update).ok();
    assert_eq!((&updated["name"], &updated["metadata"]), (&json!("weekly"), &json!({})));
    assert_ne!(updated["schedule"]["upcoming_runs_at"], schedule["upcoming_runs_at"]);
    let paused = server.post(&format!("{path}/pause"), &json!({})).ok();
    assert_eq!(
        (&paused["status"], &paused["paused_reason"]),
        (&json!("paused"), &json!({ "type": "manual" }))
    );
    assert_eq!(paused["schedule"]["upcoming_runs_at"], json!([]));
    assert_eq!(server.get(&format!("{DEPLOYMENTS}?status=paused")).ok()["data"][0]["id"], json!(deployment));
    let run = server.post(&format!("{path}/run"), &json!({})).ok();
    assert!(run["session_id"].is_string(), "a client may run what is paused");
    let active = server.post(&format!("{path}/unpause"), &json!({})).ok();
    assert_eq!((&active["status"], &active["paused_reason"]), (&json!("active"), &Value::Null));
    assert_eq!(active["schedule"]["upcoming_runs_at"].as_array().unwrap().len(), 5);
    let archived = server.post(&format!("{path}/archive"), &json!({})).ok();
    assert!(archived["archived_at"].is_string());
    for action in ["run", "pause", "unpause"] {
        assert_eq!(server.post(&format!("{path}/{action}"), &json!({})).error(409).0, "conflict_error");
    }
    assert_eq!(server.get(DEPLOYMENTS).ok()["data"], json!([]));
    for (change, field) in [
        (json!({ "schedule": cron("0 9 * *") }), "schedule.expression"),
        (
            json!({ "schedule": { "type": "cron", "expression": "0 9 * * *", "timezone": "Nowhere" } }),
            "schedule.timezone",
        ),
        (json!({ "initial_events": [] }), "initial_events"),
        (json!({ "agent": null }), "agent"),
        (json!({ "resources": [{ "type": "nothing" }] }), "resources[0]"),
    ] {
        let mut wrong = body(&server, &Value::Null);
        wrong.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        assert!(server.post(DEPLOYMENTS, &wrong).error(400).1.contains(field), "{wrong}");
    }
}

#[test]
fn a_schedule_runs_each_time_once_also_after_the_server_was_down() {
    let mut server = server();
    let deployment = id(&server.post(DEPLOYMENTS, &body(&server, &cron("0 3 1 1 *"))).ok());
    server.kill();
    // The time came while no server ran.
    change(&server, "UPDATE deployments SET next_at = 1000000");
    server.start_again();
    let run = wait(&server, &deployment, 1).remove(0);
    assert_eq!(
        run["trigger_context"],
        json!({ "type": "schedule", "scheduled_at": "1970-01-01T00:00:01.000000Z" })
    );
    let read = server.get(&format!("{DEPLOYMENTS}/{deployment}")).ok();
    assert_eq!(read["schedule"]["last_run_at"], run["created_at"]);
    assert_eq!(read["schedule"]["upcoming_runs_at"].as_array().unwrap().len(), 5);
    // A node took a run and was killed before it made the session.
    server.kill();
    change(&server, "UPDATE deployment_runs SET session_id = NULL, claimed_by = x'00'");
    server.start_again();
    let finished = wait(&server, &deployment, 1);
    assert_eq!((finished.len(), &finished[0]["id"]), (1, &run["id"]), "the same run is finished");
    assert_ne!(finished[0]["session_id"], run["session_id"]);
    // What ended is not begun again.
    server.kill();
    server.start_again();
    let second = id(&server.post(DEPLOYMENTS, &body(&server, &Value::Null)).ok());
    server.post(&format!("{DEPLOYMENTS}/{second}/run"), &json!({})).ok();
    wait(&server, &second, 1);
    assert_eq!(runs(&server, &deployment).len(), 1);
}

#[test]
fn a_run_that_cannot_have_a_session_says_why_and_pauses_the_schedule() {
    let mut server = server();
    let body = body(&server, &cron("0 3 1 1 *"));
    let deployment = id(&server.post(DEPLOYMENTS, &body).ok());
    let environment = body["environment_id"].as_str().unwrap();
    server.post(&format!("/v1/environments/{environment}/archive"), &json!({})).ok();
    let path = format!("{DEPLOYMENTS}/{deployment}");
    let run = server.post(&format!("{path}/run"), &json!({})).ok();
    assert_eq!(
        (&run["error"]["type"], &run["session_id"]),
        (&json!("environment_archived_error"), &Value::Null)
    );
    assert_eq!(server.get(&path).ok()["status"], "active", "a client sees the error itself");
    server.kill();
    change(&server, "UPDATE deployments SET next_at = 1000000");
    server.start_again();
    let failed = wait(&server, &deployment, 2);
    assert_eq!(failed[0]["error"]["type"], "environment_archived_error");
    let paused = server.get(&path).ok();
    assert_eq!((&paused["status"], &paused["paused_reason"]["type"]), (&json!("paused"), &json!("error")));
    assert_eq!(paused["paused_reason"]["error"]["type"], "environment_archived_error");
    assert_eq!(server.get("/v1/deployment_runs?has_error=true").ok()["data"].as_array().unwrap().len(), 2);
}
