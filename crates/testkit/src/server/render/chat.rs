//! The OpenAI Chat Completions protocol: unnamed chunks with one choice, calls
//! identified by their index, a last chunk with the token counts, and the word
//! `[DONE]`.

use serde_json::{Value, json};

use super::{Answer, pieces};

/// The stream of an answer.
pub(super) fn events(answer: &Answer) -> Vec<String> {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
        line(&envelope(answer, "chat.completion.chunk", &json!([choice]), &Value::Null))
    };
    let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), None)];
    if let Some((thinking, _)) = &answer.thinking {
        events.extend(
            pieces(thinking).into_iter().map(|piece| chunk(json!({ "reasoning_content": piece }), None)),
        );
    }
    for piece in answer.text.iter().flatten() {
        events.push(chunk(json!({ "content": piece }), None));
    }
    for (index, (id, name, input)) in answer.tools.iter().enumerate() {
        let function = json!({ "name": name, "arguments": "" });
        let call = json!({ "index": index, "id": id, "type": "function", "function": function });
        events.push(chunk(json!({ "tool_calls": [call] }), None));
        for piece in pieces(&input.to_string()) {
            let call = json!({ "index": index, "function": { "arguments": piece } });
            events.push(chunk(json!({ "tool_calls": [call] }), None));
        }
    }
    events.push(chunk(json!({}), Some(finish_reason(answer))));
    events.push(line(&envelope(answer, "chat.completion.chunk", &json!([]), &usage(answer))));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// The answer as one completion.
pub(super) fn document(answer: &Answer) -> Value {
    let mut message = json!({ "role": "assistant", "content": null });
    if answer.text.is_some() {
        message["content"] = json!(answer.whole_text());
    }
    if let Some((thinking, _)) = &answer.thinking {
        message["reasoning_content"] = json!(thinking);
    }
    if !answer.tools.is_empty() {
        let call = |(id, name, input): &(String, String, Value)| {
            let function = json!({ "name": name, "arguments": input.to_string() });
            json!({ "id": id, "type": "function", "function": function })
        };
        message["tool_calls"] = answer.tools.iter().map(call).collect();
    }
    let choice = json!({ "index": 0, "message": message, "finish_reason": finish_reason(answer) });
    envelope(answer, "chat.completion", &json!([choice]), &usage(answer))
}

fn envelope(answer: &Answer, object: &str, choices: &Value, usage: &Value) -> Value {
    json!({
        "id": format!("chatcmpl-{}", answer.mark),
        "object": object,
        "created": 0,
        "model": answer.model,
        "choices": choices,
        "usage": usage
    })
}

fn line(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

fn finish_reason(answer: &Answer) -> &str {
    match answer.stop_reason.as_str() {
        "end_turn" | "stop_sequence" => "stop",
        "tool_use" => "tool_calls",
        "max_tokens" => "length",
        "refusal" => "content_filter",
        other => other,
    }
}

fn usage(answer: &Answer) -> Value {
    let tokens = answer.tokens;
    json!({
        "prompt_tokens": tokens.all_input(),
        "completion_tokens": tokens.output,
        "total_tokens": tokens.all_input() + tokens.output,
        "prompt_tokens_details": { "cached_tokens": tokens.cache_read },
        "completion_tokens_details": { "reasoning_tokens": 0 }
    })
}
