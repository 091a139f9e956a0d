//! Memory stores: memories with paths, versions and locks, and sessions that read and change them as files.

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::support::{Server, bash, id, kind, result_text, toolset};

fn store(server: &Server, name: &str) -> String {
    let body = json!({ "name": name, "description": "What the team knows." });
    id(&server.post("/v1/memory_stores", &body).ok())
}

fn memories(server: &Server, store: &str) -> Vec<(String, String)> {
    let listed = server.get(&format!("/v1/memory_stores/{store}/memories?view=full")).ok();
    let text = |memory: &Value, key: &str| memory[key].as_str().unwrap().to_owned();
    listed["data"].as_array().unwrap().iter().map(|one| (text(one, "path"), text(one, "content"))).collect()
}

#[test]
fn stores_are_created_found_archived_and_deleted() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let store = server.post("/v1/memory_stores", &json!({ "name": "Notes" })).ok();
    let path = format!("/v1/memory_stores/{}", id(&store));
    assert_eq!((&store["description"], &store["status"]), (&json!(""), &json!("active")));
    assert_eq!((&store["entry_count"], &store["total_size"]), (&json!(0), &json!(0)));
    assert_eq!(server.post("/v1/memory_stores", &json!({})).error(400).0, "invalid_request_error");
    let changed = json!({ "description": "For all", "metadata": { "team": "docs" } });
    let changed = server.post(&path, &changed).ok();
    assert_eq!((&changed["name"], &changed["metadata"]["team"]), (&json!("Notes"), &json!("docs")));
    assert_eq!(server.get(&path).ok(), changed);
    let other = id(&server.post("/v1/memory_stores", &json!({ "name": "Other" })).ok());
    let listed = server.get("/v1/memory_stores?name=Notes").ok();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    server.post(&format!("{path}/memories"), &json!({ "path": "a.md", "content": "abc" })).ok();
    assert_eq!(server.get(&path).ok()["total_size"], 3);
    assert!(server.post(&format!("{path}/archive"), &json!({})).ok()["archived_at"].is_string());
    assert_eq!(server.get(&path).ok()["status"], "archived");
    let refused = server.post(&format!("{path}/memories"), &json!({ "path": "b.md", "content": "" }));
    assert_eq!(refused.error(409).0, "conflict_error");
    assert_eq!(id(&server.get("/v1/memory_stores").ok()["data"][0]), other);
    assert_eq!(
        server.get("/v1/memory_stores?include_archived=true").ok()["data"].as_array().unwrap().len(),
        2
    );
    assert_eq!(server.delete(&path).ok()["type"], "memory_store_deleted");
    assert_eq!(server.get(&path).error(404).0, "not_found_error");
    let stranger = server.token(&["--user", "eve", "--tenant", "others"]);
    let foreign = [("authorization", format!("Bearer {stranger}"))];
    let foreign: Vec<(&str, &str)> = foreign.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = server.bare("GET", &format!("/v1/memory_stores/{other}"), &foreign, b"");
    assert_eq!(answer.error(404).0, "not_found_error");
}

