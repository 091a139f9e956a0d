//! What an operator does: starting, tokens, checks, backups, keys, stopping, and a session that stops its node.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use qoder_testkit::{Reply, Sandbox, Script};
use serde_json::{Value, json};

use super::support::{Server, bash, confirm, id, kind, message, pending, toolset};

fn text(output: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn without_any_configuration_the_offline_model_answers() {
    let server = Server::offline();
    let session = server.session(&json!([toolset(&[("Bash", "always_ask")])]));
    let ids = pending(&server.ask(&session, "run `echo hi > f.txt`"));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([confirm(&ids[0], "allow")])).ok();
    stream.until_end_of_turn();
    assert!(server.workspace(&session).join("f.txt").exists());
}

#[test]
fn without_a_provider_a_model_that_was_named_is_an_error() {
    let server = Server::offline();
    let session_with = |model: &str| {
        let agent = id(&server.post("/v1/agents", &json!({ "name": "helper", "model": model })).ok());
        let body = json!({ "agent": agent, "environment_id": server.environment() });
        id(&server.post("/v1/sessions", &body).ok())
    };
    let named = session_with("claude-opus-4-8");
    server.ask(&named, "hello");
    let events = server.events(&named);
    let error = events.iter().find(|event| kind(event) == "session.error").unwrap();
    let text = error["error"]["message"].as_str().unwrap();
    assert!(text.contains("claude-opus-4-8") && text.contains("ANTHROPIC_API_KEY"), "{text}");
    assert!(!events.iter().any(|event| kind(event) == "agent.message"));
    let tier = session_with("ultimate");
    server.ask(&tier, "hello");
    assert!(server.events(&tier).iter().any(|event| kind(event) == "agent.message"));
}

#[test]
fn one_server_has_the_folder_and_commands_work_beside_it() {
    let server = Server::offline();
    let second = server.operate(&["--listen", "127.0.0.1:0"]);
    assert!(!second.status.success() && text(&second).contains("another server uses"), "{}", text(&second));
    let listed = server.operate(&["token", "list"]);
    assert!(text(&listed).contains("active  ana  tenant ana"), "{}", text(&listed));
    assert!(!text(&listed).contains(&server.token), "the secret part is not kept");
    let json_list = server.operate(&["token", "list", "--json"]);
    let row: Value = serde_json::from_slice(&json_list.stdout).unwrap();
    assert_eq!((&row["user"], &row["state"]), (&json!("ana"), &json!("active")));
    let short = server.token(&["--user", "bob", "--expires", "1s"]);
    let bearer = format!("Bearer {short}");
    let until = std::time::Instant::now() + super::support::PATIENCE;
    while server.bare("GET", "/v1/agents", &[("authorization", &bearer)], b"").status == 200 {
        assert!(std::time::Instant::now() < until, "the token does not expire");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(text(&server.operate(&["token", "list"])).contains("expired  bob"));
    for wrong in [
        &["token", "create", "--user", "x", "--expires", "soon"][..],
        &["token", "create", "--user", "x", "--scopes", "all"],
        &["token", "create", "--user", " "],
        &["token", "revoke", "nothing"],
    ] {
        let refused = server.operate(wrong);
        assert!(
            !refused.status.success() && text(&refused).contains("hint:"),
            "{wrong:?}: {}",
            text(&refused)
        );
    }
    let nodes = server.operate(&["nodes"]);
    assert!(text(&nodes).contains("node_") && text(&nodes).contains(server.address()), "{}", text(&nodes));
}

#[test]
fn doctor_checks_what_a_server_needs() {
    let server = Server::offline();
    let checked = server.operate(&["doctor"]);
    assert!(checked.status.success(), "{}", text(&checked));
    for part in ["master key", "schema", "database", "blobs", "workspaces", "sandbox", "model", "offline"] {
        assert!(text(&checked).contains(part), "{part}: {}", text(&checked));
    }
    let report: Value = serde_json::from_slice(&server.operate(&["doctor", "--json"]).stdout).unwrap();
    assert_eq!(report["ok"], true);
    let sandbox = Sandbox::new();
    let mut empty = sandbox.command(env!("CARGO_BIN_EXE_qodercli"));
    empty.args(["serve", "doctor", "--data-dir"]).arg(sandbox.home().join("new"));
    let checked = Sandbox::finish(empty);
    assert!(!checked.status.success() && text(&checked).contains("token create"), "{}", text(&checked));
    assert_eq!(text(&checked).matches("FAIL").count(), 1, "all but a token is there: {}", text(&checked));
}

#[test]
fn a_backup_can_be_served() {
    let mut server = Server::replying(vec![Reply::text("hi"), Reply::text("again")]);
    let session = server.session(&json!([]));
    server.ask(&session, "go");
    let copy = server.sandbox.home().join("copy.db");
    let copied = server.operate(&["backup", copy.to_str().unwrap()]);
    assert!(copied.status.success(), "{}", text(&copied));
    let again = server.operate(&["backup", copy.to_str().unwrap()]);
    assert!(!again.status.success(), "an existing file is not overwritten");
    server.ask(&session, "later");
    assert!(server.stop().success());
    for ending in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(server.data().join(format!("server.db{ending}")));
    }
    std::fs::copy(&copy, server.data().join("server.db")).unwrap();
    server.start_again();
    assert_eq!(
        server.kinds(&session).iter().filter(|kind| *kind == "agent.message").count(),
        1,
        "as it was then"
    );
    server.ask(&session, "and on");
}

