//! Workspaces in an object store: whichever node continues a session has its files, and never a file of another state.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use qoder_testkit::{Reply, Script};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::serve::support::{Cluster, PATIENCE, Server, bash, kind, message, result_text, toolset};

/// Two nodes with an object store in a folder.
fn cluster(script: Script) -> (Cluster, TempDir) {
    let objects = tempfile::tempdir().unwrap();
    let url = format!("file://{}", objects.path().display());
    (Cluster::with(2, Some(script), &["--object-store", &url]), objects)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Everything below a folder of the object store, by name.
fn names(objects: &Path, kind: &str) -> BTreeSet<String> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    walk(&objects.join("workspaces"), &mut found);
    let of_kind = found.iter().filter(|path| path.parent().is_some_and(|parent| parent.ends_with(kind)));
    of_kind.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

/// The inventory that the head names; every object that it names is there.
fn inventory(cluster: &Cluster, objects: &Path) -> Value {
    let reference: Value =
        serde_json::from_str(&cluster.postgres.query("SELECT workspace FROM heads")).unwrap();
    let name = reference["inventory"].as_str().unwrap_or_else(|| panic!("{reference}"));
    assert!(names(objects, "inventories").contains(name), "{reference}");
    let session = std::fs::read_dir(objects.join("workspaces")).unwrap().next().unwrap().unwrap().path();
    let session = std::fs::read_dir(session).unwrap().next().unwrap().unwrap().path();
    let inventory: Value =
        serde_json::from_slice(&std::fs::read(session.join("inventories").join(name)).unwrap()).unwrap();
    let there = names(objects, "files");
    for file in inventory["files"].as_array().unwrap() {
        assert!(there.contains(file["object"].as_str().unwrap()), "{file}");
    }
    inventory
}

fn last_result(server: &Server, session: &str) -> String {
    let events = server.events(session);
    result_text(events.iter().rfind(|event| kind(event) == "agent.tool_result").unwrap())
}

#[test]
fn another_node_continues_with_the_same_files_and_only_changes_are_sent() {
    let first = "mkdir -p a/empty && printf one > a/one && printf 'echo hi' > run && chmod 751 run && \
        printf same > same1 && cp same1 same2 && ln run hard && ln -s /etc/passwd out && ln -s a/one in && \
        mkfifo pipe && touch -d 2001-02-03 a/one && head -c 9000000 /dev/zero > long";
    let second = "cat a/one in && stat -c %a run hard && ls a && stat -c %y a/one && \
        stat -c %s long && sh run && printf two > a/one && rm same2 long && printf new > new";
    let script = Script::by_assistant_count(vec![
        bash(first),
        Reply::text("made"),
        bash(second),
        Reply::text("seen"),
        bash("cat a/one new; ls"),
        Reply::text("again"),
    ]);
    let (mut cluster, objects) = cluster(script);
    let session = cluster.nodes[0].session(&json!([toolset(&[])]));
    let idle = cluster.nodes[0].ask(&session, "make");
    assert_eq!(idle["stop_reason"]["type"], "end_turn", "{:?}", cluster.nodes[0].events(&session));
    let made = inventory(&cluster, objects.path());
    assert_eq!((made["files"].as_array().unwrap().len(), made["links"].as_array().unwrap().len()), (6, 2));
    let sent = names(objects.path(), "files");
    assert_eq!(sent.len(), 4, "the same content is sent once: {sent:?}");
    assert_eq!(cluster.postgres.query("SELECT home_node IS NULL FROM heads"), "t", "it is kept");
    let problems = cluster.nodes[0].events(&session);
    let problem = problems.iter().find(|event| kind(event) == "session.error").expect("the pipe is reported");
    assert!(problem["error"]["message"].as_str().unwrap().contains("`pipe`"), "{problem}");

    cluster.nodes[0].kill();
    cluster.nodes[1].ask(&session, "look");
    let seen = last_result(&cluster.nodes[1], &session);
    for part in ["oneone", "751\n751", "empty", "2001-02-03", "9000000", "hi"] {
        assert!(seen.contains(part), "{part} in {seen}");
    }
    let workspace = cluster.nodes[1].workspace(&session);
    assert_eq!(std::fs::read_link(workspace.join("out")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!(std::fs::metadata(workspace.join("run")).unwrap().permissions().mode() & 0o777, 0o751);
    inventory(&cluster, objects.path());
    until("what nothing names is removed", || {
        let now = names(objects.path(), "files");
        now.len() == 4
            && now.intersection(&sent).count() == 2
            && names(objects.path(), "inventories").len() == 1
    });

    // The folder that was left behind is not taken for the workspace.
    cluster.nodes[0].start_again();
    assert!(cluster.nodes[1].stop().success());
    cluster.nodes[0].ask(&session, "and here");
    let seen = last_result(&cluster.nodes[0], &session);
    assert!(seen.contains("twonew") && !seen.contains("same2") && !seen.contains("pipe"), "{seen}");
    let workspace = cluster.nodes[0].workspace(&session);
    assert_eq!(std::fs::read_to_string(workspace.join("in")).unwrap(), "two");
    assert_eq!(std::fs::metadata(workspace.join("run")).unwrap().mode() & 0o7000, 0);
}

#[test]
fn a_kill_between_sending_and_committing_names_no_missing_object_and_is_reported() {
    let holds = Arc::new(AtomicBool::new(false));
    let held = Arc::clone(&holds);
    let script = Script::by(move |_, count| match count {
        0 => bash("printf kept > kept"),
        2 => bash("printf changed > kept; printf lost > lost"),
        3 => {
            // The model answers when the head is locked, so that the turn's end is sent and not committed.
            let end = Instant::now() + PATIENCE;
            while !held.load(Ordering::SeqCst) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(2));
            }
            Reply::text("done")
        }
        _ => Reply::text("done"),
    });
    let (mut cluster, objects) = cluster(script);
    let session = cluster.nodes[0].session(&json!([toolset(&[])]));
    cluster.nodes[0].ask(&session, "first");
    let before = inventory(&cluster, objects.path());
    let mut stream = cluster.nodes[1].stream(&session, None);
    cluster.nodes[0].send(&session, &json!([message("second")])).ok();
    stream.until("agent.tool_result");
    stream.until("span.model_request_start");
    let postgres = &cluster.postgres;
    std::thread::scope(|scope| {
        let locked = "BEGIN; SELECT 1 FROM heads FOR UPDATE; SELECT pg_sleep(60)";
        let lock = scope
            .spawn(move || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| postgres.query(locked))));
        until("the head is locked", || {
            postgres.query("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)' AND wait_event = 'PgSleep'")
                == "1"
        });
        holds.store(true, Ordering::SeqCst);
        until("everything was sent", || names(objects.path(), "inventories").len() == 2);
        cluster.nodes[0].kill();
        // What the killed node was about to commit ends with it, as on a network that breaks.
        let _ = postgres.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE pid <> pg_backend_pid() AND (wait_event_type = 'Lock' OR wait_event = 'PgSleep')",
        );
        drop(lock.join());
    });
    assert_eq!(inventory(&cluster, objects.path()), before, "the head names what was kept before");
    let _ = cluster.postgres.query("UPDATE nodes SET expires_at = 0");
    stream.until_end_of_turn();
    let workspace = cluster.nodes[1].workspace(&session);
    assert_eq!(std::fs::read_to_string(workspace.join("kept")).unwrap(), "kept");
    assert!(!workspace.join("lost").exists());
    cluster.nodes[1].ask(&session, "what happened?");
    let requests = cluster.model.as_ref().unwrap().requests();
    let last = requests.last().unwrap().json().to_string();
    assert!(last.contains("changes after that were lost with the other machine"), "{last}");
    inventory(&cluster, objects.path());
}

