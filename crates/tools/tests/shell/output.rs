//! Bash: what the model gets of the output, and how the exit code is judged.
//!
//! Memory stays bounded however much a command prints, and the whole is kept in a private file.

use std::os::unix::fs::PermissionsExt;

use crate::common::{Bench, text};
use qoder_types::CallOutcome;
use serde_json::json;

#[tokio::test]
async fn output_then_errors_then_the_exit_code() {
    let bench = Bench::new();
    let outcome = bench.run("Bash", json!({ "command": "echo err >&2; echo out; exit 3" })).await;
    assert_eq!(outcome.outcome, CallOutcome::Failed);
    assert_eq!(text(&outcome), "out\nerr\nExit code 3");
    assert_eq!(
        outcome.structured,
        json!({ "stdout": "out\n", "stderr": "err\n", "exitCode": 3, "interrupted": false })
    );
    assert!(bench.shown().contains("out\n") && bench.shown().contains("err\n"));
}

#[tokio::test]
async fn success_without_output_says_so() {
    let bench = Bench::new();
    assert!(bench.succeed("Bash", json!({ "command": "true" })).await.contains("without output"));
}

#[tokio::test]
async fn an_answer_is_not_a_failure() {
    let bench = Bench::new();
    bench.write("f", "x\n");
    assert_eq!(bench.succeed("Bash", json!({ "command": "grep zzz f" })).await, "Exit code 1");
    assert!(bench.succeed("Bash", json!({ "command": "echo a | grep -q b" })).await.contains("Exit code 1"));
    assert!(bench.fail("Bash", json!({ "command": "grep zzz missing" })).await.contains("Exit code 2"));
    assert!(bench.fail("Bash", json!({ "command": "false" })).await.contains("Exit code 1"));
}

#[tokio::test]
async fn invalid_utf8_is_replaced() {
    let bench = Bench::new();
    let text = bench.succeed("Bash", json!({ "command": r"printf 'a\377b'" })).await;
    assert_eq!(text, "a\u{FFFD}b");
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle_and_kept_in_a_private_file() {
    let bench = Bench::new();
    let outcome = bench.run("Bash", json!({ "command": "seq 1 20000" })).await;
    let shown = text(&outcome);
    assert!(shown.chars().count() < 30_500 && shown.starts_with("1\n2\n") && shown.ends_with("20000\n"));
    let file = outcome.structured["persistedOutputPath"].as_str().unwrap();
    assert!(shown.contains(file), "the notice names the file");
    let whole = std::fs::read_to_string(file).unwrap();
    assert_eq!(whole.lines().count(), 20_000);
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(&bench.outputs).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn two_hundred_megabytes_are_bounded() {
    let bench = Bench::new();
    let command = "head -c 200000000 /dev/zero | tr '\\0' x; echo END";
    let outcome = bench.run("Bash", json!({ "command": command })).await;
    assert_eq!(outcome.outcome, CallOutcome::Completed);
    let shown = text(&outcome);
    assert!(shown.len() < 31_000 && shown.ends_with("END\n"));
    let file = outcome.structured["persistedOutputPath"].as_str().unwrap();
    let size = std::fs::metadata(file).unwrap().len();
    assert!((67_108_864..67_109_000).contains(&size), "64 MiB and the notice, not {size}");
    assert!(bench.shown().len() < 1_200_000, "what is shown while it runs is bounded too");
}

#[tokio::test]
async fn both_streams_keep_a_share() {
    let bench = Bench::new();
    let command = "seq 1 20000; seq 1 20000 >&2; echo LAST >&2";
    let outcome = bench.run("Bash", json!({ "command": command })).await;
    let stdout = outcome.structured["stdout"].as_str().unwrap();
    let stderr = outcome.structured["stderr"].as_str().unwrap();
    assert!((19_000..21_000).contains(&stdout.len()), "{}", stdout.len());
    assert!((9_000..11_000).contains(&stderr.len()) && stderr.ends_with("LAST\n"));
}
