//! Agents with their versions, environments and sessions: every field, filter and cursor, and what cannot be done with them.

use qoder_testkit::Reply;
use serde_json::{Value, json};

use super::support::{Server, id, kind, message, toolset};

fn server() -> Server {
    Server::replying(vec![Reply::text("hi")])
}

/// Every thing of a list, page by page.
fn walk(server: &Server, path: &str, limit: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let mut page = String::new();
    loop {
        let separator = if path.contains('?') { '&' } else { '?' };
        let listed = server.get(&format!("{path}{separator}limit={limit}{page}")).ok();
        let data = listed["data"].as_array().unwrap();
        assert!(data.len() <= limit);
        assert_eq!(listed["first_id"].as_str(), data.first().map(id).as_deref());
        assert_eq!(listed["last_id"].as_str(), data.last().map(id).as_deref());
        seen.extend(data.iter().map(id));
        match listed["next_page"].as_str() {
            Some(next) => page = format!("&page={next}"),
            None => {
                assert_eq!(listed["has_more"], false);
                return seen;
            }
        }
    }
}

#[test]
fn agents_have_versions_and_a_lock() {
    let server = server();
    let created = server
        .post("/v1/agents", &json!({ "name": "a", "model": { "id": "auto", "effort": "low" }, "system": "s",
            "description": "d", "metadata": { "k": "v" }, "tools": [toolset(&[])], "unknown": { "ignored": true } }))
        .ok();
    let agent = id(&created);
    for key in [
        "created_at",
        "updated_at",
        "execution_identity",
        "mcp_servers",
        "metadata",
        "model",
        "name",
        "skills",
        "tools",
    ] {
        assert!(!created[key].is_null(), "{key}: {created}");
    }
    assert_eq!(
        (&created["version"], &created["type"], &created["archived_at"]),
        (&json!(1), &json!("agent"), &Value::Null)
    );
    assert_eq!(created["model"]["effort"], json!({ "type": "low" }));
    let path = format!("/v1/agents/{agent}");
    assert_eq!(server.get(&path).ok(), created);
    let same = server.post(&path, &json!({ "system": "s" })).ok();
    assert_eq!(same["version"], 1, "nothing changed");
    let changed = server
        .post(&path, &json!({ "system": null, "metadata": { "k": null, "l": "w" }, "version": 1 }))
        .ok();
    assert_eq!((&changed["version"], &changed["system"]), (&json!(2), &Value::Null));
    assert_eq!((&changed["metadata"], &changed["name"]), (&json!({ "l": "w" }), &json!("a")));
    let stale = server.post(&path, &json!({ "name": "b", "version": 1 }));
    let (kind, message) = stale.error(409);
    assert_eq!((kind.as_str(), stale.header("x-should-retry")), ("conflict_error", Some("false")));
    assert!(message.contains("version 2"), "{message}");
    for method in ["PUT", "PATCH"] {
        let body = json!({ "name": method }).to_string();
        assert_eq!(server.request(method, &path, &[], body.as_bytes()).ok()["name"], method);
    }
    assert_eq!(server.get(&format!("{path}?version=1")).ok()["system"], "s");
    server.get(&format!("{path}?version=9")).error(404);
    let versions = server.get(&format!("{path}/versions?limit=2")).ok();
    let numbers: Vec<&Value> =
        versions["data"].as_array().unwrap().iter().map(|agent| &agent["version"]).collect();
    assert_eq!(numbers, [&json!(4), &json!(3)]);
    let next = versions["next_page"].as_str().unwrap();
    let rest = server.get(&format!("{path}/versions?limit=2&page={next}")).ok();
    assert_eq!((rest["data"][1]["version"].clone(), &rest["has_more"]), (json!(1), &json!(false)));
    let archived =
        server.request("POST", &format!("{path}/archive"), &[("content-type", "application/json")], b"").ok();
    assert!(archived["archived_at"].is_string());
    assert_eq!(server.post(&format!("{path}/archive"), &json!({})).ok(), archived, "once is enough");
    server.post(&path, &json!({ "name": "c" })).error(409);
    let body = json!({ "agent": agent, "environment_id": server.environment() });
    let refused = server.post("/v1/sessions", &body);
    refused.error(400);
    assert_eq!(walk(&server, "/v1/agents", 10), [""; 0]);
    assert_eq!(walk(&server, "/v1/agents?include_archived=true", 10), [agent]);
}

