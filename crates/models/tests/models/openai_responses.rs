//! The Responses protocol: text, parallel calls,
//! encrypted reasoning sent back, usage, and how a
//! response can end.

use qoder_models::resolve;
use qoder_types::{ContentBlock, ModelFailureClass, Role, StopReason, ToolResultContent, Usage};
use serde_json::{Value, json};

use crate::support::{
    Server, ask, ask_once, assert_well_ordered, events, message, pieces, request, stream_text, user,
};

fn created() -> Value {
    json!({"type": "response.created", "response": {"id": "resp_1", "model": "gpt-5", "status": "in_progress", "output": []}})
}

fn ended(kind: &str, extra: &Value) -> Value {
    let mut response = json!({"id": "resp_1", "model": "gpt-5", "status": "completed", "output": [],
        "usage": {"input_tokens": 50, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 40}}});
    for (key, value) in extra.as_object().unwrap() {
        response[key] = value.clone();
    }
    json!({"type": kind, "response": response})
}

fn rich_reply() -> Vec<Value> {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA==",
        "summary": [{"type": "summary_text", "text": "one é"}, {"type": "summary_text", "text": "two"}]});
    let call = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments});
    vec![
        created(),
        json!({"type": "response.output_item.added", "output_index": 0,
            "item": {"type": "reasoning", "id": "rs_1", "summary": []}}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "one é"}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 1, "delta": "two"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "content": []}}),
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Hi "}),
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "🦀"}),
        json!({"type": "response.output_item.done", "output_index": 1,
            "item": {"type": "message", "content": [{"type": "output_text", "text": "Hi 🦀"}]}}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": call("call_a", "Read", "")}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{\"file_path\":"}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "\"a\"}"}),
        json!({"type": "response.output_item.done", "output_index": 2, "item": call("call_a", "Read", "{\"file_path\":\"a\"}")}),
        json!({"type": "response.output_item.added", "output_index": 3, "item": call("call_b", "Bash", "")}),
        json!({"type": "response.output_item.done", "output_index": 3, "item": call("call_b", "Bash", "{\"command\":\"ls\"}")}),
        ended("response.completed", &json!({})),
    ]
}

#[tokio::test]
async fn reasoning_text_and_calls_in_pieces_and_sent_back() {
    let text = stream_text(&rich_reply());
    let server =
        Server::start(vec![pieces(&text, 3), events(&[created(), ended("response.completed", &json!({}))])])
            .await;
    let model = resolve(&server.styled("openai-responses", "gpt-5")).unwrap();
    let told = ask(&model, request(vec![user("go")])).await;
    let reply = told.reply();
    let ContentBlock::Thinking { thinking, signature } = &reply.content[0] else { panic!("no reasoning") };
    assert_eq!(thinking, "one é\n\ntwo");
    assert!(signature.starts_with("responses:{"), "{signature}");
    assert_eq!(
        reply.content[1..],
        [
            ContentBlock::text("Hi 🦀"),
            ContentBlock::ToolUse {
                id: "call_a".into(),
                name: "Read".into(),
                input: json!({"file_path": "a"})
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
        Usage { input_tokens: 10, output_tokens: 9, cache_read_input_tokens: 40, ..Usage::default() }
    );
    assert_well_ordered(&told.partials);
    assert_eq!(told.partial_text(), "Hi 🦀");

    let results = vec![ContentBlock::ToolResult {
        tool_use_id: "call_a".into(),
        content: ToolResultContent::Text("content".into()),
        is_error: false,
    }];
    let next = request(vec![
        user("go"),
        message(Role::Assistant, reply.content.clone()),
        message(Role::User, results),
    ]);
    ask(&model, next).await.reply();
    let first = server.requests()[0].json();
    assert_eq!(first["store"], false);
    assert_eq!(first["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(first["prompt_cache_key"], "session-1");
    assert_eq!(first["instructions"], "You are terse.\n\nSecond block.");
    assert_eq!(first["tools"][0]["strict"], false);
    let input = &server.requests()[1].json()["input"];
    assert_eq!(
        input[0],
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]})
    );
    assert_eq!(
        input[1],
        json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA==",
            "summary": [{"type": "summary_text", "text": "one é"}, {"type": "summary_text", "text": "two"}]})
    );
    assert_eq!(input[3]["call_id"], "call_a");
    assert_eq!(input[5], json!({"type": "function_call_output", "call_id": "call_a", "output": "content"}));
    assert!(server.requests()[0].head.starts_with("POST /v1/responses "));
}

#[tokio::test]
async fn incomplete_failed_and_error_events() {
    let cut = ended("response.incomplete", &json!({"incomplete_details": {"reason": "max_output_tokens"}}));
    let failed = ended(
        "response.failed",
        &json!({"status": "failed", "error": {"code": "context_length_exceeded", "message": "too big"}}),
    );
    let error = json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"});
    let mut answers = vec![events(&[created(), cut]), events(&[created(), failed])];
    answers.extend(vec![events(&[error]); 3]);
    let server = Server::start(answers).await;
    let options = server.styled("openai-responses", "gpt-4o");
    assert_eq!(ask_once(&options).await.reply().stop_reason, StopReason::MaxTokens);
    assert_eq!(
        server.requests()[0].json().get("include"),
        None,
        "plain models refuse to be asked for reasoning"
    );
    assert_eq!(ask_once(&options).await.failure().class, ModelFailureClass::ContextTooLong);
    let told = ask_once(&options).await;
    assert_eq!(told.failure().class, ModelFailureClass::RateLimit);
    assert_eq!(told.retries.len(), 2);
}