/// A session whose tool has written a file, and whose model does not answer while the switch is on; then the file is read.
fn unsaved(
    cluster: impl FnOnce(Script) -> (Cluster, TempDir),
) -> (Cluster, TempDir, String, Arc<AtomicBool>) {
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = Arc::clone(&is_slow);
    let has_read = AtomicBool::new(false);
    let script = Script::by(move |_, count| match count {
        0 => bash("printf written > file"),
        _ if slow.load(Ordering::SeqCst) => {
            Reply::SlowFirstByte { ms: 120_000, reply: Box::new(Reply::text("late")) }
        }
        _ if !has_read.swap(true, Ordering::SeqCst) => bash("cat file"),
        _ => Reply::text("done"),
    });
    let (cluster, objects) = cluster(script);
    let session = cluster.nodes[0].session(&json!([toolset(&[])]));
    let mut stream = cluster.nodes[0].stream(&session, None);
    cluster.nodes[0].send(&session, &json!([message("go")])).ok();
    stream.until("agent.tool_result");
    stream.until("span.model_request_start");
    (cluster, objects, session, is_slow)
}

#[test]
fn a_node_that_stops_in_a_turn_hands_its_files_over() {
    let (mut cluster, objects, session, is_slow) = unsaved(cluster);
    let mut stream = cluster.nodes[1].stream(&session, None);
    is_slow.store(false, Ordering::SeqCst);
    assert!(cluster.nodes[0].stop().success());
    stream.until_end_of_turn();
    assert_eq!(last_result(&cluster.nodes[1], &session), "written");
    inventory(&cluster, objects.path());
    let requests = cluster.model.as_ref().unwrap().requests();
    assert!(!requests.last().unwrap().json().to_string().contains("another machine"), "nothing was lost");
}

