//! Content that clients send: blocks of text, images and documents. It is stored as blocks, as it was sent, and given to the
//! model in the form that the runtime has for it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use qoder_types::{ContentBlock, ImageSource, Message, MessageContent, Role, ToolResultContent};
use serde_json::{Map, Value, json};

use crate::model::fields::{Fields, each};
use crate::model::files::{GivenFile, GivenFiles};
use crate::model::problem::Problem;

const MOST_BLOCKS: usize = 1_000;

/// What a message may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// Text, images and documents.
    Message,
    /// Text alone.
    Text,
    /// What a message may, and search results.
    Result,
}

/// Content as it is stored, and as the model reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// The blocks as sent.
    pub stored: Vec<Value>,
    /// The blocks for the model.
    pub blocks: Vec<ContentBlock>,
}

impl Content {
    /// A user's message of it.
    #[must_use]
    pub fn message(&self) -> Message {
        Message { role: Role::User, content: MessageContent::Blocks(self.blocks.clone()) }
    }

    /// A tool's result of it.
    #[must_use]
    pub fn result(&self) -> ToolResultContent {
        ToolResultContent::Blocks(self.blocks.clone())
    }
}

/// The ids of files that the blocks of a body name, wherever they are in it.
#[must_use]
pub fn named_files(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(named_files).collect(),
        Value::Object(map) => {
            let source = map.get("source").or_else(|| map.get("rubric")).and_then(Value::as_object);
            let file = source.filter(|source| source.get("type").is_some_and(|kind| kind == "file"));
            let id = file.and_then(|source| source.get("file_id")).and_then(Value::as_str);
            id.map(str::to_owned).into_iter().chain(map.values().flat_map(named_files)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Reads content: a text, one block, or several. `files` has the files that it may name.
///
/// # Errors
/// When it is missing, empty or cannot be used.
pub fn read(fields: Fields<'_>, accepts: Accepts, files: &GivenFiles) -> Result<Content, Problem> {
    let single;
    let items = match fields.get("content") {
        None if accepts == Accepts::Result => return Ok(Content { stored: Vec::new(), blocks: Vec::new() }),
        None => return Err(Problem::field("content", "is required")),
        Some(Value::String(text)) => {
            single = [json!({ "type": "text", "text": text })];
            &single[..]
        }
        Some(block @ Value::Object(_)) => std::slice::from_ref(block),
        Some(_) => fields.items("content", MOST_BLOCKS)?,
    };
    if items.is_empty() && accepts != Accepts::Result {
        return Err(Problem::field("content", "is empty"));
    }
    let read = each("content", items, |item| Ok((read_block(item, accepts, files)?, item.clone())))?;
    let (blocks, stored): (Vec<_>, Vec<_>) = read.into_iter().unzip();
    let is_blank =
        |block: &ContentBlock| matches!(block, ContentBlock::Text { text } if text.trim().is_empty());
    if accepts != Accepts::Result && blocks.iter().all(is_blank) {
        return Err(Problem::field("content", "has no text, image or document"));
    }
    Ok(Content { stored, blocks })
}

fn read_block(item: &Value, accepts: Accepts, files: &GivenFiles) -> Result<ContentBlock, Problem> {
    let fields = Fields::of_item(item)?;
    let accepted: &[&str] = match accepts {
        Accepts::Text => &["text"],
        Accepts::Message => &["text", "image", "document", "redacted"],
        Accepts::Result => &["text", "image", "document", "search_result", "redacted"],
    };
    match fields.word("type", accepted)? {
        Some("text") => Ok(ContentBlock::text(fields.text("text", 0..=usize::MAX)?)),
        Some("image") => Ok(ContentBlock::Image { source: source(fields, files)? }),
        Some("document") => document(fields, files),
        Some("search_result") => search_result(fields),
        Some(_) => Ok(ContentBlock::text("[redacted]")),
        None => Err(Problem::field("type", "is required")),
    }
}

fn source(fields: Fields<'_>, files: &GivenFiles) -> Result<ImageSource, Problem> {
    let source = fields.object("source")?.ok_or_else(|| Problem::field("source", "is required"))?;
    let read = || match source.word("type", &["base64", "url", "file"])? {
        Some("base64") => {
            let data = source.text("data", 1..=usize::MAX)?;
            let is_base64 = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
            if !is_base64 {
                return Err(Problem::field("data", "is not base64"));
            }
            let media_type = source.text("media_type", 1..=128)?.to_owned();
            Ok(ImageSource::Base64 { media_type, data: data.to_owned() })
        }
        Some("url") => Ok(ImageSource::Url { url: source.text("url", 1..=8_192)?.to_owned() }),
        Some(_) => {
            let file = given(source, files)?;
            Ok(ImageSource::Base64 {
                media_type: file.media_type.clone(),
                data: STANDARD.encode(&file.content),
            })
        }
        None => Err(Problem::field("type", "is required")),
    };
    read().map_err(|problem: Problem| problem.inside("source"))
}

/// The file that a source names.
fn given<'a>(source: Fields<'_>, files: &'a GivenFiles) -> Result<&'a GivenFile, Problem> {
    let id = source.text("file_id", 1..=256)?;
    let file = files.get(id);
    file.ok_or_else(|| Problem::field("file_id", format!("is `{id}`, and there is no such file")))
}

/// The text of a source, when it is text and not bytes.
fn plain_text(source: Fields<'_>, files: &GivenFiles) -> Result<Option<String>, Problem> {
    match source.get("type").and_then(Value::as_str) {
        Some("text") => Ok(Some(source.text("data", 0..=usize::MAX)?.to_owned())),
        Some("file") => {
            let file = given(source, files)?;
            let is_text = file.media_type.starts_with("text/") || file.media_type == "application/json";
            let text = is_text.then(|| String::from_utf8(file.content.clone()).ok());
            Ok(text.flatten())
        }
        _ => Ok(None),
    }
}

fn document(fields: Fields<'_>, files: &GivenFiles) -> Result<ContentBlock, Problem> {
    let title = fields.optional_text("title", 0..=usize::MAX)?;
    let context = fields.optional_text("context", 0..=usize::MAX)?;
    let plain = match fields.object("source")? {
        Some(source) => plain_text(source, files).map_err(|problem| problem.inside("source"))?,
        None => None,
    };
    if let Some(text) = plain {
        let head = title.map(|title| format!("<document title=\"{}\">", title.replace('"', "'")));
        let head = head.unwrap_or_else(|| "<document>".to_owned());
        let context = context.map(|context| format!("{context}\n")).unwrap_or_default();
        return Ok(ContentBlock::text(format!("{head}\n{context}{text}\n</document>")));
    }
    let mut extra = Map::new();
    for (key, value) in [("title", title), ("context", context)] {
        if let Some(value) = value {
            extra.insert(key.to_owned(), json!(value));
        }
    }
    Ok(ContentBlock::Document { source: source(fields, files)?, extra })
}

fn search_result(fields: Fields<'_>) -> Result<ContentBlock, Problem> {
    let (source, title) = (fields.text("source", 0..=8_192)?, fields.text("title", 0..=8_192)?);
    let texts = each("content", fields.items("content", MOST_BLOCKS)?, |item| {
        Ok(Fields::of_item(item)?.text("text", 0..=usize::MAX)?.to_owned())
    })?;
    Ok(ContentBlock::text(format!("[{title}]({source})\n{}", texts.join("\n"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(content: &Value, accepts: Accepts) -> Result<Content, Problem> {
        let body = json!({ "content": content });
        read(Fields::of_body(&body).unwrap(), accepts, &GivenFiles::new())
    }

    #[test]
    fn a_text_one_block_and_several_are_stored_as_blocks() {
        let block = json!({ "type": "text", "text": "hi" });
        for content in [json!("hi"), block.clone(), json!([block])] {
            let read = parse(&content, Accepts::Result).unwrap();
            assert_eq!(read.stored, std::slice::from_ref(&block));
            assert_eq!(read.blocks, [ContentBlock::text("hi")]);
        }
        assert_eq!(parse(&json!([]), Accepts::Result).unwrap().blocks, []);
        assert_eq!(parse(&Value::Null, Accepts::Result).unwrap().blocks, []);
    }

    #[test]
    fn what_a_message_cannot_contain_is_named() {
        for (content, field) in [
            (Value::Null, "content"),
            (json!([]), "content"),
            (json!("  "), "content"),
            (json!(1), "content"),
            (json!([{ "type": "tool_use" }]), "content[0].type"),
            (json!([{ "type": "search_result" }]), "content[0].type"),
            (json!([{ "type": "text" }]), "content[0].text"),
            (json!([{ "type": "image" }]), "content[0].source"),
            (
                json!([{ "type": "image", "source": { "type": "file", "file_id": "file_1" } }]),
                "content[0].source.file_id",
            ),
            (
                json!([{ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "%" } }]),
                "content[0].source.data",
            ),
        ] {
            let problem = parse(&content, Accepts::Message).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some(field), "{content}");
        }
        assert!(
            parse(
                &json!([{ "type": "image", "source": { "type": "url", "url": "https://x" } }]),
                Accepts::Text
            )
            .is_err()
        );
    }

    #[test]
    fn documents_and_search_results_reach_the_model() {
        let document = json!([{ "type": "document", "title": "T", "context": "C",
            "source": { "type": "text", "media_type": "text/plain", "data": "body" } }]);
        let read = parse(&document, Accepts::Message).unwrap();
        let text = read.message().content.to_text();
        assert!(["T", "C", "body"].iter().all(|part| text.contains(part)), "{text}");
        let found = json!([{ "type": "search_result", "source": "https://s", "title": "S",
            "content": [{ "type": "text", "text": "found" }], "citations": { "enabled": true } }]);
        let text = parse(&found, Accepts::Result).unwrap().result().to_text();
        assert!(text.contains("https://s") && text.contains("found"), "{text}");
    }

    #[test]
    fn a_file_is_stored_by_its_name_and_read_with_its_content() {
        let file = |media_type: &str, content: &[u8]| GivenFile {
            filename: "f".to_owned(),
            media_type: media_type.to_owned(),
            content: content.to_vec(),
        };
        let files = GivenFiles::from([
            ("file_i".to_owned(), file("image/png", b"pixels")),
            ("file_t".to_owned(), file("text/plain", b"the words")),
            ("file_p".to_owned(), file("application/pdf", b"%PDF")),
        ]);
        let named =
            |kind: &str, id: &str| json!({ "type": kind, "source": { "type": "file", "file_id": id } });
        let body = json!({ "content": [named("image", "file_i"), named("document", "file_t"), named("document", "file_p")] });
        assert_eq!(named_files(&json!({ "events": [body] })), ["file_i", "file_t", "file_p"]);
        let content = read(Fields::of_body(&body).unwrap(), Accepts::Message, &files).unwrap();
        assert_eq!(json!(content.stored), body["content"], "as it was sent");
        let [ContentBlock::Image { source: ImageSource::Base64 { media_type, data } }, text, document] =
            content.blocks.as_slice()
        else {
            panic!("{:?}", content.blocks);
        };
        assert_eq!((media_type.as_str(), STANDARD.decode(data).unwrap()), ("image/png", b"pixels".to_vec()));
        assert!(matches!(text, ContentBlock::Text { text } if text.contains("the words")), "{text:?}");
        assert!(matches!(document, ContentBlock::Document { .. }), "{document:?}");
    }
}
