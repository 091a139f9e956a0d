//! Sessions whose tools workers run: each call waits for its result, after the policies of the agent have let it pass.

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::support::{Queue, self_hosted, session_in, token_of, tool_result, with_token};
use crate::serve::support::{
    Server, confirm, custom, id, kind, message, pending, result, result_text, toolset,
};

fn of_kind(server: &Server, session: &str, wanted: &str) -> Vec<Value> {
    server.events(session).into_iter().filter(|event| kind(event) == wanted).collect()
}

fn calls(names: &[&str]) -> Reply {
    let input = json!({ "command": "x", "pattern": "x", "file_path": "a", "content": "b" });
    Reply::ToolCalls(names.iter().map(|name| ((*name).to_owned(), input.clone())).collect())
}

#[test]
fn a_call_waits_for_its_worker_across_a_crash() {
    let mut server = Server::replying(vec![
        Reply::tool("bash", json!({ "command": "uname -a", "timeout_ms": 5000 })),
        Reply::text("done"),
    ]);
    let environment = self_hosted(&server);
    let session = session_in(&server, &environment, &json!([toolset(&[])]));
    let idle = server.ask(&session, "go");
    let call = pending(&idle).remove(0);
    let shown = of_kind(&server, &session, "agent.tool_use").remove(0);
    assert_eq!(id(&shown), call);
    assert_eq!(
        (&shown["name"], &shown["evaluated_permission"], &shown["evaluation"]),
        (&json!("bash"), &json!("allow"), &json!({ "type": "always_allow" }))
    );
    assert_eq!(shown["input"], json!({ "command": "uname -a", "timeout_ms": 5000 }));
    server.kill();
    server.start_again();
    let queue = Queue::of(&server, &environment);
    let item = queue.take();
    let path = format!("/v1/sessions/{session}/events");
    let body = |text: &str| json!({ "events": [tool_result(&call, text)] });
    server.send(&session, &json!([confirm(&call, "allow")])).error(400);
    server.send(&session, &json!([result(&call, "x")])).error(400);
    let mut stream = server.stream(&session, None);
    let token = token_of(&item);
    let first = with_token(&server, &token, "POST", &path, &body("Linux")).ok();
    stream.until_end_of_turn();
    let again = with_token(&server, &token, "POST", &path, &body("Linux")).ok();
    assert_eq!(first["data"][0]["id"], again["data"][0]["id"], "the same result again is replayed");
    with_token(&server, &token, "POST", &path, &body("Darwin")).error(409);
    let brought = of_kind(&server, &session, "user.tool_result");
    assert_eq!(brought.len(), 1);
    assert!(of_kind(&server, &session, "agent.tool_result").is_empty(), "the worker's event is the result");
    let requests = server.model.as_ref().unwrap().requests();
    let last = requests.last().unwrap().json().to_string();
    assert!(last.contains("Linux"), "{last}");
    assert!(!last.contains(&*server.data().to_string_lossy()), "paths of the server stay here: {last}");
    assert!(!server.workspace(&session).join("out.txt").exists());
}

#[test]
fn policies_come_before_workers() {
    let server = Server::replying(vec![calls(&["bash", "read", "write", "glob"]), Reply::text("done")]);
    let environment = self_hosted(&server);
    let policies =
        [("Bash", "always_deny"), ("read", "always_ask"), ("Write", "always_ask"), ("glob", "always_allow")];
    let session = session_in(&server, &environment, &json!([toolset(&policies)]));
    let ids = pending(&server.ask(&session, "go"));
    let shown = of_kind(&server, &session, "agent.tool_use");
    let said: Vec<(&str, &str)> = shown
        .iter()
        .map(|event| (event["name"].as_str().unwrap(), event["evaluated_permission"].as_str().unwrap()))
        .collect();
    assert_eq!(said, [("bash", "deny"), ("read", "ask"), ("write", "ask"), ("glob", "allow")]);
    assert_eq!(ids, shown[1..].iter().map(id).collect::<Vec<_>>());
    let [read, write, glob] = [&ids[0], &ids[1], &ids[2]];
    server.send(&session, &json!([tool_result(read, "early")])).error(400);
    server.send(&session, &json!([confirm(glob, "allow")])).error(400);
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([confirm(read, "allow")])).ok();
    assert_eq!(pending(&stream.until("session.status_idle")), ids, "it waits for its result now");
    server.send(&session, &json!([confirm(read, "allow")])).error(409);
    server.send(&session, &json!([confirm(read, "deny")])).error(409);
    let denial = json!({ "type": "user.tool_confirmation", "tool_use_id": write, "result": "deny",
        "deny_message": "not that file" });
    server.send(&session, &json!([denial, tool_result(glob, "a.txt")])).ok();
    assert_eq!(pending(&stream.until("session.status_idle")), std::slice::from_ref(read));
    server.send(&session, &json!([tool_result(read, "the content")])).ok();
    stream.until_end_of_turn();
    let refusals = of_kind(&server, &session, "agent.tool_result");
    let refused: Vec<&Value> = refusals.iter().map(|event| &event["tool_use_id"]).collect();
    assert_eq!(refused.len(), 2, "{refusals:?}");
    assert!(refused.contains(&&json!(id(&shown[0]))) && refused.contains(&&json!(write)));
    assert!(refusals.iter().any(|event| result_text(event).contains("not that file")), "{refusals:?}");
    let last = server.model.as_ref().unwrap().requests().last().unwrap().json().to_string();
    for part in ["the content", "a.txt", "not that file"] {
        assert!(last.contains(part), "{part}: {last}");
    }
}