#[test]
fn memories_have_paths_locks_and_versions() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let base = format!("/v1/memory_stores/{}", store(&server, "Notes"));
    let create = |path: &str, content: &str| {
        server.post(&format!("{base}/memories"), &json!({ "path": path, "content": content }))
    };
    let memory = create("projects/a.md", "one").ok();
    assert_eq!((&memory["path"], &memory["content_size_bytes"]), (&json!("/projects/a.md"), &json!(3)));
    assert_eq!(memory["content"], Value::Null, "an answer is short unless `view` asks for more");
    let one = format!("{base}/memories/{}", id(&memory));
    assert_eq!(server.get(&one).ok()["content"], "one");
    for taken in ["/projects/a.md", "/projects", "/projects/a.md/b"] {
        assert_eq!(create(taken, "x").error(409).0, "memory_path_conflict_error", "{taken}");
    }
    assert_eq!(create("../a", "x").error(400).0, "invalid_request_error");
    assert_eq!(create("long", &"x".repeat(102_401)).error(400).0, "invalid_request_error");
    // The lock of either dialect.
    let wrong = "0".repeat(64);
    let locks = [
        json!({ "content": "two", "content_sha256": wrong }),
        json!({ "content": "two", "precondition": { "type": "content_sha256", "content_sha256": wrong } }),
    ];
    for lock in &locks {
        assert_eq!(server.post(&one, lock).error(409).0, "memory_precondition_failed_error");
    }
    let right = json!({ "content": "two", "content_sha256": memory["content_sha256"] });
    let changed = server.post(&format!("{one}?view=full"), &right).ok();
    assert_eq!(changed["content"], "two");
    assert_ne!(changed["memory_version_id"], memory["memory_version_id"]);
    let again = server.post(&one, &json!({ "content": "two" })).ok();
    assert_eq!(again["memory_version_id"], changed["memory_version_id"], "no change, no version");
    create("projects/deep/b.md", "b").ok();
    create("top.md", "t").ok();
    let paths = |query: &str| {
        let listed = server.get(&format!("{base}/memories?{query}")).ok();
        let data = listed["data"].as_array().unwrap().clone();
        data.iter().map(|item| (kind(item), item["path"].as_str().unwrap().to_owned())).collect::<Vec<_>>()
    };
    let item = |kind: &str, path: &str| (kind.to_owned(), path.to_owned());
    assert_eq!(paths("depth=1"), [item("memory_prefix", "/projects/"), item("memory", "/top.md")]);
    let below = [item("memory", "/projects/a.md"), item("memory_prefix", "/projects/deep/")];
    assert_eq!(paths("depth=1&path_prefix=/projects/"), below);
    let first = server.get(&format!("{base}/memories?limit=2")).ok();
    let next = first["next_page"].as_str().unwrap();
    assert_eq!(paths(&format!("limit=2&page={next}")), [item("memory", "/top.md")]);
    // Versions stay, and those that no memory has can be redacted.
    let versions = |query: &str| {
        let listed = server.get(&format!("{base}/memory_versions?memory_id={}{query}", id(&memory))).ok();
        listed["data"].as_array().unwrap().clone()
    };
    let redact =
        |version: &Value| server.post(&format!("{base}/memory_versions/{}/redact", id(version)), &json!({}));
    let [newest, oldest] = versions("").try_into().unwrap();
    assert_eq!((&newest["operation"], &oldest["operation"]), (&json!("modified"), &json!("created")));
    assert_eq!(oldest["created_by"]["type"], "api_actor");
    assert_eq!(redact(&newest).error(409).0, "conflict_error");
    let redacted = redact(&oldest).ok();
    for gone in ["content", "path", "content_sha256", "content_size_bytes"] {
        assert_eq!(redacted[gone], Value::Null, "{gone}");
    }
    assert!(redacted["redacted_at"].is_string());
    let refused = server.delete(&format!("{one}?expected_content_sha256={wrong}"));
    assert_eq!(refused.error(409).0, "memory_precondition_failed_error");
    assert_eq!(server.delete(&one).ok()["type"], "memory_deleted");
    assert_eq!(versions("&operation=deleted").len(), 1);
    create("projects/a.md", "the path is free again").ok();
}

