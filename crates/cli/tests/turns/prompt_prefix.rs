//! What a model has read stays as it was, byte for byte: every request is the one before it, without its closing
//! brackets, and something more. That holds over the calls of a turn, in a new process after a resume, and for every
//! further prompt; providers' caches live from it.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer, assistant_count};
use serde_json::json;

use crate::turns::support::{Wire, command, feed, run};

/// Eleven replies of a turn call tools, the twelfth is text, and all further ones are text.
fn script() -> Script {
    Script::by(|request, _| match assistant_count(request) {
        count @ 0..=10 => Reply::Blocks {
            thinking: (count % 3 == 0).then(|| (format!("thought {count}"), format!("c2ln{count}"))),
            text: (count % 2 == 0).then(|| format!("Step {count} \"quoted\" 🦀")),
            tools: vec![
                (
                    format!("toolu_{count}_a"),
                    "Read".to_owned(),
                    json!({ "file_path": format!("{count}.txt") }),
                ),
                (
                    format!("toolu_{count}_b"),
                    "Bash".to_owned(),
                    json!({ "command": format!("echo {count}") }),
                ),
                (format!("toolu_{count}_c"), "Read".to_owned(), json!({ "file_path": "missing.txt" })),
            ],
            stop_reason: None,
            usage: None,
        },
        count => Reply::text(format!("Finished after {count} replies.")),
    })
}

fn assert_grows(bodies: &[Vec<u8>], wire: Wire) {
    for (number, pair) in bodies.windows(2).enumerate() {
        let kept = pair[0].strip_suffix(b"]}").expect("a body ends with its list of messages");
        let rest = pair[1].strip_prefix(kept);
        assert!(rest.is_some_and(|rest| rest.starts_with(b",{")), "{wire:?}: request {} changed", number + 1);
    }
}

#[test]
fn every_request_extends_the_one_before_it() {
    for wire in Wire::ALL {
        let sandbox = Sandbox::new();
        for count in 0..11 {
            sandbox.write(format!("{count}.txt"), format!("line {count}\nsecond \u{fffd} line\n"));
        }
        let server = ScriptedServer::start(script());
        let session = "20000000-0000-4000-8000-000000000001";
        let mut first = command(&sandbox, &server, wire);
        first.args(["-p", "do twelve things", "--output-format", "json", "--session-id", session]);
        first.args(["--allowed-tools", "Bash(echo:*)"]);
        assert_eq!(run(first).success()["num_turns"], 12, "{wire:?}");
        let mut second = command(&sandbox, &server, wire);
        second.args(["-p", "and one more", "--output-format", "json", "--resume", session]);
        second.args(["--allowed-tools", "Bash(echo:*)"]);
        run(second).success();
        let mut third = command(&sandbox, &server, wire);
        third.args(["-p", "--input-format", "stream-json", "--output-format", "stream-json"]);
        third.args(["--resume", session, "--allowed-tools", "Bash(echo:*)"]);
        let line = |text: &str| json!({ "type": "user", "message": { "role": "user", "content": text } });
        let finished = feed(third, &format!("{}\n{}\n", line("a third"), line("a fourth")));
        assert_eq!(finished.of("result").len(), 2, "{wire:?}: {}", finished.stderr);
        let bodies: Vec<Vec<u8>> = server.requests().into_iter().map(|request| request.body).collect();
        assert_eq!(bodies.len(), 15, "{wire:?}");
        assert_grows(&bodies, wire);
    }
}

#[test]
fn ends_of_turns_and_other_flags_change_nothing_that_was_read() {
    let sandbox = Sandbox::new();
    sandbox.write("0.txt", "line\n");
    let server = ScriptedServer::start(script());
    let session = "20000000-0000-4000-8000-000000000002";
    let turn = |prompt: &str, more: &[&str]| {
        let mut command = command(&sandbox, &server, Wire::Messages);
        command.args(["-p", prompt, "--output-format", "json"]).args(more);
        run(command)
    };
    let limited = turn("start", &["--session-id", session, "--max-turns", "3"]);
    assert_eq!(limited.code, 53);
    let edits =
        turn("continue", &["--resume", session, "--max-turns", "2", "--permission-mode", "acceptEdits"]);
    assert_eq!(edits.code, 53);
    let verbose = turn("continue", &["--resume", session, "--verbose", "--permission-mode", "yolo"]);
    assert_eq!(verbose.code, 0, "{}", verbose.stderr);
    let bodies: Vec<Vec<u8>> = server.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies.len(), 12);
    assert_grows(&bodies, Wire::Messages);
}
