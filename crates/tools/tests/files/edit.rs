//! Edit: the checks in their order, and what a successful edit keeps.
//!
//! Line ends, encoding, permission bits and links stay; what was not read or has changed is refused.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use crate::common::{Bench, text};
use serde_json::{Value, json};

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({ "file_path": path, "old_string": old, "new_string": new })
}

#[tokio::test]
async fn an_edit_replaces_and_reports() {
    let bench = Bench::new();
    let path = bench.write("f", "one\ntwo\nthree\n");
    bench.succeed("Read", json!({ "file_path": "f" })).await;
    let outcome = bench.run("Edit", edit("f", "two", "2\n2b")).await;
    assert_eq!(bench.content("f"), b"one\n2\n2b\nthree\n");
    assert!(text(&outcome).starts_with(&format!("The file {} has been updated.", path.display())));
    assert!(text(&outcome).contains("     2\t2\n     3\t2b\n     4\tthree\n"), "{}", text(&outcome));
    assert_eq!(outcome.structured["success"], true);
    let diff = outcome.structured["diff"].as_str().unwrap();
    assert!(diff.contains("-two\n+2\n+2b\n"), "{diff}");
    // The new observation is enough for the next edit.
    bench.succeed("Edit", edit("f", "2b", "two")).await;
    assert_eq!(bench.content("f"), b"one\n2\ntwo\nthree\n");
}

#[tokio::test]
async fn the_checks_come_in_their_order() {
    let bench = Bench::new();
    bench.write("f", "a a\n");
    assert!(bench.fail("Edit", edit("f", "a", "a")).await.contains("has not been read"));
    bench.succeed("Read", json!({ "file_path": "f" })).await;
    bench.write("f", "b b\n");
    assert!(bench.fail("Edit", edit("f", "a", "a")).await.contains("has changed since"));
    bench.succeed("Read", json!({ "file_path": "f" })).await;
    assert!(bench.fail("Edit", edit("f", "b", "b")).await.contains("nothing to change"));
    assert!(bench.fail("Edit", edit("f", "zzz", "y")).await.contains("was not found"));
    assert!(bench.fail("Edit", edit("f", "b", "c")).await.contains("occurs 2 times"));
    assert!(bench.fail("Edit", edit("f", "", "c")).await.contains("is empty but"));
    assert_eq!(bench.content("f"), b"b b\n");
    let all = json!({ "file_path": "f", "old_string": "b", "new_string": "c", "replace_all": true });
    assert!(bench.succeed("Edit", all).await.contains("2 occurrences"));
    assert_eq!(bench.content("f"), b"c c\n");
}

#[tokio::test]
async fn a_touched_but_equal_file_is_unchanged() {
    let bench = Bench::new();
    bench.write("f", "x\n");
    bench.succeed("Read", json!({ "file_path": "f" })).await;
    bench.write("f", "x\n");
    bench.succeed("Edit", edit("f", "x", "y")).await;
    assert_eq!(bench.content("f"), b"y\n");
}

#[tokio::test]
async fn a_partial_read_allows_only_unique_text() {
    let bench = Bench::new();
    bench.write("f", "one\ntwo\ntwo\nthree\n");
    bench.succeed("Read", json!({ "file_path": "f", "limit": 1 })).await;
    let all = json!({ "file_path": "f", "old_string": "two", "new_string": "2", "replace_all": true });
    assert!(bench.fail("Edit", all).await.contains("Only a part"));
    assert!(bench.succeed("Edit", edit("f", "three", "3")).await.contains("Only a part"));
    assert_eq!(bench.content("f"), b"one\ntwo\ntwo\n3\n");
}

#[tokio::test]
async fn line_ends_and_encodings_are_kept() {
    let bench = Bench::new();
    let utf16 = |text: &str| {
        [&[0xFF, 0xFE][..], &text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()].concat()
    };
    for (name, before, old, new, after) in [
        ("crlf", b"a\r\nb\r\nc\r\n".to_vec(), "a\nb", "x\ny", b"x\r\ny\r\nc\r\n".to_vec()),
        ("word", b"a\r\nb\r\n".to_vec(), "b", "x\ny", b"a\r\nx\r\ny\r\n".to_vec()),
        ("mark", b"\xEF\xBB\xBFa\n".to_vec(), "a", "b", b"\xEF\xBB\xBFb\n".to_vec()),
        ("latin", b"caf\xE9\n".to_vec(), "é", "è", b"caf\xE8\n".to_vec()),
        ("wide", utf16("grün\r\n"), "grün", "blau", utf16("blau\r\n")),
    ] {
        bench.write(name, before);
        bench.succeed("Read", json!({ "file_path": name })).await;
        bench.succeed("Edit", edit(name, old, new)).await;
        assert_eq!(bench.content(name), after, "{name}");
    }
    bench.write("latin", b"caf\xE9\n");
    bench.succeed("Read", json!({ "file_path": "latin" })).await;
    assert!(bench.fail("Edit", edit("latin", "é", "日")).await.contains("windows-1252"));
    assert_eq!(bench.content("latin"), b"caf\xE9\n");
}

