//! Copies of sessions that are entries of a store and not records of a local log: messages get ids of their own, and
//! what belongs to the original alone stays behind.

use std::collections::HashMap;

use qoder_runtime::sessions::{new_id, timestamp};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};

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
    let mut links: Vec<&Map<String, Value>> = Vec::new();
    let mut found = up_to.is_none();
    for entry in entries.iter().filter_map(Value::as_object) {
        if text(entry, "type") == Some("cut") {
            // The conversation went on from here, or began anew; what was left out stays out of the copy.
            let at = text(entry, "at");
            let place = at.and_then(|at| links.iter().position(|link| text(link, "uuid") == Some(at)));
            links.truncate(place.map_or(0, |place| place + 1));
        } else if is_link(entry) {
            links.push(entry);
        }
        if up_to.is_some() && text(entry, "uuid") == up_to {
            found = true;
            break;
        }
    }
    if let Some(message) = up_to.filter(|_| !found) {
        return Err(Error::option(
            "up_to_message_id",
            format!("session {session_id} has no message {message}"),
            "get_session_messages() shows them",
        ));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_conversation_went_back_from_stays_out_of_a_copy() {
        let said =
            |uuid: &str, parent: Option<&str>| json!({ "type": "user", "uuid": uuid, "parentUuid": parent });
        let log = [
            said("before", None),
            json!({ "type": "cut", "at": null, "messages": 0 }),
            said("kept", None),
            said("back", Some("kept")),
            json!({ "type": "cut", "at": "kept", "messages": 1 }),
            said("after", Some("kept")),
        ];
        let copied = |up_to| -> Vec<String> {
            let copy = fork_entries(&log, "old", "new", up_to).unwrap();
            let original = |entry: &Value| entry["forkedFrom"]["messageUuid"].as_str().unwrap().to_owned();
            copy.iter().map(original).collect()
        };
        assert_eq!(copied(None), ["kept", "after"]);
        assert_eq!(copied(Some("back")), ["kept", "back"]);
        assert_eq!(fork_entries(&log, "old", "new", Some("absent")).unwrap_err().code(), "invalid_option");
        assert!(fork_entries(&log[..2], "old", "new", None).is_err(), "nothing is left to copy");
    }
}
