//! The Anthropic Messages protocol: text, parallel calls in pieces, signed reasoning sent
//! back byte for byte, images, usage and price, headers, and blocks that this version does
//! not know.

use qoder_core::ports::Thinking;
use qoder_models::resolve;
use qoder_types::{ContentBlock, ImageSource, Role, StopReason, ToolResultContent, Usage};
use serde_json::{Value, json};

use crate::support::{
    Server, anthropic_text, ask, ask_once, assert_well_ordered, events, message, pieces, request, status,
    stream_text, user,
};

fn rich_reply() -> Vec<Value> {
    let start = anthropic_text("").remove(0);
    vec![
        start,
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "日本 \"quoted\"\n"}}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "signature_delta", "signature": "EqQB+/=="}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1,
            "content_block": {"type": "redacted_thinking", "data": "b3BhcXVl"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2,
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}}),
        json!({"type": "content_block_delta", "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": "{\"command\": \"echo"}}),
        json!({"type": "content_block_delta", "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": " 🦀é\"}"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "content_block_start", "index": 3,
            "content_block": {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {}}}),
        json!({"type": "content_block_delta", "index": 3,
            "delta": {"type": "input_json_delta", "partial_json": "{\"file_path\": "}}),
        json!({"type": "content_block_stop", "index": 3}),
        json!({"type": "content_block_start", "index": 4,
            "content_block": {"type": "novel_block", "payload": [1, 2]}}),
        json!({"type": "content_block_stop", "index": 4}),
        json!({"type": "future_event", "anything": true}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 30}}),
        json!({"type": "message_stop"}),
    ]
}

#[tokio::test]
async fn text_usage_price_and_headers() {
    let server = Server::start(vec![events(&anthropic_text("Hello — wörld"))]).await;
    let told = ask_once(&server.options()).await;
    let reply = told.reply();
    assert_eq!(reply.content, [ContentBlock::text("Hello — wörld")]);
    assert_eq!(reply.stop_reason, StopReason::EndTurn);
    assert_eq!(
        reply.usage,
        Usage {
            input_tokens: 10,
            output_tokens: 7,
            cache_creation_input_tokens: 2,
            cache_read_input_tokens: 5
        }
    );
    let expected = (10.0 * 3.0 + 7.0 * 15.0 + 2.0 * 3.75 + 5.0 * 0.3) / 1e6;
    assert!((reply.cost_usd - expected).abs() < 1e-12, "{}", reply.cost_usd);
    assert_eq!(reply.request_id.as_deref(), Some("req_42"));
    assert_well_ordered(&told.partials);
    assert!(!told.kinds().contains(&"ping"));

    let received = &server.requests()[0];
    assert!(received.head.starts_with("POST /v1/messages HTTP/1.1"));
    assert_eq!(received.header("anthropic-version").as_deref(), Some("2023-06-01"));
    assert_eq!(received.header("x-api-key").as_deref(), Some("sk-ant-secret-1"));
    let body = received.json();
    assert_eq!(body["stream"], true);
    assert_eq!(body["max_tokens"], 32_000);
    assert_eq!(body["system"][0], json!({"type": "text", "text": "You are terse."}));
    assert_eq!(body["system"][1]["cache_control"], json!({"type": "ephemeral"}));
    assert_eq!(body["tools"][0].get("cache_control"), None);
    assert_eq!(body["tools"][1]["cache_control"], json!({"type": "ephemeral"}));
    assert_eq!(body["cache_control"], json!({"type": "ephemeral"}));
    assert_eq!(body["messages"], json!([{"role": "user", "content": "hello"}]));
}

#[tokio::test]
async fn pieces_may_be_cut_anywhere() {
    let text = stream_text(&rich_reply());
    let sizes = [1, 2, 3, 7, 50, 1000];
    let server = Server::start(sizes.iter().map(|size| pieces(&text, *size)).collect()).await;
    let model = resolve(&server.options()).unwrap();
    for size in sizes {
        let told = ask(&model, request(vec![user("go")])).await;
        let content = &told.reply().content;
        assert_eq!(content.len(), 5, "size {size}");
        assert_eq!(
            content[2],
            ContentBlock::ToolUse {
                id: "toolu_1".into(),
                name: "Bash".into(),
                input: json!({"command": "echo 🦀é"})
            }
        );
        assert_eq!(told.reply().stop_reason, StopReason::ToolUse);
        assert_eq!(told.partials.len(), rich_reply().len() - 1, "only the unknown event is left out");
    }
}

