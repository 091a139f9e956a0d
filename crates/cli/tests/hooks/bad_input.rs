//! Programs that misbehave: they print without measure, fork, never end, or answer nonsense. Nothing else is harmed, and
//! where a decision depends on them, the call does not run.

use serde_json::json;

use crate::hooks::support::{Stage, call, entry, entry_with, say};

#[test]
fn a_hook_that_prints_100_mb_is_cut_and_does_not_hurt() {
    let flood = "head -c 100000000 /dev/zero | tr '\\0' x";
    let (made, ran) = Stage::command("PreToolUse", flood).bash();
    assert!(
        !made && ran.stderr.contains("longer than a MiB"),
        "an answer may stand in the rest: {}",
        ran.stderr
    );
    let (made, ran) =
        Stage::command("PreToolUse", &format!("printf '{{\"a\":\"'; {flood}; printf '\"}}'")).bash();
    assert!(!made && ran.stderr.contains("longer than a MiB"), "{}", ran.stderr);
    let (made, ran) = Stage::command("PreToolUse", &format!("{flood} >&2; exit 1")).bash();
    assert!(!made && ran.said() == "done");
    assert!(ran.stderr.len() < 100_000, "{} bytes were told", ran.stderr.len());
}

#[test]
fn a_hook_that_prints_without_end_is_stopped_by_its_time() {
    let stage = Stage::new(&json!({ "PreToolUse": [entry_with("yes", &json!({ "timeout": 0.3 }))] }));
    let (made, ran) = stage.bash();
    assert!(!made && ran.stderr.contains("no answer within"), "{}", ran.stderr);
}

/// True while a process with this number is there.
fn lives(number: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", number.trim())).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !matches!(rest.split_whitespace().next(), Some("Z" | "X") | None))
}

/// True when the process ends; what outlives the program is ended by its guard, a moment later.
fn ends(number: &str) -> bool {
    let guard = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while lives(number) && std::time::Instant::now() < guard {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    !lives(number)
}

#[test]
fn a_hook_that_forks_a_daemon_leaves_nothing_behind() {
    let daemon = "setsid sh -c 'echo $$ > ../daemon; exec sleep 1000' > /dev/null 2>&1 < /dev/null & \
                  sleep 1000 & echo $! > ../child; while [ ! -s ../daemon ]; do sleep 0.01; done";
    let stage = Stage::command("PreToolUse", daemon);
    let (made, ran) = stage.bash();
    assert!(made, "{ran:#?}");
    for name in ["daemon", "child"] {
        let number = std::fs::read_to_string(stage.beside(name)).unwrap();
        assert!(ends(&number), "{name} {number} is still there");
    }
}

#[test]
fn a_hook_in_the_background_ends_with_the_session() {
    let command = "echo $$ > ../number; exec sleep 1000";
    let stage = Stage::new(&json!({ "SessionStart": [entry_with(command, &json!({ "async": true }))] }));
    let wait = call(1, "Bash", &json!({ "command": "while [ ! -s ../number ]; do sleep 0.01; done" }));
    stage.run(&json!([wait, say("done")]), &["--allowedTools", "Bash"]).said();
    assert!(ends(&std::fs::read_to_string(stage.beside("number")).unwrap()));
}

#[test]
fn hooks_in_the_background_block_nothing_when_there_is_no_place_for_more() {
    let command = "exec sleep 1000";
    let stage = Stage::new(&json!({ "PreToolUse": [entry_with(command, &json!({ "async": true }))] }));
    stage.sandbox.write("note.txt", "a note\n");
    let read = |number| json!({ "name": "Read", "id": format!("toolu_{number}"), "input": { "file_path": "note.txt" } });
    let calls: Vec<_> = (0..70).map(read).collect();
    let ran = stage.run(&json!([{ "toolCalls": calls }, say("done")]), &[]);
    assert_eq!(ran.said(), "done");
    assert!(ran.stderr.contains("it was not started; it belongs to the background"), "{}", ran.stderr);
    assert!(!ran.tool_results().contains("denied"), "{ran:#?}");
}

#[test]
fn a_hook_that_returns_nonsense_fails_closed_before_a_call_and_has_no_effect_elsewhere() {
    let nonsense = ["{\"decision\": \"maybe\"}", "{\"decision\":", "{\"continue\": \"no\"}"];
    for output in nonsense {
        let command = format!("printf '%s' '{output}'");
        let (made, ran) = Stage::command("PreToolUse", &command).bash();
        assert!(!made && ran.stderr.contains("failed"), "{output}: {}", ran.stderr);
        let (made, ran) = Stage::command("PostToolUse", &command).bash();
        assert!(
            made && ran.said() == "done" && ran.stderr.contains("it has no effect"),
            "{output}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_program_that_is_not_there_fails_closed_before_a_call() {
    let direct = json!({ "args": [] });
    for group in [entry("/nonexistent/check"), entry_with("/nonexistent/check", &direct)] {
        let (made, ran) = Stage::new(&json!({ "PreToolUse": [group] })).bash();
        assert!(!made && ran.stderr.contains("failed"), "{}", ran.stderr);
    }
}

#[test]
fn a_broken_entry_is_named_with_file_and_line_and_fails_closed_while_the_rest_loads() {
    let stage = Stage::new(&json!({}));
    let settings = "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"hooks\": [\n        {\"type\": \"command\"}\n      ]}\n    ],\n    \
                    \"Nonsense\": [],\n    \"SessionStart\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"echo x > ../ran\"}]}]\n  }\n}\n";
    let file = stage.sandbox.write(stage.sandbox.config().join("settings.json"), settings);
    let (made, ran) = stage.bash();
    assert!(!made, "{ran:#?}");
    assert!(ran.stderr.contains(&format!("{}:5: ", file.display())), "{}", ran.stderr);
    assert!(ran.stderr.contains("there is no hook event `Nonsense`"), "{}", ran.stderr);
    assert!(stage.beside("ran").exists());
}

#[test]
fn a_matcher_that_is_no_expression_fails_closed_before_a_call() {
    let mut group = entry("exit 0");
    group["matcher"] = json!("(");
    let (made, ran) = Stage::new(&json!({ "PreToolUse": [group] })).bash();
    assert!(!made && ran.stderr.contains("no regular expression"), "{}", ran.stderr);
}

#[test]
fn a_hook_that_does_not_read_its_input_is_no_problem() {
    let stage = Stage::command("PreToolUse", "exec <&-; exit 0");
    let long = "x".repeat(300_000);
    let replies = json!([call(1, "Write", &json!({ "file_path": "big.txt", "content": long })), say("done")]);
    stage.run(&replies, &["--allowedTools", "Write", "--trust", "--permission-mode", "acceptEdits"]).said();
    assert!(stage.sandbox.project().join("big.txt").exists());
}
