//! Write: new files with their directories, and whole files replaced only when they are known.
//!
//! Mode and links stay as they were; what cannot be written is an error with a reason.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use crate::common::{Bench, text};
use serde_json::{Value, json};

fn write(path: &str, content: &str) -> Value {
    json!({ "file_path": path, "content": content })
}

#[tokio::test]
async fn a_new_file_is_created_with_its_directories() {
    let bench = Bench::new();
    let outcome = bench.run("Write", write("a/b/c.txt", "häl\n")).await;
    assert!(text(&outcome).contains("has been created"), "{}", text(&outcome));
    let path = bench.text_path("a/b/c.txt");
    assert_eq!(outcome.structured, json!({ "success": true, "file_path": path, "bytesWritten": 5 }));
    assert_eq!(bench.content("a/b/c.txt"), "häl\n".as_bytes());
    let mode = std::fs::metadata(bench.path("a/b/c.txt")).unwrap().mode() & 0o777;
    assert_eq!(mode & !0o644, 0, "{mode:o}");
    assert!(!outcome.observations[0].partial);
    // What was written is known: it may be changed at once.
    bench.succeed("Write", write("a/b/c.txt", "again")).await;
    assert_eq!(bench.content("a/b/c.txt"), b"again");
}

#[tokio::test]
async fn an_existing_file_must_be_read_and_unchanged() {
    let bench = Bench::new();
    let path = bench.write("f", "old\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(bench.fail("Write", write("f", "new")).await.contains("has not been read"));
    bench.succeed("Read", json!({ "file_path": "f" })).await;
    bench.write("f", "other\n");
    assert!(bench.fail("Write", write("f", "new")).await.contains("has changed since"));
    assert_eq!(bench.content("f"), b"other\n");
    bench.succeed("Read", json!({ "file_path": "f" })).await;
    assert!(bench.succeed("Write", write("f", "new")).await.contains("overwritten"));
    assert_eq!(bench.content("f"), b"new");
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
}

#[tokio::test]
async fn a_dangling_link_is_written_through() {
    let bench = Bench::new();
    symlink("target", bench.path("link")).unwrap();
    bench.succeed("Write", write("link", "x")).await;
    assert_eq!(bench.content("target"), b"x");
    assert!(std::fs::symlink_metadata(bench.path("link")).unwrap().is_symlink());
}

#[tokio::test]
async fn impossible_places_are_refused() {
    let bench = Bench::new();
    bench.write("file", "x");
    std::fs::create_dir(bench.path("dir")).unwrap();
    bench.succeed("Bash", json!({ "command": "mkfifo pipe" })).await;
    assert!(bench.fail("Write", write("dir", "x")).await.contains("directory"));
    assert!(bench.fail("Write", write("pipe", "x")).await.contains("named pipe"));
    assert!(bench.fail("Write", write("a\0b", "x")).await.contains("NUL"));
    assert!(bench.fail("Write", write("/dev/null", "x")).await.contains("/dev"));
    assert!(bench.fail("Write", write("file/below", "x")).await.contains("Cannot use"));
    assert!(bench.fail("Write", write(&"n".repeat(300), "x")).await.contains("Cannot use"));
}

#[tokio::test]
async fn line_ends_and_encoding_of_an_existing_file_are_kept() {
    let bench = Bench::new();
    let cases: [(&[u8], &str, &[u8]); 5] = [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\nb\r\n", "x\ny\n", b"x\ny\n"),
        (b"a\r\n", "x\r\ny\n", b"x\r\ny\n"),
        (b"\xEF\xBB\xBFa\n", "x\n", b"\xEF\xBB\xBFx\n"),
        (b"\xFF\xFEa\0\n\0", "x\n", b"\xFF\xFEx\0\n\0"),
    ];
    for (old, content, new) in cases {
        bench.write("f", old);
        bench.succeed("Read", json!({ "file_path": "f" })).await;
        bench.succeed("Write", write("f", content)).await;
        assert_eq!(bench.content("f"), new, "{old:?}");
        // What was written is what is known of the file.
        bench.succeed("Write", write("f", "again")).await;
        std::fs::remove_file(bench.path("f")).unwrap();
    }
}
