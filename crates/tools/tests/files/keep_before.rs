//! Keeping files before they change: each file tool hands over exactly what it is about to replace, after its own checks,
//! and changes nothing when that cannot be kept. Putting back writes through no link.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::common::Bench;
use qoder_core::ports::BeforeChange;
use qoder_tools::restore::{Present, present, put_back, remove};
use serde_json::json;

type Kept = Arc<Mutex<Vec<(PathBuf, Option<(Vec<u8>, u32)>)>>>;

fn keeping(bench: &mut Bench) -> Kept {
    let kept = Kept::default();
    let into = Arc::clone(&kept);
    bench.keep_before = Some(Arc::new(move |change: &BeforeChange<'_>| {
        let file = change.file.map(|(bytes, mode)| (bytes.to_vec(), mode));
        into.lock().unwrap().push((change.path.to_path_buf(), file));
        Ok(())
    }));
    kept
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn what_is_replaced_is_handed_over_before() {
    let mut bench = Bench::new();
    let kept = keeping(&mut bench);
    let file = bench.write("file.txt", "one\n");
    set_mode(&file, 0o750);
    symlink("file.txt", bench.path("link.txt")).unwrap();
    // Refused by the tool itself: nothing was about to change.
    bench.fail("Edit", json!({ "file_path": "file.txt", "old_string": "one", "new_string": "two" })).await;
    assert_eq!(kept.lock().unwrap().len(), 0);
    bench.succeed("Read", json!({ "file_path": "file.txt" })).await;
    bench.succeed("Edit", json!({ "file_path": "link.txt", "old_string": "one", "new_string": "two" })).await;
    bench.succeed("Write", json!({ "file_path": "file.txt", "content": "three\n" })).await;
    bench.succeed("Write", json!({ "file_path": "new/file.txt", "content": "" })).await;
    bench.succeed("Edit", json!({ "file_path": "other.txt", "old_string": "", "new_string": "x" })).await;
    let expected = [
        (file.clone(), Some((b"one\n".to_vec(), 0o750))),
        (file, Some((b"two\n".to_vec(), 0o750))),
        (bench.path("new/file.txt"), None),
        (bench.path("other.txt"), None),
    ];
    assert_eq!(*kept.lock().unwrap(), expected);
}

#[tokio::test]
async fn what_cannot_be_kept_is_not_changed() {
    let mut bench = Bench::new();
    bench.write("file.txt", "one\n");
    bench.succeed("Read", json!({ "file_path": "file.txt" })).await;
    bench.keep_before = Some(Arc::new(|_: &BeforeChange<'_>| Err("the store is full".to_owned())));
    let calls = [
        ("Edit", json!({ "file_path": "file.txt", "old_string": "one", "new_string": "two" })),
        ("Write", json!({ "file_path": "file.txt", "content": "two\n" })),
        ("Write", json!({ "file_path": "folder/new.txt", "content": "two\n" })),
    ];
    for (tool, input) in calls {
        let text = bench.fail(tool, input).await;
        assert!(text.contains("was not changed") && text.contains("the store is full"), "{text}");
    }
    assert_eq!(bench.content("file.txt"), b"one\n");
    assert!(!bench.path("folder").exists());
}

#[test]
fn putting_back_brings_content_bits_and_folders() {
    let bench = Bench::new();
    let file = bench.path("deep/down/file.txt");
    assert_eq!(present(&file).unwrap(), Present::Absent);
    put_back(&file, b"one", 0o640).unwrap();
    assert_eq!(present(&file).unwrap(), Present::File { bytes: b"one".to_vec(), mode: 0o640 });
    put_back(&file, b"two", 0o755).unwrap();
    assert_eq!(
        (std::fs::read(&file).unwrap(), file.metadata().unwrap().mode() & 0o7777),
        (b"two".to_vec(), 0o755)
    );
    remove(&file).unwrap();
    assert_eq!(present(&file).unwrap(), Present::Absent);
    assert_eq!(std::fs::read_dir(bench.path("deep/down")).unwrap().count(), 0, "no temporary file is left");
}

#[test]
fn nothing_goes_through_a_link() {
    let bench = Bench::new();
    let victim = bench.write("victims/file.txt", "victim");
    symlink("victims", bench.path("folder")).unwrap();
    symlink(&victim, bench.path("link.txt")).unwrap();
    symlink("nowhere", bench.path("dangling.txt")).unwrap();
    for place in ["folder/file.txt", "link.txt", "dangling.txt"] {
        let place = bench.path(place);
        assert_eq!(present(&place).unwrap(), Present::Link, "{}", place.display());
        assert_eq!(put_back(&place, b"changed", 0o644).unwrap_err().code(), "file_changed");
        // A folder that became a link is no folder to the kernel; either way it is refused.
        let code = remove(&place).unwrap_err().code();
        assert!(["file_changed", "file_system_error"].contains(&code), "{code}");
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"victim");
    assert!(!bench.path("nowhere").exists());
    std::fs::create_dir(bench.path("a-folder")).unwrap();
    assert_eq!(present(&bench.path("a-folder")).unwrap(), Present::Other("a directory"));
    remove(&bench.path("a-folder")).unwrap_err();
}
