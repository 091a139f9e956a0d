//! Read: text with line numbers, windows, cuts, encodings, and the observation that later edits rely on.
//!
//! One pass over the file serves all of them, so each is tried against the others.

use crate::common::{Bench, text};
use qoder_types::CallOutcome;
use serde_json::json;

#[tokio::test]
async fn lines_are_numbered_and_observed() {
    let bench = Bench::new();
    let path = bench.write("f.txt", "alpha\r\n\nomega");
    let outcome = bench.run("Read", json!({ "file_path": "f.txt" })).await;
    assert_eq!(text(&outcome), "     1\talpha\n     2\t\n     3\tomega\n");
    assert_eq!(outcome.structured["type"], "text");
    assert_eq!(outcome.structured["totalLines"], 3);
    assert_eq!(outcome.structured["file_path"], path.to_str().unwrap());
    let [observation] = outcome.observations.as_slice() else { panic!("one observation") };
    assert_eq!(observation.path, path.to_str().unwrap());
    assert_eq!((observation.size, observation.partial, observation.range), (13, false, Some((1, 2000))));
    assert_eq!(observation.sha256, "0a8c5f343c3d0639d028c3cae65e5a9a66c4f177adbc5d81184b3923fe1a1cd5");
    assert!(observation.modified_ns > 0);
}

#[tokio::test]
async fn a_window_says_how_to_read_on() {
    let bench = Bench::new();
    let lines: String = (1..=2500).map(|number| format!("line {number}\n")).collect();
    bench.write("long", &lines);
    let outcome = bench.run("Read", json!({ "file_path": "long" })).await;
    assert!(text(&outcome).contains("  2000\tline 2000\n") && !text(&outcome).contains("line 2001\n"));
    assert!(text(&outcome).contains("Lines 1 to 2000 of 2500") && text(&outcome).contains("offset 2001"));
    assert!(outcome.observations[0].partial);
    let outcome = bench.run("Read", json!({ "file_path": "long", "offset": 2499, "limit": 10 })).await;
    assert_eq!(text(&outcome), "  2499\tline 2499\n  2500\tline 2500\n");
    assert!(outcome.observations[0].partial);
    let beyond = bench.succeed("Read", json!({ "file_path": "long", "offset": 9000 })).await;
    assert!(beyond.contains("2500 lines") && beyond.contains("beyond"), "{beyond}");
    let huge = json!({ "file_path": "long", "offset": 9_007_199_254_740_991_u64, "limit": 9_007_199_254_740_991_u64 });
    assert!(bench.succeed("Read", huge).await.contains("beyond"));
}

#[tokio::test]
async fn empty_files_and_long_lines() {
    let bench = Bench::new();
    bench.write("empty", "");
    assert!(bench.succeed("Read", json!({ "file_path": "empty" })).await.contains("is empty"));
    bench.write("wide", format!("{}\nnext\n", "ä".repeat(500_000)));
    let outcome = bench.run("Read", json!({ "file_path": "wide" })).await;
    let shown = text(&outcome);
    let mut lines = shown.lines();
    let first = lines.next().unwrap();
    assert!(first.ends_with("[line cut]") && first.chars().filter(|letter| *letter == 'ä').count() == 2000);
    assert_eq!(lines.next(), Some("     2\tnext"));
    assert!(outcome.observations[0].partial, "a cut line was not seen whole");
}

#[tokio::test]
async fn one_call_returns_a_bounded_text() {
    let bench = Bench::new();
    let lines: String = (1..=3000).map(|number| format!("{number} {}\n", "x".repeat(1000))).collect();
    bench.write("big", lines);
    let outcome = bench.run("Read", json!({ "file_path": "big", "limit": 3000 })).await;
    let shown = text(&outcome);
    assert!(shown.len() < 300_000 && shown.contains("to read on"), "{}", shown.len());
    assert!(outcome.observations[0].partial);
    assert_eq!(outcome.structured["totalLines"], 3000);
}

#[tokio::test]
async fn encodings_are_understood() {
    let bench = Bench::new();
    bench.write("mark", b"\xEF\xBB\xBFhello\n");
    bench.write(
        "little",
        [&[0xFF, 0xFE][..], &"grün\nb".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()]
            .concat(),
    );
    bench.write(
        "big",
        [&[0xFE, 0xFF][..], &"grün\n".encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>()]
            .concat(),
    );
    bench.write("latin", b"caf\xE9\n");
    for (name, expected) in [
        ("mark", "     1\thello\n"),
        ("little", "     1\tgrün\n     2\tb\n"),
        ("big", "     1\tgrün\n"),
        ("latin", "     1\tcafé\n"),
    ] {
        assert_eq!(bench.succeed("Read", json!({ "file_path": name })).await, expected, "{name}");
    }
}

#[tokio::test]
async fn an_unchanged_part_is_not_shown_twice() {
    let bench = Bench::new();
    bench.write("f", "one\ntwo\n");
    bench.succeed("Read", json!({ "file_path": "f" })).await;
    let again = bench.run("Read", json!({ "file_path": "f" })).await;
    assert_eq!(again.structured["type"], "file_unchanged");
    assert!(text(&again).contains("has not changed"));
    // The same content with another time is still the same content.
    bench.write("f", "one\ntwo\n");
    let touched = bench.run("Read", json!({ "file_path": "f" })).await;
    assert_eq!(touched.structured["type"], "file_unchanged");
    let part = bench.run("Read", json!({ "file_path": "f", "offset": 2 })).await;
    assert_eq!(text(&part), "     2\ttwo\n");
    assert!(!part.observations[0].partial, "all of this content was seen before");
    bench.write("f", "one\nTWO!\n");
    let changed = bench.run("Read", json!({ "file_path": "f", "offset": 2 })).await;
    assert_eq!((text(&changed).as_str(), changed.outcome), ("     2\tTWO!\n", CallOutcome::Completed));
}

#[tokio::test]
async fn a_large_file_is_read_in_one_pass() {
    let bench = Bench::new();
    let lines: String = (1..=400_000).map(|number| format!("{number:09}\n")).collect();
    bench.write("large", lines);
    let input = json!({ "file_path": "large", "offset": 399_999, "limit": 1 });
    let outcome = bench.run("Read", input).await;
    assert!(text(&outcome).starts_with("399999\t000399999\n"), "{}", text(&outcome));
    assert_eq!(outcome.observations[0].size, 4_000_000);
    assert_eq!(outcome.structured["totalLines"], 400_000);
}
