//! The OpenAI Responses protocol: numbered, named events around a list of output
//! items (reasoning, a message, calls), closed by an event that holds the whole
//! response.

use serde_json::{Value, json};

use super::{Answer, named, pieces};

/// Collects events and numbers them.
struct Stream {
    events: Vec<String>,
}

impl Stream {
    fn push(&mut self, kind: &str, mut fields: Value) {
        let mut event = json!({ "type": kind, "sequence_number": self.events.len() });
        if let (Some(event), Some(fields)) = (event.as_object_mut(), fields.as_object_mut()) {
            event.append(fields);
        }
        self.events.push(named(&event));
    }
}

/// The stream of an answer.
pub(super) fn events(answer: &Answer) -> Vec<String> {
    let mut stream = Stream { events: Vec::new() };
    let begun = response(answer, "in_progress", &json!([]), &Value::Null);
    stream.push("response.created", json!({ "response": begun }));
    stream.push("response.in_progress", json!({ "response": begun }));
    for (index, item) in items(answer).iter().enumerate() {
        match item["type"].as_str() {
            Some("reasoning") => push_reasoning(&mut stream, index, item),
            Some("function_call") => push_call(&mut stream, index, item),
            Some(_) | None => push_message(&mut stream, index, item, answer),
        }
        stream.push("response.output_item.done", json!({ "output_index": index, "item": item }));
    }
    let whole = document(answer);
    let kind = if whole["status"] == "incomplete" { "response.incomplete" } else { "response.completed" };
    stream.push(kind, json!({ "response": whole }));
    stream.events
}

/// The answer as one response.
pub(super) fn document(answer: &Answer) -> Value {
    let tokens = answer.tokens;
    let usage = json!({
        "input_tokens": tokens.all_input(),
        "input_tokens_details": { "cached_tokens": tokens.cache_read },
        "output_tokens": tokens.output,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": tokens.all_input() + tokens.output
    });
    let reason = match answer.stop_reason.as_str() {
        "max_tokens" => Some("max_output_tokens"),
        "refusal" => Some("content_filter"),
        _ => None,
    };
    let status = if reason.is_some() { "incomplete" } else { "completed" };
    let mut whole = response(answer, status, &json!(items(answer)), &usage);
    if let Some(reason) = reason {
        whole["incomplete_details"] = json!({ "reason": reason });
    }
    whole
}

fn response(answer: &Answer, status: &str, output: &Value, usage: &Value) -> Value {
    json!({
        "id": format!("resp_{}", answer.mark),
        "object": "response",
        "created_at": 0,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "model": answer.model,
        "output": output,
        "usage": usage
    })
}

fn items(answer: &Answer) -> Vec<Value> {
    let mark = &answer.mark;
    let mut items = Vec::new();
    if let Some((thinking, signature)) = &answer.thinking {
        let summary = json!([{ "type": "summary_text", "text": thinking }]);
        let id = format!("rs_{mark}");
        items.push(
            json!({ "type": "reasoning", "id": id, "summary": summary, "encrypted_content": signature }),
        );
    }
    if answer.text.is_some() {
        let part = text_part(&answer.whole_text());
        items.push(json!({
            "type": "message", "id": format!("msg_{mark}"), "status": "completed", "role": "assistant",
            "content": [part]
        }));
    }
    for (index, (id, name, input)) in answer.tools.iter().enumerate() {
        items.push(json!({
            "type": "function_call", "id": format!("fc_{mark}_{index}"), "status": "completed", "call_id": id,
            "name": name, "arguments": input.to_string()
        }));
    }
    items
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

/// The item as it looks before its content has arrived.
fn open(stream: &mut Stream, index: usize, item: &Value, field: &str, empty: Value) {
    let mut begun = item.clone();
    begun[field] = empty;
    if begun["status"].is_string() {
        begun["status"] = json!("in_progress");
    }
    stream.push("response.output_item.added", json!({ "output_index": index, "item": begun }));
}

fn push_reasoning(stream: &mut Stream, index: usize, item: &Value) {
    open(stream, index, item, "summary", json!([]));
    let place = || json!({ "item_id": item["id"], "output_index": index, "summary_index": 0 });
    let with = |name: &str, value: Value| {
        let mut fields = place();
        fields[name] = value;
        fields
    };
    let part = item["summary"][0].clone();
    let text = part["text"].as_str().unwrap_or_default();
    let empty = json!({ "type": "summary_text", "text": "" });
    stream.push("response.reasoning_summary_part.added", with("part", empty));
    for piece in pieces(text) {
        stream.push("response.reasoning_summary_text.delta", with("delta", json!(piece)));
    }
    stream.push("response.reasoning_summary_text.done", with("text", json!(text)));
    stream.push("response.reasoning_summary_part.done", with("part", part.clone()));
}

fn push_message(stream: &mut Stream, index: usize, item: &Value, answer: &Answer) {
    open(stream, index, item, "content", json!([]));
    let with = |name: &str, value: Value| {
        let mut fields = json!({ "item_id": item["id"], "output_index": index, "content_index": 0 });
        fields[name] = value;
        fields
    };
    stream.push("response.content_part.added", with("part", text_part("")));
    for piece in answer.text.iter().flatten() {
        stream.push("response.output_text.delta", with("delta", json!(piece)));
    }
    let text = answer.whole_text();
    stream.push("response.output_text.done", with("text", json!(text)));
    stream.push("response.content_part.done", with("part", text_part(&text)));
}

fn push_call(stream: &mut Stream, index: usize, item: &Value) {
    open(stream, index, item, "arguments", json!(""));
    let arguments = item["arguments"].as_str().unwrap_or_default();
    for piece in pieces(arguments) {
        let fields = json!({ "item_id": item["id"], "output_index": index, "delta": piece });
        stream.push("response.function_call_arguments.delta", fields);
    }
    let fields = json!({ "item_id": item["id"], "output_index": index, "arguments": arguments });
    stream.push("response.function_call_arguments.done", fields);
}
