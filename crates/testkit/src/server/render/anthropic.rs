//! The Anthropic Messages protocol: named events, one block after another, each opened, filled by deltas and closed.
//! Reasoning comes first and carries its signature, then text, then calls, whose arguments arrive as pieces of JSON text.
//! The stop reason and the final token counts come in an event of their own before the end.

use serde_json::{Value, json};

use super::{Answer, named, pieces};

/// The stream of an answer.
pub(super) fn events(answer: &Answer) -> Vec<String> {
    let mut message = document(answer);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    message["usage"]["output_tokens"] = json!(1);
    let mut events = vec![
        named(&json!({ "type": "message_start", "message": message })),
        named(&json!({ "type": "ping" })),
    ];
    let mut index = 0_usize;
    let mut block = |start: &Value, deltas: Vec<Value>| {
        let start = json!({ "type": "content_block_start", "index": index, "content_block": start });
        events.push(named(&start));
        for delta in deltas {
            events.push(named(&json!({ "type": "content_block_delta", "index": index, "delta": delta })));
        }
        events.push(named(&json!({ "type": "content_block_stop", "index": index })));
        index += 1;
    };
    if let Some((thinking, signature)) = &answer.thinking {
        let mut deltas: Vec<Value> = pieces(thinking)
            .into_iter()
            .map(|piece| json!({ "type": "thinking_delta", "thinking": piece }))
            .collect();
        deltas.push(json!({ "type": "signature_delta", "signature": signature }));
        block(&json!({ "type": "thinking", "thinking": "", "signature": "" }), deltas);
    }
    if let Some(text) = &answer.text {
        let deltas = text.iter().map(|piece| json!({ "type": "text_delta", "text": piece })).collect();
        block(&json!({ "type": "text", "text": "" }), deltas);
    }
    for (id, name, input) in &answer.tools {
        let deltas = pieces(&input.to_string())
            .into_iter()
            .map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }))
            .collect();
        block(&json!({ "type": "tool_use", "id": id, "name": name, "input": {} }), deltas);
    }
    events.push(named(&json!({
        "type": "message_delta",
        "delta": { "stop_reason": answer.stop_reason, "stop_sequence": null },
        "usage": { "output_tokens": answer.tokens.output }
    })));
    events.push(named(&json!({ "type": "message_stop" })));
    events
}

/// The answer as one message.
pub(super) fn document(answer: &Answer) -> Value {
    let mut content = Vec::new();
    if let Some((thinking, signature)) = &answer.thinking {
        content.push(json!({ "type": "thinking", "thinking": thinking, "signature": signature }));
    }
    if answer.text.is_some() {
        content.push(json!({ "type": "text", "text": answer.whole_text() }));
    }
    for (id, name, input) in &answer.tools {
        content.push(json!({ "type": "tool_use", "id": id, "name": name, "input": input }));
    }
    json!({
        "id": format!("msg_{}", answer.mark),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": answer.stop_reason,
        "stop_sequence": null,
        "usage": {
            "input_tokens": answer.tokens.input,
            "cache_creation_input_tokens": answer.tokens.cache_write,
            "cache_read_input_tokens": answer.tokens.cache_read,
            "output_tokens": answer.tokens.output
        }
    })
}
