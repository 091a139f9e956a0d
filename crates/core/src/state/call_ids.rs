//! Ids of calls. Some endpoints count calls anew in every reply, so an id of theirs may come again; logs of earlier
//! versions and of other programs hold such ids. Records keep them as they are, and the conversation that the model reads
//! has every id once, because endpoints refuse one that comes twice.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use qoder_types::ContentBlock;

use crate::state::Call;

/// The ids of all calls of a session.
#[derive(Debug, Clone, Default)]
pub struct CallIds {
    /// Those on record, and those that stand for repeated ones in the conversation.
    taken: Arc<HashSet<String>>,
    /// By the id in the conversation: the one on record, where they differ.
    recorded: HashMap<String, String>,
    /// By the id on record: the one in the conversation, for calls of the last reply.
    current: HashMap<String, String>,
}

impl CallIds {
    /// Every id that a new call must not have.
    #[must_use]
    pub fn taken(&self) -> Arc<HashSet<String>> {
        Arc::clone(&self.taken)
    }

    /// Takes the calls of a reply on their way into the conversation: repeated ids are replaced there. Of two calls with
    /// one id in one reply only the first can be answered, so only that one is kept.
    pub(crate) fn take_reply(&mut self, content: &mut Vec<ContentBlock>) {
        self.current.clear();
        let mut known: HashSet<String> = HashSet::new();
        content.retain(|block| match block {
            ContentBlock::ToolUse { id, .. } => known.insert(id.clone()),
            _ => true,
        });
        if known.is_empty() {
            return;
        }
        let taken = Arc::make_mut(&mut self.taken);
        for block in content {
            let ContentBlock::ToolUse { id, .. } = block else { continue };
            if taken.insert(id.clone()) {
                continue;
            }
            let mut number = 2_u64;
            let other = loop {
                let other = format!("{id}_{number}");
                if !known.contains(&other) && taken.insert(other.clone()) {
                    break other;
                }
                number += 1;
            };
            self.recorded.insert(other.clone(), id.clone());
            self.current.insert(id.clone(), other.clone());
            *id = other;
        }
    }

    /// A result on its way into the conversation.
    pub(crate) fn take_result(&self, mut result: ContentBlock) -> ContentBlock {
        if let ContentBlock::ToolResult { tool_use_id, .. } = &mut result
            && let Some(other) = self.current.get(tool_use_id)
        {
            tool_use_id.clone_from(other);
        }
        result
    }

    /// Calls that were read back from the conversation get their ids on record.
    pub(crate) fn restore(&mut self, calls: &mut [Call]) {
        self.current.clear();
        for call in calls {
            if let Some(recorded) = self.recorded.get(&call.id) {
                let other = std::mem::replace(&mut call.id, recorded.clone());
                self.current.insert(recorded.clone(), other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(id: &str) -> ContentBlock {
        ContentBlock::ToolUse { id: id.to_owned(), name: "Bash".to_owned(), input: json!({}) }
    }

    fn ids(content: &[ContentBlock]) -> Vec<&str> {
        let mut ids = Vec::new();
        for block in content {
            if let ContentBlock::ToolUse { id, .. } = block {
                ids.push(id.as_str());
            }
        }
        ids
    }

    #[test]
    fn an_id_that_comes_again_is_another_one_in_the_conversation() {
        let mut all = CallIds::default();
        let mut replies =
            [vec![call("a"), call("b")], vec![call("a"), call("a_2"), call("a")], vec![call("a")]];
        for reply in &mut replies {
            all.take_reply(reply);
        }
        assert_eq!(ids(&replies[0]), ["a", "b"]);
        assert_eq!(ids(&replies[1]), ["a_3", "a_2"]);
        assert_eq!(ids(&replies[2]), ["a_4"]);
        let result = ContentBlock::ToolResult {
            tool_use_id: "a".to_owned(),
            content: qoder_types::ToolResultContent::Text(String::new()),
            is_error: false,
        };
        let taken = all.take_result(result);
        assert!(matches!(taken, ContentBlock::ToolResult { tool_use_id, .. } if tool_use_id == "a_4"));
    }
}
