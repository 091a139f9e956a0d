//! Ids for the calls of a reply: what the endpoint gave, where no other call of the session has it, else one of ours. The
//! pieces of a reply are sent with the same ids as the reply itself.

use std::collections::HashSet;
use std::sync::Arc;

use qoder_types::ContentBlock;
use serde_json::Value;

use crate::session::new_id;

/// The longest id that is taken as it came.
const LONGEST: usize = 256;

/// Gives the calls of one reply their ids.
pub(crate) struct CallNames {
    /// The ids of all other calls of the session.
    taken: Arc<HashSet<String>>,
    /// In order, what the endpoint sent and what the call is named.
    given: Vec<(String, String)>,
}

impl CallNames {
    /// For a reply that begins.
    pub(crate) fn new(taken: Arc<HashSet<String>>) -> Self {
        Self { taken, given: Vec::new() }
    }

    /// The reply begins again.
    pub(crate) fn restart(&mut self) {
        self.given.clear();
    }

    /// The event that begins a block, with the id of its call.
    pub(crate) fn name_event(&mut self, event: String) -> String {
        if !event.contains("tool_use") {
            return event;
        }
        let Ok(mut value) = serde_json::from_str::<Value>(&event) else { return event };
        let Some(block) = value.get_mut("content_block").filter(|block| block["type"] == "tool_use") else {
            return event;
        };
        let sent = block["id"].as_str().unwrap_or_default().to_owned();
        let name = self.give(&sent);
        if name == sent {
            return event;
        }
        block["id"] = Value::String(name);
        value.to_string()
    }

    /// Names the calls of the complete reply.
    pub(crate) fn name_reply(mut self, content: &mut [ContentBlock]) {
        let told = std::mem::take(&mut self.given);
        let calls = content.iter_mut().filter_map(|block| match block {
            ContentBlock::ToolUse { id, .. } => Some(id),
            _ => None,
        });
        for (number, id) in calls.enumerate() {
            match told.get(number).filter(|(sent, _)| sent.is_empty() || sent == id) {
                Some((_, name)) if self.is_free(name) => {
                    self.given.push((id.clone(), name.clone()));
                    id.clone_from(name);
                }
                Some(_) | None => *id = self.give(id),
            }
        }
    }

    fn is_free(&self, id: &str) -> bool {
        !self.taken.contains(id) && self.given.iter().all(|(_, name)| name != id)
    }

    fn give(&mut self, sent: &str) -> String {
        let usable = !sent.trim().is_empty() && sent.len() <= LONGEST && !sent.contains(char::is_control);
        let name = if usable && self.is_free(sent) {
            sent.to_owned()
        } else {
            format!("toolu_{}", new_id().replace('-', ""))
        };
        self.given.push((sent.to_owned(), name.clone()));
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(id: &str) -> ContentBlock {
        ContentBlock::ToolUse { id: id.to_owned(), name: "Bash".to_owned(), input: json!({}) }
    }

    fn ids(content: &[ContentBlock]) -> Vec<String> {
        let id = |block: &ContentBlock| match block {
            ContentBlock::ToolUse { id, .. } => Some(id.clone()),
            _ => None,
        };
        content.iter().filter_map(id).collect()
    }

    fn names(taken: &[&str]) -> CallNames {
        CallNames::new(Arc::new(taken.iter().map(|id| (*id).to_owned()).collect()))
    }

    #[test]
    fn ids_that_are_taken_empty_or_unusable_are_replaced() {
        let mut content = [call("call_0"), call("call_1"), call("call_1"), call(""), call("a\nb")];
        names(&["call_0"]).name_reply(&mut content);
        let ids = ids(&content);
        assert_eq!(ids[1], "call_1");
        let ours = |id: &String| id.starts_with("toolu_") && id.len() == 38;
        assert!([0, 2, 3, 4].iter().all(|at| ours(&ids[*at])), "{ids:?}");
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 5);
    }

    #[test]
    fn pieces_have_the_ids_of_the_reply() {
        let start = |index: u64, id: Value| {
            json!({ "type": "content_block_start", "index": index,
                "content_block": { "type": "tool_use", "id": id, "name": "Bash", "input": {} } })
            .to_string()
        };
        let mut names = names(&["call_0"]);
        names.name_event(start(0, json!("call_7")));
        names.restart();
        let told: Vec<String> = [json!("call_0"), json!("call_1"), Value::Null]
            .into_iter()
            .enumerate()
            .map(|(index, id)| {
                let event: Value = serde_json::from_str(&names.name_event(start(index as u64, id))).unwrap();
                event["content_block"]["id"].as_str().unwrap().to_owned()
            })
            .collect();
        let mut content = [call("call_0"), call("call_1"), call("toolu_made_up")];
        names.name_reply(&mut content);
        assert_eq!(ids(&content), told);
        assert_eq!(told[1], "call_1");
        assert!(told[0] != "call_0" && !told[2].is_empty());
    }
}
