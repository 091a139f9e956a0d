//! From MCP's content blocks to what the model reads: text and images as they are, resources and links as text, what no
//! model can read as a note. Bounded here, the full text kept in a file.

pub(crate) mod kept;

use qoder_core::ports::{Outputs, ToolOutcome};
use qoder_types::{CallOutcome, ContentBlock, ImageSource, ToolResultContent};
use serde_json::{Value, json};

use crate::CallToolResult;

/// Characters of a result that the model reads, unless the tool asks for more or less.
pub const RESULT_CHARACTERS: usize = 50_000;
/// The most that a tool may ask for.
const MOST_CHARACTERS: usize = 500_000;

/// The characters that a tool's `_meta` asks for, within bounds.
#[must_use]
pub fn limit(meta: Option<&Value>) -> usize {
    let asked = meta.and_then(|meta| meta.get("anthropic/maxResultSizeChars")).and_then(Value::as_u64);
    asked.map_or(RESULT_CHARACTERS, |most| {
        usize::try_from(most).unwrap_or(MOST_CHARACTERS).min(MOST_CHARACTERS)
    })
}

/// What a result means for the session.
#[must_use]
pub fn outcome(result: &CallToolResult, limit: usize, outputs: &Outputs, stem: &str) -> ToolOutcome {
    let structured = structured(result);
    let mut blocks: Vec<ContentBlock> = result.content.iter().map(block).collect();
    if blocks.is_empty()
        && let Some(typed) = &result.structured_content
    {
        blocks.push(ContentBlock::text(typed.to_string()));
    }
    let content = bound(blocks, limit, outputs, stem);
    let outcome = if result.is_error { CallOutcome::Failed } else { CallOutcome::Completed };
    ToolOutcome { content, outcome, ..ToolOutcome::completed(String::new(), structured) }
}

fn structured(result: &CallToolResult) -> Value {
    let mut typed = json!({ "content": result.content, "isError": result.is_error });
    if let Some(content) = &result.structured_content {
        typed["structuredContent"] = content.clone();
    }
    typed
}

fn bound(blocks: Vec<ContentBlock>, limit: usize, outputs: &Outputs, stem: &str) -> ToolResultContent {
    let all_text = blocks.iter().all(|block| matches!(block, ContentBlock::Text { .. }));
    if all_text {
        let texts: Vec<String> = blocks.into_iter().filter_map(text_of).collect();
        let text = if texts.is_empty() { "(no content)".to_owned() } else { texts.join("\n") };
        return ToolResultContent::Text(kept::bounded(text, limit, outputs, stem).0);
    }
    let mut left = limit;
    let bounded = blocks.into_iter().map(|block| match block {
        ContentBlock::Text { text } => {
            let (text, _) = kept::bounded(text, left, outputs, stem);
            left = left.saturating_sub(text.chars().count());
            ContentBlock::text(text)
        }
        other => other,
    });
    ToolResultContent::Blocks(bounded.collect())
}

fn text_of(block: ContentBlock) -> Option<String> {
    match block {
        ContentBlock::Text { text } => Some(text),
        ContentBlock::Image { .. }
        | ContentBlock::Document { .. }
        | ContentBlock::ToolUse { .. }
        | ContentBlock::ToolResult { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::RedactedThinking { .. }
        | ContentBlock::Unknown(_) => None,
    }
}

pub(crate) fn block(value: &Value) -> ContentBlock {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "text" => ContentBlock::text(text("text")),
        "image" => image(text("mimeType"), text("data")),
        "audio" => ContentBlock::text(format!(
            "[audio, {}, {} bytes: it cannot be played to the model]",
            text("mimeType"),
            text("data").len() * 3 / 4
        )),
        "resource_link" => ContentBlock::text(link(value)),
        "resource" => resource(value.get("resource").unwrap_or(&Value::Null)),
        other => ContentBlock::text(format!("[a block of the kind `{other}`, which cannot be shown]")),
    }
}

fn image(media_type: &str, data: &str) -> ContentBlock {
    let source = ImageSource::Base64 { media_type: media_type.to_owned(), data: data.to_owned() };
    ContentBlock::Image { source }
}

fn link(value: &Value) -> String {
    let part = |key: &str| value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let parts = [part("name").or_else(|| part("title")), part("uri"), part("description")];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    format!("[resource] {}", parts.join(" — "))
}