#[test]
fn a_log_can_be_exported_and_the_schema_looked_at() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let session = server.session(&json!([]));
    server.ask(&session, "go");
    let exported = server.operate(&["sessions", "export", &session]);
    let lines: Vec<Value> = String::from_utf8(exported.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["type"], "session-start");
    assert_eq!(lines.last().unwrap()["type"], "turn-end");
    assert!(lines.iter().enumerate().all(|(index, line)| line["seq"] == index as u64 + 1), "without gaps");
    assert!(!server.operate(&["sessions", "export", "sess_x"]).status.success());
    assert!(server.operate(&["migrate", "--check"]).status.success());
    assert!(server.operate(&["migrate"]).status.success());
    assert!(server.operate(&["sessions", "quarantined"]).stdout.is_empty());
    assert!(!server.operate(&["sessions", "release", &session]).status.success());
}

#[test]
fn the_master_key_can_be_replaced_and_another_one_opens_nothing() {
    let mut server = Server::replying(vec![bash("echo $SECRET_WORD"), Reply::text("hi")]);
    let body = json!({ "agent": server.agent(&json!([toolset(&[])])), "environment_id": server.environment(),
        "environment_variables": { "SECRET_WORD": "x-marks-the-spot" } });
    let session = id(&server.post("/v1/sessions", &body).ok());
    assert!(server.stop().success());
    let rotated = server.operate(&["keys", "rotate"]);
    assert!(rotated.status.success(), "{}", text(&rotated));
    server.start_again();
    server.ask(&session, "go");
    let shown = server.get(&format!("/v1/sessions/{session}")).ok();
    assert_eq!(shown["environment_variables"]["SECRET_WORD"], "x-marks-the-spot");
    assert!(server.stop().success());
    std::fs::remove_file(server.data().join("master.key")).unwrap();
    let refused = server.operate(&["token", "list"]);
    assert!(!refused.status.success() && text(&refused).contains("master key"), "{}", text(&refused));
}

#[test]
fn a_stop_lets_the_turn_continue_at_the_next_start() {
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = Arc::clone(&is_slow);
    let mut server = Server::scripted(Script::by(move |_, _| {
        let late = Reply::SlowFirstByte { ms: 20_000, reply: Box::new(Reply::text("late")) };
        if slow.load(Ordering::SeqCst) { late } else { Reply::text("continued") }
    }));
    let session = server.session(&json!([]));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("go")])).ok();
    let start = stream.until("span.model_request_start");
    assert!(server.stop().success());
    is_slow.store(false, Ordering::SeqCst);
    server.start_again();
    let mut stream = server.stream(&session, Some(&id(&start)));
    stream.until_end_of_turn();
    let kinds = server.kinds(&session);
    assert_eq!(kinds.iter().filter(|kind| *kind == "agent.message").count(), 1, "{kinds:?}");
    assert!(!kinds.contains(&"session.status_rescheduled".to_owned()), "a stop is no fault: {kinds:?}");
}