#[test]
fn lists_have_pages_in_both_directions_and_filters_of_time() {
    let server = server();
    let made: Vec<String> = (0..7).map(|_| server.agent(&json!([]))).collect();
    let newest_first: Vec<String> = made.iter().rev().cloned().collect();
    for limit in [1, 2, 3, 7, 100] {
        assert_eq!(walk(&server, "/v1/agents", limit), newest_first, "limit {limit}");
    }
    let after = server.get(&format!("/v1/agents?after_id={}&limit=2", made[4])).ok();
    assert_eq!(after["data"].as_array().unwrap().iter().map(id).collect::<Vec<_>>(), newest_first[3..5]);
    let before = server.get(&format!("/v1/agents?before_id={}&limit=2", made[2])).ok();
    assert_eq!(before["data"].as_array().unwrap().iter().map(id).collect::<Vec<_>>(), newest_first[2..4]);
    let page = server.get(&format!("/v1/agents?after_id={}&limit=2", made[2])).ok();
    let back = server.get(&format!("/v1/agents?page={}&limit=2", page["prev_page"].as_str().unwrap())).ok();
    assert_eq!(back["data"].as_array().unwrap().iter().map(id).collect::<Vec<_>>(), newest_first[3..5]);
    let at = server.get(&format!("/v1/agents/{}", made[3])).ok()["created_at"].as_str().unwrap().to_owned();
    let until = walk(&server, &format!("/v1/agents?created_at%5Blte%5D={at}"), 100);
    assert_eq!(until, newest_first[3..]);
    let since = walk(&server, &format!("/v1/agents?created_at[gt]={at}"), 100);
    assert_eq!(since, newest_first[..3]);
    server.get("/v1/agents?page=agent_00000000000000000000000000000000").error(400);
    server.get("/v1/agents?created_at[gte]=yesterday").error(400);
    server.get("/v1/agents?limit=101").error(400);
}

#[test]
fn environments_are_objects_with_a_fixed_type() {
    let server = server();
    let body = json!({ "name": "e", "description": "", "metadata": { "a": "1" },
        "config": { "type": "cloud", "networking": { "type": "limited", "allowed_hosts": ["example.com"] } } });
    let created = server.post("/v1/environments", &body).ok();
    assert_eq!(
        (&created["type"], &created["description"], &created["scope"]),
        (&json!("environment"), &json!(""), &json!("organization"))
    );
    assert_eq!(created["config"]["packages"]["pip"], json!([]));
    let path = format!("/v1/environments/{}", id(&created));
    let changed =
        server.request("PUT", &path, &[], json!({ "metadata": { "a": "" } }).to_string().as_bytes()).ok();
    assert_eq!((&changed["metadata"], &changed["config"]), (&json!({}), &created["config"]));
    let refused = server.post(&path, &json!({ "config": { "type": "self_hosted" } }));
    refused.error(400);
    assert_eq!(refused.json()["error"]["details"]["error_code"], "invalid_config_type_change");
    let agent = server.agent(&json!([]));
    let session =
        server.post("/v1/sessions", &json!({ "agent": agent, "environment_id": id(&created) })).ok();
    server.delete(&path).error(409);
    server.delete(&format!("/v1/sessions/{}", id(&session))).ok();
    let archived = server.post(&format!("{path}/archive"), &json!({})).ok();
    assert!(archived["archived_at"].is_string());
    let refused = server.post("/v1/sessions", &json!({ "agent": agent, "environment_id": id(&created) }));
    refused.error(400);
    assert_eq!(refused.json()["error"]["details"]["error_code"], "environment_archived");
    let deleted = server.delete(&path).ok();
    assert_eq!(deleted, json!({ "id": created["id"], "type": "environment_deleted" }));
    let missing = server.get(&path);
    missing.error(404);
    let refused = server.post("/v1/sessions", &json!({ "agent": agent, "environment_id": "env_x" }));
    refused.error(404);
}