#[tokio::test]
async fn mode_owner_and_links_are_kept_and_no_temporary_file_stays() {
    let bench = Bench::new();
    let target = bench.write("real/script.sh", "echo a\n");
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o751)).unwrap();
    symlink("real/script.sh", bench.path("link")).unwrap();
    let before = std::fs::metadata(&target).unwrap();
    bench.succeed("Read", json!({ "file_path": "link" })).await;
    bench.succeed("Edit", edit("link", "a", "b")).await;
    let after = std::fs::metadata(&target).unwrap();
    assert_eq!(bench.content("real/script.sh"), b"echo b\n");
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    assert!(std::fs::symlink_metadata(bench.path("link")).unwrap().is_symlink());
    assert_eq!(std::fs::read_dir(bench.path("real")).unwrap().count(), 1);
}

#[tokio::test]
async fn an_empty_old_string_creates() {
    let bench = Bench::new();
    bench.succeed("Edit", edit("new/dir/f", "", "content\n")).await;
    assert_eq!(bench.content("new/dir/f"), b"content\n");
    bench.write("empty", "");
    bench.succeed("Read", json!({ "file_path": "empty" })).await;
    bench.succeed("Edit", edit("empty", "", "now full\n")).await;
    assert_eq!(bench.content("empty"), b"now full\n");
    assert!(bench.fail("Edit", edit("missing", "a", "b")).await.contains("does not exist"));
}

#[tokio::test]
async fn what_is_no_text_file_is_refused() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("d")).unwrap();
    bench.succeed("Bash", json!({ "command": "mkfifo pipe" })).await;
    assert!(bench.fail("Edit", edit("d", "a", "b")).await.contains("directory"));
    assert!(bench.fail("Edit", edit("pipe", "a", "b")).await.contains("named pipe"));
    assert!(bench.fail("Edit", edit("/proc/self/comm", "a", "b")).await.contains("/proc"));
    bench.write("n.ipynb", "{}");
    assert!(bench.fail("Edit", edit("n.ipynb", "a", "b")).await.contains("notebook"));
}

#[tokio::test]
async fn near_misses_are_explained() {
    let bench = Bench::new();
    bench.write("f.rs", "fn main() {\n\tlet answer = 42;\n}\n");
    bench.succeed("Read", json!({ "file_path": "f.rs" })).await;
    let blanks = bench.fail("Edit", edit("f.rs", "fn main() {\n    let answer = 42;", "x")).await;
    assert!(blanks.contains("only in white space"), "{blanks}");
    let close = bench.fail("Edit", edit("f.rs", "let answer = 43;", "x")).await;
    assert!(close.contains("closest line") && close.contains("let answer = 42;"), "{close}");
}

#[tokio::test]
async fn a_vanished_file_is_reported() {
    let bench = Bench::new();
    bench.write("f", "x\n");
    bench.succeed("Read", json!({ "file_path": "f" })).await;
    std::fs::remove_file(bench.path("f")).unwrap();
    assert!(bench.fail("Edit", edit("f", "x", "y")).await.contains("does not exist"));
    assert!(!bench.path("f").exists());
}

#[tokio::test]
async fn write_protection_is_respected() {
    let bench = Bench::new();
    let path = bench.write("f", "x\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    bench.succeed("Read", json!({ "file_path": "f" })).await;
    let outcome = bench.run("Edit", edit("f", "x", "y")).await;
    // The superuser may write everything; the bits stay all the same.
    let expected =
        if rustix::process::geteuid().is_root() { "has been updated" } else { "Permission denied" };
    assert!(text(&outcome).contains(expected), "{}", text(&outcome));
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o444);
}

#[tokio::test]
async fn a_large_file_is_edited_too() {
    let bench = Bench::new();
    let lines: String = (1..=300_000).map(|number| format!("line {number}\n")).collect();
    bench.write("large", &lines);
    bench.succeed("Read", json!({ "file_path": "large", "limit": 5 })).await;
    let text = bench.succeed("Edit", edit("large", "line 299999\n", "changed\n")).await;
    assert!(text.contains("299999\tchanged"), "{text}");
    assert_eq!(bench.content("large"), lines.replace("line 299999\n", "changed\n").as_bytes());
}
