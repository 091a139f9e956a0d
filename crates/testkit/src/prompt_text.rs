//! A short, stable text of the request that a model saw, to be compared in tests: roles, kinds of blocks, the start of
//! each text, and the names of the tools. It reads all three wire protocols and leaves out what differs from run to run
//! only where a test can never mean it (ids of calls).

use serde_json::Value;

/// How much of a text is shown.
const SHOWN: usize = 80;

/// The request as text: a line each for the model, the system prompt and the tools, then a line for every block.
#[must_use]
pub fn prompt_text(request: &Value) -> String {
    let mut lines = vec![format!("model: {}", request["model"].as_str().unwrap_or("none"))];
    for field in ["system", "instructions"] {
        match &request[field] {
            Value::Null => {}
            Value::Array(blocks) => {
                lines.extend(blocks.iter().map(|block| format!("system: {}", describe(block))))
            }
            text => lines.push(format!("system: {}", shorten(text))),
        }
    }
    let tools = request["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let names: Vec<&str> = tools.iter().filter_map(tool_name).collect();
    lines.push(format!("tools: {}", names.join(", ")));
    let messages = request["messages"].as_array().or_else(|| request["input"].as_array());
    for message in messages.map_or(&[][..], Vec::as_slice) {
        push_message(&mut lines, message);
    }
    if let Value::String(text) = &request["input"] {
        lines.push(format!("user: text {text:?}"));
    }
    lines.join("\n") + "\n"
}

fn tool_name(tool: &Value) -> Option<&str> {
    tool["name"].as_str().or_else(|| tool["function"]["name"].as_str())
}

fn push_message(lines: &mut Vec<String>, message: &Value) {
    let Some(role) = message["role"].as_str() else {
        // An item of the Responses protocol that is not a message.
        lines.push(format!("item: {}", describe(message)));
        return;
    };
    match &message["content"] {
        Value::Null => {}
        Value::Array(blocks) => {
            lines.extend(blocks.iter().map(|block| format!("{role}: {}", describe(block))));
        }
        text => lines.push(format!("{role}: text {}", shorten(text))),
    }
    for call in message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice) {
        let name = call["function"]["name"].as_str().unwrap_or_default();
        lines.push(format!("{role}: tool_use {name} {}", shorten(&call["function"]["arguments"])));
    }
}

fn describe(block: &Value) -> String {
    let kind = block["type"].as_str().unwrap_or("text");
    let cached = if block["cache_control"].is_null() { "" } else { " (cached)" };
    match kind {
        "text" | "input_text" | "output_text" => format!("text {}{cached}", shorten(&block["text"])),
        "thinking" => format!("thinking {}{cached}", shorten(&block["thinking"])),
        "tool_use" => {
            let name = block["name"].as_str().unwrap_or_default();
            format!("tool_use {name} {}{cached}", shorten(&block["input"]))
        }
        "function_call" => {
            let name = block["name"].as_str().unwrap_or_default();
            format!("tool_use {name} {}", shorten(&block["arguments"]))
        }
        "tool_result" => {
            let failed = if block["is_error"] == true { " (error)" } else { "" };
            format!("tool_result {}{failed}{cached}", content(&block["content"]))
        }
        "function_call_output" => format!("tool_result {}", content(&block["output"])),
        other => format!("{other}{cached}"),
    }
}

/// The content of a tool result: a text, or blocks side by side.
fn content(value: &Value) -> String {
    match value.as_array() {
        Some(blocks) => blocks.iter().map(describe).collect::<Vec<_>>().join(" + "),
        None => shorten(value),
    }
}

/// The first characters, in quotes when it is a text.
fn shorten(value: &Value) -> String {
    let (whole, quoted) = match value {
        Value::String(text) => (text.clone(), true),
        other => (other.to_string(), false),
    };
    let start: String = whole.chars().take(SHOWN).collect();
    let more = if whole.chars().nth(SHOWN).is_some() { "…" } else { "" };
    if quoted { format!("{start:?}{more}") } else { format!("{start}{more}") }
}
