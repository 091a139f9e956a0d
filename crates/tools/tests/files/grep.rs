//! Grep: every option, the order of results, the limits, and bad input.
//!
//! Files that are ignored, binary or unreadable are passed over; a file that is named is always searched.

use std::time::{Duration, SystemTime};

use crate::common::{Bench, cancellable, text};
use qoder_types::CallOutcome;
use serde_json::{Value, json};

fn content(pattern: &str, more: &Value) -> Value {
    let mut input = json!({ "pattern": pattern, "output_mode": "content" });
    for (name, value) in more.as_object().into_iter().flatten() {
        input[name] = value.clone();
    }
    input
}

fn sample() -> Bench {
    let bench = Bench::new();
    bench.write("a.rs", "fn one() {}\nlet x = 1;\nfn two() {}\n");
    bench.write("b.py", "def one():\n    pass\n");
    bench.write("sub/c.rs", "// fn in comment\n");
    bench
}

#[tokio::test]
async fn files_are_listed_newest_first() {
    let bench = sample();
    let now = SystemTime::now();
    for (name, age) in [("a.rs", 10), ("sub/c.rs", 0)] {
        let file = std::fs::File::options().write(true).open(bench.path(name)).unwrap();
        file.set_modified(now - Duration::from_secs(age)).unwrap();
    }
    let outcome = bench.run("Grep", json!({ "pattern": r"fn\s" })).await;
    assert_eq!(text(&outcome), "Found 2 files\nsub/c.rs\na.rs");
    assert_eq!(outcome.structured["results"], "sub/c.rs\na.rs");
    assert_eq!(outcome.structured["matchCount"], 2);
    assert_eq!(bench.succeed("Grep", json!({ "pattern": "nowhere" })).await, "No files found.");
}

#[tokio::test]
async fn content_is_shown_with_numbers_and_context() {
    let bench = sample();
    let all = "a.rs:1:fn one() {}\na.rs:3:fn two() {}\nsub/c.rs:1:// fn in comment";
    assert_eq!(bench.succeed("Grep", content("fn ", &json!({}))).await, all);
    let plain = bench.succeed("Grep", content("def", &json!({ "-n": false }))).await;
    assert_eq!(plain, "b.py:def one():");
    let after = bench.succeed("Grep", content("one", &json!({ "-A": 1, "path": "a.rs" }))).await;
    assert_eq!(after, "a.rs:1:fn one() {}\na.rs-2-let x = 1;");
    let before = bench.succeed("Grep", content("two", &json!({ "-B": 1 }))).await;
    assert_eq!(before, "a.rs-2-let x = 1;\na.rs:3:fn two() {}");
    let around = bench.succeed("Grep", content("x = ", &json!({ "-C": 1 }))).await;
    assert_eq!(around, "a.rs-1-fn one() {}\na.rs:2:let x = 1;\na.rs-3-fn two() {}");
    assert_eq!(bench.succeed("Grep", content("x = ", &json!({ "context": 1 }))).await, around);
    let parts =
        bench.succeed("Grep", content(r"\b(one|two)\b", &json!({ "-o": true, "glob": "*.rs" }))).await;
    assert_eq!(parts, "a.rs:1:one\na.rs:3:two");
    let cased = bench.succeed("Grep", content("DEF ONE", &json!({ "-i": true }))).await;
    assert_eq!(cased, "b.py:1:def one():");
    assert_eq!(bench.succeed("Grep", content("DEF ONE", &json!({}))).await, "No matches found.");
}

#[tokio::test]
async fn counts_are_per_file() {
    let bench = sample();
    let input = json!({ "pattern": "fn", "output_mode": "count" });
    let outcome = bench.run("Grep", input).await;
    assert_eq!(text(&outcome), "a.rs:2\nsub/c.rs:1\n\n3 matching lines in 2 files.");
    assert_eq!(outcome.structured["matchCount"], 3);
}

#[tokio::test]
async fn files_are_restricted_by_glob_type_and_path() {
    let bench = sample();
    let files = |more: Value| content("one|fn", &more);
    assert_eq!(bench.succeed("Grep", files(json!({ "type": "py" }))).await, "b.py:1:def one():");
    assert_eq!(bench.succeed("Grep", files(json!({ "glob": "*.py" }))).await, "b.py:1:def one():");
    assert_eq!(bench.succeed("Grep", files(json!({ "glob": "!*.rs" }))).await, "b.py:1:def one():");
    assert_eq!(bench.succeed("Grep", files(json!({ "path": "sub" }))).await, "sub/c.rs:1:// fn in comment");
    let absolute = bench.text_path("sub/c.rs");
    assert_eq!(
        bench.succeed("Grep", files(json!({ "path": absolute }))).await,
        "sub/c.rs:1:// fn in comment"
    );
}

