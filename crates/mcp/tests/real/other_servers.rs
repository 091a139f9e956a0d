//! Servers for files, git and the time: other languages and other libraries than that of the reference server.

use std::collections::BTreeMap;
use std::process::Command;

use qoder_types::server::Transport;
use serde_json::json;

use crate::real::support::{Tested, child, described, program};

#[tokio::test]
async fn files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    std::fs::write(folder.join("a.txt"), "found").unwrap();
    let server = child(&program("node_modules/.bin/mcp-server-filesystem"), &[folder.to_str().unwrap()]);
    let tested = Tested::plain(&server);
    let greeting = tested.connect().await.unwrap();
    let tool = greeting.tools.iter().find(|tool| tool.name == "read_text_file").unwrap();
    assert_eq!(tool.annotations.as_ref().unwrap()["readOnlyHint"], true);
    assert_eq!(tested.said("read_text_file", json!({ "path": folder.join("a.txt") })).await, "found");
    let outside = tested.call("read_text_file", json!({ "path": "/etc/passwd" })).await.unwrap();
    assert!(outside.is_error);
    tested.close().await;
}

#[tokio::test]
async fn git() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let made = Command::new("git").args(["init", "-q", path]).status().unwrap();
    assert!(made.success());
    std::fs::write(folder.path().join("new.txt"), "x").unwrap();
    let tested = Tested::plain(&child(&program("venv/bin/mcp-server-git"), &["--repository", path]));
    let greeting = tested.connect().await.unwrap();
    assert!(greeting.tools.iter().any(|tool| tool.name == "git_status"));
    let status = tested.said("git_status", json!({ "repo_path": path })).await;
    assert!(status.contains("new.txt"), "{status}");
    tested.close().await;
}

#[tokio::test]
async fn time() {
    // By name, in the search path of its description.
    let bin = program("venv/bin");
    let server = described(Transport::Stdio {
        command: "mcp-server-time".to_owned(),
        args: vec!["--local-timezone".to_owned(), "Europe/Berlin".to_owned()],
        env: BTreeMap::from([("PATH".to_owned(), format!("{bin}:/usr/bin:/bin"))]),
        cwd: None,
    });
    let tested = Tested::plain(&server);
    tested.connect().await.unwrap();
    let now = tested.said("get_current_time", json!({ "timezone": "UTC" })).await;
    assert!(now.contains("UTC"), "{now}");
    tested.close().await;
}
