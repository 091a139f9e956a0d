//! Glob: which files a pattern finds, in which order, and where it looks.
//!
//! Ignore files, hidden files, links, absolute patterns, limits and bad patterns.

use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use crate::common::{Bench, cancellable};
use qoder_types::CallOutcome;
use serde_json::{Value, json};

/// The paths found, relative to the bench's directory.
async fn found(bench: &Bench, input: Value) -> Vec<String> {
    let outcome = bench.run("Glob", input).await;
    assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", crate::common::text(&outcome));
    let prefix = format!("{}/", bench.cwd.display());
    let files = outcome.structured["files"].as_array().cloned().unwrap_or_default();
    files.iter().filter_map(Value::as_str).map(|path| path.replacen(&prefix, "", 1)).collect()
}

async fn sorted(bench: &Bench, input: Value) -> Vec<String> {
    let mut files = found(bench, input).await;
    files.sort();
    files
}

#[tokio::test]
async fn patterns_find_what_they_say() {
    let bench = Bench::new();
    for name in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.ts", "src/e.tsx", ".hidden/f.rs", ".git/g.rs"] {
        bench.write(name, "");
    }
    assert_eq!(sorted(&bench, json!({ "pattern": "*.rs" })).await, ["a.rs"]);
    let all = [".hidden/f.rs", "a.rs", "src/b.rs", "src/deep/c.rs"];
    assert_eq!(sorted(&bench, json!({ "pattern": "**/*.rs" })).await, all);
    assert_eq!(sorted(&bench, json!({ "pattern": "src/*.{ts,tsx}" })).await, ["src/d.ts", "src/e.tsx"]);
    assert_eq!(sorted(&bench, json!({ "pattern": "*/*.rs", "path": "src" })).await, ["src/deep/c.rs"]);
    assert_eq!(sorted(&bench, json!({ "pattern": "src/[bd].*" })).await, ["src/b.rs", "src/d.ts"]);
    assert_eq!(sorted(&bench, json!({ "pattern": "../a.rs", "path": "src" })).await, ["a.rs"]);
    let absolute = format!("{}/src/**/*.rs", bench.cwd.display());
    assert_eq!(
        sorted(&bench, json!({ "pattern": absolute, "path": "/usr" })).await,
        ["src/b.rs", "src/deep/c.rs"]
    );
    assert!(found(&bench, json!({ "pattern": "*.py" })).await.is_empty());
    assert_eq!(bench.succeed("Glob", json!({ "pattern": "*.py" })).await, "No files found.");
}

#[tokio::test]
async fn ignore_files_count_unless_switched_off() {
    let mut bench = Bench::new();
    bench.write(".gitignore", "*.log\n/target/\n");
    for name in ["a.log", "target/x.txt", "src/target/x.txt", "b.txt"] {
        bench.write(name, "");
    }
    assert_eq!(sorted(&bench, json!({ "pattern": "**/*.{log,txt}" })).await, ["b.txt", "src/target/x.txt"]);
    bench.settings.respect_gitignore = false;
    let all = ["a.log", "b.txt", "src/target/x.txt", "target/x.txt"];
    assert_eq!(sorted(&bench, json!({ "pattern": "**/*.{log,txt}" })).await, all);
}

#[tokio::test]
async fn the_newest_come_first_and_the_list_is_bounded() {
    let bench = Bench::new();
    let now = SystemTime::now();
    for number in 0..150_u64 {
        let path = bench.write(&format!("f{number:03}"), "");
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(now - Duration::from_secs(number / 2)).unwrap();
    }
    let outcome = bench.run("Glob", json!({ "pattern": "f*" })).await;
    assert_eq!(outcome.structured["totalMatches"], 150);
    assert_eq!(outcome.structured["truncated"], true);
    assert!(crate::common::text(&outcome).contains("100 most recently changed of 150"));
    let files = found(&bench, json!({ "pattern": "f*" })).await;
    let expected: Vec<String> = (0..100).map(|number| format!("f{number:03}")).collect();
    assert_eq!(files, expected, "by age, then by path");
}

#[tokio::test]
async fn links_to_files_are_found_and_circles_are_not_followed() {
    let bench = Bench::new();
    bench.write("real.txt", "");
    symlink("real.txt", bench.path("link.txt")).unwrap();
    symlink("gone", bench.path("dangling.txt")).unwrap();
    symlink(".", bench.path("circle")).unwrap();
    assert_eq!(sorted(&bench, json!({ "pattern": "**/*.txt" })).await, ["link.txt", "real.txt"]);
}

#[tokio::test]
async fn bad_patterns_and_places_are_errors() {
    let bench = Bench::new();
    bench.write("file", "");
    for (input, word) in [
        (json!({ "pattern": "[a" }), "not valid"),
        (json!({ "pattern": "{a" }), "not valid"),
        (json!({ "pattern": "" }), "pattern"),
        (json!({ "pattern": "a\0b" }), "NUL"),
        (json!({ "pattern": "*", "path": "a\0b" }), "NUL"),
        (json!({ "pattern": "*/../x" }), "`..`"),
        (json!({ "pattern": "*", "path": "missing" }), "Cannot search"),
        (json!({ "pattern": "*", "path": "file" }), "not a directory"),
    ] {
        let text = bench.fail("Glob", input.clone()).await;
        assert!(text.contains(word), "{input}: {text}");
    }
}

#[tokio::test]
async fn a_cancelled_walk_is_interrupted() {
    let bench = Bench::new();
    let (cancel, cancelled) = cancellable();
    drop(cancel);
    let outcome = bench.run_until("Glob", json!({ "pattern": "/**/never-there-*" }), cancelled).await;
    assert_eq!(outcome.outcome, CallOutcome::Interrupted);
}
