//! The Responses protocol: text, parallel calls,
//! encrypted reasoning sent back, usage, how a response
//! can end, and what an endpoint may get wrong.

use qoder_models::resolve;
use qoder_types::{ContentBlock, ModelFailureClass, Role, StopReason, ToolResultContent, Usage};
use serde_json::{Value, json};

use crate::support::{
    Server, ask, ask_once, assert_well_ordered, events, message, pieces, request, status, stream_text, user,
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

fn delta(kind: &str, extra: &Value, piece: &str) -> Value {
    let mut event = json!({"type": format!("response.{kind}.delta"), "delta": piece});
    for (key, value) in extra.as_object().unwrap() {
        event[key] = value.clone();
    }
    event
}

fn text_item(text: &str) -> Value {
    json!({"type": "message", "content": [{"type": "output_text", "text": text}]})
}

fn call_item(id: &str, arguments: &Value) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "Bash", "arguments": arguments})
}

fn call_block(id: &str, input: Value) -> ContentBlock {
    ContentBlock::ToolUse { id: id.into(), name: "Bash".into(), input }
}

async fn replies(streams: &[Vec<Value>]) -> Vec<crate::support::Collected> {
    let server = Server::start(streams.iter().map(|stream| events(stream)).collect()).await;
    let mut options = server.styled("openai-responses", "gpt-5");
    options.max_attempts = 1;
    let mut told = Vec::new();
    for _ in streams {
        told.push(ask_once(&options).await);
    }
    told
}

#[tokio::test]
async fn fields_and_events_of_unexpected_shapes_do_no_harm() {
    let stream = vec![
        json!({"type": "response.created", "response": {"id": 7, "model": null, "status": null, "output": null}}),
        json!({}),
        json!([1, 2]),
        json!(5),
        json!({"type": 12, "item": 3}),
        json!({"type": "response.new_thing", "output_index": "x", "delta": {"a": 1}, "item": 4, "response": [],
            "code": 5, "message": {}, "error": 9}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": null}),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": 8}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": call_item("c1", &json!({"command": "ls"}))}),
        ended(
            "response.completed",
            &json!({"status": null, "usage": null, "error": null, "incomplete_details": null}),
        ),
    ];
    let told = &replies(&[stream]).await[0];
    assert_eq!(told.reply().content, [call_block("c1", json!({"command": "ls"}))]);
    assert_eq!(told.reply().stop_reason, StopReason::ToolUse);
    assert_well_ordered(&told.partials);
}

#[tokio::test]
async fn errors_with_numbers_for_codes_are_classified() {
    let told = replies(&[
        vec![json!({"type": "error", "code": 429, "message": "slow down"})],
        vec![json!({"type": "error", "error": {"code": 401, "message": "who are you"}})],
        vec![json!({"type": "response.failed", "response": {"status": null, "error": {"code": 503, "message": "busy"}}})],
        vec![json!({"error": {"code": 5, "message": "odd"}})],
    ])
    .await;
    let classes: Vec<ModelFailureClass> = told.iter().map(|told| told.failure().class).collect();
    assert_eq!(
        classes,
        [
            ModelFailureClass::RateLimit,
            ModelFailureClass::Authentication,
            ModelFailureClass::Overloaded,
            ModelFailureClass::Server,
        ]
    );
    assert!(told[3].failure().message.contains("odd"), "{}", told[3].failure().message);
}

#[tokio::test]
async fn items_that_were_not_streamed_come_from_the_completed_response() {
    let all = json!([
        text_item("Hello"),
        call_item("c1", &json!("{\"command\":\"a\"}")),
        call_item("c2", &json!({"command": "b"})),
        text_item("Bye")
    ]);
    let end = ended("response.completed", &json!({"output": all}));
    let place = json!({"output_index": 0});
    let streamed_text = vec![
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m"}}),
        delta("output_text", &place, "Hel"),
        end.clone(),
    ];
    let streamed_calls = vec![
        delta("output_text", &json!({}), "Hello"),
        json!({"type": "response.output_item.done", "output_index": 5, "item": all[1]}),
        json!({"type": "response.output_item.done", "item": all[2]}),
        json!({"type": "response.output_item.done", "item": all[3]}),
        end.clone(),
    ];
    let expected = [
        ContentBlock::text("Hello"),
        call_block("c1", json!({"command": "a"})),
        call_block("c2", json!({"command": "b"})),
        ContentBlock::text("Bye"),
    ];
    for told in replies(&[vec![end], streamed_text, streamed_calls]).await {
        assert_eq!(told.reply().content, expected);
        assert_eq!(told.reply().stop_reason, StopReason::ToolUse);
        assert_well_ordered(&told.partials);
        assert_eq!(told.partial_text(), "HelloBye");
    }
}

