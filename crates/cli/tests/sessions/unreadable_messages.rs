//! A message that no provider takes is refused before it is recorded, so that it cannot spoil the conversation. One that
//! is in a log already, from another program or an earlier release, is put into words.

use qoder_testkit::{Reply, Sandbox, ScriptedServer};
use serde_json::{Value, json};

use crate::sessions::support::{ID, append, feed, log_text, online, records, run_with, sealed, server};

/// A line of input with this content.
fn line(content: &Value) -> String {
    format!("{}\n", json!({ "type": "user", "message": { "role": "user", "content": content } }))
}

fn image(media_type: &str, data: &str) -> Value {
    json!({ "type": "image", "source": { "type": "base64", "media_type": media_type, "data": data } })
}

/// What no provider takes, and a part of the reason.
fn unreadable() -> Vec<(Value, &'static str)> {
    vec![
        (json!([]), "is empty"),
        (json!(""), "is empty"),
        (json!([{ "type": "text", "text": " " }]), "is empty"),
        (json!([{ "type": "text", "text": "a\u{0}b" }]), "NUL"),
        (json!([{ "type": "text" }]), "is empty"),
        (json!([{ "no": "type" }]), "no `type`"),
        (json!([{ "type": "thinking", "thinking": "hm", "signature": "x" }]), "type `thinking`"),
        (json!([{ "type": "redacted_thinking", "data": "x" }]), "type `redacted_thinking`"),
        (json!([{ "type": "tool_use", "id": "a", "name": "Bash", "input": {} }]), "type `tool_use`"),
        (json!([image("image/bmp", "QUJD")]), "image/bmp"),
        (json!([image("image/png", "not base64!")]), "not base64"),
        (json!([image("image/png", "")]), "not base64"),
        (json!([{ "type": "image", "source": { "type": "base64" } }]), "incomplete"),
        (
            json!([{ "type": "image", "source": { "type": "url", "url": "file:///etc/passwd" } }]),
            "web address",
        ),
    ]
}

fn flags() -> Vec<&'static str> {
    vec![
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--session-id",
        ID,
    ]
}

fn prompts(sandbox: &Sandbox) -> usize {
    records(sandbox, ID).iter().filter(|record| record["type"] == "input").count()
}

#[test]
fn they_are_refused_and_the_next_message_is_answered() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("fine")]);
    let cases = unreadable();
    let mut input: String = cases.iter().map(|(content, _)| line(content)).collect();
    input.push_str(&line(&json!("hello")));
    let run = feed(online(&sandbox, &server, &flags()), input.as_bytes());
    let lines = run.lines();
    for (content, reason) in &cases {
        let said = lines.iter().any(|line| line["is_error"] == true && line.to_string().contains(reason));
        assert!(said, "{content}: {}", run.stdout);
    }
    assert_eq!(lines.last().unwrap()["result"], "fine");
    assert_eq!(server.requests().len(), 1);
    let log = log_text(&sandbox, ID);
    assert!(
        log.contains("hello") && !log.contains("redacted_thinking") && !log.contains("image/bmp"),
        "{log}"
    );
    assert!(prompts(&sandbox) <= 1);
}

/// A session of one turn that ends in this message, as another program or an earlier release recorded it.
fn recorded(sandbox: &Sandbox, server: &ScriptedServer, content: &Value) {
    run_with(sandbox, server, &["-p", "first prompt", "--session-id", ID]).exits(0);
    let known = records(sandbox, ID);
    let mut prompt = known.iter().find(|record| record["type"] == "user").unwrap().clone();
    prompt.as_object_mut().unwrap().remove("crc");
    prompt["message"]["content"] = content.clone();
    prompt["uuid"] = json!("33333333-3333-4333-8333-333333333333");
    prompt["parentUuid"] = known.iter().rev().find_map(|record| record.get("uuid").cloned()).unwrap();
    prompt["seq"] = json!(known.len() + 1);
    append(sandbox, ID, &sealed(&prompt));
}

#[test]
fn a_log_with_one_can_be_continued() {
    let contents = [
        (
            json!([{ "type": "thinking", "thinking": "hm", "signature": "x" }, { "type": "text", "text": "go" }]),
            "left out",
        ),
        (json!([image("image/png", "not base64!")]), "not base64"),
        (json!([{ "type": "tool_result", "tool_use_id": "gone", "content": "of no call" }]), "of no call"),
    ];
    for (content, words) in contents {
        let sandbox = Sandbox::new();
        let server = server(vec![Reply::text("first answer"), Reply::text("second answer")]);
        recorded(&sandbox, &server, &content);
        run_with(&sandbox, &server, &["-p", "next", "--resume", ID]).exits(0);
        let request = server.requests().last().unwrap().json();
        let messages = request["messages"].to_string();
        assert!(messages.contains(words), "{messages}");
        for refused in ["\"thinking\"", "\"tool_result\"", "\"image\""] {
            assert!(!messages.contains(refused), "{messages}");
        }
        assert!(log_text(&sandbox, ID).contains(&content.to_string()), "history is not rewritten");
    }
}