#[tokio::test]
async fn reasoning_goes_back_byte_for_byte_and_bad_arguments_are_wrapped() {
    let server = Server::start(vec![events(&rich_reply()), events(&anthropic_text("done"))]).await;
    let model = resolve(&server.options()).unwrap();
    let first = ask(&model, request(vec![user("go")])).await;
    let content = first.reply().content.clone();
    assert_eq!(
        content[3],
        ContentBlock::ToolUse {
            id: "toolu_2".into(),
            name: "Read".into(),
            input: Value::String("{\"file_path\": ".into())
        }
    );
    ask(&model, request(vec![user("go"), message(Role::Assistant, content)])).await.reply();
    let body = String::from_utf8(server.requests()[1].body.clone()).unwrap();
    let sent = concat!(
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"日本 \"quoted\"\n","signature":"EqQB+/=="},"#,
        r#"{"type":"redacted_thinking","data":"b3BhcXVl"},"#,
        r#"{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"echo 🦀é"}},"#,
        r#"{"type":"tool_use","id":"toolu_2","name":"Read","input":{"_invalid":"{\"file_path\": "}},"#,
        r#"{"type":"novel_block","payload":[1,2]}]}"#
    );
    assert!(body.ends_with(&format!("{sent}]}}")), "{body}");
}

#[tokio::test]
async fn tool_results_with_images_thinking_and_effort() {
    let server = Server::start(vec![events(&anthropic_text("seen"))]).await;
    let image = ContentBlock::Image {
        source: ImageSource::Base64 { media_type: "image/png".into(), data: "AAAA".into() },
    };
    let result = ContentBlock::ToolResult {
        tool_use_id: "toolu_1".into(),
        content: ToolResultContent::Blocks(vec![ContentBlock::text(""), image]),
        is_error: true,
    };
    let call =
        ContentBlock::ToolUse { id: "toolu_1".into(), name: "Read".into(), input: json!({"file_path": "a"}) };
    let mut asked =
        request(vec![user("go"), message(Role::Assistant, vec![call]), message(Role::User, vec![result])]);
    asked.thinking = Thinking::Budget(2048);
    asked.effort = Some("high".into());
    asked.max_output_tokens = Some(4096);
    asked.partial = false;
    let told = ask(&resolve(&server.options()).unwrap(), asked).await;
    assert!(told.partials.is_empty());
    assert_eq!(told.reply().content, [ContentBlock::text("seen")]);
    let body = server.requests()[0].json();
    assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": 2048}));
    assert_eq!(body["output_config"], json!({"effort": "high"}));
    assert_eq!(body["max_tokens"], 4096);
    assert_eq!(
        body["messages"][2]["content"][0],
        json!({"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]})
    );
}

#[tokio::test]
async fn stop_reasons_beyond_the_usual_ones() {
    let with = |reason: &str| {
        let mut reply = anthropic_text("x");
        reply[5]["delta"]["stop_reason"] = reason.into();
        events(&reply)
    };
    let server = Server::start(vec![with("model_context_window_exceeded"), with("brand_new")]).await;
    let model = resolve(&server.options()).unwrap();
    let told = ask(&model, request(vec![user("a")])).await;
    assert_eq!(told.reply().stop_reason, StopReason::MaxTokens);
    let told = ask(&model, request(vec![user("b")])).await;
    assert_eq!(told.reply().stop_reason, StopReason::Other("brand_new".into()));
}

#[tokio::test]
async fn a_message_in_one_piece_is_accepted_and_told() {
    let whole = json!({"id": "msg_9", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "whole"}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 2}});
    let server =
        Server::start(vec![status(200, &[("content-type", "application/json")], &whole.to_string())]).await;
    let told = ask_once(&server.options()).await;
    assert_eq!(told.reply().content, [ContentBlock::text("whole")]);
    assert_eq!(told.partial_text(), "whole");
    assert_well_ordered(&told.partials);
}
