//! `isolation: worktree`: the child works in a fresh worktree, which is kept when it has changed something there and removed
//! when it has not. Servers that a definition describes are the child's alone.

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::turns::agents::{agent, child_requests, family};
use crate::turns::support::{bodies, calls, results_in, stream};

fn repository() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("file.txt", "first\n");
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let output = std::process::Command::new("git")
            .current_dir(sandbox.project())
            .args(identity)
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    sandbox
}

fn worktrees(sandbox: &Sandbox) -> usize {
    let folder = sandbox.project().join(".qoder/worktrees");
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter(|entry| entry.path().is_dir()).count()
}

fn run(sandbox: &Sandbox, command: &str) -> (Value, String) {
    let bash = ("toolu_bash", "Bash", json!({ "command": command }));
    let server = family(
        vec![calls(&[agent("toolu_agent", &json!({ "isolation": "worktree" }))]), Reply::text("done")],
        vec![calls(&[bash]), Reply::text("worked")],
    );
    let finished = stream(sandbox, &server, &["go", "--allowed-tools", "Agent,Bash"]);
    finished.success();
    let line = finished.of("user").into_iter().rfind(|line| line["tool_use_result"]["agentId"].is_string());
    let (_, seen, _) = results_in(child_requests(&server).last().unwrap()).remove(0);
    (line.unwrap()["tool_use_result"].clone(), seen)
}

#[test]
fn isolation_worktree_keeps_what_was_changed() {
    let sandbox = repository();
    let (result, seen) = run(&sandbox, "pwd; echo second > file.txt");
    assert!(seen.contains(".qoder/worktrees/agent-"), "{seen}");
    let path = result["worktreePath"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(format!("{path}/file.txt")).unwrap(), "second\n");
    assert_eq!(std::fs::read_to_string(sandbox.project().join("file.txt")).unwrap(), "first\n");
    assert!(result["result"].as_str().unwrap().contains(path), "{result}");
    assert_eq!(worktrees(&sandbox), 1);
}

#[test]
fn isolation_worktree_is_removed_when_nothing_changed() {
    let sandbox = repository();
    let (result, seen) = run(&sandbox, "pwd");
    assert!(seen.contains(".qoder/worktrees/agent-"), "{seen}");
    assert_eq!((&result["worktreePath"], worktrees(&sandbox)), (&Value::Null, 0));
}

#[test]
fn outside_a_repository_it_does_not_start() {
    let sandbox = Sandbox::new();
    let server = family(
        vec![calls(&[agent("toolu_agent", &json!({ "isolation": "worktree" }))]), Reply::text("done")],
        Vec::new(),
    );
    stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]).success();
    let told = results_in(bodies(&server).last().unwrap());
    assert!(told[0].2 && told[0].1.contains("git repository"), "{told:?}");
}