#[test]
fn a_node_that_comes_back_after_a_kill_has_everything() {
    let (mut cluster, _objects, session, is_slow) = unsaved(cluster);
    let after = cluster.nodes[0].events(&session).last().map(crate::serve::support::id);
    cluster.nodes[1].stop();
    cluster.nodes[0].kill();
    is_slow.store(false, Ordering::SeqCst);
    // Processes of the killed one may hold its lock for another moment.
    let lock = std::fs::File::open(cluster.nodes[0].data().join("serve.lock")).unwrap();
    let free = || flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    until("the lock is free", free);
    drop(lock);
    cluster.nodes[0].start_again();
    cluster.nodes[0].stream(&session, after.as_deref()).until_end_of_turn();
    assert_eq!(last_result(&cluster.nodes[0], &session), "written");
    let requests = cluster.model.as_ref().unwrap().requests();
    assert!(!requests.last().unwrap().json().to_string().contains("another machine"), "nothing was lost");
}

#[test]
fn without_an_object_store_the_model_hears_that_its_files_are_gone() {
    let script = Script::by_assistant_count(vec![
        bash("printf x > file"),
        Reply::text("made"),
        bash("ls; echo end"),
        Reply::text("seen"),
    ]);
    let mut cluster = Cluster::start(2, Some(script));
    let session = cluster.nodes[0].session(&json!([toolset(&[])]));
    cluster.nodes[0].ask(&session, "make");
    let home = "SELECT home_node IS NOT NULL FROM heads";
    assert_eq!(cluster.postgres.query(home), "t", "its files are on one node");
    let doctor = String::from_utf8(cluster.nodes[0].operate(&["doctor"]).stdout).unwrap();
    assert!(doctor.contains("--object-store"), "{doctor}");
    // While the node with the files is there it is the one that continues.
    cluster.nodes[1].ask(&session, "look");
    assert!(last_result(&cluster.nodes[1], &session).contains("file"));
    assert!(!cluster.nodes[1].workspace(&session).exists(), "the other node did not take it");
    cluster.nodes[0].kill();
    let _ = cluster.postgres.query("UPDATE nodes SET expires_at = 0");
    cluster.nodes[1].ask(&session, "again");
    let requests = cluster.model.as_ref().unwrap().requests();
    let last = requests.last().unwrap().json().to_string();
    assert!(last.contains("the workspace is empty now"), "{last}");
    assert!(!cluster.nodes[1].workspace(&session).join("file").exists());
}

#[test]
fn a_store_that_cannot_be_used_stops_the_start_and_shows_no_secret() {
    let server = Server::offline();
    let refuse = |url: &str| {
        let mut command = server.sandbox.command(env!("CARGO_BIN_EXE_qodercli"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--object-store", url, "--data-dir"]);
        command.arg(server.sandbox.home().join("other"));
        command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:9").env("AWS_ALLOW_HTTP", "true");
        command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", "very-secret-value");
        let output = qoder_testkit::Sandbox::finish(command);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && !text.contains("very-secret-value"), "{text}");
        text
    };
    let unreachable = refuse("s3://bucket/prefix");
    assert!(unreachable.contains("the object store s3://bucket/prefix cannot be used"), "{unreachable}");
    assert!(refuse("s3://key:very-secret-value@bucket/x").contains("must not contain credentials"));
    assert!(refuse("ftp://host/x").contains("accepted are file, s3, gs and az"));
    let used = server.sandbox.home().join("used");
    std::fs::create_dir_all(&used).unwrap();
    std::fs::write(used.join("owner"), "another database").unwrap();
    assert!(refuse(&format!("file://{}", used.display())).contains("belongs to another database"));
}
