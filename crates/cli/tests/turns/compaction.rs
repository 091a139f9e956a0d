//! When the conversation fills the window it is replaced by a summary, which is announced, kept, and what the model then
//! reads. An endpoint that says the prompt is too long causes the same. A summary that cannot be had is a clear error.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{assert_calls_in_order, bodies, counted, fault, keys, records, stream};

const SUMMARY: &str = "The user wants the notes read; notes.txt says hello.";
const SMALL_WINDOW: &str = r#"{"model":{"contextWindow":10000}}"#;

/// True for the request that asks for a summary.
fn asks_for_summary(request: &Value) -> bool {
    let last = request["messages"].as_array().unwrap().last().unwrap();
    last["content"].as_str().is_some_and(|text| text.starts_with("Write a summary of this conversation"))
}

fn holds_summary(request: &Value) -> bool {
    request["messages"].to_string().contains(SUMMARY)
}

fn read_notes(input_tokens: u64) -> Reply {
    Reply::Blocks {
        thinking: None,
        text: Some("I read them.".to_owned()),
        tools: vec![("toolu_1".to_owned(), "Read".to_owned(), json!({ "file_path": "notes.txt" }))],
        stop_reason: None,
        usage: Some(json!({ "input_tokens": input_tokens, "output_tokens": 5 })),
    }
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "hello\n");
    sandbox
}

/// A model whose reply before the summary fills the window.
fn filling() -> ScriptedServer {
    ScriptedServer::start(Script::by(|request, _| {
        if asks_for_summary(request) {
            Reply::text(SUMMARY)
        } else if holds_summary(request) {
            Reply::text("They say hello.")
        } else {
            read_notes(9_000)
        }
    }))
}

#[test]
fn a_full_window_is_replaced_by_a_summary() {
    let (sandbox, server) = (sandbox(), filling());
    let finished = stream(&sandbox, &server, &["read the notes", "--settings", SMALL_WINDOW]);
    assert_eq!(finished.success()["result"], "They say hello.");
    let expected = [
        "system/init",
        "assistant",
        "user",
        "system/status",
        "system/compact_boundary",
        "system/status",
        "assistant",
        "result",
    ];
    assert_eq!(finished.shape(), expected);
    let status: Vec<Value> = finished.system("status").iter().map(|line| line["status"].clone()).collect();
    assert_eq!(status, [json!("compacting"), Value::Null]);
    let boundary = &finished.system("compact_boundary")[0];
    assert_eq!(keys(boundary), ["compact_metadata", "session_id", "subtype", "type", "uuid"]);
    assert_eq!(boundary["compact_metadata"]["trigger"], "auto");
    assert!(boundary["compact_metadata"]["pre_tokens"].as_u64().unwrap() >= 9_005, "{boundary}");
    let bodies = bodies(&server);
    assert_eq!(bodies.len(), 3);
    let messages = bodies[2]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1, "the summary stands for everything: {messages:#?}");
    let text = messages[0]["content"].as_str().unwrap();
    assert!(text.contains(SUMMARY) && text.contains("read the notes"), "{text}");
    assert_eq!(bodies[2]["system"], bodies[0]["system"]);
    assert_eq!(bodies[2]["tools"], bodies[0]["tools"]);
}

#[test]
fn the_transcript_starts_a_new_chain_at_the_summary() {
    let (sandbox, server) = (sandbox(), filling());
    let finished = stream(&sandbox, &server, &["read the notes", "--settings", SMALL_WINDOW]);
    let boundary = &records(&sandbox, "system")[0];
    assert_eq!(boundary["uuid"], finished.system("compact_boundary")[0]["uuid"]);
    assert_eq!(boundary["parentUuid"], Value::Null);
    let entries: Vec<Value> = sandbox
        .transcript_lines()
        .into_iter()
        .filter(|line| line["type"] == "user" || line["type"] == "assistant")
        .collect();
    let at = entries.iter().position(|entry| entry["isCompactSummary"] == true).unwrap();
    assert_eq!(entries[at]["parentUuid"], Value::Null);
    assert_eq!(entries[at]["origin"], "summary");
    assert_eq!(boundary["logicalParentUuid"], entries[at - 1]["uuid"]);
    for pair in entries[at..].windows(2) {
        assert_eq!(pair[1]["parentUuid"], pair[0]["uuid"], "the chain continues from the summary");
    }
    assert_calls_in_order(&sandbox);
    let result = finished.success();
    assert_eq!(result["usage"]["input_tokens"], 9_000 + 10 + 10, "the summary's tokens count too");
}

