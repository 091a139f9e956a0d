//! Long lines: tens of megabytes are read, and nothing that real readers cannot take is written.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::{Host, ROOMY, call, say};

#[test]
fn a_prompt_of_fifty_megabytes_is_taken() {
    let sandbox = Sandbox::new();
    let replies = json!([{ "when": { "contains": "the end" }, "text": "read" }]);
    let mut host = Host::connect(&sandbox, &replies, &["--settings", ROOMY], json!({}));
    host.prompt(&format!("{} the end", "x".repeat(50 * 1024 * 1024)));
    assert_eq!(host.result()["result"], "read");
}

#[test]
fn a_line_beyond_all_bounds_is_left_out_and_the_next_one_counts() {
    let sandbox = Sandbox::new();
    let mut host = Host::connect(&sandbox, &json!([say("hi")]), &[], json!({}));
    let chunk = vec![b'x'; 1024 * 1024];
    for _ in 0..70 {
        host.send_text(&chunk);
    }
    host.send_text(b"\n");
    host.prompt("hello");
    assert_eq!(host.result()["result"], "hi");
}

#[test]
fn a_question_about_a_large_input_fits_into_a_line_and_runs_whole() {
    let sandbox = Sandbox::new();
    let file = sandbox.project().join("large.txt");
    let content = "y".repeat(3 * 1024 * 1024);
    let replies = json!([call(1, "Write", &json!({ "file_path": file, "content": content })), say("done")]);
    let mut host = Host::connect(
        &sandbox,
        &replies,
        &["--permission-prompt-tool", "stdio", "--settings", ROOMY],
        json!({}),
    );
    host.prompt("write");
    let question = host.asked("can_use_tool");
    let shown = &question["request"]["input"];
    assert!(shown["content"].as_str().unwrap().len() < content.len());
    host.respond(&question, &json!({ "behavior": "allow", "updatedInput": shown }));
    host.result();
    assert_eq!(std::fs::read_to_string(file).unwrap(), content);
}

#[test]
fn a_host_changes_a_large_input_without_losing_what_had_no_room_in_the_line() {
    let sandbox = Sandbox::new();
    let content = "y".repeat(3 * 1024 * 1024);
    let given = json!({ "file_path": sandbox.project().join("asked.txt"), "content": content });
    let replies = json!([call(1, "Write", &given), call(2, "Write", &given), say("done")]);
    let mut host = Host::connect(
        &sandbox,
        &replies,
        &["--permission-prompt-tool", "stdio", "--settings", ROOMY],
        json!({}),
    );
    host.prompt("write");
    let question = host.asked("can_use_tool");
    let mut changed = question["request"]["input"].clone();
    changed["file_path"] = json!(sandbox.project().join("ran.txt"));
    host.respond(&question, &json!({ "behavior": "allow", "updatedInput": changed }));
    let question = host.asked("can_use_tool");
    let mut changed = question["request"]["input"].clone();
    changed["content"] = json!(format!("// {}", changed["content"].as_str().unwrap()));
    host.respond(&question, &json!({ "behavior": "allow", "updatedInput": changed }));
    assert_eq!(host.result()["permission_denials"].as_array().unwrap().len(), 1);
    assert_eq!(std::fs::read_to_string(sandbox.project().join("ran.txt")).unwrap(), content);
    assert!(!sandbox.project().join("asked.txt").exists());
}

#[test]
fn a_hook_that_hands_a_large_input_back_changes_nothing_of_it() {
    let sandbox = Sandbox::new();
    let file = sandbox.project().join("large.txt");
    let content = "y".repeat(3 * 1024 * 1024);
    let replies = json!([call(1, "Write", &json!({ "file_path": file, "content": content })), say("done")]);
    let hooks = json!({ "hooks": { "PreToolUse": [{ "matcher": "Write", "hookCallbackIds": ["hook_0"] }] } });
    let mut host =
        Host::connect(&sandbox, &replies, &["--allowed-tools", "Write", "--settings", ROOMY], hooks);
    host.prompt("write");
    let fired = host.asked("hook_callback");
    let mut input = fired["request"]["input"]["tool_input"].clone();
    assert!(input["content"].as_str().unwrap().len() < content.len());
    input["file_path"] = json!(sandbox.project().join("moved.txt"));
    host.respond(
        &fired,
        &json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse", "updatedInput": input } }),
    );
    host.result();
    assert_eq!(std::fs::read_to_string(sandbox.project().join("moved.txt")).unwrap(), content);
}

/// All that the pieces of one turn say: text and arguments. The host refuses lines that are too long for a reader.
fn pieces_of(sandbox: &Sandbox, replies: &Value) -> (String, String) {
    let arguments = ["--include-partial-messages", "--allowed-tools", "Write", "--settings", ROOMY];
    let mut host = Host::connect(sandbox, replies, &arguments, json!({}));
    host.prompt("go");
    let (mut text, mut input) = (String::new(), String::new());
    loop {
        let line = host.next().unwrap();
        let delta = &line["event"]["delta"];
        text.push_str(delta["text"].as_str().unwrap_or_default());
        input.push_str(delta["partial_json"].as_str().unwrap_or_default());
        if line["type"] == "result" {
            assert_eq!(line["is_error"], false, "{line}");
            return (text, input);
        }
    }
}

#[test]
fn pieces_of_a_reply_are_never_longer_than_a_reader_takes() {
    let sandbox = Sandbox::new();
    // Written out, the second one has twice as many bytes.
    for (letter, bytes) in [("z", 1_200_000), ("\u{202e}", 600_000)] {
        let content = letter.repeat(bytes / letter.len());
        let (text, _) = pieces_of(&sandbox, &json!([{ "text": content, "chunks": 1 }]));
        assert!(text == content, "the pieces come to the whole text");
    }
}

#[test]
fn pieces_of_arguments_are_never_longer_than_a_reader_takes() {
    let sandbox = Sandbox::new();
    let given = json!({ "file_path": sandbox.project().join("large.txt"), "content": "z".repeat(1_200_000) });
    let replies = json!([{ "when": { "turn": 1 }, "toolCalls": [{ "name": "Write", "input": given }], "chunks": 1 },
        say("done")]);
    let (_, input) = pieces_of(&sandbox, &replies);
    assert!(serde_json::from_str::<Value>(&input).unwrap() == given, "the pieces come to the whole input");
}

#[test]
fn half_characters_and_lines_that_are_none_do_no_harm() {
    let sandbox = Sandbox::new();
    let mut host = Host::connect(&sandbox, &json!([say("hi")]), &[], json!({}));
    host.send_text(b"{\"type\":\"user\"\n{not json}\n[1,2]\n\"text\"\n");
    host.send_text(
        "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"a\\ud800 \u{2028}\"}}\r\n"
            .as_bytes(),
    );
    let result = host.until(|line| line["result"] == "hi");
    assert_eq!(result["is_error"], false);
}
