//! Resources of servers: listing and reading them for the model. Everything is bounded; what is no text and no image is
//! kept in a file. A resource that was read is subscribed to where the server offers it, and the model reads with its next
//! listing or reading that one has changed.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use futures::future::join_all;
use qoder_core::ports::{Outputs, ToolContext, ToolOutcome};
use qoder_types::{ContentBlock, ImageSource};
use serde_json::{Map, Value, json};

use crate::result::RESULT_CHARACTERS;
use crate::result::kept;
use crate::{Greeting, McpServers, plain};

/// Pages of one list.
const MOST_PAGES: usize = 20;
/// Entries of one server's list.
const MOST_ENTRIES: usize = 500;
/// Bytes of one field of an entry.
const LONGEST_FIELD: usize = 1024;
/// Parts of one resource.
const MOST_PARTS: usize = 100;
/// Resources that are subscribed to, of all servers.
const MOST_SUBSCRIPTIONS: usize = 100;
/// Base64 characters of an image that a model is shown; a longer one is kept in a file.
const LONGEST_IMAGE: usize = 5 * 1024 * 1024;
/// Kinds of images that models read.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Which resources are watched, and which of them have changed since the model last read of them. By server and address.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    subscribed: Mutex<BTreeSet<(String, String)>>,
    changed: Mutex<BTreeSet<(String, String)>>,
}

impl Watched {
    /// A server says that a resource has changed. Without a subscription to it the change is ignored.
    pub(crate) fn report(&self, server: &str, uri: &str) {
        let key = (server.to_owned(), uri.to_owned());
        if self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).contains(&key) {
            self.changed.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        }
    }

    /// What has changed, returned once. What is read right now is left out.
    fn take(&self, read: Option<(&str, &str)>) -> Option<String> {
        let changed = std::mem::take(&mut *self.changed.lock().unwrap_or_else(PoisonError::into_inner));
        let other = changed.iter().filter(|(server, uri)| read != Some((server, uri)));
        let named: Vec<String> =
            other.map(|(server, uri)| format!("{} of {server}", plain(uri, 200))).collect();
        (!named.is_empty()).then(|| format!("Changed since you read it: {}.", named.join(", ")))
    }

    fn subscribe(&self, server: &str, uri: &str) -> bool {
        let mut subscribed = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        subscribed.len() < MOST_SUBSCRIPTIONS && subscribed.insert((server.to_owned(), uri.to_owned()))
    }

    fn forget(&self, server: &str, uri: &str) {
        let key = (server.to_owned(), uri.to_owned());
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
}