fn resource(value: &Value) -> ContentBlock {
    let part = |key: &str| value.get(key).and_then(Value::as_str);
    match (part("text"), part("blob"), part("mimeType")) {
        (Some(text), _, _) => ContentBlock::text(text),
        (None, Some(data), Some(kind)) if kind.starts_with("image/") => image(kind, data),
        (None, data, kind) => ContentBlock::text(format!(
            "[resource {}, {}, {} bytes: it is not text]",
            part("uri").unwrap_or("without an address"),
            kind.unwrap_or("of unknown kind"),
            data.map_or(0, |data| data.len() * 3 / 4)
        )),
    }
}

/// A text of a server without control characters, at most so many bytes.
#[must_use]
pub fn plain(text: &str, most: usize) -> String {
    let mut plain = String::with_capacity(text.len().min(most));
    for letter in text.chars() {
        if letter.is_control() && !matches!(letter, '\n' | '\t') || is_invisible(letter) {
            continue;
        }
        if plain.len() + letter.len_utf8() > most {
            plain.push('…');
            break;
        }
        plain.push(letter);
    }
    plain
}

/// Letters that change how others are shown without being seen.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(content: &Value) -> ToolOutcome {
        let folder = tempfile::tempdir().unwrap();
        let result =
            CallToolResult { content: content.as_array().unwrap().clone(), ..CallToolResult::default() };
        outcome(&result, RESULT_CHARACTERS, &outputs(folder.path()), "mcp")
    }

    fn outputs(directory: &std::path::Path) -> Outputs {
        Outputs { directory: directory.to_path_buf(), ..Outputs::default() }
    }

    #[test]
    fn what_a_server_says_is_bounded_and_plain() {
        assert_eq!(plain("a\u{1b}[31mb\u{202e}c\n\u{0}d", 100), "a[31mbc\nd");
        let long = plain(&"ü".repeat(5_000), 100);
        assert!(long.len() <= 100 + '…'.len_utf8() && long.ends_with('…'));
    }

    #[test]
    fn texts_are_joined_and_kept_as_text() {
        let made = made(&json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]));
        assert_eq!(made.content, ToolResultContent::Text("a\nb".to_owned()));
        assert_eq!(made.outcome, CallOutcome::Completed);
    }

    #[test]
    fn every_kind_of_block_says_something() {
        let made = made(&json!([
            { "type": "image", "mimeType": "image/png", "data": "AAAA" },
            { "type": "audio", "mimeType": "audio/wav", "data": "AAAA" },
            { "type": "resource_link", "uri": "file:///a", "name": "A" },
            { "type": "resource", "resource": { "uri": "x", "text": "inside" } },
            { "type": "resource", "resource": { "uri": "x", "mimeType": "application/zip", "blob": "AAAA" } },
            { "type": "hologram" },
        ]));
        let ToolResultContent::Blocks(blocks) = made.content else { panic!("blocks") };
        assert!(matches!(&blocks[0], ContentBlock::Image { .. }));
        let texts: Vec<String> = blocks[1..].iter().cloned().filter_map(text_of).collect();
        assert_eq!(
            texts,
            [
                "[audio, audio/wav, 3 bytes: it cannot be played to the model]",
                "[resource] A — file:///a",
                "inside",
                "[resource x, application/zip, 3 bytes: it is not text]",
                "[a block of the kind `hologram`, which cannot be shown]",
            ]
        );
    }

    #[test]
    fn a_tool_may_ask_for_more_characters_but_not_for_all() {
        assert_eq!(limit(None), 50_000);
        assert_eq!(limit(Some(&json!({ "anthropic/maxResultSizeChars": 80_000 }))), 80_000);
        assert_eq!(limit(Some(&json!({ "anthropic/maxResultSizeChars": 9_000_000 }))), 500_000);
    }

    #[test]
    fn a_failure_is_told_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let result = CallToolResult { is_error: true, ..CallToolResult::default() };
        let made = outcome(&result, RESULT_CHARACTERS, &outputs(folder.path()), "mcp");
        assert_eq!(made.outcome, CallOutcome::Failed);
        assert_eq!(made.content, ToolResultContent::Text("(no content)".to_owned()));
    }
}
