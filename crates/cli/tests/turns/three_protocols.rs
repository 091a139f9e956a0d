//! One scenario over three wire protocols: thinking, text and two calls at once, then the answer. What the model sees is
//! the same conversation in the words of each protocol, and what is kept does not depend on the protocol.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer, prompt_text};
use serde_json::{Value, json};

use crate::turns::support::{MODEL, Wire, command, records, run};

struct Seen {
    requests: Vec<qoder_testkit::ReceivedRequest>,
    result: Value,
    sandbox: Sandbox,
}

fn scenario(wire: Wire) -> Seen {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "alpha\n");
    let both = Reply::Blocks {
        thinking: Some(("Two files are needed.".to_owned(), "c2lnbmVk".to_owned())),
        text: Some("I read both.".to_owned()),
        tools: vec![
            ("toolu_a".to_owned(), "Read".to_owned(), json!({ "file_path": "a.txt" })),
            ("toolu_b".to_owned(), "Read".to_owned(), json!({ "file_path": "b.txt" })),
        ],
        stop_reason: None,
        usage: Some(json!({ "input_tokens": 70, "output_tokens": 30, "cache_read_input_tokens": 20 })),
    };
    let server =
        ScriptedServer::start(Script::by_assistant_count(vec![both, Reply::text("Only one exists.")]));
    let mut command = command(&sandbox, &server, wire);
    command.args(["-p", "compare a.txt and b.txt", "--output-format", "json", "--tools", "Read,Bash"]);
    command.args(["--system-prompt", "You compare files."]);
    let result = run(command).success();
    Seen { requests: server.requests(), result, sandbox }
}

fn snapshots(seen: &Seen) -> Vec<String> {
    let project = seen.sandbox.project().to_str().unwrap();
    let whole = |request: &qoder_testkit::ReceivedRequest| {
        // Before the snapshot, because that shows only the start of long texts.
        let text = request.json().to_string().replace(project, "/p");
        prompt_text(&serde_json::from_str(&text).unwrap())
    };
    seen.requests.iter().map(whole).collect()
}

#[test]
fn anthropic_messages() {
    let seen = scenario(Wire::Messages);
    assert_eq!(seen.requests[0].path, "/v1/messages");
    assert_eq!(seen.requests[0].header("x-api-key"), Some("key-of-the-test"));
    assert_eq!(seen.requests[0].header("anthropic-version"), Some("2023-06-01"));
    let first = "\
model: scripted-large
system: text \"You compare files.\" (cached)
tools: Bash, Read
user: text \"compare a.txt and b.txt\"
";
    let then = "\
assistant: thinking \"Two files are needed.\"
assistant: text \"I read both.\"
assistant: tool_use Read {\"file_path\":\"a.txt\"}
assistant: tool_use Read {\"file_path\":\"b.txt\"}
user: tool_result \"     1\\talpha\\n\"
user: tool_result \"File does not exist: /p/b.txt. The working directory is /p. Did you mean /p/a.tx\"… (error)
";
    assert_eq!(snapshots(&seen), [first.to_owned(), format!("{first}{then}")]);
}

#[test]
fn openai_chat() {
    let seen = scenario(Wire::Chat);
    assert_eq!(seen.requests[0].path, "/v1/chat/completions");
    assert_eq!(seen.requests[0].header("authorization"), Some("Bearer key-of-the-test"));
    let first = "\
model: scripted-large
tools: Bash, Read
system: text \"You compare files.\"
user: text \"compare a.txt and b.txt\"
";
    let then = "\
assistant: text \"I read both.\"
assistant: tool_use Read \"{\\\"file_path\\\":\\\"a.txt\\\"}\"
assistant: tool_use Read \"{\\\"file_path\\\":\\\"b.txt\\\"}\"
tool: text \"     1\\talpha\\n\"
tool: text \"File does not exist: /p/b.txt. The working directory is /p. Did you mean /p/a.tx\"…
";
    assert_eq!(snapshots(&seen), [first.to_owned(), format!("{first}{then}")]);
}

#[test]
fn openai_responses() {
    let seen = scenario(Wire::Responses);
    assert_eq!(seen.requests[0].path, "/v1/responses");
    assert_eq!(seen.requests[0].header("authorization"), Some("Bearer key-of-the-test"));
    let first = "\
model: scripted-large
system: \"You compare files.\"
tools: Bash, Read
user: text \"compare a.txt and b.txt\"
";
    let then = "\
item: reasoning
assistant: text \"I read both.\"
item: tool_use Read \"{\\\"file_path\\\":\\\"a.txt\\\"}\"
item: tool_use Read \"{\\\"file_path\\\":\\\"b.txt\\\"}\"
item: tool_result \"     1\\talpha\\n\"
item: tool_result \"File does not exist: /p/b.txt. The working directory is /p. Did you mean /p/a.tx\"…
";
    assert_eq!(snapshots(&seen), [first.to_owned(), format!("{first}{then}")]);
}

#[test]
fn what_is_kept_does_not_depend_on_the_protocol() {
    let seen = Wire::ALL.map(scenario);
    for (one, wire) in seen.iter().zip(Wire::ALL) {
        assert_eq!(one.result["result"], "Only one exists.", "{wire:?}");
        assert_eq!(one.result["num_turns"], 2, "{wire:?}");
        let usage = json!({
            "input_tokens": 80, "output_tokens": 35,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 20,
        });
        assert_eq!(one.result["usage"], usage, "{wire:?}");
        assert_eq!(one.result["modelUsage"][MODEL]["cacheReadInputTokens"], 20, "{wire:?}");
        let replies = records(&one.sandbox, "assistant");
        let kinds: Vec<&str> = replies[0]["message"]["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["type"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["thinking", "text", "tool_use", "tool_use"], "{wire:?}");
        let thinking = &replies[0]["message"]["content"][0];
        assert_eq!(thinking["thinking"], "Two files are needed.", "{wire:?}");
        assert!(thinking["signature"].is_string(), "{wire:?}: {thinking}");
        assert_eq!(replies[0]["message"]["stop_reason"], "tool_use", "{wire:?}");
        assert_eq!(replies[0]["message"]["content"][2]["id"], "toolu_a", "{wire:?}");
        let outcomes: Vec<Value> = records(&one.sandbox, "user")
            .iter()
            .filter(|entry| entry["origin"] == "tool_result")
            .map(|entry| entry["outcome"].clone())
            .collect();
        assert_eq!(outcomes.len(), 2, "{wire:?}");
        assert!(outcomes.contains(&json!("completed")) && outcomes.contains(&json!("failed")), "{wire:?}");
    }
}