#[test]
fn what_the_server_cannot_provide_is_refused_when_a_session_is_created() {
    let server = server();
    let agent = server.agent(&json!([]));
    let config = json!({ "type": "cloud", "packages": { "apt": ["jq"] } });
    let environment = id(&server.post("/v1/environments", &json!({ "name": "e", "config": config })).ok());
    let refused = server.post("/v1/sessions", &json!({ "agent": agent, "environment_id": environment }));
    let (_, message) = refused.error(400);
    assert!(message.contains("does not provide"), "{message}");
    let environment = server.environment();
    for (more, status) in [
        (json!({ "vault_ids": ["vlt_1"] }), 404),
        (json!({ "resources": [{ "type": "file", "file_id": "file_1" }] }), 404),
        (json!({ "resources": [{ "type": "disk" }] }), 400),
        (json!({ "initial_events": [{ "type": "user.interrupt" }] }), 400),
        (json!({ "environment_variables": { "A B": "x" } }), 400),
        (json!({ "environment_variables": { "A": 1 } }), 400),
        (json!({ "metadata": { "a": 1 } }), 400),
        (json!({ "agent": { "id": agent, "version": 9 } }), 404),
        (json!({ "agent": 7 }), 400),
    ] {
        let mut body = json!({ "agent": agent, "environment_id": environment });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post("/v1/sessions", &body).error(status);
    }
    assert_eq!(server.get("/v1/sessions").ok()["data"], json!([]));
}

#[test]
fn a_session_keeps_the_agent_that_it_was_created_with() {
    let server = server();
    let agent = server.agent(&json!([toolset(&[("Bash", "always_ask")])]));
    let environment = server.environment();
    let create = |agent: Value| {
        server.post("/v1/sessions", &json!({ "agent": agent, "environment_id": environment })).ok()
    };
    let first = create(json!(agent));
    server.post(&format!("/v1/agents/{agent}"), &json!({ "system": "new" })).ok();
    let second = create(json!({ "type": "agent", "id": agent, "version": 0 }));
    let pinned = create(json!({ "id": agent, "version": 1 }));
    let system = |session: &Value| session["agent"]["system"].clone();
    assert_eq!((system(&first), system(&second), system(&pinned)), (Value::Null, json!("new"), Value::Null));
    assert_eq!(server.get(&format!("/v1/sessions/{}", id(&first))).ok()["agent"]["version"], 1);
    let other = create(json!({ "type": "agent_with_overrides", "id": agent, "system": "mine", "tools": [] }));
    assert_eq!((system(&other), &other["agent"]["tools"]), (json!("mine"), &json!([])));
    for key in [
        "agent",
        "environment_id",
        "metadata",
        "outcome_evaluations",
        "resources",
        "stats",
        "status",
        "usage",
        "vault_ids",
    ] {
        assert!(!first[key].is_null(), "{key}: {first}");
    }
    assert_eq!(first["agent"]["execution_identity"]["type"], "service_account");
}

#[test]
fn sessions_are_listed_by_agent_version_status_and_time() {
    let server = server();
    let (one, other) = (server.agent(&json!([])), server.agent(&json!([])));
    let environment = server.environment();
    let create = |agent: &str| {
        id(&server.post("/v1/sessions", &json!({ "agent": agent, "environment_id": environment })).ok())
    };
    let (a, b) = (create(&one), create(&one));
    let c = create(&other);
    server.post(&format!("/v1/agents/{one}"), &json!({ "system": "2" })).ok();
    let d = create(&one);
    assert_eq!(walk(&server, "/v1/sessions", 3), [&d, &c, &b, &a].map(String::clone));
    assert_eq!(walk(&server, "/v1/sessions?order=asc", 2), [&a, &b, &c, &d].map(String::clone));
    assert_eq!(walk(&server, &format!("/v1/sessions?agent_id={one}"), 2), [&d, &b, &a].map(String::clone));
    assert_eq!(
        walk(&server, &format!("/v1/sessions?agent_id={one}&agent_version=2"), 2),
        std::slice::from_ref(&d)
    );
    server.get("/v1/sessions?agent_version=2").error(400);
    server.get("/v1/sessions?order=sideways").error(400);
    server.get("/v1/sessions?statuses[]=busy").error(400);
    assert_eq!(walk(&server, "/v1/sessions?agent_id=agent_x", 2), [""; 0]);
    assert_eq!(walk(&server, "/v1/sessions?deployment_id=depl_1", 2), [""; 0]);
    assert_eq!(walk(&server, "/v1/sessions?statuses%5B%5D=running&statuses%5B%5D=terminated", 2), [""; 0]);
    assert_eq!(walk(&server, "/v1/sessions?statuses[]=idle", 2).len(), 4);
    let archived = server.post(&format!("/v1/sessions/{a}/archive"), &json!({})).ok();
    assert!(archived["archived_at"].is_string() && archived["status"] == "idle");
    server.send(&a, &json!([message("go")])).error(409);
    server.post(&format!("/v1/sessions/{a}"), &json!({ "title": "t" })).error(409);
    assert_eq!(walk(&server, "/v1/sessions", 10).len(), 3);
    assert_eq!(walk(&server, "/v1/sessions?include_archived=true", 10).len(), 4);
    assert_eq!(server.events(&a), [Value::Null; 0], "an archived session can still be read");
}

