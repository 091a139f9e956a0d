//! Git queries that need no question run nothing that a repository or a repository inside it names, and show nothing from
//! elsewhere: every way of naming a program, crossed with every query, with the effect looked for afterwards.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::path::Path;
use std::process::Command;

use crate::common::Bench;
use serde_json::json;

/// What a program that a repository names leaves behind.
const MARK: &str = "ran";

/// Queries that the gate runs without a question.
const QUERIES: &[&str] = &[
    "git status",
    "git status --porcelain",
    "git diff",
    "git diff HEAD",
    "git diff --stat",
    "git log -p -3",
    "git show HEAD",
    "git blame a.txt",
    "git grep text",
    "git ls-files -m",
    "git describe --always --dirty",
    "git stash list",
    "git branch -a",
    "git config --list",
    "git check-ignore -v a.txt",
    "git check-attr -a a.txt",
    "git shortlog -sn HEAD",
    "git diff-files -p",
];

fn git(folder: &Path, arguments: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"])
        .args(["-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A repository with one commit and one change that is not committed.
fn repository(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "--quiet"]);
    std::fs::write(folder.join("a.txt"), "text\n").unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "-m", "first"]);
    std::fs::write(folder.join("a.txt"), "other text\n").unwrap();
}

/// A program in `folder` that leaves the mark.
fn program(folder: &Path, mark: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("program.sh");
    std::fs::write(&path, format!("#!/bin/sh\ntouch {}\ncat\n", mark.display())).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Settings that name a program, with `PROGRAM` in its place.
const SETTINGS: &[(&str, &str)] = &[
    ("core.fsmonitor", "PROGRAM"),
    ("core.pager", "PROGRAM"),
    ("pager.status", "PROGRAM"),
    ("pager.log", "PROGRAM"),
    ("diff.external", "PROGRAM"),
    ("diff.evil.textconv", "PROGRAM"),
    ("diff.evil.command", "PROGRAM"),
    ("filter.evil.clean", "PROGRAM"),
    ("filter.evil.smudge", "PROGRAM"),
    ("filter.evil.process", "PROGRAM"),
    ("core.sshCommand", "PROGRAM"),
    ("core.alternateRefsCommand", "PROGRAM"),
    ("gpg.program", "PROGRAM"),
    ("log.showSignature", "true"),
    ("trailer.x.command", "PROGRAM"),
    ("core.hooksPath", "."),
];

/// Names the program in the configuration of a repository, and gives every file the attributes that lead to it.
fn make_hostile(folder: &Path, program: &str) {
    for (key, value) in SETTINGS {
        git(folder, &["config", key, &value.replace("PROGRAM", program)]);
    }
    std::fs::write(folder.join(".git/info/attributes"), "* filter=evil diff=evil\n").unwrap();
}

async fn run_all(bench: &Bench, mark: &Path) {
    for query in QUERIES {
        let outcome = bench.run("Bash", json!({"command": query})).await;
        assert!(!mark.exists(), "`{query}` ran a program of the repository: {outcome:?}");
    }
}

#[tokio::test]
async fn programs_of_the_repository_do_not_run() {
    let bench = Bench::new();
    repository(&bench.cwd);
    let mark = bench.outputs.with_file_name(MARK);
    let program = program(&bench.cwd, &mark);
    make_hostile(&bench.cwd, &program);
    // The settings are ones that git follows: without care one of them runs.
    let _ = Command::new("git").args(["diff"]).current_dir(&bench.cwd).output().unwrap();
    assert!(mark.exists(), "the repository is not hostile at all");
    std::fs::remove_file(&mark).unwrap();
    run_all(&bench, &mark).await;
}

#[tokio::test]
async fn programs_of_a_submodule_do_not_run() {
    let bench = Bench::new();
    let other = bench.outputs.with_file_name("other");
    repository(&other);
    repository(&bench.cwd);
    let url = other.to_str().unwrap();
    git(&bench.cwd, &["submodule", "--quiet", "add", url, "inner"]);
    git(&bench.cwd, &["commit", "--quiet", "-am", "second"]);
    let mark = bench.outputs.with_file_name(MARK);
    let program = program(&bench.cwd, &mark);
    let inner = bench.cwd.join("inner");
    let config = bench.cwd.join(".git/modules/inner/config");
    for (key, value) in SETTINGS {
        git(
            &bench.cwd,
            &["config", "--file", config.to_str().unwrap(), key, &value.replace("PROGRAM", &program)],
        );
    }
    std::fs::write(bench.cwd.join(".git/modules/inner/info/attributes"), "* filter=evil diff=evil\n")
        .unwrap();
    std::fs::write(inner.join("a.txt"), "changed in the submodule\n").unwrap();
    for how in ["none", "untracked", "dirty"] {
        git(&bench.cwd, &["config", "--file", ".gitmodules", "submodule.inner.ignore", how]);
        git(&bench.cwd, &["config", "submodule.inner.ignore", how]);
        git(&bench.cwd, &["config", "diff.submodule", "diff"]);
        git(&bench.cwd, &["config", "status.submoduleSummary", "true"]);
        run_all(&bench, &mark).await;
    }
    let _ = Command::new("git")
        .args(["status", "--ignore-submodules=none"])
        .current_dir(&bench.cwd)
        .output()
        .unwrap();
    assert!(mark.exists(), "the submodule is not hostile at all");
}

#[tokio::test]
async fn nothing_from_elsewhere_is_shown() {
    for (name, setting) in [
        ("a working tree elsewhere", "core.worktree"),
        ("revisions to ignore", "blame.ignoreRevsFile"),
        ("patterns of other folders", "core.excludesFile"),
        ("attributes of other folders", "core.attributesFile"),
        ("configuration of others", "include.path"),
        ("names of others", "mailmap.file"),
    ] {
        let bench = Bench::new();
        repository(&bench.cwd);
        let elsewhere = bench.outputs.with_file_name("elsewhere");
        std::fs::create_dir_all(&elsewhere).unwrap();
        std::fs::write(elsewhere.join("a.txt"), "TOPSECRET\n").unwrap();
        let secret = elsewhere.join("secret");
        std::fs::write(&secret, "[default]\nkey = TOPSECRET\na.txt TOPSECRET\n*.txt TOPSECRET\n").unwrap();
        let ini = elsewhere.join("ini");
        std::fs::write(&ini, "[default]\nkey = TOPSECRET\n").unwrap();
        let value = match setting {
            "core.worktree" => &elsewhere,
            "include.path" => &ini,
            _ => &secret,
        };
        git(&bench.cwd, &["config", setting, value.to_str().unwrap()]);
        for query in QUERIES {
            let outcome = bench.run("Bash", json!({"command": query})).await;
            assert!(!format!("{outcome:?}").contains("TOPSECRET"), "{name}: `{query}` shows it: {outcome:?}");
        }
    }
}

#[tokio::test]
async fn a_repository_of_another_folder_is_not_asked() {
    let bench = Bench::new();
    let other = bench.outputs.with_file_name("other");
    repository(&other);
    bench.write("a.txt", "mine\n");
    bench.write(".git", format!("gitdir: {}/.git\n", other.display()));
    let outcome = bench.run("Bash", json!({"command": "git log -p"})).await;
    assert!(format!("{outcome:?}").contains("does not belong to it"), "{outcome:?}");
}

#[tokio::test]
async fn worktrees_submodules_and_folders_inside_are_asked_as_ever() {
    let bench = Bench::new();
    let main = bench.outputs.with_file_name("main");
    repository(&main);
    std::fs::remove_dir(&bench.cwd).unwrap();
    git(&main, &["worktree", "add", "--quiet", bench.cwd.to_str().unwrap()]);
    let outcome = bench.run("Bash", json!({"command": "git log --oneline"})).await;
    assert!(format!("{outcome:?}").contains("first"), "{outcome:?}");

    let mut bench = Bench::new();
    repository(&bench.cwd);
    let url = main.to_str().unwrap();
    git(&bench.cwd, &["submodule", "--quiet", "add", url, "inner"]);
    bench.cwd = bench.cwd.join("inner");
    let outcome = bench.run("Bash", json!({"command": "git log --oneline"})).await;
    assert!(format!("{outcome:?}").contains("first"), "{outcome:?}");

    let mut bench = Bench::new();
    repository(&bench.cwd);
    bench.write("src/b.txt", "new\n");
    bench.cwd = bench.cwd.join("src");
    let outcome = bench.run("Bash", json!({"command": "git status --short"})).await;
    assert!(format!("{outcome:?}").contains("../a.txt"), "{outcome:?}");
}
