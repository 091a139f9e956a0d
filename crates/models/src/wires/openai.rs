//! What the two protocols of OpenAI share: kinds of models, efforts, and how images and arguments are written.

use qoder_types::ImageSource;
use serde_json::{Value, json};

/// True for OpenAI models that reason: they name the output limit differently and take an effort.
pub(crate) fn is_reasoning_model(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let mut letters = name.chars();
    (letters.next() == Some('o') && letters.next().is_some_and(|c| c.is_ascii_digit()))
        || name.starts_with("gpt-5")
        || name.starts_with("codex-")
}

/// True for OpenAI models that are known not to reason and refuse to be asked for it.
pub(crate) fn is_plain_model(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    ["gpt-3", "gpt-4", "chatgpt-4"].iter().any(|prefix| name.starts_with(prefix))
}

/// The efforts that the OpenAI protocols know; stronger ones become the strongest.
pub(crate) fn openai_effort(effort: &str) -> &str {
    match effort {
        "xhigh" | "max" => "high",
        other => other,
    }
}

/// The address of an image; bytes become a data URL.
pub(crate) fn source_url(source: &ImageSource) -> String {
    match source {
        ImageSource::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
        ImageSource::Url { url } => url.clone(),
    }
}

/// Arguments as the JSON text the protocol wants. Text that is no JSON is wrapped, because servers parse it again.
pub(crate) fn arguments(input: &Value) -> String {
    match input {
        Value::Object(_) => input.to_string(),
        Value::Null => "{}".into(),
        other => json!({"_invalid": other}).to_string(),
    }
}