#[test]
fn an_update_reports_what_changed_and_nothing_else() {
    let server = server();
    let session = server.session(&json!([toolset(&[])]));
    let path = format!("/v1/sessions/{session}");
    let mut stream = server.stream(&session, None);
    let changed = server.post(&path, &json!({ "title": "T", "metadata": { "a": "1" } })).ok();
    assert_eq!((&changed["title"], &changed["metadata"]), (&json!("T"), &json!({ "a": "1" })));
    let event = stream.until("session.updated");
    assert_eq!(
        (&event["title"], &event["metadata"], event.get("agent")),
        (&json!("T"), &json!({ "a": "1" }), None)
    );
    server.post(&path, &json!({ "title": "T" })).ok();
    server.post(&path, &json!({ "agent": { "tools": [] } })).ok();
    let event = stream.until("session.updated");
    assert_eq!((&event["agent"]["tools"], event.get("title")), (&json!([]), None));
    assert_eq!(event["agent"]["model"]["id"], "auto", "the whole agent");
    let claude = server.claude("POST", &path, &json!({ "agent": { "system": "x" } }));
    claude.error(400);
    let qoder = server.post(&path, &json!({ "agent": { "system": "x" } })).ok();
    assert_eq!(qoder["agent"]["system"], "x");
    let budget = json!({ "type": "limit", "max_list_cost": { "amount": "1", "currency": "USD" } });
    let refused = server.post(&path, &json!({ "budget": budget }));
    refused.error(400);
    assert_eq!(refused.json()["error"]["details"]["error_code"], "budget_create_only");
    assert_eq!(server.kinds(&session).iter().filter(|kind| *kind == "session.updated").count(), 3);
    server.ask(&session, "go");
    let request = server.model.as_ref().unwrap().requests().last().unwrap().json();
    assert!(
        request["system"].to_string().contains('x')
            && request.get("tools").is_none_or(|tools| tools == &json!([]))
    );
}

#[test]
fn repositories_are_resources_and_their_credentials_are_never_shown() {
    let server = server();
    let (agent, environment) = (server.agent(&json!([])), server.environment());
    let repository = json!({ "type": "github_repository", "url": "https://github.com/a/tool",
        "authorization_token": "ghp_very_secret_token", "checkout": { "type": "branch", "name": "main" } });
    let body = json!({ "agent": agent, "environment_id": environment, "resources": [repository],
        "environment_variables": { "API_TOKEN": "another_very_secret" } });
    let created = server.post("/v1/sessions", &body).ok();
    assert!(!created.to_string().contains("ghp_very"), "{created}");
    assert_eq!(created["resources"][0]["mount_path"], "/workspace/tool");
    assert_eq!(
        created["environment_variables"]["API_TOKEN"], "another_very_secret",
        "their owner may read them"
    );
    let path = format!("/v1/sessions/{}/resources", id(&created));
    let listed = server.get(&path).ok();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    let added = server
        .post(&path, &json!({ "type": "git_repository", "url": "https://h/r.git", "password": "p455word" }))
        .ok();
    let one = format!("{path}/{}", id(&added));
    assert_eq!(server.get(&one).ok(), added);
    let changed = server.post(&one, &json!({ "password": "p456word" })).ok();
    assert_ne!(changed["updated_at"], added["updated_at"]);
    assert_eq!(server.delete(&one).ok(), json!({ "id": added["id"], "type": "session_resource_deleted" }));
    server.get(&one).error(404);
    server.delete(&one).error(404);
    let wal = std::fs::read(server.data().join("server.db-wal")).unwrap_or_default();
    let database = [std::fs::read(server.data().join("server.db")).unwrap(), wal].concat();
    for secret in ["ghp_very_secret_token", "another_very_secret", "p455word", &server.token] {
        let found = database.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{secret} is in the database");
    }
}

