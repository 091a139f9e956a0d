//! A session that is resumed answers the host's own prompt next, whatever an earlier process left open; a question that
//! waited is put again.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::{Host, call, say};

fn session_of(host: &mut Host) -> String {
    host.until(|line| line["subtype"] == "init")["session_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_turn_that_was_killed_is_closed_before_the_next_prompt() {
    let sandbox = Sandbox::new();
    let replies = json!([
        { "when": { "contains": "second" }, "text": "answer to the second" },
        { "text": "late", "delayMs": 600_000 },
    ]);
    let mut host = Host::connect(&sandbox, &replies, &[], json!({}));
    host.prompt("first");
    let id = session_of(&mut host);
    drop(host);
    let mut host = Host::connect(&sandbox, &replies, &[&format!("--resume={id}")], json!({}));
    host.prompt("second");
    assert_eq!(host.result()["result"], "answer to the second");
}

#[test]
fn a_copy_of_another_program_has_no_open_turn() {
    let sandbox = Sandbox::new();
    let replies = json!([{ "when": { "turn": 1 }, "text": "one" }, { "when": { "turn": 2 }, "text": "two" }]);
    let mut host = Host::connect(&sandbox, &replies, &[], json!({}));
    host.prompt("first");
    let id = session_of(&mut host);
    host.result();
    host.end();
    // As a client writes it: the chain alone, under another id.
    let copy = "3f1c2d3e-4b5a-4c6d-8e7f-001122334455";
    let lines = sandbox.transcript_lines().into_iter().filter(|line| line["uuid"].is_string());
    let text: Vec<String> = lines
        .map(|mut line| {
            let fields = line.as_object_mut().unwrap();
            fields.insert("sessionId".to_owned(), json!(copy));
            fields.insert("forkedFrom".to_owned(), json!({ "sessionId": id, "messageUuid": fields["uuid"] }));
            Value::Object(fields.clone()).to_string()
        })
        .collect();
    let file = sandbox.session_files()[0].with_file_name(format!("{copy}.jsonl"));
    std::fs::write(file, text.join("\n") + "\n").unwrap();
    let mut host = Host::connect(&sandbox, &replies, &[&format!("--resume={copy}")], json!({}));
    host.prompt("second");
    assert_eq!(host.result()["result"], "two");
}

#[test]
fn a_question_that_waited_is_put_again() {
    let sandbox = Sandbox::new();
    let file = sandbox.project().join("a.txt");
    let replies = json!([call(1, "Write", &json!({ "file_path": file, "content": "x" })), say("done")]);
    let asks = ["--permission-prompt-tool", "stdio"];
    let mut host = Host::connect(&sandbox, &replies, &asks, json!({}));
    host.prompt("write");
    let id = session_of(&mut host);
    host.asked("can_use_tool");
    // Killed while the question was open.
    drop(host);
    let resume = format!("--resume={id}");
    let mut host = Host::connect(&sandbox, &replies, &[asks[0], asks[1], &resume], json!({}));
    let question = host.asked("can_use_tool");
    host.respond(&question, &json!({ "behavior": "allow", "updatedInput": question["request"]["input"] }));
    assert_eq!(host.result()["result"], "done");
    assert!(file.exists());
}
