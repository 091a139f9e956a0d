//! Responses that end early: cut at every byte of a stream and of a whole reply, empty, blank, or mixed with another
//! response, in all three wire protocols. A call ends with the complete reply, or with a failure that is worth a retry
//! and says what happened. It never panics and never takes a part of a reply for the whole.

use qoder_models::resolve;
use qoder_types::{ContentBlock, ModelFailure, ModelFailureClass};
use serde_json::{Value, json};

use crate::support::{
    Collected, Server, Step, ask, ask_once, assert_well_ordered, pieces, request, status, stream_text, user,
};

const STYLES: [&str; 3] = ["anthropic", "openai", "openai-responses"];

/// What every sample says.
fn content() -> Vec<ContentBlock> {
    let input = json!({"command": "echo é"});
    vec![
        ContentBlock::text("héllo 🦀"),
        ContentBlock::ToolUse { id: "call_1".into(), name: "Bash".into(), input },
    ]
}

fn arguments() -> String {
    json!({"command": "echo é"}).to_string()
}

/// A streamed reply of a text and a call.
fn stream(style: &str) -> String {
    let (first, second) = arguments().split_at(9).to_owned_pair();
    stream_text(&match style {
        "anthropic" => vec![
            json!({"type": "message_start", "message": {"id": "m", "model": "x", "usage": {"input_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "héllo 🦀"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1,
                "content_block": {"type": "tool_use", "id": "call_1", "name": "Bash", "input": {}}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"partial_json": first}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"partial_json": second}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}}),
            json!({"type": "message_stop"}),
        ],
        "openai" => vec![
            json!({"id": "c", "model": "x", "choices": [{"delta": {"content": "héllo 🦀"}}]}),
            json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "call_1",
                "function": {"name": "Bash", "arguments": first}}]}}]}),
            json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": second}}]}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
            Value::String("[DONE]".into()),
        ],
        _ => vec![
            json!({"type": "response.created", "response": {"id": "r", "model": "x"}}),
            json!({"type": "response.output_text.delta", "output_index": 0, "delta": "héllo 🦀"}),
            json!({"type": "response.output_item.added", "output_index": 1,
                "item": {"type": "function_call", "call_id": "call_1", "name": "Bash"}}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": first}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": second}),
            json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
        ],
    })
}

trait OwnedPair {
    fn to_owned_pair(self) -> (String, String);
}

impl OwnedPair for (&str, &str) {
    fn to_owned_pair(self) -> (String, String) {
        (self.0.to_owned(), self.1.to_owned())
    }
}

/// The same reply in one piece.
fn whole(style: &str) -> String {
    match style {
        "anthropic" => {
            json!({"type": "message", "id": "m", "model": "x", "stop_reason": "tool_use", "content": [
            {"type": "text", "text": "héllo 🦀"},
            {"type": "tool_use", "id": "call_1", "name": "Bash", "input": {"command": "echo é"}}]})
        }
        "openai" => json!({"id": "c", "choices": [{"finish_reason": "tool_calls", "message": {
            "content": "héllo 🦀",
            "tool_calls": [{"id": "call_1", "function": {"name": "Bash", "arguments": arguments()}}]}}]}),
        _ => json!({"id": "r", "status": "completed", "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "héllo 🦀"}]},
            {"type": "function_call", "call_id": "call_1", "name": "Bash", "arguments": arguments()}]}),
    }
    .to_string()
}

/// A response with this body, and a head that promises exactly as much.
fn response(kind: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len())
            .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Asks once for every answer, without a retry.
async fn ask_all(style: &str, answers: Vec<Vec<Step>>) -> Vec<Collected> {
    let count = answers.len();
    let server = Server::start(answers).await;
    let mut options = server.styled(style, "m");
    options.max_attempts = 1;
    let model = resolve(&options).unwrap();
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        all.push(ask(&model, request(vec![user("a")])).await);
    }
    all
}

fn is_worth_a_retry(failure: &ModelFailure) -> bool {
    matches!(failure.class, ModelFailureClass::MalformedStream | ModelFailureClass::Network)
        && !failure.message.is_empty()
}

/// A reply counts only when all of it arrived; everything else is a failure that may pass.
fn assert_whole_or_failed(style: &str, cut: usize, told: &Collected) {
    match &told.result {
        Ok(reply) => {
            assert_eq!(reply.content, content(), "{style} at {cut}");
            assert_well_ordered(&told.partials);
        }
        Err(failure) => assert!(is_worth_a_retry(failure), "{style} at {cut}: {failure:?}"),
    }
}