#[test]
fn events_are_listed_by_type_time_and_place() {
    let server = server();
    let session = server.session(&json!([]));
    server.ask(&session, "one");
    server.ask(&session, "two");
    let all = server.events(&session);
    let ids: Vec<String> = all.iter().map(id).collect();
    let path = format!("/v1/sessions/{session}/events");
    assert_eq!(walk(&server, &path, 3), ids);
    let mut backwards = walk(&server, &format!("{path}?order=desc"), 4);
    backwards.reverse();
    assert_eq!(backwards, ids);
    for filter in ["type=user.message,agent.message", "types%5B%5D=user.message&types%5B%5D=agent.message"] {
        let listed = server.get(&format!("{path}?{filter}")).ok();
        let kinds: Vec<String> = listed["data"].as_array().unwrap().iter().map(kind).collect();
        assert_eq!(kinds, ["user.message", "agent.message", "user.message", "agent.message"], "{filter}");
    }
    let after = server.get(&format!("{path}?after_id={}&limit=2", ids[2])).ok();
    assert_eq!(after["data"].as_array().unwrap().iter().map(id).collect::<Vec<_>>(), ids[3..5]);
    let before = server.get(&format!("{path}?before_id={}&limit=2", ids[4])).ok();
    assert_eq!(before["data"].as_array().unwrap().iter().map(id).collect::<Vec<_>>(), ids[2..4]);
    let at = all[6]["processed_at"].as_str().unwrap();
    let since = server.get(&format!("{path}?created_at[gte]={at}&include_tool_calls=true")).ok();
    assert!(
        since["data"].as_array().unwrap().iter().all(|event| event["processed_at"].as_str().unwrap() >= at)
    );
    server.get(&format!("{path}?after_id=evt_00000000000070008000000000000000")).error(400);
    server.get(&format!("{path}?page=nonsense")).error(400);
}

#[test]
fn a_session_may_begin_with_messages() {
    let server = server();
    let body = json!({ "agent": server.agent(&json!([])), "environment_id": server.environment(), "title": "t",
        "initial_events": [message("one"), message("two")] });
    let session = server.post("/v1/sessions", &body).ok();
    assert_eq!(session["status"], "running");
    let first = id(&server.events(&id(&session))[0]);
    let mut stream = server.stream(&id(&session), Some(&first));
    stream.until_end_of_turn();
    let events = server.events(&id(&session));
    assert_eq!(events.iter().filter(|event| kind(event) == "agent.message").count(), 2);
    assert!(events[..2].iter().all(|event| event["processed_at"].is_string()), "{events:?}");
}

#[test]
fn models_are_listed_and_the_first_is_enabled() {
    let server = server();
    let listed = server.get("/v1/models").ok();
    let models = listed["data"].as_array().unwrap();
    assert_eq!((&models[0]["id"], &models[0]["is_enabled"]), (&json!("auto"), &json!(true)));
    for key in ["created_at", "display_name", "lifecycle", "max_tokens"] {
        assert!(!models[0][key].is_null(), "{key}");
    }
    assert_eq!(server.get("/v1/models/lite").ok()["id"], "lite");
    server.get("/v1/models/none").error(404);
    let rest = server.get("/v1/models?limit=2&after_id=auto").ok();
    assert_eq!(rest["data"][0]["id"], "ultimate");
}