#[tokio::test]
async fn items_are_not_doubled_when_ids_change_or_places_move() {
    let with_id = |item: Value, id: &str| {
        let mut item = item;
        item["id"] = id.into();
        item
    };
    let reasoning = json!({"type": "reasoning", "encrypted_content": "x", "summary": []});
    let stream = vec![
        json!({"type": "response.output_item.added", "output_index": 0, "item": with_id(reasoning.clone(), "r1")}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": with_id(reasoning.clone(), "r2")}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": with_id(json!({"type": "message"}), "m1")}),
        delta("output_text", &json!({"output_index": 1, "item_id": "m2"}), "Hi"),
        json!({"type": "response.output_item.done", "output_index": 1, "item": with_id(text_item("Hi"), "m3")}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": with_id(call_item("c1", &json!("")), "f1")}),
        delta("function_call_arguments", &json!({"output_index": 2, "item_id": "f2"}), "{}"),
        json!({"type": "response.output_item.done", "output_index": 2, "item": with_id(call_item("c1", &json!("{}")), "f3")}),
        ended(
            "response.completed",
            &json!({"output": [with_id(text_item("Hi"), "m4"),
            with_id(call_item("c1", &json!("{}")), "f4"), with_id(reasoning, "r4")]}),
        ),
    ];
    let told = &replies(&[stream]).await[0];
    let [ContentBlock::Thinking { .. }, rest @ ..] = &told.reply().content[..] else {
        panic!("{:?}", told.reply().content)
    };
    assert_eq!(rest, [ContentBlock::text("Hi"), call_block("c1", json!({}))]);
}

#[tokio::test]
async fn pieces_without_an_item_or_a_place_are_taken() {
    let added = |id: &str| json!({"type": "response.output_item.added", "item": call_item(id, &json!(""))});
    let stream = vec![
        delta("function_call_arguments", &json!({"output_index": 4}), "{\"lost\":1}"),
        delta("reasoning_summary_text", &json!({"output_index": 0}), "hm"),
        delta("output_text", &json!({"output_index": 1}), "a"),
        delta("output_text", &json!({}), "b"),
        added("c1"),
        delta("function_call_arguments", &json!({}), "{\"command\":\"x\"}"),
        added("c2"),
        delta("function_call_arguments", &json!({}), "{\"command\":\"y\"}"),
        ended("response.completed", &json!({})),
    ];
    let told = &replies(&[stream]).await[0];
    assert_eq!(
        told.reply().content,
        [
            ContentBlock::Thinking { thinking: "hm".into(), signature: String::new() },
            ContentBlock::text("ab"),
            call_block("c1", json!({"command": "x"})),
            call_block("c2", json!({"command": "y"})),
        ]
    );
    assert_well_ordered(&told.partials);
}

#[tokio::test]
async fn a_refusal_is_a_reason_to_stop() {
    let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]});
    let place = json!({"output_index": 0});
    let told = replies(&[
        vec![delta("refusal", &place, "No."), ended("response.completed", &json!({}))],
        vec![ended("response.completed", &json!({"output": [refusal]}))],
        vec![ended("response.completed", &json!({"output": [text_item("Yes.")]}))],
    ])
    .await;
    let ends: Vec<_> = told.iter().map(|told| told.reply().stop_reason.clone()).collect();
    assert_eq!(ends, [StopReason::Refusal, StopReason::Refusal, StopReason::EndTurn]);
    assert_eq!(told[0].reply().content, [ContentBlock::text("No.")]);
    assert_eq!(told[1].reply().content, [ContentBlock::text("No.")]);
}

#[tokio::test]
async fn a_response_in_one_piece_needs_no_status() {
    let body = json!({"id": "r", "status": null, "output": [text_item("whole")]});
    let answer = status(200, &[("content-type", "application/json")], &body.to_string());
    let server = Server::start(vec![answer]).await;
    let told = ask_once(&server.styled("openai-responses", "gpt-5")).await;
    assert_eq!(told.reply().content, [ContentBlock::text("whole")]);
}