#[tokio::test]
async fn a_stream_that_ends_at_any_byte_is_a_whole_reply_or_a_failure() {
    for style in STYLES {
        let text = stream(style);
        let bytes = text.as_bytes();
        let ended =
            (0..=bytes.len()).map(|cut| vec![Step::Send(response("text/event-stream", &bytes[..cut]))]);
        let told = ask_all(style, ended.collect()).await;
        for (cut, told) in told.iter().enumerate() {
            assert_whole_or_failed(style, cut, told);
        }
        assert!(told.last().unwrap().result.is_ok(), "{style}");
        assert!(told.first().unwrap().result.is_err(), "{style}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_at_any_byte_is_a_whole_reply_or_a_failure() {
    for style in STYLES {
        let whole = response("text/event-stream", stream(style).as_bytes());
        let broken = (0..whole.len()).map(|cut| vec![Step::Send(whole[..cut].to_vec()), Step::Close]);
        for (cut, told) in ask_all(style, broken.collect()).await.iter().enumerate() {
            assert_whole_or_failed(style, cut, told);
        }
    }
}

#[tokio::test]
async fn a_document_that_ends_at_any_byte_is_a_whole_reply_or_a_failure() {
    for style in STYLES {
        for kind in ["application/json", "text/event-stream"] {
            let text = whole(style);
            let bytes = text.as_bytes();
            let cuts = (0..=bytes.len()).map(|cut| vec![Step::Send(response(kind, &bytes[..cut]))]);
            let told = ask_all(style, cuts.collect()).await;
            for (cut, told) in told.iter().enumerate() {
                assert_whole_or_failed(style, cut, told);
            }
            assert!(told.last().unwrap().result.is_ok(), "{style} {kind}");
        }
    }
}

#[tokio::test]
async fn an_empty_or_blank_body_is_tried_again() {
    let bodies = ["", " ", "\n", "\r\n\r\n", "\t \n\n", "\u{feff}", "data:\n\n", ": nothing\n\n"];
    for style in STYLES {
        for kind in ["text/event-stream", "application/json", "text/plain", ""] {
            for body in bodies.into_iter().filter(|body| kind.is_empty() || !body.contains(':')) {
                let answer = status(200, &[("content-type", kind)], body);
                let server = Server::start(vec![answer, pieces(&stream(style), usize::MAX)]).await;
                let told = ask_once(&server.styled(style, "m")).await;
                assert_eq!(told.reply().content, content(), "{style} {kind} {body:?}");
                assert_eq!(told.retries.len(), 1, "{style} {kind} {body:?}");
                assert!(is_worth_a_retry(&told.retries[0].3), "{:?}", told.retries[0].3);
            }
        }
    }
}

#[tokio::test]
async fn a_success_without_content_is_a_failure_that_names_its_status() {
    for style in STYLES {
        for code in [200, 202, 204, 205] {
            // A 204 has no body and no length.
            let head = format!("HTTP/1.1 {code} X\r\nconnection: close\r\n\r\n");
            let told = ask_all(style, vec![vec![Step::Send(head.into_bytes()), Step::Close]]).await;
            let failure = told[0].failure();
            assert_eq!(failure.class, ModelFailureClass::MalformedStream, "{style} {code}");
            assert_eq!(failure.status, Some(code), "{style} {code}");
            assert!(failure.message.contains("empty"), "{}", failure.message);
        }
    }
}

/// Takes turns between two lists.
fn interleave<'a>(one: &[&'a str], two: &[&'a str]) -> Vec<&'a str> {
    let longest = one.len().max(two.len());
    (0..longest).flat_map(|at| [one.get(at), two.get(at)].into_iter().flatten().copied()).collect()
}

#[tokio::test]
async fn two_responses_in_one_body_never_panic() {
    for style in STYLES {
        for other in STYLES {
            let (one, two) = (stream(style), stream(other));
            let mut bodies: Vec<String> = Vec::new();
            for separator in ["\n\n", "\n", ","] {
                let (one, two): (Vec<&str>, Vec<&str>) =
                    (one.split_inclusive(separator).collect(), two.split_inclusive(separator).collect());
                bodies.push(interleave(&one, &two).concat());
                bodies.push(interleave(&two, &one).concat());
            }
            bodies.push(format!("{one}{two}"));
            bodies.push(format!("{}{one}", whole(other)));
            bodies.push(format!("{}{}", whole(style), whole(other)));
            bodies.push(format!("{one}{}", whole(other)));
            let answers = bodies.iter().map(|body| pieces(body, 97)).collect();
            for (number, told) in ask_all(style, answers).await.iter().enumerate() {
                if let Err(failure) = &told.result {
                    assert!(!failure.message.is_empty(), "{style} {other} {number}");
                }
            }
        }
    }
}
