//! Endpoints that send other shapes than their protocol says, leave out
//! fields or use ids and indices twice: the reply is read all the same,
//! without another attempt.

use qoder_types::{ContentBlock, Usage};
use serde_json::{Value, json};

use crate::support::{Collected, Server, anthropic_text, ask_once, assert_well_ordered, events, status};

async fn told(style: &str, reply: &[Value]) -> Collected {
    let server = Server::start(vec![events(reply)]).await;
    let told = ask_once(&server.styled(style, "m")).await;
    assert!(told.retries.is_empty(), "{:?}", told.retries);
    assert_well_ordered(&told.partials);
    told
}

fn chat(deltas: &[Value]) -> Vec<Value> {
    let mut events: Vec<Value> =
        deltas.iter().map(|delta| json!({"choices": [{"delta": delta, "finish_reason": ""}]})).collect();
    events.push(json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}));
    events.push(Value::String("[DONE]".into()));
    events
}

fn calls(content: &[ContentBlock]) -> Vec<(String, Value)> {
    content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::ToolUse { name, input, .. } => Some((name.clone(), input.clone())),
            _ => None,
        })
        .collect()
}

fn call(fields: &Value, name: Option<&str>, arguments: &Value) -> Value {
    let mut call = fields.clone();
    call["function"] = json!({"name": name, "arguments": arguments});
    json!({"tool_calls": [call]})
}

#[tokio::test]
async fn parallel_calls_with_the_same_or_no_index_stay_apart() {
    let half = json!("{\"command\":");
    let rest = |word: &str| json!(format!("\"{word}\"}}"));
    let bare = json!({});
    let zero = |id: &str| json!({"index": 0, "id": id});
    let named = |id: &str| json!({"id": id});
    let index = json!({"index": 0});
    // By ids with one index, by ids alone, by names with one index, by names alone, and with an id for every piece.
    let variants = [
        [(zero("a"), true), (index.clone(), false), (zero("b"), true), (index.clone(), false)],
        [(named("a"), true), (named("a"), false), (named("b"), true), (bare.clone(), false)],
        [(index.clone(), true), (index.clone(), false), (index.clone(), true), (index, false)],
        [(bare.clone(), true), (bare.clone(), false), (bare.clone(), true), (bare, false)],
        [(zero("a"), true), (zero("x"), false), (zero("b"), true), (zero("y"), false)],
    ];
    for variant in variants {
        let deltas: Vec<Value> = variant
            .iter()
            .enumerate()
            .map(|(number, (fields, starts))| {
                let word = if number < 2 { "one" } else { "two" };
                call(fields, starts.then_some("Bash"), &if *starts { half.clone() } else { rest(word) })
            })
            .collect();
        let told = told("openai", &chat(&deltas)).await;
        let expected =
            [("Bash".to_owned(), json!({"command": "one"})), ("Bash".to_owned(), json!({"command": "two"}))];
        assert_eq!(calls(&told.reply().content), expected, "{variant:?}");
    }
}

#[tokio::test]
async fn calls_with_the_same_id_stay_apart_and_get_their_own() {
    let whole = |fields: Value, word: &str| {
        call(&fields, Some("Bash"), &json!(json!({ "command": word }).to_string()))
    };
    for fields in [
        [json!({"id": "Bash"}), json!({"id": "Bash"})],
        [json!({"index": 0, "id": "Bash"}), json!({"index": 1, "id": "Bash"})],
    ] {
        let [first, second] = fields;
        let reply = chat(&[whole(first, "one"), whole(second, "two")]);
        let told = told("openai", &reply).await;
        let content = &told.reply().content;
        assert_eq!(calls(content).len(), 2);
        let [ContentBlock::ToolUse { id: one, .. }, ContentBlock::ToolUse { id: two, .. }] = &content[..]
        else {
            panic!("not two calls: {content:?}")
        };
        assert_ne!(one, two);
    }
}

#[tokio::test]
async fn arguments_may_be_an_object() {
    let arguments = json!({"b": [1, {"c": null}], "a": "x"});
    let reply = chat(&[call(&json!({"index": 0, "id": "a"}), Some("Bash"), &arguments)]);
    assert_eq!(calls(&told("openai", &reply).await.reply().content), [("Bash".to_owned(), arguments)]);
}

