//! The request that a model saw, as a text that a test can compare: the same conversation reads alike in all
//! protocols. Long texts are cut, ids are left out, and what is cached or failed is marked, so that a difference
//! shows at a glance.

use qoder_testkit::prompt_text;
use serde_json::json;

#[test]
fn a_messages_request_is_shown_block_by_block() {
    let request = json!({
        "model": "m",
        "system": [{ "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral" } }],
        "tools": [{ "name": "Read" }, { "name": "Bash" }],
        "messages": [
            { "role": "user", "content": "x".repeat(100) },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "s" },
                { "type": "tool_use", "id": "1", "name": "Read", "input": { "file_path": "a" } },
            ]},
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "1", "content": "no such file", "is_error": true },
                { "type": "image", "source": {} },
            ]},
        ],
    });
    let long = "x".repeat(80);
    let expected = format!(
        "model: m\n\
         system: text \"Be brief.\" (cached)\n\
         tools: Read, Bash\n\
         user: text \"{long}\"…\n\
         assistant: thinking \"hm\"\n\
         assistant: tool_use Read {{\"file_path\":\"a\"}}\n\
         user: tool_result \"no such file\" (error)\n\
         user: image\n"
    );
    assert_eq!(prompt_text(&request), expected);
}

#[test]
fn the_other_protocols_are_shown_too() {
    let chat = json!({
        "model": "m",
        "tools": [{ "type": "function", "function": { "name": "Read" } }],
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "1", "type": "function", "function": { "name": "Read", "arguments": "{}" } },
            ]},
            { "role": "tool", "tool_call_id": "1", "content": "text" },
        ],
    });
    let expected = "model: m\ntools: Read\nsystem: text \"Be brief.\"\nassistant: tool_use Read \"{}\"\n\
                    tool: text \"text\"\n";
    assert_eq!(prompt_text(&chat), expected);
    let responses = json!({
        "model": "m",
        "instructions": "Be brief.",
        "input": [
            { "role": "user", "content": [{ "type": "input_text", "text": "hi" }] },
            { "type": "function_call", "call_id": "1", "name": "Read", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "1", "output": "text" },
        ],
    });
    let expected = "model: m\nsystem: \"Be brief.\"\ntools: \nuser: text \"hi\"\nitem: tool_use Read \"{}\"\n\
                    item: tool_result \"text\"\n";
    assert_eq!(prompt_text(&responses), expected);
}
