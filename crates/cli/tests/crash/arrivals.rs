//! `kill -9` while a process takes what others have left for its session: an answer and a message wait in the inbox, and the
//! tracer ends the program at each append, each reply and each removal, one after another. Both count once.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Output;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use super::every_append::traced;

const ID: &str = "00000000-0000-4000-8000-00000000abce";
/// Taking two entries needs far fewer of each system call; more means that it does not end.
const MOST: u64 = 100;
const PARKS: [&str; 2] = ["--settings", r#"{"permissions":{"unattended":"park"}}"#];

fn script() -> Script {
    let append = json!({ "command": "echo effect >> effects.txt" });
    Script::by_assistant_count(vec![
        Reply::ToolCalls(vec![("Bash".to_owned(), append)]),
        Reply::Text("appended".to_owned()),
        Reply::Text("all done".to_owned()),
    ])
}

/// Resumes the session, or is ended by the tracer when it enters the `number`-th call of `call`.
fn resume(sandbox: &Sandbox, server: &ScriptedServer, kill: Option<(&str, u64)>) -> Output {
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_qodercli"));
    command.env("ANTHROPIC_BASE_URL", server.base_url()).env("ANTHROPIC_API_KEY", "test-key");
    command.args(["-p", "--output-format", "json", "--resume", ID]).args(PARKS);
    traced(sandbox, command, kill).output().unwrap()
}

/// The folder of the session's own files.
fn side(sandbox: &Sandbox) -> PathBuf {
    let projects = sandbox.config().join("projects");
    std::fs::read_dir(projects).unwrap().next().unwrap().unwrap().path().join(ID)
}

/// A session whose call waits, with an answer to it and a message in its inbox.
fn parked(sandbox: &Sandbox, server: &ScriptedServer) -> PathBuf {
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_qodercli"));
    command.env("ANTHROPIC_BASE_URL", server.base_url()).env("ANTHROPIC_API_KEY", "test-key");
    let parked = command.args(["-p", "append", "--session-id", ID]).args(PARKS).output().unwrap();
    assert_eq!(parked.status.code(), Some(54), "{}", String::from_utf8_lossy(&parked.stderr));
    let inbox = side(sandbox).join("inbox");
    std::fs::DirBuilder::new().mode(0o700).create(&inbox).unwrap();
    let asked = records(sandbox).into_iter().find(|record| record["type"] == "permission-ask").unwrap();
    let answer = json!({ "id": "an-answer", "at": "2026-01-02T03:04:05.000Z", "by": "ana", "kind": "answer",
        "toolUseId": asked["toolUseId"], "allow": true });
    let message = json!({ "id": "a-message", "at": "2026-01-02T03:04:06.000Z", "by": "ana", "kind": "input",
        "message": { "role": "user", "content": "and then this" } });
    for (number, entry) in [(1, answer), (2, message)] {
        let name = format!("{number}-{}.json", entry["id"].as_str().unwrap());
        std::fs::write(inbox.join(name), entry.to_string()).unwrap();
    }
    inbox
}

fn records(sandbox: &Sandbox) -> Vec<Value> {
    let log = std::fs::read_to_string(side(sandbox).with_extension("jsonl")).unwrap();
    // The last line may be torn.
    log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Kills the process that takes the entries at this moment, and lets the next one finish. False when it ended before the
/// moment came.
fn killed_at(call: &str, number: u64) -> bool {
    let at = format!("{call} {number}");
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(script());
    let inbox = parked(&sandbox, &server);
    let first = resume(&sandbox, &server, Some((call, number)));
    let is_killed = !first.status.success();
    if is_killed {
        let next = resume(&sandbox, &server, None);
        assert!(next.status.success(), "{at}: {}", String::from_utf8_lossy(&next.stderr));
    }
    let records = records(&sandbox);
    let count = |field: &str, value: &str| records.iter().filter(|one| one[field] == value).count();
    assert_eq!(count("type", "permission-answer"), 1, "{at}: the answer counts once");
    let admitted = records.iter().filter(|one| one["type"] == "input" && one["inputId"] == "a-message");
    let waits = inbox.join("2-a-message.json").exists();
    assert_eq!(admitted.count(), usize::from(!waits), "{at}: the message is on record once, or waits");
    let effects = std::fs::read_to_string(sandbox.project().join("effects.txt")).unwrap_or_default();
    let is_started = count("type", "tool-start") == 1;
    assert!(effects.lines().count() <= 1 && is_started, "{at}: {effects:?}");
    is_killed
}

#[test]
fn a_process_killed_while_entries_arrive_loses_and_repeats_none() {
    let mut moments = 0;
    for call in ["flock", "renameat,renameat2", "unlinkat", "fsync,fdatasync"] {
        let kills = (1..=MOST).take_while(|number| killed_at(call, *number)).count();
        assert!((1..100).contains(&kills), "{call}: {kills}");
        moments += kills;
    }
    assert!(moments > 20, "taking two entries has more than {moments} moments");
}