#[test]
fn a_session_resumes_from_its_summary() {
    let (sandbox, server) = (sandbox(), filling());
    let session = "40000000-0000-4000-8000-000000000001";
    let first = ["read the notes", "--settings", SMALL_WINDOW, "--session-id", session];
    stream(&sandbox, &server, &first).success();
    stream(&sandbox, &server, &["thanks", "--settings", SMALL_WINDOW, "--resume", session]).success();
    let last = bodies(&server).pop().unwrap();
    let messages = last["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 3, "{messages:#?}");
    assert!(messages[0]["content"].as_str().unwrap().contains(SUMMARY));
    assert_eq!(messages[2], json!({ "role": "user", "content": "thanks" }));
}

#[test]
fn a_prompt_that_is_too_long_for_the_endpoint_is_summarised() {
    let sandbox = sandbox();
    let server = ScriptedServer::start(Script::by(|request, number| {
        if asks_for_summary(request) {
            Reply::text(SUMMARY)
        } else if holds_summary(request) {
            Reply::text("They say hello.")
        } else if number == 0 {
            read_notes(100)
        } else {
            fault(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
        }
    }));
    let finished = stream(&sandbox, &server, &["read the notes"]);
    assert_eq!(finished.success()["result"], "They say hello.");
    assert_eq!(finished.system("compact_boundary").len(), 1);
    assert_eq!(finished.system("api_retry"), Vec::<Value>::new(), "repeating it would not help");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_summary_request_that_is_too_long_itself_is_shortened() {
    let sandbox = sandbox();
    let server = ScriptedServer::start(Script::by(|request, number| {
        let too_long = || fault(413, "request_too_large", "the request is too large");
        if asks_for_summary(request) {
            // The whole conversation is the prompt, a reply and its results, with the question behind it.
            if request["messages"][0]["content"] == "read the notes" {
                too_long()
            } else {
                Reply::text(SUMMARY)
            }
        } else if holds_summary(request) {
            Reply::text("They say hello.")
        } else if number == 0 {
            read_notes(100)
        } else {
            too_long()
        }
    }));
    let finished = stream(&sandbox, &server, &["read the notes"]);
    assert_eq!(finished.success()["result"], "They say hello.");
    assert_eq!(finished.system("compact_boundary").len(), 1);
    let bodies = bodies(&server);
    let shortened = &bodies[bodies.len() - 2];
    assert!(shortened["messages"].to_string().contains("read the notes"), "the request itself is kept");
}

#[test]
fn a_summary_that_cannot_be_had_is_a_clear_error() {
    let refusals = [fault(400, "invalid_request_error", "no summaries today"), Reply::text("")];
    for (refusal, words) in refusals.into_iter().zip(["no summaries today", "empty summary"]) {
        let sandbox = sandbox();
        let server = ScriptedServer::start(Script::by(move |request, _| {
            if asks_for_summary(request) { refusal.clone() } else { read_notes(9_000) }
        }));
        let finished = stream(&sandbox, &server, &["read the notes", "--settings", SMALL_WINDOW]);
        assert_eq!(finished.code, 1, "{}", finished.stdout);
        let result = finished.result();
        assert_eq!(result["subtype"], "error_during_execution");
        assert_eq!(result["terminal_reason"], "api_error");
        let error = result["errors"][0].as_str().unwrap();
        assert!(error.starts_with("The conversation is too long and could not be summarised: "), "{error}");
        assert!(error.contains(words), "{error}");
        assert_eq!(finished.system("compact_boundary"), Vec::<Value>::new());
        assert_eq!(finished.system("status").last().unwrap()["status"], Value::Null);
        assert_calls_in_order(&sandbox);
    }
}

#[test]
fn a_prompt_after_a_full_turn_is_summarised_first_and_not_lost() {
    let sandbox = sandbox();
    let server = ScriptedServer::start(Script::by(|request, _| {
        if asks_for_summary(request) {
            Reply::text(SUMMARY)
        } else if holds_summary(request) {
            Reply::text("As I said: hello.")
        } else {
            counted("A very long story.", json!({ "input_tokens": 9_000, "output_tokens": 5 }))
        }
    }));
    let session = "40000000-0000-4000-8000-000000000002";
    let first = stream(&sandbox, &server, &["tell", "--settings", SMALL_WINDOW, "--session-id", session]);
    assert_eq!(first.system("compact_boundary"), Vec::<Value>::new(), "a finished turn needs no room");
    let second = stream(&sandbox, &server, &["and again?", "--settings", SMALL_WINDOW, "--resume", session]);
    assert_eq!(second.success()["result"], "As I said: hello.");
    assert_eq!(second.system("compact_boundary").len(), 1);
    let last = bodies(&server).pop().unwrap();
    assert!(last["messages"].to_string().contains("and again?"), "{last:#}");
}

#[test]
fn a_first_prompt_that_does_not_fit_is_a_clear_error() {
    let sandbox = sandbox();
    let words = "prompt is too long: 210000 tokens > 200000 maximum";
    let server = ScriptedServer::start(Script::list(vec![fault(400, "invalid_request_error", words)]));
    let finished = stream(&sandbox, &server, &["a very long prompt"]);
    assert_eq!((finished.code, server.requests().len()), (1, 1), "{}", finished.stdout);
    let result = finished.result();
    assert_eq!((&result["error_code"], &result["api_error_status"]), (&json!(80_411), &json!(400)));
    assert!(result["errors"][0].as_str().unwrap().contains(words), "{result}");
}

#[test]
fn a_conversation_that_fills_the_window_after_every_summary_comes_to_an_end() {
    let sandbox = sandbox();
    let server = ScriptedServer::start(Script::by(|request, _| {
        if asks_for_summary(request) { Reply::text(SUMMARY) } else { read_notes(9_500) }
    }));
    let finished = stream(&sandbox, &server, &["read the notes", "--settings", SMALL_WINDOW]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    let result = finished.result();
    assert!(result["errors"][0].as_str().unwrap().contains("right after each summary"), "{result}");
    assert_eq!(result["error_code"], 80411);
    assert_eq!(finished.system("compact_boundary").len(), 3);
    assert_calls_in_order(&sandbox);
}
