//! Skills: uploads with versions, archives, and sessions that load the version they were created with.

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::support::{Answer, Server, bash, id, kind, result_text, toolset};

const SCRIPT: &str = "#!/bin/sh\necho hello from the script\n";

fn instructions(name: &str, text: &str) -> String {
    format!("---\nname: {name}\ndescription: Writes reports.\nallowed-tools: Bash\n---\n{text}\n")
}

/// Uploads files of a skill, with further fields of the form.
fn upload(server: &Server, path: &str, files: &[(&str, &[u8])], fields: &[(&str, &str)]) -> Answer {
    let mut body = Vec::new();
    for (field, value) in fields {
        body.extend(
            format!("--b\r\ncontent-disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n").bytes(),
        );
    }
    for (name, content) in files {
        body.extend(
            format!("--b\r\ncontent-disposition: form-data; name=\"files[]\"; filename=\"{name}\"\r\n\r\n")
                .bytes(),
        );
        body.extend(*content);
        body.extend(b"\r\n");
    }
    body.extend(b"--b--\r\n");
    server.request("POST", path, &[("content-type", "multipart/form-data; boundary=b")], &body)
}

fn report(server: &Server, path: &str, text: &str) -> Answer {
    let instructions = instructions("report", text);
    let files = [("top/SKILL.md", instructions.as_bytes()), ("top/scripts/hello.sh", SCRIPT.as_bytes())];
    upload(server, path, &files, &[("display_title", "Reports"), ("metadata", r#"{"team":"docs"}"#)])
}

#[test]
fn skills_have_versions_with_archives() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let skill = report(&server, "/v1/skills", "One.").ok();
    let path = format!("/v1/skills/{}", id(&skill));
    let versions = format!("{path}/versions");
    assert_eq!((&skill["display_name"], &skill["display_title"]), (&json!("Reports"), &json!("Reports")));
    assert_eq!((&skill["metadata"]["team"], &skill["source"]["type"]), (&json!("docs"), &json!("custom")));
    assert_eq!(server.get(&path).ok(), skill);
    let taken = report(&server, "/v1/skills", "Again.");
    assert!(taken.error(400).1.contains(&id(&skill)));
    assert_eq!(taken.json()["error"]["details"]["error_code"], "skill_name_taken");
    let first = server.get(&format!("{versions}/latest")).ok();
    assert_eq!(skill["latest_version_id"], first["id"]);
    assert_eq!((&first["name"], &first["description"]), (&json!("report"), &json!("Writes reports.")));
    let named = format!("{versions}/{}", skill["latest_version"].as_str().unwrap());
    assert_eq!(server.get(&named).ok(), first, "versions are named by times, too");
    let archive = server.get(&format!("{versions}/latest/content"));
    assert_eq!((archive.status, archive.header("content-type")), (200, Some("application/zip")));
    // An archive that was downloaded is a new version when it is uploaded.
    let second = upload(&server, &versions, &[("report.zip", &archive.body)], &[]).ok();
    assert_eq!(server.get(&path).ok()["latest_version_id"], second["id"]);
    assert_eq!(server.get(&format!("{versions}/{}/content", id(&second))).body, archive.body);
    let other = instructions("other", "x");
    let renamed = upload(&server, &versions, &[("SKILL.md", other.as_bytes())], &[]);
    assert!(renamed.error(400).1.contains("keep the name `report`"));
    let broken = upload(&server, "/v1/skills", &[("a/README.md", b"x")], &[]);
    assert!(broken.error(400).1.contains("has no `a/SKILL.md`"));
    let listed = server.get(&versions).ok();
    let ids: Vec<&Value> = listed["data"].as_array().unwrap().iter().map(|version| &version["id"]).collect();
    assert_eq!(ids, [&second["id"], &first["id"]]);
    assert_eq!(server.delete(&format!("{versions}/latest")).ok()["id"], second["id"]);
    assert_eq!(server.get(&path).ok()["latest_version_id"], first["id"]);
    assert_eq!(server.delete(&format!("{versions}/latest")).error(409).0, "conflict_error");
    assert_eq!(server.get("/v1/skills?name=report&source=custom").ok()["data"][0]["id"], skill["id"]);
    assert_eq!(server.get("/v1/skills?source=anthropic").ok()["data"], json!([]));
    let using = |skill: &Value| {
        let skills = json!([{ "type": "custom", "skill_id": skill["id"] }]);
        server.post("/v1/agents", &json!({ "name": "a", "model": "auto", "skills": skills }))
    };
    let agent = using(&skill).ok();
    assert_eq!(agent["skills"][0]["version"], "latest");
    assert_eq!(server.delete(&path).ok()["type"], "skill_deleted");
    assert_eq!(server.get(&path).error(404).0, "not_found_error");
    assert_eq!(using(&skill).error(404).0, "not_found_error");
    let body = json!({ "agent": id(&agent), "environment_id": server.environment() });
    assert_eq!(server.post("/v1/sessions", &body).error(404).0, "not_found_error");
    report(&server, "/v1/skills", "The name is free again.").ok();
}

#[test]
fn a_session_loads_the_version_that_it_was_created_with() {
    let command = "sh ../mounts/skills/*/report/scripts/hello.sh; touch ../mounts/skills/x && echo changed";
    let server = Server::scripted(Script::by_assistant_count(vec![
        Reply::tool("Skill", json!({ "skill": "report" })),
        bash(command),
        Reply::text("done"),
    ]));
    let skill = report(&server, "/v1/skills", "The first text.").ok();
    let agent = json!({ "name": "a", "model": "auto", "tools": [toolset(&[])],
        "skills": [{ "type": "custom", "skill_id": skill["id"] }] });
    let agent = id(&server.post("/v1/agents", &agent).ok());
    let environment = server.environment();
    let begin = || {
        let body = json!({ "agent": agent, "environment_id": environment });
        server.post("/v1/sessions", &body).ok()
    };
    let early = begin();
    assert_eq!(early["agent"]["skills"][0]["version"], skill["latest_version_id"], "pinned");
    let newer = report(&server, &format!("/v1/skills/{}/versions", id(&skill)), "The second text.").ok();
    let late = begin();
    assert_eq!(late["agent"]["skills"][0]["version"], newer["id"]);
    for (session, text) in [(&early, "The first text."), (&late, "The second text.")] {
        server.ask(&id(session), "go");
        let events = server.events(&id(session));
        let used = events.iter().find(|event| kind(event) == "agent.tool_use").unwrap();
        assert_eq!((&used["name"], &used["evaluated_permission"]), (&json!("Skill"), &json!("allow")));
        let results: Vec<String> =
            events.iter().filter(|event| kind(event) == "agent.tool_result").map(result_text).collect();
        assert!(results[0].contains(text), "{results:?}");
        assert!(
            results[1].contains("hello from the script") && !results[1].contains("changed"),
            "{results:?}"
        );
    }
}
