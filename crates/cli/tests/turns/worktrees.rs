//! A session moves into a worktree, works there as in the project, and leaves it again: kept, or removed when nothing would
//! be lost. Where it is survives a restart.

use std::process::Command;

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::turns::agents::{agent, family};
use crate::turns::parked::{SESSION, model, sandbox as trusted};
use crate::turns::support::{Finished, bodies, calls, results_in, stream};

const TREE: &str = ".qoder/worktrees/feature";

fn git(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let mut command: Command = sandbox.command("git");
    command.args(["-c", "user.name=Test", "-c", "user.email=test@example.com"]).args(arguments);
    let output = Sandbox::finish(command);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A trusted repository with one commit.
fn repository() -> Sandbox {
    let sandbox = trusted();
    sandbox.write("notes.txt", "hello\n");
    git(&sandbox, &["init", "-q", "-b", "main"]);
    git(&sandbox, &["add", "notes.txt"]);
    git(&sandbox, &["commit", "-q", "-m", "first"]);
    sandbox
}

fn enter() -> Reply {
    calls(&[("toolu_enter", "EnterWorktree", json!({ "name": "feature" }))])
}

fn leave(action: &str, discard: bool) -> Reply {
    calls(&[("toolu_exit", "ExitWorktree", json!({ "action": action, "discard_changes": discard }))])
}

fn write() -> Reply {
    calls(&[("toolu_write", "Write", json!({ "file_path": "made.txt", "content": "x" }))])
}

fn go(sandbox: &Sandbox, replies: Vec<Reply>) -> (Finished, Vec<Value>) {
    let server = model(replies);
    let arguments = ["go", "--session-id", SESSION, "--permission-mode", "acceptEdits"];
    let rules = ["--allowed-tools", "EnterWorktree,ExitWorktree"];
    let finished = stream(sandbox, &server, &[&arguments[..], &rules].concat());
    (finished, bodies(&server))
}

#[test]
fn edits_there_are_edits_in_the_workspace() {
    let sandbox = repository();
    let (finished, _) =
        go(&sandbox, vec![enter(), write(), leave("keep", false), write(), Reply::text("done")]);
    assert_eq!(finished.success()["permission_denials"], json!([]), "{}", finished.stdout);
    assert!(sandbox.project().join(TREE).join("made.txt").exists());
    assert!(sandbox.project().join("made.txt").exists(), "after leaving, the project is the place again");
    assert!(git(&sandbox, &["branch", "--list"]).contains("worktree-feature"));
    assert_eq!(git(&sandbox, &["status", "--porcelain"]).trim(), "?? made.txt");
}

#[test]
fn a_child_before_it_does_not_stand_in_its_way() {
    let sandbox = repository();
    let parent = vec![calls(&[agent("toolu_agent", &json!({}))]), enter(), write(), Reply::text("done")];
    let read = calls(&[("toolu_read", "Read", json!({ "file_path": "notes.txt" }))]);
    let server = family(parent, vec![read, Reply::text("seen")]);
    let arguments = ["go", "--permission-mode", "acceptEdits", "--allowed-tools", "Agent,EnterWorktree"];
    let finished = stream(&sandbox, &server, &arguments);
    assert_eq!(finished.success()["permission_denials"], json!([]), "{}", finished.stdout);
    assert!(sandbox.project().join(TREE).join("made.txt").exists());
}

#[test]
fn uncommitted_work_is_not_removed_unasked() {
    let sandbox = repository();
    let replies = vec![enter(), write(), leave("remove", false), leave("remove", true), Reply::text("done")];
    let (finished, requests) = go(&sandbox, replies);
    finished.success();
    let refused = results_in(&requests[3]);
    assert!(refused[0].2 && refused[0].1.contains("made.txt"), "{refused:?}");
    assert!(!results_in(&requests[4])[0].2);
    assert!(!sandbox.project().join(TREE).exists());
    assert!(!git(&sandbox, &["branch", "--list"]).contains("worktree-feature"));
}

#[test]
fn it_survives_a_restart() {
    let sandbox = repository();
    let (finished, _) = go(&sandbox, vec![enter(), Reply::text("inside")]);
    finished.success();
    let server = model(vec![
        Reply::text("?"),
        Reply::text("?"),
        write(),
        enter(),
        leave("keep", false),
        Reply::text("done"),
    ]);
    let arguments = ["continue", "--resume", SESSION, "--permission-mode", "acceptEdits"];
    let rules = ["--allowed-tools", "EnterWorktree"];
    let finished = stream(&sandbox, &server, &[&arguments[..], &rules].concat());
    assert_eq!(finished.success()["permission_denials"], json!([]), "{}", finished.stdout);
    let tree = sandbox.project().join(TREE);
    assert_eq!(finished.system("init")[0]["cwd"], tree.to_str().unwrap());
    assert!(tree.join("made.txt").exists());
    let requests = bodies(&server);
    let told = results_in(&requests[2]);
    assert!(told[0].2 && told[0].1.contains("already in the worktree"), "{told:?}");
    let left = results_in(&requests[3]);
    assert!(!left[0].2 && left[0].1.contains("is kept") | left[0].1.contains("are kept"), "{left:?}");
}

#[test]
fn without_a_repository_it_says_so() {
    let (finished, requests) = go(&trusted(), vec![enter(), leave("keep", false), Reply::text("done")]);
    finished.success();
    assert!(results_in(&requests[1])[0].1.contains("git repository"));
    assert!(results_in(&requests[2])[0].1.contains("not in a worktree"));
}
