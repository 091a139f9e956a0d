//! The memory of an agent: a folder of its own, of which the beginning is in its prompt and in which it may work. No one
//! else may, nothing of an untrusted folder is read, and protected files stay protected.

use std::path::{Path, PathBuf};

use qoder_testkit::{Reply, Sandbox, ScriptedServer};
use serde_json::json;

use crate::turns::agents::{agent, child_requests, family};
use crate::turns::support::{calls, results_in, stream};

fn define(sandbox: &Sandbox, name: &str, head: &str) {
    let text = format!("---\nname: {name}\ndescription: d\n{head}---\nYou keep notes.\n");
    sandbox.write(sandbox.config().join(format!("agents/{name}.md")), text);
}

fn start(name: &str, child: Vec<Reply>) -> ScriptedServer {
    family(vec![calls(&[agent("toolu_agent", &json!({ "agent": name }))]), Reply::text("done")], child)
}

fn write(path: &Path) -> Reply {
    calls(&[("toolu_write", "Write", json!({ "file_path": path, "content": "kept\n" }))])
}

fn folder(sandbox: &Sandbox, scope: &str) -> PathBuf {
    let (config, project) =
        (sandbox.config().canonicalize().unwrap(), sandbox.project().canonicalize().unwrap());
    match scope {
        "user" => config.join("agent-memory/keeper"),
        "project" => project.join(".qoder/agent-memory/keeper"),
        _ => project.join(".qoder/agent-memory-local/keeper"),
    }
}

const FLAGS: [&str; 5] = ["go", "--allowed-tools", "Agent", "--permission-mode", "acceptEdits"];

#[test]
fn memory_user_project_and_local_are_read_and_written() {
    for scope in ["user", "project", "local"] {
        let sandbox = Sandbox::new();
        define(&sandbox, "keeper", &format!("memory: {scope}\n"));
        let folder = folder(&sandbox, scope);
        sandbox.write(folder.join("MEMORY.md"), "- tests need a database\n");
        let server = start("keeper", vec![write(&folder.join("more/database.md")), Reply::text("kept")]);
        stream(&sandbox, &server, &[&FLAGS[..], &["--trust"]].concat()).success();
        let requests = child_requests(&server);
        let system = requests[0]["system"].to_string();
        assert!(system.contains("- tests need a database"), "{system}");
        assert!(system.contains(folder.to_str().unwrap()), "{system}");
        let kept = std::fs::read_to_string(folder.join("more/database.md"));
        assert_eq!(kept.unwrap_or_else(|_| panic!("{scope}: {:?}", results_in(&requests[1]))), "kept\n");
    }
}

#[test]
fn the_memory_of_an_agent_is_for_that_agent_alone() {
    let sandbox = Sandbox::new();
    define(&sandbox, "keeper", "memory: user\n");
    define(&sandbox, "other", "");
    let folder = folder(&sandbox, "user");
    sandbox.write(folder.join("MEMORY.md"), "- mine\n");
    for path in [folder.join("a.md"), folder.join("MEMORY.md")] {
        let server = start("other", vec![write(&path), Reply::text("kept")]);
        stream(&sandbox, &server, &FLAGS).success();
        let requests = child_requests(&server);
        assert!(!requests[0]["system"].to_string().contains("- mine"));
        let (_, text, failed) = results_in(&requests[1]).remove(0);
        assert!(failed, "{text}");
    }
    assert_eq!(std::fs::read_to_string(folder.join("MEMORY.md")).unwrap(), "- mine\n");
}

#[test]
fn protected_files_stay_protected_for_an_agent_with_memory() {
    let sandbox = Sandbox::new();
    define(&sandbox, "keeper", "memory: user\n");
    let folder = folder(&sandbox, "user");
    let config = sandbox.config().canonicalize().unwrap();
    for path in [
        config.join("agents/new.md"),
        config.join("agent-memory/other/MEMORY.md"),
        folder.join(".git/config"),
        folder.join("../../settings.json"),
    ] {
        let server = start("keeper", vec![write(&path), Reply::text("kept")]);
        stream(&sandbox, &server, &FLAGS).success();
        let (_, text, failed) = results_in(&child_requests(&server)[1]).remove(0);
        assert!(failed && !path.exists(), "{}: {text}", path.display());
    }
}

#[test]
fn the_memory_of_an_untrusted_project_is_not_read() {
    for scope in ["project", "local"] {
        let sandbox = Sandbox::new();
        define(&sandbox, "keeper", &format!("memory: {scope}\n"));
        sandbox.write(folder(&sandbox, scope).join("MEMORY.md"), "- do as the folder says\n");
        let server = start("keeper", vec![Reply::text("kept")]);
        stream(&sandbox, &server, &FLAGS[..3]).success();
        let system = child_requests(&server)[0]["system"].to_string();
        assert!(!system.contains("do as the folder says") && !system.contains("Your memory"), "{system}");
    }
}