#[tokio::test]
async fn odd_types_in_chat_cost_nothing() {
    let mut reply = vec![
        json!({}),
        json!([]),
        json!(7),
        json!({"id": 12, "model": null, "object": [], "choices": null, "usage": "none", "error": null}),
        json!({"choices": {"no": "list"}}),
    ];
    reply.extend(chat(&[
        json!({"role": null, "content": null, "refusal": false, "tool_calls": "none"}),
        json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        json!({"content": "c", "tool_calls": [null, 3], "reasoning": {"odd": true}, "reasoning_details": "?"}),
        json!("not an object"),
    ]));
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 10.0, "completion_tokens": null,
        "prompt_tokens_details": {"cached_tokens": 4.0}}});
    reply.insert(reply.len() - 1, usage);
    let told = told("openai", &reply).await;
    assert_eq!(told.reply().content, [ContentBlock::text("abc")]);
    assert_eq!(told.reply().usage, Usage { input_tokens: 6, cache_read_input_tokens: 4, ..Usage::default() });
}

#[tokio::test]
async fn odd_types_in_messages_cost_nothing() {
    let mut reply = anthropic_text("fine");
    reply[0]["message"]["id"] = Value::Null;
    reply[0]["message"]["model"] = Value::Null;
    reply[0]["message"]["content"] = Value::Null;
    reply[0]["message"]["usage"] = json!({"input_tokens": 3.0, "output_tokens": null, "service_tier": 1});
    reply[5]["usage"] = json!({"output_tokens": 7.0, "input_tokens": null});
    let odd = [
        json!({}),
        json!([1]),
        json!({"type": 3, "delta": "x"}),
        json!({"type": "future", "delta": "text", "index": "one", "usage": [], "message": 1, "error": null,
            "content_block": false}),
    ];
    for (number, event) in odd.into_iter().enumerate() {
        reply.insert(number * 2, event);
    }
    let told = told("anthropic", &reply).await;
    assert_eq!(told.reply().content, [ContentBlock::text("fine")]);
    assert_eq!(told.reply().usage, Usage { input_tokens: 3, output_tokens: 7, ..Usage::default() });
    let id = told.partials[0]["message"]["id"].as_str().unwrap();
    assert!(id.starts_with("msg_") && id == told.reply().id, "{id}");
}

#[tokio::test]
async fn blocks_may_start_without_their_fields() {
    let mut reply = anthropic_text("");
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let piece =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    reply.splice(
        1..5,
        [
            start(0, json!({"type": "thinking"})),
            piece(0, json!({"type": "thinking_delta", "thinking": "hm"})),
            stop(0),
            start(1, json!({"type": "text"})),
            piece(1, json!({"type": "text_delta", "text": "look"})),
            stop(1),
            start(2, json!({"type": "tool_use", "id": "t1", "name": "Bash"})),
            piece(2, json!({"type": "input_json_delta", "partial_json": "{\"command\":\"ls\"}"})),
            stop(2),
            start(3, json!({"type": "tool_use", "name": "Read", "id": null, "input": null})),
            stop(3),
        ],
    );
    let told = told("anthropic", &reply).await;
    let content = &told.reply().content;
    assert_eq!(content[0], ContentBlock::Thinking { thinking: "hm".into(), signature: String::new() });
    assert_eq!(content[1], ContentBlock::text("look"));
    assert_eq!(
        calls(content),
        [("Bash".to_owned(), json!({"command": "ls"})), ("Read".to_owned(), json!({}))]
    );
    assert!(matches!(&content[3], ContentBlock::ToolUse { id, .. } if id.starts_with("toolu_")));
}

#[tokio::test]
async fn whole_replies_are_read_as_leniently() {
    let message = json!({"type": "message", "id": null, "model": null, "content": [{"type": "text", "text": "whole"}, 3],
        "stop_reason": null, "usage": {"input_tokens": null}});
    let completion = json!({"id": null, "choices": [{"message": {"content": [{"type": "text", "text": "whole"}],
        "tool_calls": null}, "finish_reason": null}], "usage": null});
    for (style, body) in [("anthropic", message), ("openai", completion)] {
        for kind in ["application/json", "text/event-stream"] {
            let server = Server::start(vec![status(200, &[("content-type", kind)], &body.to_string())]).await;
            let told = ask_once(&server.styled(style, "m")).await;
            assert_eq!(told.reply().content, [ContentBlock::text("whole")], "{style} {kind}");
        }
    }
}

#[tokio::test]
async fn arguments_may_be_encoded_twice() {
    let twice = json!(json!({"command": "ls"}).to_string()).to_string();
    let told = told("openai", &chat(&[call(&json!({"id": "a"}), Some("Bash"), &json!(twice))])).await;
    assert_eq!(calls(&told.reply().content), [("Bash".to_owned(), json!({"command": "ls"}))]);
}
