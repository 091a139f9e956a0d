//! EnterWorktree and ExitWorktree with real repositories: nothing of worth is lost, and nothing of a repository is run.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Bench, text};
use qoder_core::ports::ToolOutcome;
use qoder_types::{CallOutcome, PermissionUpdate, UpdateDestination, Worktree, WorktreeChange};
use serde_json::json;

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=Tester",
            "-c",
            "user.email=tester@example.com",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A bench whose directory is a repository with one commit.
fn repository() -> Bench {
    let bench = Bench::new();
    git(&bench.cwd, &["init", "--quiet"]);
    bench.write("file.txt", "one\n");
    git(&bench.cwd, &["add", "."]);
    git(&bench.cwd, &["commit", "--quiet", "-m", "first"]);
    bench
}

/// Does what the runtime does with the outcome.
fn follow(bench: &mut Bench, outcome: &ToolOutcome) {
    if let Some(cwd) = &outcome.new_cwd {
        bench.cwd.clone_from(cwd);
    }
    bench.worktree = match &outcome.worktree {
        Some(WorktreeChange::Entered(worktree)) => Some(worktree.clone()),
        Some(WorktreeChange::Left) => None,
        None => bench.worktree.take(),
    };
}

async fn enter(bench: &mut Bench, name: &str) -> Worktree {
    let outcome = bench.run("EnterWorktree", json!({ "name": name })).await;
    assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", text(&outcome));
    follow(bench, &outcome);
    bench.worktree.clone().unwrap()
}

#[tokio::test]
async fn a_worktree_is_entered_and_the_first_tree_stays_clean() {
    let mut bench = repository();
    let root = bench.cwd.clone();
    let outcome = bench.run("EnterWorktree", json!({ "name": "try.it_1" })).await;
    assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", text(&outcome));
    let path = root.join(".qoder/worktrees/try.it_1");
    let shown = path.to_str().unwrap();
    let expected = json!({ "worktree_path": shown, "branch_name": "worktree-try.it_1", "success": true });
    assert_eq!(outcome.structured, expected);
    assert_eq!(outcome.new_cwd.as_deref(), Some(path.as_path()));
    let added = PermissionUpdate::AddDirectories {
        directories: vec![shown.to_owned()],
        destination: UpdateDestination::Session,
    };
    assert_eq!(outcome.permission_updates, [added]);
    follow(&mut bench, &outcome);
    let worktree = bench.worktree.clone().unwrap();
    assert_eq!(worktree.base, git(&root, &["rev-parse", "HEAD"]).trim());
    assert_eq!(worktree.original_cwd, root.to_str().unwrap());
    assert_eq!(std::fs::read_to_string(path.join("file.txt")).unwrap(), "one\n");
    assert_eq!(git(&root, &["status", "--porcelain", "--untracked-files=all"]), "");
    assert_eq!(git(&path, &["branch", "--show-current"]).trim(), "worktree-try.it_1");
    // The folder that ignores itself must not hide the tree from the search tools.
    assert!(bench.succeed("Grep", json!({ "pattern": "one" })).await.contains("file.txt"));
    assert!(bench.succeed("Glob", json!({ "pattern": "**/*.txt" })).await.contains("file.txt"));
    let again = bench.run("EnterWorktree", json!({})).await;
    assert_eq!(again.outcome, CallOutcome::Failed);
    assert!(text(&again).contains("already in the worktree"), "{}", text(&again));
    assert_eq!(again.structured["success"], false);
}

#[tokio::test]
async fn a_name_is_made_up_and_bad_ones_are_refused() {
    let mut bench = repository();
    let too_long = "x".repeat(65);
    for name in
        ["", ".hidden", "-x", "a/b", "a b", "..", "a..b", "ü", "x.lock", "x.", too_long.as_str(), "a\0b"]
    {
        let text = bench.fail("EnterWorktree", json!({ "name": name })).await;
        assert!(text.contains("name"), "{name}: {text}");
    }
    let outcome = bench.run("EnterWorktree", json!({})).await;
    assert!(outcome.structured["branch_name"].as_str().unwrap().starts_with("worktree-session-"));
    follow(&mut bench, &outcome);
    assert!(bench.cwd.join("file.txt").is_file());
}

#[tokio::test]
async fn places_without_a_usable_repository_are_told_apart() {
    let bench = Bench::new();
    assert!(bench.fail("EnterWorktree", json!({ "name": "x" })).await.contains("git repository"));
    git(&bench.cwd, &["init", "--quiet"]);
    assert!(bench.fail("EnterWorktree", json!({ "name": "x" })).await.contains("no commit yet"));
    let bench = repository();
    git(&bench.cwd, &["branch", "worktree-taken"]);
    assert!(
        bench
            .fail("EnterWorktree", json!({ "name": "taken" }))
            .await
            .contains("branch worktree-taken exists")
    );
    bench.write(".qoder/worktrees/there/x", "");
    assert!(bench.fail("EnterWorktree", json!({ "name": "there" })).await.contains("exists already"));
}

#[tokio::test]
async fn a_folder_that_is_a_link_is_refused() {
    let bench = repository();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), bench.path(".qoder")).unwrap();
    assert!(bench.fail("EnterWorktree", json!({ "name": "x" })).await.contains("link"));
    assert!(!outside.path().join("worktrees/x").exists());
}

