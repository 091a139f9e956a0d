//! What is kept of sessions: prompts, answers, calls, results and questions that wait.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use crate::screen::support::{BINARY, assert_escaped, assert_tame, hostile, shown};

const ID: &str = "0190f5fe-1111-7000-8000-000000000001";
const WAITING: &str = "0190f5fe-1111-7000-8000-000000000002";

#[test]
fn a_kept_session_is_escaped_wherever_it_is_shown() {
    let sandbox = Sandbox::new();
    let hostile = hostile();
    let replies = vec![
        Reply::Blocks {
            thinking: None,
            text: Some(hostile.clone()),
            tools: vec![(
                "call-1".to_owned(),
                "Bash".to_owned(),
                json!({ "command": format!("echo '{hostile}'") }),
            )],
            stop_reason: None,
            usage: None,
        },
        Reply::tool("Read", json!({ "file_path": hostile })),
        Reply::text(&hostile),
    ];
    let server = ScriptedServer::start(Script::by_assistant_count(replies.clone()));
    let run = sandbox.run_with(BINARY, &server, &["-p", &hostile, "--session-id", ID, "--yolo"]);
    assert!(run.status.success(), "{run:?}");
    let waits =
        ["-p", &hostile, "--session-id", WAITING, "--settings", r#"{"permissions":{"unattended":"park"}}"#];
    let server = ScriptedServer::start(Script::by_assistant_count(replies));
    drop(sandbox.run_with(BINARY, &server, &waits));
    let cases: &[&[&str]] = &[
        &["permissions", "pending", WAITING],
        &["sessions", "list"],
        &["sessions", "list", "--all"],
        &["sessions", "show", ID],
        &["sessions", "show", ID, "--full"],
        &["sessions", "export", ID],
        &["sessions", "rewind", ID],
        &["permissions", "explain", ID, "call-1"],
    ];
    for arguments in cases {
        assert_escaped(&shown(&sandbox, arguments), &format!("{arguments:?}"));
    }
    let log = ["sessions", "export", ID, "--format", "jsonl"];
    assert_tame(&shown(&sandbox, &log), "the log");
}