#[test]
fn a_session_reads_and_changes_memories_as_files() {
    let notes = "../session/memory/team-notes";
    let turn = format!(
        "cat {notes}/a.md ../mounts/memory/facts/f.md; echo -n more >> {notes}/a.md; mkdir {notes}/new; \
         echo -n $SECRET_WORD > {notes}/new/b.md; rm {notes}/old.md; ln -s /etc/passwd {notes}/link; \
         echo x > ../mounts/memory/facts/f.md || echo refused"
    );
    let server = Server::scripted(Script::by_assistant_count(vec![
        bash(&turn),
        Reply::text("done"),
        bash(&format!("cat {notes}/a.md {notes}/c.md; ls {notes}")),
        Reply::text("done"),
    ]));
    let (own, given) = (store(&server, "Team Notes"), store(&server, "Facts"));
    let create = |store: &str, path: &str, content: &str| {
        let path = json!({ "path": path, "content": content });
        id(&server.post(&format!("/v1/memory_stores/{store}/memories"), &path).ok())
    };
    let memory = create(&own, "a.md", "first ");
    create(&own, "old.md", "old");
    create(&given, "f.md", "a fact ");
    let body = json!({ "agent": server.agent(&json!([toolset(&[])])), "environment_id": server.environment(),
        "environment_variables": { "SECRET_WORD": "open-sesame-now" }, "resources": [
            { "type": "memory_store", "memory_store_id": own, "instructions": "Keep decisions here." },
            { "type": "memory_store", "memory_store_id": given, "access": "read_only" } ] });
    let session = server.post("/v1/sessions", &body).ok();
    let resource = &session["resources"][0];
    assert_eq!(resource["mount_path"], "/mnt/memory/team-notes");
    assert_eq!((&resource["access"], &resource["name"]), (&json!("read_write"), &json!("Team Notes")));
    let session = id(&session);
    server.ask(&session, "go");
    let results: Vec<String> = server
        .events(&session)
        .iter()
        .filter(|event| kind(event) == "agent.tool_result")
        .map(result_text)
        .collect();
    assert!(results[0].contains("first a fact") && results[0].contains("refused"), "{results:?}");
    let request = server.model.as_ref().unwrap().requests()[0].json().to_string();
    assert!(
        request.contains("Keep decisions here.") && request.contains("What the team knows."),
        "{request}"
    );
    // Everything is kept when the session is idle, without secrets and without links.
    let kept = [("/a.md", "first more"), ("/new/b.md", "[redacted]")];
    assert_eq!(memories(&server, &own), kept.map(|(path, content)| (path.to_owned(), content.to_owned())));
    assert_eq!(memories(&server, &given), [("/f.md".to_owned(), "a fact ".to_owned())]);
    let versions = server.get(&format!("/v1/memory_stores/{own}/memory_versions?session_id={session}")).ok();
    assert_eq!(versions["data"].as_array().unwrap().len(), 3, "created, modified and deleted");
    assert_eq!(versions["data"][0]["created_by"]["session_id"], json!(session));
    let errors: Vec<Value> =
        server.events(&session).into_iter().filter(|event| kind(event) == "session.error").collect();
    assert_eq!(errors.len(), 1);
    assert!(errors[0]["error"]["message"].as_str().unwrap().contains("/mnt/memory/team-notes/link"));
    // What others change is there with the next turn.
    server
        .post(&format!("/v1/memory_stores/{own}/memories/{memory}"), &json!({ "content": "changed " }))
        .ok();
    create(&own, "c.md", "by another");
    server.ask(&session, "again");
    let events = server.events(&session);
    let last = events.iter().rfind(|event| kind(event) == "agent.tool_result").map(result_text).unwrap();
    assert!(last.contains("changed by another"), "{last}");
    let listed = server.get(&format!("/v1/sessions?memory_store_id={own}")).ok();
    assert_eq!(id(&listed["data"][0]), session);
    let listed = server.get(&format!("/v1/sessions?memory_store_id={}", store(&server, "None"))).ok();
    assert_eq!(listed["data"], json!([]));
}

#[test]
fn what_cannot_be_mounted_is_refused() {
    let mut server = Server::replying(vec![
        bash("echo -n kept > ../session/memory/notes/k.md; sleep 30"),
        Reply::text("done"),
    ]);
    let (agent, environment) = (server.agent(&json!([toolset(&[])])), server.environment());
    let begin = |resources: Value| {
        let body = json!({ "agent": agent, "environment_id": environment, "resources": resources });
        server.post("/v1/sessions", &body)
    };
    let mount = |store: &str| json!({ "type": "memory_store", "memory_store_id": store });
    assert_eq!(begin(json!([mount("memstore_1")])).error(404).0, "not_found_error");
    let (notes, gone) = (store(&server, "Notes"), store(&server, "Gone"));
    server.post(&format!("/v1/memory_stores/{gone}/archive"), &json!({})).ok();
    assert!(begin(json!([mount(&gone)])).error(400).1.contains("archived"));
    assert_eq!(begin(json!([mount(&notes), mount(&notes)])).error(400).0, "invalid_request_error");
    let many: Vec<Value> = (0..9).map(|number| mount(&store(&server, &format!("s{number}")))).collect();
    assert!(begin(json!(many)).error(400).1.contains("more than 8 memory stores"));
    let session = id(&begin(json!([mount(&notes)])).ok());
    let twice = server.post(&format!("/v1/sessions/{session}/resources"), &mount(&notes));
    assert_eq!(twice.error(409).0, "conflict_error");
    let old = json!({ "agent": agent, "environment_id": environment, "memory_store_ids": [notes] });
    assert_eq!(server.post("/v1/sessions", &old).ok()["resources"][0]["memory_store_id"], json!(notes));
    // What was written before a crash is kept after it.
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([super::support::message("go")])).ok();
    stream.until("agent.tool_use");
    let written = server.workspace(&session).parent().unwrap().join("session/memory/notes/k.md");
    let until = std::time::Instant::now() + super::support::PATIENCE;
    let is_written = || std::fs::read_to_string(&written).is_ok_and(|content| content == "kept");
    while !is_written() && std::time::Instant::now() < until {
        std::thread::yield_now();
    }
    server.kill();
    server.start_again();
    let mut stream = server.stream(&session, Some(&id(&server.events(&session)[0])));
    stream.until("session.status_idle");
    assert_eq!(memories(&server, &notes), [("/k.md".to_owned(), "kept".to_owned())]);
}