/// Lists the resources of one server, or of all that have any.
pub(crate) async fn list(
    servers: &McpServers,
    watched: &Watched,
    server: Option<&str>,
    guarded: &(dyn Fn(&str) -> bool + Send + Sync),
    context: &ToolContext,
) -> ToolOutcome {
    let mut greetings = servers.greetings();
    greetings.retain(|(name, _)| server.is_some() || !guarded(name));
    let chosen: Vec<&(String, Greeting)> = match server {
        Some(name) => match greetings.iter().find(|(known, _)| known == name) {
            Some(one) if offers(&one.1, "resources") => vec![one],
            Some(_) => return ToolOutcome::failed(format!("The MCP server `{name}` offers no resources.")),
            None => return ToolOutcome::failed(unusable(servers, name)),
        },
        None => greetings.iter().filter(|(_, greeting)| offers(greeting, "resources")).collect(),
    };
    if chosen.is_empty() {
        let text = "No connected MCP server offers resources.";
        return ToolOutcome::completed(text, json!({ "resources": [], "resourceTemplates": [] }));
    }
    let lists = chosen.iter().map(|(name, _)| list_of(servers, name));
    let (mut resources, mut templates, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for listed in join_all(lists).await {
        resources.extend(listed.resources);
        templates.extend(listed.templates);
        notes.extend(listed.notes);
    }
    notes.extend(watched.take(None));
    let mut lines: Vec<String> = resources.iter().chain(&templates).map(Value::to_string).collect();
    if lines.is_empty() {
        lines.push("There are no resources.".to_owned());
    }
    lines.extend(notes.iter().cloned());
    let text = lines.join("\n");
    let (text, _) = kept::bounded(text, RESULT_CHARACTERS, &context.outputs, "mcp-resources");
    let structured = json!({ "resources": resources, "resourceTemplates": templates, "notes": notes });
    ToolOutcome::completed(text, structured)
}

#[derive(Default)]
struct Listed {
    resources: Vec<Value>,
    templates: Vec<Value>,
    notes: Vec<String>,
}

async fn list_of(servers: &McpServers, server: &str) -> Listed {
    let mut listed = Listed::default();
    let fields = ["uri", "name", "title", "description", "mimeType", "size"];
    match pages(servers, server, "resources/list", "resources").await {
        Ok((entries, cut)) => {
            listed.resources = entries.iter().map(|entry| shown(server, entry, &fields)).collect();
            listed
                .notes
                .extend(cut.then(|| format!("The list of {server} is longer; this is its beginning.")));
        }
        Err(problem) => listed.notes.push(format!("The resources of {server} cannot be listed: {problem}.")),
    }
    let fields = ["uriTemplate", "name", "title", "description", "mimeType"];
    // Few servers have templates, and many that have none refuse the question.
    if let Ok((entries, _)) = pages(servers, server, "resources/templates/list", "resourceTemplates").await {
        listed.templates = entries.iter().map(|entry| shown(server, entry, &fields)).collect();
    }
    listed
}

/// All pages of a list within bounds, and whether there would be more.
pub(crate) async fn pages(
    servers: &McpServers,
    server: &str,
    method: &'static str,
    field: &str,
) -> Result<(Vec<Value>, bool), String> {
    let mut entries = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let params = cursor.take().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let mut page = servers.request(server, method, params).await.map_err(|error| error.to_string())?;
        if let Some(Value::Array(more)) = page.get_mut(field).map(Value::take) {
            entries.extend(more);
        }
        cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        if cursor.is_none() || entries.len() >= MOST_ENTRIES {
            break;
        }
    }
    let cut = cursor.is_some() || entries.len() > MOST_ENTRIES;
    entries.truncate(MOST_ENTRIES);
    Ok((entries, cut))
}

/// The fields of an entry that are of use, bounded and plain.
fn shown(server: &str, entry: &Value, fields: &[&str]) -> Value {
    let mut out = Map::from_iter([("server".to_owned(), json!(server))]);
    for field in fields {
        match entry.get(*field) {
            Some(Value::String(text)) => {
                drop(out.insert((*field).to_owned(), json!(plain(text, LONGEST_FIELD))))
            }
            Some(number @ Value::Number(_)) => drop(out.insert((*field).to_owned(), number.clone())),
            Some(_) | None => {}
        }
    }
    Value::Object(out)
}

/// Reads a resource, and subscribes to it where the server offers that.
pub(crate) async fn read(
    servers: &McpServers,
    watched: &Watched,
    (server, uri): (&str, &str),
    context: &ToolContext,
) -> ToolOutcome {
    let greetings = servers.greetings();
    let Some((_, greeting)) = greetings.iter().find(|(known, _)| known == server) else {
        return ToolOutcome::failed(unusable(servers, server));
    };
    let answer = match servers.request(server, "resources/read", json!({ "uri": uri })).await {
        Ok(answer) => answer,
        Err(problem) => {
            let text = format!("{} of the MCP server `{server}` cannot be read: {problem}.", plain(uri, 200));
            return ToolOutcome::failed(text);
        }
    };
    let subscribable = greeting.capabilities.pointer("/resources/subscribe") == Some(&Value::Bool(true));
    if subscribable && watched.subscribe(server, uri) {
        let asked = servers.request(server, "resources/subscribe", json!({ "uri": uri })).await;
        if asked.is_err() {
            watched.forget(server, uri);
        }
    }
    let parts = answer.get("contents").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut blocks: Vec<ContentBlock> = Vec::new();
    let mut told = Vec::new();
    let mut left = RESULT_CHARACTERS;
    for part in parts.iter().take(MOST_PARTS) {
        let (block, row) = content(part, left, &context.outputs);
        if let ContentBlock::Text { text } = &block {
            left = left.saturating_sub(text.chars().count());
        }
        blocks.push(block);
        told.push(row);
    }
    if parts.len() > MOST_PARTS {
        blocks.push(ContentBlock::text(format!("[{} more parts]", parts.len() - MOST_PARTS)));
    }
    if blocks.is_empty() {
        blocks.push(ContentBlock::text("(the resource is empty)"));
    }
    blocks.extend(watched.take(Some((server, uri))).map(ContentBlock::text));
    ToolOutcome::blocks(blocks, json!({ "contents": told }))
}