#[tokio::test]
async fn nothing_of_the_repository_is_run() {
    let mut bench = repository();
    bench.write(".gitattributes", "*.txt filter=evil.one\n");
    git(&bench.cwd, &["add", "."]);
    git(&bench.cwd, &["commit", "--quiet", "-m", "attributes"]);
    let mark = bench.path("../ran");
    let script = format!("#!/bin/sh\ntouch '{}'\n", mark.display());
    for hook in ["post-checkout", "reference-transaction", "fsmonitor", "filter"] {
        let path = bench.write(&format!(".git/hooks/{hook}"), &script);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    }
    let monitor = bench.text_path(".git/hooks/fsmonitor");
    git(&bench.cwd, &["config", "core.fsmonitor", &monitor]);
    let filter = bench.text_path(".git/hooks/filter");
    for (kind, value) in [("smudge", filter.as_str()), ("clean", &filter), ("required", "true")] {
        git(&bench.cwd, &["config", &format!("filter.evil.one.{kind}"), value]);
    }
    drop(std::fs::remove_file(&mark));
    enter(&mut bench, "quiet").await;
    assert_eq!(bench.content("file.txt"), b"one\n");
    let outcome = bench.run("ExitWorktree", json!({ "action": "remove" })).await;
    assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", text(&outcome));
    assert!(!mark.exists());
}

#[tokio::test]
async fn leaving_and_keeping_returns_to_where_the_session_was() {
    let mut bench = repository();
    bench.write("sub/x", "");
    let from = bench.path("sub");
    bench.cwd.clone_from(&from);
    let worktree = enter(&mut bench, "kept").await;
    let outcome = bench.run("ExitWorktree", json!({ "action": "keep" })).await;
    assert_eq!(outcome.structured, json!({ "success": true }), "{}", text(&outcome));
    assert_eq!((outcome.new_cwd.as_ref(), &outcome.worktree), (Some(&from), &Some(WorktreeChange::Left)));
    let removed = PermissionUpdate::RemoveDirectories {
        directories: vec![worktree.path.clone()],
        destination: UpdateDestination::Session,
    };
    assert_eq!(outcome.permission_updates, [removed]);
    assert!(Path::new(&worktree.path).join("file.txt").is_file());
    follow(&mut bench, &outcome);
    assert!(bench.fail("ExitWorktree", json!({ "action": "keep" })).await.contains("not in a worktree"));
}

#[tokio::test]
async fn work_that_would_be_lost_is_listed_until_it_is_discarded() {
    let mut bench = repository();
    let root = bench.cwd.clone();
    let worktree = enter(&mut bench, "work").await;
    let tree = PathBuf::from(&worktree.path);
    bench.write("committed.txt", "x");
    git(&tree, &["add", "."]);
    git(&tree, &["commit", "--quiet", "-m", "second thoughts"]);
    bench.write("file.txt", "changed\n");
    bench.write("new dir/ü.txt", "x");
    let outcome = bench.run("ExitWorktree", json!({ "action": "remove" })).await;
    assert_eq!(outcome.outcome, CallOutcome::Failed, "{}", text(&outcome));
    assert_eq!(outcome.structured["uncommitted_files"], json!(["file.txt", "new dir/ü.txt"]));
    let commits = outcome.structured["unmerged_commits"].as_array().unwrap();
    assert_eq!(commits.len(), 1);
    assert!(commits[0].as_str().unwrap().ends_with(" second thoughts"));
    assert!(text(&outcome).contains("second thoughts") && text(&outcome).contains("new dir/ü.txt"));
    assert!(outcome.worktree.is_none() && outcome.new_cwd.is_none() && tree.join("file.txt").exists());
    let input = json!({ "action": "remove", "discard_changes": true });
    let outcome = bench.run("ExitWorktree", input).await;
    assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", text(&outcome));
    assert_eq!(outcome.new_cwd, Some(root.clone()));
    assert!(!tree.exists());
    assert_eq!(git(&root, &["branch", "--list", "worktree-work"]), "");
    assert_eq!(git(&root, &["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
}

#[tokio::test]
async fn merged_work_and_untouched_trees_go_without_a_question() {
    let mut bench = repository();
    let root = bench.cwd.clone();
    let worktree = enter(&mut bench, "merged").await;
    let tree = PathBuf::from(&worktree.path);
    bench.write("more.txt", "x");
    git(&tree, &["add", "."]);
    git(&tree, &["commit", "--quiet", "-m", "more"]);
    git(&root, &["merge", "--quiet", "worktree-merged"]);
    let outcome = bench.run("ExitWorktree", json!({ "action": "remove" })).await;
    assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", text(&outcome));
    assert!(!tree.exists() && root.join("more.txt").exists());
}

#[tokio::test]
async fn a_tree_or_a_directory_that_vanished_is_no_trap() {
    let mut bench = repository();
    let root = bench.cwd.clone();
    bench.write("sub/x", "");
    bench.cwd = bench.path("sub");
    let worktree = enter(&mut bench, "gone").await;
    std::fs::remove_dir_all(&worktree.path).unwrap();
    std::fs::remove_dir_all(root.join("sub")).unwrap();
    let outcome = bench.run("ExitWorktree", json!({ "action": "remove" })).await;
    assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", text(&outcome));
    assert_eq!(outcome.new_cwd, Some(root.clone()));
    assert_eq!(git(&root, &["branch", "--list", "worktree-gone"]), "");
}

#[tokio::test]
async fn a_cancelled_start_leaves_nothing_behind() {
    let bench = repository();
    let (cancel, cancelled) = crate::common::cancellable();
    cancel.send(()).unwrap();
    let outcome = bench.run_until("EnterWorktree", json!({ "name": "never" }), cancelled).await;
    assert_eq!(outcome.outcome, CallOutcome::Interrupted, "{}", text(&outcome));
    assert_eq!(git(&bench.cwd, &["branch", "--list", "worktree-never"]), "");
    assert!(!bench.path(".qoder/worktrees/never").exists());
}
