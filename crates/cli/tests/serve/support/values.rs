//! What clients send, and what they read from events.

use qoder_testkit::Reply;
use serde_json::{Value, json};

/// The id of a thing.
#[track_caller]
pub fn id(thing: &Value) -> String {
    thing["id"].as_str().unwrap_or_else(|| panic!("{thing}")).to_owned()
}

/// The type of an event.
pub fn kind(event: &Value) -> String {
    event["type"].as_str().unwrap_or_default().to_owned()
}

/// The events that wait for answers.
#[track_caller]
pub fn pending(idle: &Value) -> Vec<String> {
    assert_eq!(idle["stop_reason"]["type"], "requires_action", "{idle}");
    let ids = idle["stop_reason"]["event_ids"].as_array().unwrap();
    ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// A message of the user.
pub fn message(text: &str) -> Value {
    json!({ "type": "user.message", "content": [{ "type": "text", "text": text }] })
}

/// An answer to an ask.
pub fn confirm(event: &str, result: &str) -> Value {
    json!({ "type": "user.tool_confirmation", "tool_use_id": event, "result": result })
}

/// The result of a tool that the client runs.
pub fn result(event: &str, content: impl Into<Value>) -> Value {
    json!({ "type": "user.custom_tool_result", "custom_tool_use_id": event, "content": content.into() })
}

/// The built-in toolset with these policies.
pub fn toolset(policies: &[(&str, &str)]) -> Value {
    let configs: Vec<Value> = policies
        .iter()
        .map(|(name, policy)| json!({ "name": name, "permission_policy": { "type": policy } }))
        .collect();
    json!({ "type": "agent_toolset_20260401", "configs": configs })
}

/// A tool that the client runs.
pub fn custom(name: &str) -> Value {
    json!({ "type": "custom", "name": name, "description": "A tool of the client.",
        "input_schema": { "type": "object", "properties": { "city": { "type": "string" } } } })
}

/// A call of Bash.
pub fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({ "command": command }))
}

/// The text of a tool's result.
pub fn result_text(event: &Value) -> String {
    let blocks = event["content"].as_array().unwrap_or_else(|| panic!("{event}"));
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}
