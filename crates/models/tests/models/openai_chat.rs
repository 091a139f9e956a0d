//! The Chat Completions protocol: text, parallel calls in pieces,
//! reasoning, images, usage, and the ways in which imitating servers
//! differ.

use qoder_models::resolve;
use qoder_types::{ContentBlock, ImageSource, Role, StopReason, ToolResultContent, Usage};
use serde_json::{Value, json};

use crate::support::{
    Server, ask, ask_once, assert_well_ordered, events, message, pieces, request, status, stream_text, user,
};

fn delta(delta: &Value) -> Value {
    json!({"id": "chatcmpl-1", "model": "gpt-4o", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"id": "chatcmpl-1", "model": "gpt-4o", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn usage() -> Value {
    json!({"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 64}}})
}

fn done() -> Value {
    Value::String("[DONE]".into())
}

fn rich_reply() -> Vec<Value> {
    let call =
        |index: u64, piece: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
    vec![
        delta(&json!({"role": "assistant", "content": ""})),
        delta(&json!({"reasoning_content": "hm "})),
        delta(&json!({"reasoning_content": "é"})),
        delta(&json!({"content": "Let me "})),
        delta(&json!({"content": "look 🦀"})),
        delta(&json!({"tool_calls": [{"index": 0, "id": "call_a", "type": "function",
            "function": {"name": "Read", "arguments": ""}}]})),
        delta(&call(0, "{\"file_path\"")),
        delta(&call(0, ":\"日本.txt\"}")),
        delta(&json!({"tool_calls": [{"index": 1, "id": "call_b", "type": "function",
            "function": {"name": "Bash", "arguments": "{\"command\":"}}]})),
        delta(&call(1, "\"ls\"}")),
        finish("tool_calls"),
        usage(),
        done(),
    ]
}

#[tokio::test]
async fn calls_reasoning_and_usage_in_pieces_of_any_size() {
    let text = stream_text(&rich_reply());
    let sizes = [1, 5, 64, usize::MAX];
    let server = Server::start(sizes.iter().map(|size| pieces(&text, *size)).collect()).await;
    let model = resolve(&server.styled("openai", "gpt-4o")).unwrap();
    for _ in sizes {
        let told = ask(&model, request(vec![user("go")])).await;
        let reply = told.reply();
        assert_eq!(
            reply.content,
            [
                ContentBlock::Thinking { thinking: "hm é".into(), signature: "chat:".into() },
                ContentBlock::text("Let me look 🦀"),
                ContentBlock::ToolUse {
                    id: "call_a".into(),
                    name: "Read".into(),
                    input: json!({"file_path": "日本.txt"})
                },
                ContentBlock::ToolUse {
                    id: "call_b".into(),
                    name: "Bash".into(),
                    input: json!({"command": "ls"})
                },
            ]
        );
        assert_eq!(reply.stop_reason, StopReason::ToolUse);
        assert_eq!(
            reply.usage,
            Usage { input_tokens: 36, output_tokens: 20, cache_read_input_tokens: 64, ..Usage::default() }
        );
        assert_well_ordered(&told.partials);
        assert_eq!(told.partial_text(), "Let me look 🦀");
        assert_eq!(told.partials[told.partials.len() - 2]["delta"]["stop_reason"], "tool_use");
    }
    let received = &server.requests()[0];
    assert!(received.head.starts_with("POST /v1/chat/completions "));
    assert_eq!(received.header("authorization").as_deref(), Some("Bearer sk-oai-secret-2"));
    let body = received.json();
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    assert_eq!(body["max_tokens"], 16_384);
    assert_eq!(body["messages"][0], json!({"role": "system", "content": "You are terse.\n\nSecond block."}));
    assert_eq!(body["tools"][0]["function"]["name"], "Read");
}

#[tokio::test]
async fn calls_that_interleave_are_told_in_order() {
    let start = |index: u64, id: &str| {
        delta(
            &json!({"tool_calls": [{"index": index, "id": id, "function": {"name": "Bash", "arguments": ""}}]}),
        )
    };
    let call = |index: u64, piece: &str| {
        delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    };
    let reply = [
        start(0, "a"),
        start(1, "b"),
        call(1, "{\"command\""),
        call(0, "{\"command\":\"one\""),
        call(1, ":\"two\"}"),
        call(0, "}"),
        finish("stop"),
        done(),
    ];
    let server = Server::start(vec![events(&reply)]).await;
    let told = ask_once(&server.styled("openai", "gpt-4o")).await;
    assert_well_ordered(&told.partials);
    assert_eq!(told.reply().stop_reason, StopReason::ToolUse);
    for (index, expected) in [(0, "{\"command\":\"one\"}"), (1, "{\"command\":\"two\"}")] {
        let told: String = told
            .partials
            .iter()
            .filter(|event| event["index"] == index)
            .filter_map(|event| event["delta"]["partial_json"].as_str())
            .collect();
        assert_eq!(told, expected);
    }
}

#[tokio::test]
async fn servers_that_leave_out_ids_indices_and_the_last_line() {
    let reply = [
        delta(&json!({"reasoning": "thinking under another name"})),
        delta(&json!({"tool_calls": [{"function": {"name": "Bash", "arguments": "{\"command\":"}}]})),
        delta(&json!({"tool_calls": [{"function": {"arguments": "\"ls\"}"}}]})),
        finish("tool_calls"),
    ];
    let server = Server::start(vec![events(&reply)]).await;
    let told = ask_once(&server.styled("openai", "local")).await;
    let ContentBlock::ToolUse { id, name, input } = &told.reply().content[1] else { panic!("no call") };
    assert!(id.starts_with("call_") && id.len() > 10, "{id}");
    assert_eq!((name.as_str(), input), ("Bash", &json!({"command": "ls"})));
}

#[tokio::test]
async fn conversation_goes_back_with_own_reasoning_and_images() {
    let server =
        Server::start(vec![events(&[delta(&json!({"content": "ok"})), finish("length"), usage(), done()])])
            .await;
    let mut options = server.styled("openai-chat", "gpt-5-mini");
    options.base_url = Some(format!("{}/v1/", server.url));
    let image = ContentBlock::Image {
        source: ImageSource::Base64 { media_type: "image/png".into(), data: "AAAA".into() },
    };
    let mut asked = request(vec![
        message(Role::User, vec![ContentBlock::text("look"), image.clone()]),
        message(
            Role::Assistant,
            vec![
                ContentBlock::Thinking { thinking: "mine".into(), signature: "chat:".into() },
                ContentBlock::ToolUse {
                    id: "c1".into(),
                    name: "Read".into(),
                    input: json!({"file_path": "a"}),
                },
            ],
        ),
        message(
            Role::User,
            vec![ContentBlock::ToolResult {
                tool_use_id: "c1".into(),
                content: ToolResultContent::Blocks(vec![image]),
                is_error: false,
            }],
        ),
    ]);
    asked.effort = Some("max".into());
    let told = ask(&resolve(&options).unwrap(), asked).await;
    assert_eq!(told.reply().stop_reason, StopReason::MaxTokens);
    let body = server.requests()[0].json();
    assert_eq!(body["max_completion_tokens"], 32_000);
    assert_eq!(body.get("max_tokens"), None);
    assert_eq!(body["reasoning_effort"], "high");
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    assert_eq!(body["messages"][1]["content"][1], url);
    assert_eq!(body["messages"][2]["reasoning_content"], "mine");
    assert_eq!(body["messages"][3]["role"], "tool");
    assert_eq!(body["messages"][4], json!({"role": "user", "content": [url]}));
}

#[tokio::test]
async fn a_filter_is_a_refusal_and_a_whole_completion_is_accepted() {
    let whole = json!({"id": "x", "model": "m", "choices": [{"message": {"role": "assistant", "content": "whole",
        "tool_calls": [{"id": "c", "function": {"name": "Bash", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 4, "completion_tokens": 1}});
    let server = Server::start(vec![
        events(&[delta(&json!({"content": "no"})), finish("content_filter"), done()]),
        status(200, &[("content-type", "application/json; charset=utf-8")], &whole.to_string()),
    ])
    .await;
    let model = resolve(&server.styled("openai", "m")).unwrap();
    assert_eq!(ask(&model, request(vec![user("a")])).await.reply().stop_reason, StopReason::Refusal);
    let told = ask(&model, request(vec![user("b")])).await;
    assert_eq!(told.reply().content.len(), 2);
    assert_eq!(told.reply().usage.input_tokens, 4);
    assert_well_ordered(&told.partials);
}
