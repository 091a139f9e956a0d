//! Results of calls, read from the messages that bring them: what the model reads, the typed output, and what it changed.

use std::time::Duration;

use qoder_types::{ContentBlock, MessageContent};
use serde_json::Value;

use super::cell::CallResult;
use super::{Conversation, FileChange, MOST_CHANGES};

/// The longest typed output that is kept; those of tools that matter here are far shorter.
const LONGEST_STRUCTURED: usize = 512 * 1024;

impl Conversation {
    /// Takes the results in a message.
    pub(super) fn take_results(
        &mut self,
        content: &MessageContent,
        structured: Option<&Value>,
        duration_ms: Option<u64>,
    ) {
        let MessageContent::Blocks(blocks) = content else { return };
        for block in blocks {
            let ContentBlock::ToolResult { tool_use_id, content, is_error } = block else { continue };
            let structured = structured
                .filter(|value| value.to_string().len() <= LONGEST_STRUCTURED)
                .cloned()
                .unwrap_or(Value::Null);
            if !is_error {
                self.note_change(tool_use_id, &structured);
            }
            let result = CallResult {
                text: content.to_text(),
                is_error: *is_error,
                structured,
                took: duration_ms.map(Duration::from_millis),
            };
            self.finish_call(tool_use_id, result);
        }
    }

    /// Remembers what an edit changed.
    fn note_change(&mut self, tool_use_id: &str, structured: &Value) {
        let Some(call) = self.call(tool_use_id) else { return };
        let path = ["file_path", "notebook_path"].iter().find_map(|field| call.text(field));
        let Some(path) = path.map(str::to_owned) else { return };
        let diff = match call.tool.as_str() {
            "Edit" | "NotebookEdit" => structured["diff"].as_str().unwrap_or_default().to_owned(),
            "Write" => match structured["diff"].as_str() {
                Some(diff) => diff.to_owned(),
                None => additions(call.text("content").unwrap_or_default()),
            },
            _ => return,
        };
        let count = |sign: char, head: &str| {
            diff.lines().filter(|line| line.starts_with(sign) && !line.starts_with(head)).count() as u64
        };
        self.facts.lines.0 += count('+', "+++");
        self.facts.lines.1 += count('-', "---");
        if self.changes.len() == MOST_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back(FileChange { path, diff });
    }
}

/// A new file as a difference.
fn additions(content: &str) -> String {
    let count = content.lines().count();
    let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
    format!("@@ -0,0 +1,{count} @@\n{lines}")
}
