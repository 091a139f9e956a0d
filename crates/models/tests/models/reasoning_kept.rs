//! Reasoning over Chat Completions goes back as it came: under the
//! same name, with its opaque details, and with what came beside
//! calls.

use qoder_models::resolve;
use qoder_types::{ContentBlock, Role};
use serde_json::{Value, json};

use crate::support::{Collected, Server, ask, assert_well_ordered, events, message, request, user};

fn delta(delta: &Value) -> Value {
    json!({"id": "c", "model": "m", "choices": [{"delta": delta}]})
}

fn finish() -> Value {
    json!({"choices": [{"delta": {}, "finish_reason": "stop"}]})
}

/// Asks, sends the reply back, and returns what was emitted and the message that was sent.
async fn round(pieces: &[Value]) -> (Collected, Value) {
    let mut first: Vec<Value> = pieces.iter().map(delta).collect();
    first.push(finish());
    let last = events(&[delta(&json!({"content": "ok"})), finish()]);
    let server = Server::start(vec![events(&first), last.clone(), last]).await;
    let model = resolve(&server.styled("openai", "m")).unwrap();
    let told = ask(&model, request(vec![user("go")])).await;
    assert_well_ordered(&told.partials);
    let content = told.reply().content.clone();
    // What a transcript keeps is JSON: the message must be the same after a reload.
    let stored: Vec<ContentBlock> = serde_json::from_str(&serde_json::to_string(&content).unwrap()).unwrap();
    for blocks in [content, stored] {
        ask(&model, request(vec![user("go"), message(Role::Assistant, blocks)])).await.reply();
    }
    let requests = server.requests();
    assert_eq!(requests[1].body, requests[2].body);
    (told, requests[1].json()["messages"][2].clone())
}

#[tokio::test]
async fn the_name_of_the_field_is_kept() {
    let (told, sent) = round(&[
        json!({"reasoning_content": "", "reasoning": "hm "}),
        json!({"reasoning": "so", "reasoning_content": null}),
        json!({"content": "answer"}),
    ])
    .await;
    assert_eq!(told.reply().content.len(), 2);
    assert_eq!(sent, json!({"role": "assistant", "content": "answer", "reasoning": "hm so"}));
    let (told, sent) =
        round(&[json!({"reasoning_content": "hm", "reasoning": "hm"}), json!({"content": "a"})]).await;
    assert_eq!(
        told.reply().content[0],
        ContentBlock::Thinking { thinking: "hm".into(), signature: "chat:".into() }
    );
    assert_eq!(sent, json!({"role": "assistant", "content": "a", "reasoning_content": "hm"}));
}

#[tokio::test]
async fn opaque_details_go_back() {
    let sealed = json!({"type": "reasoning.encrypted", "data": "b3BhcXVl", "id": "r1", "index": 1});
    let (told, sent) = round(&[
        json!({"reasoning": "a", "reasoning_details": [{"type": "reasoning.text", "text": "a", "index": 0}]}),
        json!({"reasoning": "b", "reasoning_details": [{"type": "reasoning.text", "text": "b", "index": 0}]}),
        json!({"content": "answer", "reasoning_details": []}),
        json!({"reasoning_details": [sealed]}),
    ])
    .await;
    assert_eq!(sent["reasoning"], "ab");
    assert_eq!(sent["content"], "answer");
    assert_eq!(
        sent["reasoning_details"],
        json!([{"type": "reasoning.text", "text": "ab", "index": 0}, sealed])
    );
    let signed = told.partials.iter().filter(|event| event["delta"]["type"] == "signature_delta").count();
    assert_eq!(signed, 2, "who reads along gets the signatures too");
}

