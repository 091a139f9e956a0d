//! The end of input is no abort: what was asked runs to its result, nothing waits for answers that cannot come, and the
//! exit code shows a failed run.

use qoder_testkit::Sandbox;
use serde_json::json;

use crate::protocol::host::{Host, say};

#[test]
fn a_prompt_right_before_the_end_is_answered() {
    let sandbox = Sandbox::new();
    let mut host = Host::start(&sandbox, &json!([say("hi")]), &[]);
    host.initialize(json!({}));
    host.prompt("one");
    host.prompt("two");
    let (code, rest) = host.end();
    let results = rest.iter().filter(|line| line["type"] == "result").count();
    assert_eq!((code, results), (0, 2), "{rest:?}");
}

#[test]
fn no_prompt_at_all_is_no_error() {
    let sandbox = Sandbox::new();
    let mut host = Host::start(&sandbox, &json!([say("hi")]), &[]);
    host.initialize(json!({}));
    assert_eq!(host.end().0, 0);
}

#[test]
fn a_failed_run_exits_with_an_error_after_its_result() {
    let sandbox = Sandbox::new();
    let replies = json!([{ "error": { "status": 401, "message": "bad key" } }]);
    let mut host = Host::start(&sandbox, &replies, &[]);
    host.initialize(json!({ "authExpired": false }));
    host.prompt("hello");
    let (code, rest) = host.end();
    assert_ne!(code, 0);
    assert_eq!(rest.last().unwrap()["type"], "result", "nothing follows the result: {rest:?}");
    assert_eq!(rest.last().unwrap()["is_error"], true);
}

#[test]
fn a_failed_turn_leaves_the_session_usable() {
    let sandbox = Sandbox::new();
    let replies = json!([
        { "when": { "contains": "two" }, "text": "hi" },
        { "error": { "status": 401, "message": "bad key" } },
    ]);
    let mut host = Host::connect(&sandbox, &replies, &[], json!({ "authExpired": true }));
    host.prompt("one");
    let told = host.asked("auth_expired");
    host.respond(&told, &json!({}));
    assert_eq!(host.result()["is_error"], true);
    host.prompt("two");
    assert_eq!(host.result()["result"], "hi");
    assert_eq!(host.end().0, 0);
}

#[test]
fn a_session_that_does_not_exist_is_told_as_a_result() {
    let sandbox = Sandbox::new();
    let id = "00000000-0000-4000-8000-000000000000";
    let mut host = Host::start(&sandbox, &json!([say("hi")]), &[&format!("--resume={id}")]);
    host.ask(&json!({ "subtype": "initialize" }));
    let result = host.result();
    assert_eq!(result["is_error"], true);
    assert!(result["errors"][0].as_str().unwrap().starts_with("No conversation found"), "{result}");
    assert_ne!(host.end().0, 0);
}

#[test]
fn a_host_that_was_killed_takes_the_program_along() {
    use std::io::{BufRead, BufReader, Write};
    use std::time::{Duration, Instant};
    for reply in [
        json!({ "text": "late", "delayMs": 600_000 }),
        json!({ "toolCalls": [{ "name": "Bash", "input": { "command": "sleep 600" } }] }),
    ] {
        let sandbox = Sandbox::new();
        let mut command = Host::command(&sandbox, &json!([reply]), &["--allowedTools", "Bash"]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{}", json!({ "type": "user", "message": { "role": "user", "content": "go" } }))
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.contains("\"init\""), "{line}");
        // What the system does to the pipes of a killed process.
        drop((input, output));
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(60), "it outlives its host");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
