//! Replies whose last word is missing: once the endpoint has said why
//! the model stopped, a closed connection, a missing last event, damage
//! or silence behind it costs nothing.

use qoder_models::resolve;
use qoder_types::{ContentBlock, StopReason};
use serde_json::{Value, json};

use crate::support::{
    Server, Step, anthropic_text, ask, ask_once, assert_well_ordered, cut_stream, pieces, request,
    stream_text, user,
};

fn chat() -> Vec<Value> {
    vec![
        json!({"choices": [{"delta": {"content": "all"}, "finish_reason": null}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
    ]
}

/// The same stream with every end that is not clean.
fn ends(text: &str) -> Vec<Vec<Step>> {
    let mut closed = cut_stream(text, 1000);
    closed.push(Step::Close);
    let without_blank_line = text.trim_end();
    vec![
        pieces(text, 1000),
        closed,
        pieces(without_blank_line, 1000),
        pieces(&format!("{text}data: [DONE]\n\n"), 1000),
        pieces(&format!("{text}data: [DONE]"), 1000),
        pieces(&format!("{text}data: {{\"usage\": {{\"prompt"), 1000),
        pieces(&format!("{text}data:\n\ndata:  \n\n"), 1000),
    ]
}

#[tokio::test]
async fn a_reply_with_a_stop_reason_is_complete() {
    let samples = [("anthropic", anthropic_text("all")[..6].to_vec()), ("openai", chat())];
    for (style, reply) in samples {
        let answers = ends(&stream_text(&reply));
        let count = answers.len();
        let server = Server::start(answers).await;
        let model = resolve(&server.styled(style, "m")).unwrap();
        for number in 0..count {
            let told = ask(&model, request(vec![user("a")])).await;
            assert!(told.retries.is_empty(), "{style} {number}: {:?}", told.retries);
            assert_eq!(told.reply().content, [ContentBlock::text("all")], "{style} {number}");
            assert_eq!(told.reply().stop_reason, StopReason::EndTurn);
            assert_well_ordered(&told.partials);
        }
    }
}

#[tokio::test]
async fn silence_behind_a_complete_reply_ends_it() {
    for (style, reply) in [("anthropic", anthropic_text("all")[..6].to_vec()), ("openai", chat())] {
        let mut silent = cut_stream(&stream_text(&reply), 1000);
        silent.push(Step::Hang);
        let server = Server::start(vec![silent]).await;
        let told = ask_once(&server.styled(style, "m")).await;
        assert_eq!(told.reply().content, [ContentBlock::text("all")]);
        assert!(told.retries.is_empty());
    }
}

#[tokio::test]
async fn a_last_word_without_a_stop_reason_is_not_enough() {
    let done = Value::String("[DONE]".into());
    let mut half = anthropic_text("half")[..5].to_vec();
    half.push(done);
    let server = Server::start(vec![pieces(&stream_text(&half), 1000)]).await;
    let mut options = server.options();
    options.max_attempts = 1;
    let told = ask_once(&options).await;
    assert!(told.failure().message.contains("[DONE]"), "{}", told.failure().message);
}

#[tokio::test]
async fn items_are_not_all_of_a_response_that_a_closed_connection_ends() {
    let item = json!({"type": "message", "content": [{"type": "output_text", "text": "I write two files."}]});
    let item = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec();
    let cut = vec![Step::Send(head), Step::Send(stream_text(&[item]).into_bytes()), Step::Close];
    let server = Server::start(vec![cut]).await;
    let mut options = server.styled("openai-responses", "m");
    options.max_attempts = 1;
    let told = ask_once(&options).await;
    assert!(told.failure().message.contains("before the reply was complete"), "{}", told.failure().message);
}

// https://github.com/vllm-project/vllm/issues/27572 and https://github.com/waybarrios/vllm-mlx/issues/628: no reason at the end.
#[tokio::test]
async fn everything_said_without_a_formal_end_is_taken_and_noted() {
    let done = || Value::String("[DONE]".into());
    let text = json!({"choices": [{"delta": {"role": "assistant", "content": "all"}}]});
    let call = json!({"choices": [{"delta": {"role": "assistant", "content": null, "tool_calls": [
        {"index": 0, "id": "c", "function": {"name": "Bash", "arguments": "{}"}}]}}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
    let item = json!({"type": "message", "content": [{"type": "output_text", "text": "all"}]});
    let item = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    for (style, reply) in [
        ("openai", vec![text.clone(), done()]),
        ("openai", vec![text.clone(), usage]),
        ("openai", vec![text, call, done()]),
        ("openai-responses", vec![item.clone()]),
        ("openai-responses", vec![item, done()]),
    ] {
        let answer = pieces(&stream_text(&reply), 1000);
        let server = Server::start(vec![answer.clone(), answer]).await;
        let model = resolve(&server.styled(style, "m")).unwrap();
        let told = ask(&model, request(vec![user("a")])).await;
        assert!(told.retries.is_empty(), "{reply:?}");
        assert_eq!(told.reply().content[0], ContentBlock::text("all"), "{reply:?}");
        assert!(told.notices[0].contains("without a"), "{:?}", told.notices);
        assert_well_ordered(&told.partials);
        let calls = told.reply().content.len() == 2;
        assert_eq!(told.reply().stop_reason == StopReason::ToolUse, calls);
        assert!(ask(&model, request(vec![user("a")])).await.notices.is_empty(), "once is enough");
    }
}