#[tokio::test]
async fn what_came_with_a_call_goes_back_with_it() {
    let extra = json!({"google": {"thought_signature": "c2ln"}});
    let call = |index: u64, id: &str| {
        json!({"index": index, "id": id, "type": "function",
        "function": {"name": "Bash", "arguments": "{}"}})
    };
    let mut first = call(0, "a");
    first["extra_content"] = extra.clone();
    let (told, sent) = round(&[json!({"tool_calls": [first, call(1, "b")]})]).await;
    let calls =
        told.reply().content.iter().filter(|block| matches!(block, ContentBlock::ToolUse { .. })).count();
    assert_eq!(calls, 2);
    assert_eq!(sent["tool_calls"][0]["extra_content"], extra);
    assert_eq!(sent["tool_calls"][1].get("extra_content"), None);
    assert_eq!(sent.get("reasoning_content"), None);
}

// https://docs.litellm.ai/docs/reasoning_content: pieces of `thinking_blocks` end with a signature.
#[tokio::test]
async fn signed_blocks_of_a_gateway_go_back_whole_and_to_messages_too() {
    let (told, sent) = round(&[
        json!({"reasoning_content": "a", "thinking_blocks": [{"type": "thinking", "thinking": "a"}]}),
        json!({"reasoning_content": "b", "thinking_blocks": [{"type": "thinking", "thinking": "b"}]}),
        json!({"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "c2ln"}]}),
        json!({"content": "answer"}),
    ])
    .await;
    let block = json!({"type": "thinking", "thinking": "ab", "signature": "c2ln"});
    assert_eq!(sent["thinking_blocks"], json!([block]));
    assert_eq!(sent["reasoning_content"], "ab");
    let server = Server::start(vec![events(&crate::support::anthropic_text("ok"))]).await;
    let model = resolve(&server.options()).unwrap();
    ask(&model, request(vec![user("go"), message(Role::Assistant, told.reply().content.clone()), user("b")]))
        .await
        .reply();
    assert_eq!(server.requests()[0].json()["messages"][1]["content"][0], block);
}

#[tokio::test]
async fn reasoning_in_the_text_is_shown_as_thinking_and_goes_back_where_it_stood() {
    let (told, sent) = round(&[
        json!({"content": "<thi"}),
        json!({"content": "nk>hm</th"}),
        json!({"content": "ink>\n\nanswer"}),
    ])
    .await;
    assert_eq!(told.partial_text(), "answer");
    assert!(matches!(&told.reply().content[0], ContentBlock::Thinking { thinking, .. } if thinking == "hm"));
    assert_eq!(sent["content"], "<think>hm</think>\n\nanswer");
}

// Servers of open models sign nothing: https://github.com/sgl-project/sglang/pull/21902 (Messages), and
// https://github.com/vllm-project/vllm/pull/28248 (Responses: `encrypted_content` is refused, text is read).
#[tokio::test]
async fn unsigned_reasoning_goes_back_where_the_server_signs_none() {
    let messages = vec![
        json!({"type": "message_start", "message": {"id": "m", "model": "x"}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "hm"}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "a"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ];
    let responses = vec![
        json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1",
            "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "message",
            "content": [{"type": "output_text", "text": "a"}]}}),
        json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}),
    ];
    for (style, reply, signs) in [
        ("anthropic", &messages, "vllm"),
        ("openai-responses", &responses, "vllm"),
        ("anthropic", &messages, "anthropic"),
        ("openai-responses", &responses, "openai"),
    ] {
        let server = Server::start(vec![events(reply), events(reply)]).await;
        let mut options = server.styled(style, "m");
        options.compat = json!(signs);
        let model = resolve(&options).unwrap();
        let content = ask(&model, request(vec![user("go")])).await.reply().content.clone();
        ask(&model, request(vec![user("go"), message(Role::Assistant, content), user("b")])).await.reply();
        let body = server.requests()[1].json();
        let sent = if style == "anthropic" { &body["messages"][1]["content"][0] } else { &body["input"][1] };
        let expected = match (style, signs) {
            ("anthropic", "vllm") => json!({"type": "thinking", "thinking": "hm"}),
            (_, "vllm") => json!({"type": "reasoning", "id": "rs_1", "summary": [],
                "content": [{"type": "reasoning_text", "text": "hm"}]}),
            ("anthropic", _) => json!({"type": "text", "text": "a"}),
            _ => {
                json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]})
            }
        };
        assert_eq!(*sent, expected, "{style} {signs}");
    }
}
