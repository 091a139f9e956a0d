//! Copies of sessions that are entries of a store and not records of a local log: messages get ids of their own, and
//! what belongs to the original alone stays behind.

use std::collections::HashMap;

use qoder_runtime::session::{new_id, timestamp};
use serde_json::{Map, Value, json};

use crate::{Error, Result};

/// The links of a conversation.
const CHAINED: [&str; 4] = ["user", "assistant", "system", "attachment"];
/// What belongs to the original session only.
const DROPPED: [&str; 8] =
    ["teamName", "agentName", "slug", "sourceToolAssistantUUID", "seq", "crc", "v", "blobs"];

/// The entries of a copy, up to and including a message when one is named.
///
/// # Errors
/// When the message does not exist, or there is nothing to copy.
pub(crate) fn fork_entries(
    entries: &[Value],
    session_id: &str,
    new_session: &str,
    up_to: Option<&str>,
) -> Result<Vec<Value>> {
    let links: Vec<&Map<String, Value>> = entries.iter().filter_map(Value::as_object).collect();
    let mut links: Vec<&Map<String, Value>> = links.into_iter().filter(|entry| is_link(entry)).collect();
    if let Some(message) = up_to {
        let Some(at) = links.iter().position(|entry| text(entry, "uuid") == Some(message)) else {
            return Err(Error::option(
                "up_to_message_id",
                format!("session {session_id} has no message {message}"),
                "get_session_messages() shows them",
            ));
        };
        links.truncate(at + 1);
    }
    if !links.iter().any(|entry| matches!(text(entry, "type"), Some("user" | "assistant"))) {
        return Err(Error::option(
            "fork_session",
            format!("session {session_id} has no messages to copy"),
            "start a new session",
        ));
    }
    Ok(copied(&links, session_id, new_session))
}

fn is_link(entry: &Map<String, Value>) -> bool {
    let kind = text(entry, "type").unwrap_or_default();
    (CHAINED.contains(&kind) || kind == "progress")
        && text(entry, "uuid").is_some()
        && entry.get("isSidechain") != Some(&Value::Bool(true))
}

fn text<'a>(entry: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    entry.get(key).and_then(Value::as_str)
}

fn copied(links: &[&Map<String, Value>], session_id: &str, new_session: &str) -> Vec<Value> {
    let is_kept =
        |entry: &Map<String, Value>| text(entry, "type").is_some_and(|kind| CHAINED.contains(&kind));
    let ids = links.iter().filter(|entry| is_kept(entry));
    let ids: HashMap<&str, String> = ids.filter_map(|entry| Some((text(entry, "uuid")?, new_id()))).collect();
    let parents: HashMap<&str, Option<&str>> =
        links.iter().filter_map(|entry| Some((text(entry, "uuid")?, text(entry, "parentUuid")))).collect();
    let mut copies = Vec::new();
    for entry in links.iter().filter(|entry| is_kept(entry)) {
        let mut parent = text(entry, "parentUuid");
        // A link that is not copied is bridged; so many steps at most, in case the chain bites its own tail.
        for _ in 0..links.len() {
            match parent {
                Some(id) if !ids.contains_key(id) => parent = parents.get(id).copied().flatten(),
                Some(_) | None => break,
            }
        }
        let mut copy: Map<String, Value> = (*entry).clone();
        copy.retain(|key, _| !DROPPED.contains(&key.as_str()));
        let original = text(entry, "uuid").unwrap_or_default();
        let logical = text(entry, "logicalParentUuid").and_then(|id| ids.get(id));
        copy.insert("uuid".to_owned(), json!(ids.get(original)));
        copy.insert("parentUuid".to_owned(), json!(parent.and_then(|id| ids.get(id))));
        copy.insert("logicalParentUuid".to_owned(), json!(logical));
        copy.insert("sessionId".to_owned(), json!(new_session));
        copy.insert("isSidechain".to_owned(), json!(false));
        copy.insert("forkedFrom".to_owned(), json!({ "sessionId": session_id, "messageUuid": original }));
        copies.push(Value::Object(copy));
    }
    if let Some(last) = copies.last_mut() {
        last["timestamp"] = json!(timestamp());
    }
    copies
}