#[test]
fn metrics_count_and_log_lines_say_nothing_that_is_secret() {
    let server = Server::with(
        Some(Script::by_assistant_count(vec![Reply::text("hi")])),
        &["--log-level", "debug"],
        &[],
    );
    let session = server.session(&json!([]));
    server.ask(&session, "a very private message");
    let metrics = server.get("/metrics");
    let metrics = String::from_utf8(metrics.body).unwrap();
    for part in [
        "qoder_http_requests_total{method=\"POST\",route=\"/sessions/{id}/events\",code=\"200\"} 1",
        "qoder_session_wakes_total 1",
        "qoder_sessions{status=\"idle\"} 1",
        "qoder_sessions{status=\"quarantined\"} 0",
        "qoder_due_age_seconds 0.000",
        "qoder_pending_age_seconds 0.000",
        "qoder_file_bytes 0",
        "qoder_session_quarantines_total 0",
        "qoder_stream_lag_events ",
        "qoder_barrier_waits_total ",
        "qoder_output_tokens_total ",
        "qoder_cost_microdollars_total ",
        "# EOF",
    ] {
        assert!(metrics.contains(part), "{part}: {metrics}");
    }
    let log = std::fs::read_to_string(server.sandbox.home().join("serve.log")).unwrap();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert!(line["at"].is_string() && line["event"].is_string());
    }
    assert!(log.contains("\"route\":\"/sessions/{id}/events\""), "{log}");
    assert!(!log.contains("private message") && !log.contains(&server.token), "{log}");
}

#[test]
fn an_address_that_others_reach_needs_tls_or_a_proxy() {
    let sandbox = Sandbox::new();
    let refused = sandbox.run(env!("CARGO_BIN_EXE_qodercli"), &["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(52));
    assert!(text(&refused).contains("--behind-proxy"), "{}", text(&refused));
    let server = Server::with(None, &["--behind-proxy", "--allow-host", "127.0.0.1"], &[]);
    assert_eq!(server.get("/health").status, 200);
}

/// Changes the database of a server that is stopped.
fn change(database: &std::path::Path, sql: &str) {
    rusqlite::Connection::open(database).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn sessions_that_rest_for_longer_than_they_are_kept_are_deleted() {
    let call = Reply::tool("weather", json!({}));
    let mut server = Server::with(Some(Script::by_assistant_count(vec![call, Reply::text("hi")])), &[], &[]);
    let old = server.session(&json!([]));
    let waiting = server.session(&json!([super::support::custom("weather")]));
    pending(&server.ask(&waiting, "go"));
    let fresh = server.session(&json!([]));
    let workspace = server.workspace(&waiting);
    assert!(server.stop().success());
    let file = server.sandbox.write("serve.yaml", "retention: { days: 90, tenants: { ana: 30 } }");
    let days = 31_i64 * 24 * 60 * 60 * 1_000_000;
    let aged = format!(
        "UPDATE heads SET last_at = last_at - {days} WHERE session_key IN
        (SELECT key FROM sessions ORDER BY key LIMIT 2)"
    );
    change(&server.data().join("server.db"), &aged);
    server.start_with(&["--config", file.to_str().unwrap()]);
    let until = std::time::Instant::now() + super::support::PATIENCE;
    while server.get(&format!("/v1/sessions/{old}")).status != 404 {
        assert!(std::time::Instant::now() < until, "it is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
    for kept in [&waiting, &fresh] {
        assert_eq!(server.status(kept), "idle");
    }
    assert!(workspace.exists());
}

#[test]
fn a_session_that_stops_its_node_again_and_again_is_quarantined() {
    let mut server = Server::replying(vec![Reply::text("hi")]);
    let session = server.session(&json!([]));
    // The counter is where a crash loop would have brought it; what follows is the real path.
    assert!(server.stop().success());
    let database = server.data().join("server.db");
    let change = |sql: &str| change(&database, sql);
    change("UPDATE heads SET attempts = 5, wake_at = 1, status = 'rescheduling'");
    server.start_again();
    let until = std::time::Instant::now() + super::support::PATIENCE;
    while !server.kinds(&session).contains(&"session.error".to_owned()) {
        assert!(std::time::Instant::now() < until, "{:?}", server.kinds(&session));
        std::thread::sleep(Duration::from_millis(5));
    }
    let events = server.events(&session);
    let error = events.iter().find(|event| kind(event) == "session.error").unwrap();
    assert_eq!(error["error"]["retry_status"]["type"], "exhausted");
    assert_eq!(events.last().unwrap()["stop_reason"]["type"], "retries_exhausted");
    assert!(text(&server.operate(&["sessions", "quarantined"])).contains(&session));
    assert_eq!(
        server.ask(&session, "try again")["stop_reason"]["type"],
        "end_turn",
        "the next message tries once more"
    );
    assert!(server.operate(&["sessions", "quarantined"]).stdout.is_empty());
    assert!(server.stop().success());
    change("UPDATE heads SET attempts = 101, wake_at = 1, status = 'rescheduling'");
    server.start_again();
    while server.status(&session) != "terminated" {
        assert!(std::time::Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(server.kinds(&session).last().unwrap(), "session.status_terminated");
    server.send(&session, &json!([message("hello?")])).error(409);
}
