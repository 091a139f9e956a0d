//! What an endpoint wants back beside the readable reasoning, kept in the signature of a reasoning block: the name of
//! the field it came under, opaque details, and opaque additions to calls.
//!
//! A signature is [`SIGNATURE`], followed by nothing when the reasoning came as `reasoning_content` and there is nothing
//! else to keep, and by one JSON object otherwise.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// In front of the signature of reasoning that came over Chat Completions.
const SIGNATURE: &str = "chat:";
/// In front of the signature of reasoning that came over Responses; the item follows as JSON.
pub(super) const RESPONSES_SIGNATURE: &str = "responses:";

const USUAL_FIELD: &str = "reasoning_content";
const OTHER_FIELD: &str = "reasoning";
/// Not a field: the reasoning stood in the text.
pub(crate) const TAGS: &str = "think";

/// True for a signature of Anthropic Messages: those of the other protocols have their name in front.
pub(super) fn is_anthropic_signature(signature: &str) -> bool {
    !signature.is_empty() && !signature.starts_with(SIGNATURE) && !signature.starts_with(RESPONSES_SIGNATURE)
}

/// What is kept for the endpoint.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KeptReasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// `reasoning_details` as they came.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) details: Vec<Value>,
    /// `thinking_blocks` as they came, with their signatures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) blocks: Vec<Value>,
    /// Ids of calls and their `extra_content`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) calls: Vec<(String, Value)>,
}

impl KeptReasoning {
    /// Reasoning that came under this name.
    pub(crate) fn of_field(field: &str) -> Self {
        let mut kept = Self::default();
        kept.set_field(field);
        kept
    }

    /// Notes the name unless one is known.
    pub(crate) fn set_field(&mut self, field: &str) {
        if self.field.is_none() {
            self.field = Some(field.to_owned());
        }
    }

    /// The name under which reasoning goes back.
    pub(crate) fn field(&self) -> &'static str {
        match self.field.as_deref() {
            Some(OTHER_FIELD) => OTHER_FIELD,
            Some(TAGS) => TAGS,
            _ => USUAL_FIELD,
        }
    }

    /// Adds details. A piece of readable text is joined with the piece before it, or every word would be an object.
    pub(crate) fn add_details(&mut self, details: Vec<Value>) {
        for detail in details {
            match self.details.last_mut() {
                Some(last) if continues(last, &detail) => join(last, detail),
                _ => self.details.push(detail),
            }
        }
    }

    /// Adds blocks. They come in pieces until a signature closes them.
    pub(crate) fn add_blocks(&mut self, blocks: Vec<Value>) {
        for block in blocks {
            match self.blocks.last_mut() {
                Some(last) if is_open(last) && last.get("type") == block.get("type") => join(last, block),
                _ => self.blocks.push(block),
            }
        }
    }

    /// Adds what came with a call.
    pub(crate) fn add_call(&mut self, id: String, raw: &str) {
        if let Ok(extra) = serde_json::from_str(raw) {
            self.calls.push((id, extra));
        }
    }

    /// As a signature.
    pub(crate) fn into_signature(self) -> String {
        let is_usual = self.field.as_deref() == Some(USUAL_FIELD);
        if is_usual && self.details.is_empty() && self.calls.is_empty() && self.blocks.is_empty() {
            return SIGNATURE.to_owned();
        }
        match serde_json::to_string(&self) {
            Ok(text) => format!("{SIGNATURE}{text}"),
            Err(_) => SIGNATURE.to_owned(),
        }
    }

    /// Reads a signature; `None` when it is of another protocol.
    pub(crate) fn from_signature(signature: &str) -> Option<Self> {
        let text = signature.strip_prefix(SIGNATURE)?;
        Some(serde_json::from_str(text).unwrap_or_default())
    }
}

/// True for two pieces of the same readable detail.
fn continues(last: &Value, next: &Value) -> bool {
    let same = |name: &str| last.get(name) == next.get(name);
    matches!(next.get("type").and_then(Value::as_str), Some("reasoning.text" | "reasoning.summary"))
        && same("type")
        && same("index")
        // A signature closes its detail.
        && last.get("signature").is_none_or(Value::is_null)
}

/// True for a block without a signature.
fn is_open(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str) == Some("thinking")
        && block.get("signature").and_then(Value::as_str).is_none_or(str::is_empty)
}

fn join(last: &mut Value, next: Value) {
    let (Value::Object(kept), Value::Object(fields)) = (last, next) else { return };
    for (name, value) in fields {
        match (kept.get_mut(&name), value) {
            (Some(Value::String(text)), Value::String(piece))
                if matches!(name.as_str(), "text" | "summary" | "thinking") =>
            {
                text.push_str(&piece);
            }
            (Some(_), Value::Null) => {}
            (Some(old), value) => *old = value,
            (None, value) => drop(kept.insert(name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn signatures_are_read_as_they_were_written() {
        assert_eq!(KeptReasoning::of_field("reasoning_content").into_signature(), "chat:");
        assert_eq!(KeptReasoning::of_field("reasoning").into_signature(), r#"chat:{"field":"reasoning"}"#);
        let mut kept = KeptReasoning::of_field("reasoning");
        kept.set_field("reasoning_content");
        kept.add_details(vec![json!({"type": "reasoning.encrypted", "data": "AA"})]);
        kept.add_call("c".into(), r#"{"google":{"thought_signature":"BB"}}"#);
        let signature = kept.into_signature();
        let read = KeptReasoning::from_signature(&signature).unwrap();
        assert_eq!((read.field(), read.details.len(), read.calls.len()), ("reasoning", 1, 1));
        assert_eq!(read.into_signature(), signature);
        assert_eq!(KeptReasoning::from_signature("chat:").unwrap().field(), "reasoning_content");
        assert_eq!(KeptReasoning::from_signature("chat:{broken").unwrap(), KeptReasoning::default());
        assert_eq!(KeptReasoning::from_signature("c2ln"), None);
    }

    #[test]
    fn pieces_of_readable_details_are_joined() {
        let piece = |text: &str, index: u64| json!({"type": "reasoning.text", "text": text, "index": index});
        let mut kept = KeptReasoning::default();
        kept.add_details(vec![piece("a", 0), piece("b", 0)]);
        kept.add_details(vec![
            json!({"type": "reasoning.text", "signature": "S", "index": 0}),
            piece("c", 1),
        ]);
        kept.add_details(vec![json!({"type": "reasoning.encrypted", "data": "x"}), json!(7)]);
        assert_eq!(
            kept.details,
            [
                json!({"type": "reasoning.text", "text": "ab", "index": 0, "signature": "S"}),
                json!({"type": "reasoning.text", "text": "c", "index": 1}),
                json!({"type": "reasoning.encrypted", "data": "x"}),
                json!(7),
            ]
        );
    }
}
