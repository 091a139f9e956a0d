//! Files: uploads, links, expiry and quotas; files that a session is given, and files that its agent delivers.

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::support::{Answer, Server, bash, id, kind, result_text, toolset};

/// Uploads a file with further fields of the form.
fn upload(
    server: &Server,
    name: &str,
    content: &[u8],
    fields: &[(&str, &str)],
    headers: &[(&str, &str)],
) -> Answer {
    let mut body = Vec::new();
    for (field, value) in fields {
        body.extend(
            format!("--b\r\ncontent-disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n").bytes(),
        );
    }
    body.extend(
        format!("--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n").bytes(),
    );
    body.extend(content);
    body.extend(b"\r\n--b--\r\n");
    let mut all = vec![("content-type", "multipart/form-data; boundary=b")];
    all.extend_from_slice(headers);
    server.request("POST", "/v1/files", &all, &body)
}

fn server() -> Server {
    Server::replying(vec![Reply::text("hi")])
}

/// The texts of the tool results of a session.
fn results(server: &Server, session: &str) -> Vec<String> {
    let events = server.events(session);
    events.iter().filter(|event| kind(event) == "agent.tool_result").map(result_text).collect()
}

#[test]
fn a_file_is_uploaded_listed_downloaded_and_deleted() {
    let server = server();
    let content: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let fields = [("metadata", r#"{"team":"docs"}"#), ("expires_in_seconds", "3600"), ("unknown", "x")];
    let file = upload(&server, "../tables/Übersicht.csv", &content, &fields, &[]).ok();
    let path = format!("/v1/files/{}", id(&file));
    assert_eq!((&file["filename"], &file["mime_type"]), (&json!("Übersicht.csv"), &json!("text/csv")));
    assert_eq!((&file["size_bytes"], &file["metadata"]["team"]), (&json!(12_000_000), &json!("docs")));
    assert_eq!(
        (&file["downloadable"], &file["scope"], &file["status"]),
        (&json!(true), &Value::Null, &json!("ready"))
    );
    assert!(file["expires_at"].as_str() > file["created_at"].as_str());
    assert_eq!(server.get(&path).ok(), file);
    let bytes = server.get(&format!("{path}/content"));
    assert_eq!((bytes.status, bytes.body == content), (200, true));
    assert!(bytes.header("content-disposition").unwrap().starts_with("attachment"), "{:?}", bytes.headers);
    let link = server.request("GET", &format!("{path}/content"), &[("accept", "application/json")], b"").ok();
    let link = link["url"].as_str().unwrap().strip_prefix("http://localhost").unwrap().to_owned();
    let linked = server.bare("GET", &link, &[], b"");
    assert_eq!((linked.status, linked.body == content), (200, true), "a link needs no token");
    assert_eq!(server.bare("GET", &link[..link.len() - 1], &[], b"").error(404).0, "not_found_error");
    let other = upload(&server, "notes", b"n", &[("name", "b.txt")], &[]).ok();
    assert_eq!(other["mime_type"], "application/octet-stream");
    let named = |query: &str| {
        let listed = server.get(&format!("/v1/files?{query}")).ok();
        listed["data"].as_array().unwrap().iter().map(id).collect::<Vec<_>>()
    };
    assert_eq!(named(""), [id(&other), id(&file)]);
    assert_eq!(named("name=b.txt"), [id(&other)]);
    assert_eq!(named(&format!("ids%5B%5D={}&ids%5B%5D=file_1&ids%5B%5D={}", id(&file), id(&other))).len(), 2);
    assert!(named("scope_id=sess_1").is_empty());
    assert_eq!(server.delete(&path).ok()["type"], "file_deleted");
    assert_eq!(server.get(&path).error(404).0, "not_found_error");
    assert_eq!(server.get(&format!("{path}/content")).error(410).0, "not_found_error");
    assert_eq!(
        server.claude("GET", &format!("{path}/content"), &Value::Null).error(404).0,
        "not_found_error"
    );
    assert_eq!(server.bare("GET", &link, &[], b"").status, 404, "a link ends with its file");
    assert_eq!(server.delete(&path).status, 404);
    let blobs = std::process::Command::new("find")
        .arg(server.data().join("blobs"))
        .args(["-size", "+1000k"])
        .output();
    assert!(blobs.unwrap().stdout.is_empty(), "the content is gone from the disk");
}

#[test]
fn what_cannot_be_uploaded_is_refused_and_leaves_nothing() {
    let server = server_with_quota(1_000);
    assert_eq!(upload(&server, "a.txt", &[b'x'; 900], &[], &[]).status, 200);
    let full = upload(&server, "b.txt", &[b'x'; 101], &[], &[]);
    assert_eq!(full.error(400).0, "invalid_request_error");
    assert_eq!(full.json()["error"]["details"]["error_code"], "storage_quota_exceeded");
    for (field, value) in [("expires_in_seconds", "60"), ("metadata", "{\"a\":1}")] {
        let wrong = upload(&server, "c.txt", b"c", &[(field, value)], &[]);
        assert!(wrong.error(400).1.contains(field), "{field}");
    }
    let form = [("content-type", "multipart/form-data; boundary=b")];
    for (headers, body) in [
        (&form[..], &b"--b--\r\n"[..]),
        (&form[..], b"--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nhalf"),
        (&[], b"{}"),
    ] {
        assert_eq!(server.request("POST", "/v1/files", headers, body).error(400).0, "invalid_request_error");
    }
    let large = vec![b'x'; 33 * 1024 * 1024];
    assert_eq!(upload(&server, "large", &large, &[], &[]).error(400).0, "invalid_request_error");
    assert_eq!(server.get("/v1/files").ok()["data"].as_array().unwrap().len(), 1);
    let reader = server.token(&["--user", "eve"]);
    let foreign = id(&server.get("/v1/files").ok()["data"][0]);
    let bearer = format!("Bearer {reader}");
    let answer = server.bare("GET", &format!("/v1/files/{foreign}"), &[("authorization", &bearer)], b"");
    assert_eq!(answer.error(404).0, "not_found_error", "of another tenant");
}

fn server_with_quota(bytes: u64) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.keep().join("serve.yaml");
    std::fs::write(&config, format!("max_storage_bytes: {bytes}\n")).unwrap();
    let script = Script::by_assistant_count(vec![Reply::text("hi")]);
    Server::with(Some(script), &["--config", &config.display().to_string()], &[])
}

#[test]
fn a_key_makes_an_upload_count_once() {
    let server = server();
    let key = [("idempotency-key", "k1")];
    let first = upload(&server, "a.txt", b"one", &[], &key).ok();
    assert_eq!(upload(&server, "a.txt", b"one", &[], &key).ok(), first);
    assert_eq!(upload(&server, "a.txt", b"two", &[], &key).error(409).0, "conflict_error");
    assert_eq!(server.get("/v1/files").ok()["data"].as_array().unwrap().len(), 1);
    let content = server.get(&format!("/v1/files/{}/content", id(&first)));
    assert_eq!(content.body, b"one", "the repeat took nothing away");
}

#[test]
fn a_session_reads_the_files_that_it_was_given_and_cannot_change_them() {
    let script = Script::by_assistant_count(vec![
        bash(
            "cat data/table.csv; cat ../mounts/session/uploads/*; echo x > ../mounts/session/uploads/new; ls ../mounts/session/uploads | wc -l",
        ),
        Reply::tool("Read", json!({ "file_path": "../mounts/session/uploads/words.txt" })),
        Reply::tool(
            "Write",
            json!({ "file_path": "../mounts/session/uploads/words.txt", "content": "changed" }),
        ),
        Reply::text("done"),
    ]);
    let server = Server::scripted(script);
    let table = id(&upload(&server, "table.csv", b"a;b\n", &[], &[]).ok());
    let words = id(&upload(&server, "words.txt", b"the words", &[], &[]).ok());
    let body = json!({ "agent": server.agent(&json!([toolset(&[])])), "environment_id": server.environment(), "resources": [
        { "type": "file", "file_id": table, "mount_path": "/data/workspace/data/table.csv" },
        { "type": "file", "file_id": words, "mount_path": "/mnt/session/uploads/words.txt" } ] });
    let created = server.post("/v1/sessions", &body).ok();
    assert_eq!(created["resources"][1]["mount_path"], "/mnt/session/uploads/words.txt");
    assert_eq!(
        (&created["resources"][0]["type"], &created["resources"][0]["file_id"]),
        (&json!("file"), &json!(table))
    );
    let session = id(&created);
    server.ask(&session, "go");
    let results = results(&server, &session);
    assert!(results[0].contains("a;b") && results[0].contains("the words"), "{results:?}");
    let written = server.workspace(&session).with_file_name("mounts").join("session/uploads/new");
    assert!(!written.exists(), "{results:?}");
    assert!(results[1].contains("the words"), "{results:?}");
    assert!(results[2].contains("outside the environment"), "{results:?}");
    let asked = server.model.as_ref().unwrap().requests();
    let system = asked[0].json()["system"].to_string();
    assert!(system.contains("/mnt/session/uploads/words.txt (words.txt)"), "{system}");
    let resources = format!("/v1/sessions/{session}/resources");
    let twice = server.post(
        &resources,
        &json!({ "type": "file", "file_id": words, "mount_path": "/mnt/session/uploads/words.txt" }),
    );
    assert!(twice.error(400).1.contains("mount_path"));
    assert_eq!(
        server.post(&resources, &json!({ "type": "file", "file_id": "file_1" })).error(404).0,
        "not_found_error"
    );
    let table = id(&created["resources"][0]);
    assert_eq!(server.delete(&format!("{resources}/{table}")).ok()["type"], "session_resource_deleted");
    assert!(!server.workspace(&session).join("data/table.csv").exists(), "it is unmounted");
}

#[test]
fn a_message_can_name_files() {
    let server = server();
    let text = id(&upload(&server, "words.txt", b"the words of a file", &[], &[]).ok());
    let session = server.session(&json!([]));
    let document = |file: &str| {
        json!([{ "type": "user.message", "content": [
            { "type": "document", "source": { "type": "file", "file_id": file } } ] }])
    };
    let unknown = server.send(&session, &document("file_00000000000000000000000000000000"));
    assert!(unknown.error(400).1.contains("events[0].content[0].source.file_id"));
    let mut stream = server.stream(&session, None);
    let sent = server.send(&session, &document(&text)).ok();
    assert_eq!(
        sent["data"][0]["content"][0]["source"]["file_id"],
        json!(text),
        "it is stored as it was sent"
    );
    stream.until("session.status_idle");
    let asked = server.model.as_ref().unwrap().requests();
    assert!(
        asked[0].json()["messages"].to_string().contains("the words of a file"),
        "{}",
        asked[0].json()["messages"]
    );
}

#[test]
fn an_agent_delivers_files_of_its_workspace_and_nothing_else() {
    let secret = "/etc/passwd";
    let script = Script::by_assistant_count(vec![
        bash("echo finished > report.md; ln -s /etc/passwd link.txt"),
        Reply::tool("DeliverArtifacts", json!({ "paths": ["report.md", "missing.md"] })),
        Reply::tool("DeliverArtifacts", json!({ "paths": [secret] })),
        Reply::tool("DeliverArtifacts", json!({ "paths": ["link.txt"] })),
        Reply::text("done"),
    ]);
    let server = Server::scripted(script);
    let session = server.session(&json!([toolset(&[])]));
    server.ask(&session, "go");
    let events = server.events(&session);
    let delivered: Vec<&Value> =
        events.iter().filter(|event| kind(event) == "agent.artifact_delivered").collect();
    assert_eq!(delivered.len(), 1, "{events:?}");
    assert_eq!((&delivered[0]["original_filename"], &delivered[0]["size"]), (&json!("report.md"), &json!(9)));
    assert_eq!(delivered[0]["content_type"], "text/markdown");
    let listed = server.get(&format!("/v1/files?scope_id={session}")).ok();
    let file = &listed["data"][0];
    assert_eq!((listed["data"].as_array().unwrap().len(), &file["id"]), (1, &delivered[0]["file_id"]));
    assert_eq!(file["scope"], json!({ "type": "session", "id": session }));
    assert_eq!(server.get(&format!("/v1/files/{}/content", id(file))).body, b"finished\n");
    let results = results(&server, &session);
    assert!(results[1].contains("missing.md"), "{results:?}");
    assert!(
        results[2].contains("outside the environment") && results[3].contains("outside the environment"),
        "{results:?}"
    );
}