/// One part of a resource, for the model and for programs.
fn content(part: &Value, left: usize, outputs: &Outputs) -> (ContentBlock, Value) {
    let field = |name: &str| part.get(name).and_then(Value::as_str);
    let (uri, kind) = (field("uri").unwrap_or_default(), field("mimeType"));
    let row = |more: Value| {
        let mut row = json!({ "uri": plain(uri, LONGEST_FIELD), "mimeType": kind });
        if let (Value::Object(row), Value::Object(more)) = (&mut row, more) {
            row.extend(more);
        }
        row
    };
    match (field("text"), field("blob")) {
        (Some(text), _) => {
            let (text, file) = kept::bounded(text.to_owned(), left, outputs, "mcp-resource");
            (ContentBlock::text(text.clone()), row(json!({ "text": text, "file": file })))
        }
        (None, Some(data))
            if kind.is_some_and(|kind| IMAGES.contains(&kind)) && data.len() <= LONGEST_IMAGE =>
        {
            let media_type = kind.unwrap_or_default().to_owned();
            let source = ImageSource::Base64 { media_type, data: data.to_owned() };
            (ContentBlock::Image { source }, row(json!({ "image": true })))
        }
        (None, Some(data)) => match kept::keep_base64(data, &outputs.directory, "mcp-resource") {
            Ok((path, bytes)) => {
                let kind = plain(kind.unwrap_or("of unknown kind"), 100);
                let text = format!("[{bytes} bytes, {kind}, kept in {}]", path.display());
                (ContentBlock::text(text), row(json!({ "file": path, "bytes": bytes })))
            }
            Err(problem) => (
                ContentBlock::text(format!("[content that is no text: {problem}]")),
                row(json!({ "error": problem.to_string() })),
            ),
        },
        (None, None) => (ContentBlock::text("[a part without content]"), row(json!({}))),
    }
}

/// True when a server has declared an ability.
pub(crate) fn offers(greeting: &Greeting, ability: &str) -> bool {
    greeting.capabilities.get(ability).is_some_and(Value::is_object)
}

/// Why a server cannot be asked.
pub(crate) fn unusable(servers: &McpServers, name: &str) -> String {
    let rows = servers.rows();
    let text = |row: &Value, key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = plain(name, 100);
    if let Some(row) = rows.iter().find(|row| text(row, "name") == name) {
        let error = text(row, "error");
        let why = if error.is_empty() { String::new() } else { format!(": {error}") };
        return format!(
            "The MCP server `{name}` cannot be used now; its status is {}{why}.",
            text(row, "status")
        );
    }
    let known: Vec<String> = rows.iter().map(|row| text(row, "name")).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    format!("There is no MCP server named `{name}`; known are: {known}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_changed_is_told_once_and_only_when_it_was_read() {
        let watched = Watched::default();
        watched.report("kb", "x://never-read");
        assert_eq!(watched.take(None), None);
        assert!(watched.subscribe("kb", "x://a") && watched.subscribe("kb", "x://b"));
        assert!(!watched.subscribe("kb", "x://a"), "one subscription is enough");
        watched.report("kb", "x://a");
        watched.report("kb", "x://b");
        let told = watched.take(Some(("kb", "x://b")));
        assert_eq!(told.as_deref(), Some("Changed since you read it: x://a of kb."));
        assert_eq!(watched.take(None), None);
    }

    #[test]
    fn every_part_of_a_resource_says_something() {
        let folder = tempfile::tempdir().unwrap();
        let made = |part: &Value| {
            content(part, 1_000, &Outputs { directory: folder.path().to_path_buf(), ..Outputs::default() }).0
        };
        assert_eq!(made(&json!({ "uri": "x", "text": "hello" })), ContentBlock::text("hello"));
        let image = made(&json!({ "uri": "x", "mimeType": "image/png", "blob": "AAAA" }));
        assert!(matches!(image, ContentBlock::Image { .. }));
        let ContentBlock::Text { text } = made(&json!({ "mimeType": "application/zip", "blob": "AAAA" }))
        else {
            panic!("text")
        };
        assert!(text.starts_with("[3 bytes, application/zip, kept in "), "{text}");
        let ContentBlock::Text { text } = made(&json!({ "blob": "not base64!" })) else { panic!("text") };
        assert!(text.contains("not base64"), "{text}");
        assert_eq!(made(&json!({})), ContentBlock::text("[a part without content]"));
    }
}
