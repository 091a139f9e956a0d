//! A server asks our model for a reply. Only servers whose description says `sampling` may, only with text, and within
//! bounds; tools and images are refused by name.

use serde_json::{Value, json};

use crate::questions::{SampleMessage, Sampled, Sampling};

/// Characters that a server may send to the model at one time.
const LONGEST: usize = 200_000;
/// Tokens of a reply.
const MOST_TOKENS: u32 = 8_192;

/// The question that the parameters of `sampling/createMessage` hold; the error is for the server.
pub(super) fn question(server: &str, params: &Value) -> Result<Sampling, String> {
    if params.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty()) {
        return Err("sampling with tools is not offered".to_owned());
    }
    let empty = Vec::new();
    let listed = params.get("messages").and_then(Value::as_array).unwrap_or(&empty);
    let mut messages = Vec::new();
    for message in listed {
        let is_reply = message.get("role").and_then(Value::as_str) == Some("assistant");
        messages.push(SampleMessage { is_reply, text: text(&message["content"])? });
    }
    let system_prompt = params.get("systemPrompt").and_then(Value::as_str).map(str::to_owned);
    let length: usize = messages.iter().map(|message| message.text.len()).sum();
    if messages.is_empty() || length + system_prompt.as_ref().map_or(0, String::len) > LONGEST {
        return Err(format!("sampling takes between 1 and {LONGEST} characters of text"));
    }
    let asked = params.get("maxTokens").and_then(Value::as_u64).unwrap_or(u64::from(MOST_TOKENS));
    let max_tokens = u32::try_from(asked).unwrap_or(MOST_TOKENS).clamp(1, MOST_TOKENS);
    Ok(Sampling { server_name: server.to_owned(), system_prompt, messages, max_tokens })
}

/// One block or several, all of them text.
fn text(content: &Value) -> Result<String, String> {
    let blocks = match content {
        Value::Array(blocks) => blocks.iter().collect(),
        one => vec![one],
    };
    let mut texts = Vec::new();
    for block in blocks {
        match (block["type"].as_str(), block["text"].as_str()) {
            (Some("text"), Some(text)) => texts.push(text),
            (kind, _) => {
                return Err(format!(
                    "sampling takes text, not a block of the kind `{}`",
                    kind.unwrap_or("?")
                ));
            }
        }
    }
    Ok(texts.join("\n"))
}

/// The result of `sampling/createMessage`.
pub(super) fn answer(sampled: &Sampled) -> Value {
    json!({
        "role": "assistant", "content": { "type": "text", "text": sampled.text },
        "model": sampled.model, "stopReason": "endTurn",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(deprecated, reason = "sampling is on its way out of the protocol, and servers use it")]
    fn an_answer_is_what_the_protocol_expects() {
        let sampled = Sampled { model: "m".to_owned(), text: "a reply".to_owned() };
        let read: rmcp::model::CreateMessageResult = serde_json::from_value(answer(&sampled)).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), answer(&sampled));
    }

    #[test]
    fn text_is_taken_and_everything_else_is_named() {
        let params = json!({ "systemPrompt": "Be brief.", "maxTokens": 1_000_000, "messages": [
            { "role": "user", "content": { "type": "text", "text": "a" } },
            { "role": "assistant", "content": [{ "type": "text", "text": "b" }, { "type": "text", "text": "c" }] },
        ] });
        let question = question("kb", &params).unwrap();
        assert_eq!(
            (question.max_tokens, question.system_prompt.as_deref()),
            (MOST_TOKENS, Some("Be brief."))
        );
        assert_eq!(question.messages[1], SampleMessage { is_reply: true, text: "b\nc".to_owned() });
        let image = json!({ "messages": [{ "role": "user", "content": { "type": "image", "data": "" } }] });
        assert_eq!(
            self::question("kb", &image).unwrap_err(),
            "sampling takes text, not a block of the kind `image`"
        );
        let tools = json!({ "messages": [], "tools": [{ "name": "x" }] });
        assert_eq!(self::question("kb", &tools).unwrap_err(), "sampling with tools is not offered");
        assert!(self::question("kb", &json!({})).is_err());
    }
}
