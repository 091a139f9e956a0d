//! Repositories of a session: cloned once, before it wakes, with a credential that no tool sees.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::support::{Server, bash, id, kind, result_text, toolset};

const TOKEN: &str = "token-of-the-repository";

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Ana", "-c", "user.email=ana@example.com", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository behind HTTP, with two commits, that wants a token.
struct Host {
    folder: tempfile::TempDir,
    url: String,
}

impl Host {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        std::fs::create_dir(&work).unwrap();
        git(&work, &["init", "-q"]);
        for text in ["one", "two"] {
            std::fs::write(work.join("note.txt"), text).unwrap();
            git(&work, &["add", "."]);
            git(&work, &["commit", "-q", "-m", text]);
        }
        git(&work, &["branch", "side", "HEAD~1"]);
        git(folder.path(), &["clone", "-q", "--bare", "work", "tool.git"]);
        git(&folder.path().join("tool.git"), &["update-server-info"]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/tool.git", listener.local_addr().unwrap());
        let root = folder.path().to_path_buf();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let root = root.clone();
                std::thread::spawn(move || serve(stream, &root));
            }
        });
        Self { folder, url }
    }

    fn first_commit(&self) -> String {
        git(&self.folder.path().join("work"), &["rev-parse", "HEAD~1"])
    }
}

/// Files of a folder, for those who have the token.
fn serve(stream: TcpStream, root: &Path) {
    let mut writer = stream.try_clone().unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    // Requests have no bodies.
    while let Some(first) = lines.next() {
        let headers: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        let path = first.split(' ').nth(1).and_then(|path| path.split('?').next()).unwrap_or("/");
        let file: PathBuf = root.join(path.trim_start_matches('/'));
        let is_known = headers.iter().any(|line| {
            let lower = line.to_ascii_lowercase();
            // `x-access-token:token-of-the-repository`
            lower.starts_with("authorization: basic ")
                && line.ends_with("eC1hY2Nlc3MtdG9rZW46dG9rZW4tb2YtdGhlLXJlcG9zaXRvcnk=")
        });
        let (status, body) = match std::fs::read(&file) {
            _ if !is_known => ("401 Unauthorized\r\nwww-authenticate: Basic realm=\"x\"", Vec::new()),
            Ok(body) => ("200 OK", body),
            Err(_) => ("404 Not Found", Vec::new()),
        };
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
        if writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(&body)).is_err() {
            return;
        }
    }
}

fn session(server: &Server, resource: &Value) -> String {
    let body = json!({ "agent": server.agent(&json!([toolset(&[])])), "environment_id": server.environment(),
        "resources": [resource] });
    id(&server.post("/v1/sessions", &body).ok())
}

fn resource(host: &Host, more: &Value) -> Value {
    let mut resource = json!({ "type": "github_repository", "url": host.url, "authorization_token": TOKEN });
    resource.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    resource
}

fn errors(server: &Server, session: &str) -> Vec<Value> {
    server.events(session).into_iter().filter(|event| kind(event) == "session.error").collect()
}

#[test]
fn a_repository_is_cloned_once_and_its_token_is_nowhere() {
    let host = Host::start();
    let look = "cat tool/note.txt; cat tool/.git/config; env; echo mine > tool/note.txt; git -C tool log --oneline | wc -l";
    let script = Script::by_assistant_count(vec![
        bash(look),
        Reply::text("a"),
        bash("cat tool/note.txt"),
        Reply::text("b"),
    ]);
    let mut server = Server::scripted(script);
    let session = session(&server, &resource(&host, &json!({})));
    server.ask(&session, "look");
    assert_eq!(errors(&server, &session), Vec::<Value>::new());
    let result =
        server.events(&session).into_iter().find(|event| kind(event) == "agent.tool_result").unwrap();
    let text = result_text(&result);
    assert!(text.starts_with("two") && text.contains(&host.url), "{text}");
    assert!(
        !text.contains(TOKEN) && !text.contains("x-access-token") && !text.contains("Authorization"),
        "{text}"
    );
    let config = std::fs::read_to_string(server.workspace(&session).join("tool/.git/config")).unwrap();
    assert!(!config.contains("extraHeader") && !config.contains("hooksPath"), "{config}");
    // What the session did to its clone stays, also when it is opened anew.
    server.kill();
    server.start_again();
    server.ask(&session, "again");
    let last = server.events(&session).into_iter().rfind(|event| kind(event) == "agent.tool_result").unwrap();
    assert_eq!(result_text(&last).trim(), "mine");
}

#[test]
fn a_branch_or_a_commit_is_checked_out_where_the_owner_says() {
    let host = Host::start();
    for checkout in
        [json!({ "type": "branch", "name": "side" }), json!({ "type": "commit", "sha": host.first_commit() })]
    {
        let server = Server::replying(vec![Reply::text("hi")]);
        let more = json!({ "checkout": checkout, "mount_path": "/workspace/src/here" });
        let session = session(&server, &resource(&host, &more));
        server.ask(&session, "go");
        assert_eq!(errors(&server, &session), Vec::<Value>::new());
        let note = server.workspace(&session).join("src/here/note.txt");
        assert_eq!(std::fs::read_to_string(note).unwrap(), "one", "{checkout}");
    }
}

#[test]
fn a_repository_that_cannot_be_cloned_is_reported_and_the_session_runs() {
    let host = Host::start();
    for (more, expected) in [
        (json!({ "authorization_token": "another" }), "repository_authentication_error"),
        (json!({ "url": host.url.replace("tool", "nothing") }), "repository_not_found_error"),
        (json!({ "checkout": { "type": "branch", "name": "nothing" } }), "repository_checkout_error"),
        (json!({ "url": "http://127.0.0.1:9/r.git" }), "repository_clone_error"),
    ] {
        let server = Server::replying(vec![Reply::text("hi")]);
        let session = session(&server, &resource(&host, &more));
        server.ask(&session, "go");
        let error = errors(&server, &session).remove(0)["error"].clone();
        assert_eq!(
            (&error["type"], &error["retry_status"]["type"]),
            (&json!(expected), &json!("retrying")),
            "{error}"
        );
        assert!(error["repository_url"].is_string() && !error.to_string().contains(TOKEN), "{error}");
        assert!(server.kinds(&session).contains(&"agent.message".to_owned()));
    }
}
