//! Read: what it refuses, and that refusing never blocks.
//!
//! Pipes, devices, sockets, pseudo files, directories, binary data, files that are missing, unreadable or too large.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use crate::common::Bench;
use qoder_types::CallOutcome;
use serde_json::json;

#[tokio::test]
async fn special_files_are_refused_without_blocking() {
    let bench = Bench::new();
    bench.succeed("Bash", json!({ "command": "mkfifo pipe" })).await;
    let _listener = UnixListener::bind(bench.path("socket")).unwrap();
    symlink("/dev/zero", bench.path("zero")).unwrap();
    for (path, word) in [
        ("pipe", "named pipe"),
        ("socket", "socket"),
        ("zero", "/dev"),
        ("/dev/tty", "/dev"),
        ("/proc/self/environ", "/proc"),
        ("/sys/kernel/uevent_seqnum", "/sys"),
    ] {
        let text = bench.fail("Read", json!({ "file_path": path })).await;
        assert!(text.contains(word), "{path}: {text}");
    }
}

#[tokio::test]
async fn directories_point_to_glob() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("d")).unwrap();
    for path in ["d", "", ".", "/"] {
        let text = bench.fail("Read", json!({ "file_path": path })).await;
        assert!(text.contains("directory") && text.contains("Glob"), "{path}: {text}");
    }
}

#[tokio::test]
async fn a_missing_file_is_answered_with_help() {
    let bench = Bench::new();
    bench.write("config.yaml", "x");
    let text = bench.fail("Read", json!({ "file_path": "config.yml" })).await;
    assert!(text.contains("does not exist") && text.contains(bench.cwd.to_str().unwrap()), "{text}");
    assert!(text.contains("Did you mean") && text.contains("config.yaml"), "{text}");
    let text = bench.fail("Read", json!({ "file_path": "no/such/folder/f" })).await;
    assert!(!text.contains("Did you mean"), "{text}");
    assert!(bench.fail("Read", json!({ "file_path": "a\0b" })).await.contains("NUL"));
    symlink("gone", bench.path("dangling")).unwrap();
    assert!(bench.fail("Read", json!({ "file_path": "dangling" })).await.contains("does not exist"));
}

#[tokio::test]
async fn binary_data_is_refused() {
    let bench = Bench::new();
    bench.write("program", b"\x7FELF\0\0\0");
    bench.write("noise", b"\x01\x02\xFF\xFE\x90");
    for name in ["program", "noise"] {
        let outcome = bench.run("Read", json!({ "file_path": name })).await;
        assert_eq!(outcome.outcome, CallOutcome::Failed);
        assert!(crate::common::text(&outcome).contains("binary"));
        assert!(outcome.observations.is_empty(), "what was not shown was not observed");
    }
}

#[tokio::test]
async fn too_large_and_unreadable_files_are_refused() {
    let bench = Bench::new();
    let file = std::fs::File::create(bench.path("huge")).unwrap();
    file.set_len(101 * 1024 * 1024).unwrap();
    let text = bench.fail("Read", json!({ "file_path": "huge" })).await;
    assert!(text.contains("refused") && text.contains("Grep"), "{text}");
    let path = bench.write("secret", "x");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    let outcome = bench.run("Read", json!({ "file_path": "secret" })).await;
    // The superuser may read everything.
    let expected = if rustix::process::geteuid().is_root() { "     1\tx\n" } else { "Permission denied" };
    assert!(crate::common::text(&outcome).starts_with(expected), "{}", crate::common::text(&outcome));
}

#[tokio::test]
async fn pages_are_only_for_pdf() {
    let bench = Bench::new();
    bench.write("f.txt", "x");
    let text = bench.fail("Read", json!({ "file_path": "f.txt", "pages": "1" })).await;
    assert!(text.contains("PDF"), "{text}");
}
