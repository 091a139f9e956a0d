//! `qodercli work` as a program: it runs calls in the folder of their session, survives restarts of the server and of itself, repeats
//! nothing, and ends cleanly.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use qoder_testkit::Reply;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::support::{Queue, self_hosted, session_in};
use crate::serve::support::{
    PATIENCE, Server, confirm, id, kind, message, pending, result_text, toolset, wait,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_qodercli");

/// A worker that runs until it is dropped.
struct Worker {
    child: Child,
    folder: PathBuf,
}

impl Worker {
    fn command(server: &Server, environment: &str, key: &str, arguments: &[&str]) -> Command {
        let mut command = server.sandbox.command(PROGRAM);
        command.args(["work", "--environment", environment, "--url"]);
        command.arg(format!("http://{}", server.address()));
        command.arg("--dir").arg(server.sandbox.home().join("work")).args(arguments);
        command.env("QODER_ENVIRONMENT_KEY", key);
        command
    }

    fn start(server: &Server, environment: &str, key: &str) -> Self {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(server.sandbox.home().join("work.log"))
            .unwrap();
        let mut command = Self::command(server, environment, key, &["--lease", "60", "--max-idle", "600"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Self { child, folder: server.sandbox.home().join("work") }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap(), signal).unwrap();
    }

    fn file(&self, session: &str, name: &str) -> PathBuf {
        self.folder.join(session).join(name)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a file has content.
fn await_file(path: &Path, log: &Path) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Ok(text) = std::fs::read_to_string(path)
            && !text.is_empty()
        {
            return text;
        }
        let log = || std::fs::read_to_string(log).unwrap_or_default();
        assert!(Instant::now() < until, "{} does not appear: {}", path.display(), log());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn results(server: &Server, session: &str) -> Vec<Value> {
    server.events(session).into_iter().filter(|event| kind(event) == "user.tool_result").collect()
}

#[test]
fn it_runs_calls_in_the_folder_of_their_session() {
    let mut server = Server::replying(vec![
        Reply::tool("write", json!({ "file_path": "notes/a.txt", "content": "one\ntwo\nthree\n" })),
        Reply::ToolCalls(vec![
            (
                "bash".to_owned(),
                json!({ "command": "cat notes/a.txt; echo $GREETING; env | grep -c _KEY=; true" }),
            ),
            ("read".to_owned(), json!({ "file_path": "notes/a.txt", "view_range": [2, 2] })),
            ("grep".to_owned(), json!({ "pattern": "th.ee" })),
            ("glob".to_owned(), json!({ "pattern": "**/*.txt" })),
            (
                "edit".to_owned(),
                json!({ "file_path": "notes/a.txt", "old_string": "one", "new_string": "1" }),
            ),
            ("read".to_owned(), json!({ "file_path": "/etc/hostname" })),
        ]),
        Reply::text("done"),
    ]);
    let environment = self_hosted(&server);
    let key = Queue::of(&server, &environment).key;
    let agent = server.agent(&json!([toolset(&[("write", "always_ask")])]));
    let body = json!({ "agent": agent, "environment_id": environment, "environment_variables": { "GREETING": "good morning" } });
    let session = id(&server.post("/v1/sessions", &body).ok());
    let worker = Worker::start(&server, &environment, &key);
    let asked = pending(&server.ask(&session, "go")).remove(0);
    assert!(!worker.file(&session, "notes").exists(), "it waits for the confirmation");
    // Neither loses what the other has.
    server.kill();
    server.start_at_the_same_address();
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([confirm(&asked, "allow")])).ok();
    stream.until_end_of_turn();
    let brought = results(&server, &session);
    let texts: Vec<String> = brought.iter().map(result_text).collect();
    assert!(texts[1].contains("one\ntwo") && texts[1].contains("good morning\n0"), "{texts:?}");
    assert!(texts[2].contains("two") && !texts[2].contains("three"), "{texts:?}");
    assert!(texts[3].contains("three") && texts[4].contains("notes/a.txt"), "{texts:?}");
    let failed: Vec<bool> = brought.iter().map(|event| event["is_error"] == true).collect();
    assert_eq!(failed, [false, false, false, false, false, false, true], "{texts:?}");
    assert_eq!(std::fs::read_to_string(worker.file(&session, "notes/a.txt")).unwrap(), "1\ntwo\nthree\n");
}

#[test]
fn what_had_begun_when_it_was_killed_is_unknown_and_not_repeated() {
    let server = Server::replying(vec![
        Reply::tool("bash", json!({ "command": "echo begun >> log.txt; sleep 1000" })),
        Reply::tool("bash", json!({ "command": "echo again >> log.txt" })),
        Reply::text("done"),
    ]);
    let environment = self_hosted(&server);
    let key = Queue::of(&server, &environment).key;
    let session = session_in(&server, &environment, &json!([toolset(&[])]));
    let mut worker = Worker::start(&server, &environment, &key);
    server.send(&session, &json!([message("go")])).ok();
    let log = server.sandbox.home().join("work.log");
    await_file(&worker.file(&session, "log.txt"), &log);
    let second = Worker::command(&server, &environment, &key, &[]).output().unwrap();
    assert_eq!(second.status.code(), Some(42), "the folder is in use");
    worker.child.kill().unwrap();
    worker.child.wait().unwrap();
    let mut stream = server.stream(&session, None);
    let worker = Worker::start(&server, &environment, &key);
    stream.until_end_of_turn();
    let first = results(&server, &session).remove(0);
    assert!(first["is_error"] == true && result_text(&first).contains("unknown"), "{first}");
    assert_eq!(std::fs::read_to_string(worker.file(&session, "log.txt")).unwrap(), "begun\nagain\n");
}

#[test]
fn a_signal_and_an_interrupt_stop_what_runs() {
    let server = Server::replying(vec![
        Reply::tool("bash", json!({ "command": "echo $$ > pid.txt; sleep 1000" })),
        Reply::tool("bash", json!({ "command": "echo more > more.txt; sleep 1000" })),
        Reply::text("done"),
    ]);
    let environment = self_hosted(&server);
    let queue = Queue::of(&server, &environment);
    let session = session_in(&server, &environment, &json!([toolset(&[])]));
    let mut worker = Worker::start(&server, &environment, &queue.key);
    server.send(&session, &json!([message("go")])).ok();
    let log = server.sandbox.home().join("work.log");
    await_file(&worker.file(&session, "pid.txt"), &log);
    worker.signal(Signal::TERM);
    assert!(wait(&mut worker.child).success(), "{}", std::fs::read_to_string(&log).unwrap());
    let stopped = results(&server, &session).remove(0);
    assert!(result_text(&stopped).contains("unknown"), "{stopped}");
    // What the session still needs is in the queue for the next worker.
    let worker = Worker::start(&server, &environment, &queue.key);
    await_file(&worker.file(&session, "more.txt"), &log);
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([{ "type": "user.interrupt" }])).ok();
    stream.until_end_of_turn();
    assert_eq!(server.ask(&session, "and now?")["stop_reason"]["type"], "end_turn");
}

#[test]
fn it_can_hand_items_over_and_serve_a_queue_once() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let environment = self_hosted(&server);
    let key = Queue::of(&server, &environment).key;
    let session = session_in(&server, &environment, &json!([]));
    let out = server.sandbox.home().join("handed.txt");
    let script = format!("echo $ANTHROPIC_SESSION_ID $ANTHROPIC_ENVIRONMENT_ID > {}; exit 3", out.display());
    let arguments = ["--once", "--no-sandbox", "--on-work", &script];
    let done = Worker::command(&server, &environment, &key, &arguments).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), format!("{session} {environment}\n"));
    assert_eq!(Queue { key, ..Queue::of(&server, &environment) }.states(), ["stopped"], "its command failed");
    for (key, url, code) in
        [("pt-wrong", server.address(), 41), ("", server.address(), 42), ("x", "nowhere", 42)]
    {
        let mut command = server.sandbox.command(PROGRAM);
        command.args(["work", "--environment", &environment, "--no-sandbox", "--once", "--url"]);
        command.arg(if url == "nowhere" { url.to_owned() } else { format!("http://{url}") });
        command.arg("--dir").arg(server.sandbox.home().join("other")).env("QODER_ENVIRONMENT_KEY", key);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