#[test]
fn each_client_answers_what_it_owns() {
    let server = Server::replying(vec![
        Reply::ToolCalls(vec![
            ("edit".to_owned(), json!({ "file_path": "a", "old_string": "b", "new_string": "c" })),
            ("weather".to_owned(), json!({})),
        ]),
        Reply::text("done"),
    ]);
    let environment = self_hosted(&server);
    let session =
        session_in(&server, &environment, &json!([toolset(&[]), custom("weather"), custom("bash")]));
    let ids = pending(&server.ask(&session, "go"));
    assert_eq!(ids.len(), 2);
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([result(&ids[1], "sunny")])).ok();
    assert_eq!(pending(&stream.until("session.status_idle")), ids[..1]);
    server.send(&session, &json!([tool_result(&ids[0], "edited")])).ok();
    stream.until_end_of_turn();
}

#[test]
fn a_call_whose_turn_is_stopped_is_never_run_later() {
    let server = Server::scripted(Script::by(|request, _| match qoder_testkit::assistant_count(request) {
        0 => Reply::tool("bash", json!({ "command": "sleep 1000" })),
        _ => Reply::text("ok"),
    }));
    let environment = self_hosted(&server);
    let session = session_in(&server, &environment, &json!([toolset(&[])]));
    let queue = Queue::of(&server, &environment);
    let call = pending(&server.ask(&session, "go")).remove(0);
    let item = queue.take();
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([{ "type": "user.interrupt" }])).ok();
    stream.until_end_of_turn();
    // A worker that reads the log later finds that the call has a result.
    let closed = of_kind(&server, &session, "user.tool_result").remove(0);
    assert_eq!((&closed["tool_use_id"], &closed["is_error"]), (&json!(call), &json!(true)));
    let late = json!({ "events": [tool_result(&call, "late")] });
    let path = format!("/v1/sessions/{session}/events");
    with_token(&server, &token_of(&item), "POST", &path, &late).error(400);
    server.post(&path, &late).error(409);
    // What stops with calls that wait is queued anew for the next worker.
    let next = session_in(&server, &environment, &json!([toolset(&[])]));
    server.ask(&next, "go");
    let mine = queue.take();
    assert_eq!(mine["data"]["id"], json!(next));
    queue.post(&format!("/{}/stop", id(&mine)), &json!({ "force": true })).ok();
    let follower = queue.take();
    assert_eq!(follower["data"]["id"], json!(next));
    assert_ne!(id(&follower), id(&mine));
}

#[test]
fn what_needs_the_servers_machine_is_refused() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let environment = self_hosted(&server);
    let agent = server.agent(&json!([toolset(&[])]));
    let store = id(&server.post("/v1/memory_stores", &json!({ "name": "notes" })).ok());
    let resource = json!({ "type": "memory_store", "memory_store_id": store });
    let body = json!({ "agent": agent, "environment_id": environment, "resources": [resource] });
    let refused = server.post("/v1/sessions", &body);
    refused.error(400);
    assert_eq!(refused.json()["error"]["details"]["error_code"], "self_hosted_resources_unsupported");
    let session = session_in(&server, &environment, &json!([]));
    server.post(&format!("/v1/sessions/{session}/resources"), &resource).error(400);
    let deployment = json!({ "name": "d", "agent": agent, "environment_id": environment,
        "initial_events": [message("go")], "resources": [resource] });
    let deployment = id(&server.post("/v1/deployments", &deployment).ok());
    let run = server.post(&format!("/v1/deployments/{deployment}/run"), &json!({})).ok();
    assert_eq!(run["error"]["type"], "self_hosted_resources_unsupported_error", "{run}");
    let cloud = server.session(&json!([toolset(&[("Bash", "always_ask")])]));
    server.send(&cloud, &json!([tool_result("evt_00000000000070008000000000000000", "x")])).error(400);
}