#[tokio::test]
async fn matches_span_lines_only_when_asked() {
    let bench = sample();
    assert_eq!(bench.succeed("Grep", content("one.*two", &json!({}))).await, "No matches found.");
    let spanning = bench.succeed("Grep", content("one.*two", &json!({ "multiline": true }))).await;
    assert_eq!(spanning, "a.rs:1:fn one() {}\na.rs:2:let x = 1;\na.rs:3:fn two() {}");
    assert!(bench.fail("Grep", content("a\\nb", &json!({}))).await.contains("not allowed"));
}

#[tokio::test]
async fn results_are_paged() {
    let bench = Bench::new();
    for number in 0..30 {
        bench.write(&format!("f{number:02}"), "hit\n".repeat(20));
    }
    let outcome = bench.run("Grep", content("hit", &json!({}))).await;
    assert_eq!(outcome.structured["results"].as_str().unwrap().lines().count(), 250);
    assert_eq!(
        (&outcome.structured["truncated"], &outcome.structured["matchCount"]),
        (&json!(true), &json!(600))
    );
    let page = bench.succeed("Grep", content("hit", &json!({ "head_limit": 2, "offset": 19 }))).await;
    assert!(page.starts_with("f00:20:hit\nf01:1:hit\n\n[Results 20 to 21"), "{page}");
    let all = bench.run("Grep", content("hit", &json!({ "head_limit": 0 }))).await;
    assert_eq!(text(&all).lines().count(), 600);
    assert_eq!(all.structured["truncated"], false);
    let past = bench.succeed("Grep", content("hit", &json!({ "offset": 600 }))).await;
    assert!(past.contains("past the end") && past.contains("600"), "{past}");
    let files = bench.succeed("Grep", json!({ "pattern": "hit", "head_limit": 3 })).await;
    assert!(files.starts_with("Found 30 files\n") && files.contains("offset 3"), "{files}");
}

#[tokio::test]
async fn the_text_is_bounded_and_the_rest_is_in_a_file() {
    let bench = Bench::new();
    bench.write("wide", format!("{}\n", "y".repeat(3000)).repeat(400));
    let outcome = bench.run("Grep", content("y", &json!({ "head_limit": 0 }))).await;
    let shown = text(&outcome);
    assert!(shown.chars().count() < 50_500 && shown.contains("full output in"), "{}", shown.len());
    assert!(shown.lines().next().unwrap().ends_with("[line cut]"));
    assert!(shown.lines().next().unwrap().len() < 530);
    let file = std::fs::read_dir(&bench.outputs).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 400);
}

#[tokio::test]
async fn ignored_and_binary_files_are_passed_over() {
    let bench = sample();
    bench.write(".gitignore", "secret.txt\n");
    bench.write("secret.txt", "needle\n");
    bench.write("binary", b"needle\n\0\0");
    bench.write("latin", b"needle caf\xE9\n");
    bench.write(".git/x", "needle\n");
    assert_eq!(bench.succeed("Grep", content("needle", &json!({}))).await, "latin:1:needle caf\u{FFFD}");
    let named = bench.succeed("Grep", content("needle", &json!({ "path": "secret.txt" }))).await;
    assert_eq!(named, "secret.txt:1:needle");
}

#[tokio::test]
async fn bad_input_is_answered_with_the_reason() {
    let bench = sample();
    bench.succeed("Bash", json!({ "command": "mkfifo pipe" })).await;
    for (input, word) in [
        (json!({ "pattern": "(" }), "unclosed group"),
        (json!({ "pattern": "x", "glob": "[a" }), "`glob`"),
        (json!({ "pattern": "x", "type": "nonsense" }), "nonsense"),
        (json!({ "pattern": "x", "path": "missing" }), "Cannot search"),
        (json!({ "pattern": "x", "path": "a\0b" }), "NUL"),
        (json!({ "pattern": "x", "path": "pipe" }), "neither a regular file"),
        (json!({ "pattern": "x", "path": "/proc" }), "neither a regular file"),
        (json!({ "pattern": "(\\w{500}){500}" }), "size limit"),
    ] {
        let text = bench.fail("Grep", input.clone()).await;
        assert!(text.contains(word), "{input}: {text}");
    }
}

#[tokio::test]
async fn a_cancelled_search_is_interrupted() {
    let bench = Bench::new();
    let (cancel, cancelled) = cancellable();
    drop(cancel);
    let outcome = bench.run_until("Grep", json!({ "pattern": "x", "path": "/usr" }), cancelled).await;
    assert_eq!(outcome.outcome, CallOutcome::Interrupted);
}
