//! Takes secrets out of records before they are written, with the one engine in [`qoder_core::redact`]. What the model
//! reads is what the log holds, so both see the same placeholder; a model that never saw a secret cannot repeat it.

use std::borrow::Cow;
use std::sync::Arc;

use qoder_core::redact::Secrets;
use qoder_types::record::{RecordBody, UserEntry};
use qoder_types::{ContentBlock, Hooked, MessageContent, ToolResultContent};
use serde_json::Value;
use serde_json::value::RawValue;

pub use qoder_core::redact::{Learned, Redactor};

use crate::telemetry::Clean;

/// Takes the secrets that a redactor knows out of texts.
pub(crate) fn cleaning(redactor: Redactor) -> Clean {
    Arc::new(move |text| redactor.text(text).into_owned())
}

/// Takes secrets out of a record's body.
pub(crate) fn redact_body(redactor: &Redactor, body: &mut RecordBody) {
    Records { redactor }.body(body);
}

struct Records<'a> {
    redactor: &'a Redactor,
}

impl Records<'_> {
    fn body(&self, body: &mut RecordBody) {
        match body {
            RecordBody::User(entry) => self.user(entry),
            RecordBody::InputAdmitted(input) => self.content(&mut input.message.content),
            RecordBody::Assistant(entry) => self.reply(&mut entry.message.content),
            RecordBody::ModelFailed(failed) => self.string(&mut failed.failure.message),
            RecordBody::ModelNoticed(noticed) => self.string(&mut noticed.message),
            RecordBody::TurnEnded(ended) => ended.errors.iter_mut().for_each(|error| self.string(error)),
            RecordBody::Epoch(epoch) => epoch.system.iter_mut().for_each(|text| self.string(text)),
            RecordBody::Answered(answer) => {
                answer.message.iter_mut().for_each(|message| self.string(message));
                if let Some(input) = &mut answer.updated_input {
                    self.values_in_json(input);
                }
                if let Some(result) = &mut answer.result {
                    self.result(&mut result.content);
                }
            }
            RecordBody::Elicited(question) => {
                self.string(&mut question.message);
                if let Some(schema) = &mut question.requested_schema {
                    self.values_in_json(schema);
                }
            }
            RecordBody::TaskStarted(task) => {
                self.string(&mut task.description);
                self.string(&mut task.command);
            }
            RecordBody::TaskParked(parked) => {
                parked.calls.iter_mut().for_each(|call| self.string(&mut call.reason));
                if let Some(input) = &mut parked.input {
                    self.values_in_json(input);
                }
            }
            RecordBody::TaskEnded(task) => self.string(&mut task.summary),
            RecordBody::Hooked(hooked) => self.hooked(hooked),
            RecordBody::System(entry) => self.string(&mut entry.content),
            RecordBody::Decided(decided) => self.string(&mut decided.decision.reason),
            RecordBody::Asked(asked) => self.string(&mut asked.decision.reason),
            RecordBody::SessionStarted(_)
            | RecordBody::InputWithdrawn(_)
            | RecordBody::ModelRequested(_)
            | RecordBody::SideCalled(_)
            | RecordBody::ElicitationAnswered(_)
            | RecordBody::PermissionsChanged(_)
            | RecordBody::ToolStarted(_)
            | RecordBody::Interrupted(_)
            | RecordBody::Cut(_)
            | RecordBody::FileKept(_)
            | RecordBody::FilesRewound(_)
            | RecordBody::Unknown(_) => {}
        }
    }

    fn hooked(&self, hooked: &mut Hooked) {
        if let Some(input) = &mut hooked.updated_input {
            self.values_in_json(input);
        }
        let texts = [&mut hooked.reason, &mut hooked.additional_context, &mut hooked.stop];
        texts.into_iter().flatten().for_each(|text| self.string(text));
        hooked.runs.iter_mut().filter_map(|run| run.problem.as_mut()).for_each(|text| self.string(text));
    }

    fn user(&self, entry: &mut UserEntry) {
        self.content(&mut entry.message.content);
        if let Some(typed) = &mut entry.typed {
            self.string(typed);
        }
        if let Some(raw) = &entry.tool_use_result
            && let Some(clean) = self.raw(raw)
        {
            entry.tool_use_result = Some(clean);
        }
    }

    /// The JSON without secrets, if it has any. Looked at string by string: in the raw text an escape such as `\n` right
    /// before a token would hide where it begins.
    fn raw(&self, raw: &RawValue) -> Option<Box<RawValue>> {
        if !self.redactor.may_find(raw.get()) {
            return None;
        }
        let mut value: Value = serde_json::from_str(raw.get()).ok()?;
        let found = self.redactor.json(&mut value, Secrets::All);
        found.then(|| serde_json::value::to_raw_value(&value).ok()).flatten()
    }

    fn content(&self, content: &mut MessageContent) {
        match content {
            MessageContent::Text(text) => self.string(text),
            MessageContent::Blocks(blocks) => blocks.iter_mut().for_each(|block| self.block(block)),
        }
    }

    fn block(&self, block: &mut ContentBlock) {
        match block {
            ContentBlock::Text { text } => self.string(text),
            ContentBlock::ToolResult { content, .. } => self.result(content),
            ContentBlock::Image { .. }
            | ContentBlock::Document { .. }
            | ContentBlock::ToolUse { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::RedactedThinking { .. }
            | ContentBlock::Unknown(_) => {}
        }
    }

    fn result(&self, content: &mut ToolResultContent) {
        match content {
            ToolResultContent::Text(text) => self.string(text),
            ToolResultContent::Blocks(blocks) => blocks.iter_mut().for_each(|block| self.block(block)),
        }
    }

    /// Takes secrets out of a reply. Reasoning that is changed no longer fits its signature, so it is left out whole. The input of a call loses the values of keys alone: it runs as it is on record.
    fn reply(&self, content: &mut Vec<ContentBlock>) {
        content.retain(|block| match block {
            ContentBlock::Thinking { thinking, signature } => {
                !self.redactor.finds(thinking) && !self.redactor.finds(signature)
            }
            _ => true,
        });
        for block in content {
            match block {
                ContentBlock::Text { text } => self.string(text),
                ContentBlock::ToolUse { input, .. } => self.values_in_json(input),
                ContentBlock::Image { .. }
                | ContentBlock::Document { .. }
                | ContentBlock::ToolResult { .. }
                | ContentBlock::Thinking { .. }
                | ContentBlock::RedactedThinking { .. }
                | ContentBlock::Unknown(_) => {}
            }
        }
    }

    fn values_in_json(&self, value: &mut Value) {
        self.redactor.json(value, Secrets::Values);
    }

    fn string(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.redactor.text(text) {
            *text = clean;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_cleaned_string_by_string() {
        let redactor = Redactor::new(["quoted\"secret".to_owned()]);
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let clean = |value: &Value| {
            Records { redactor: &redactor }
                .raw(&serde_json::value::to_raw_value(value).unwrap())
                .map(|raw| raw.get().to_owned())
        };
        let dirty = serde_json::json!({"a": format!("1\n{token}"), "b": ["x", "quoted\"secret"], "c": 1.5});
        assert_eq!(clean(&dirty).as_deref(), Some(r#"{"a":"1\n[redacted]","b":["x","[redacted]"],"c":1.5}"#));
        assert_eq!(clean(&serde_json::json!({"a": "a task-list"})), None);
    }

    #[test]
    fn a_reply_loses_our_own_keys_wherever_they_stand() {
        let redactor = Redactor::new(["my-own-secret-value".to_owned()]);
        let mut content = vec![
            ContentBlock::Thinking {
                thinking: "the key is my-own-secret-value".into(),
                signature: "s".into(),
            },
            ContentBlock::Thinking { thinking: "harmless".into(), signature: "t".into() },
            ContentBlock::text("it is my-own-secret-value"),
            ContentBlock::ToolUse {
                id: "1".into(),
                name: "Bash".into(),
                input: serde_json::json!({"command": "echo my-own-secret-value", "list": ["my-own-secret-value"]}),
            },
        ];
        Records { redactor: &redactor }.reply(&mut content);
        let expected = vec![
            ContentBlock::Thinking { thinking: "harmless".into(), signature: "t".into() },
            ContentBlock::text("it is [redacted]"),
            ContentBlock::ToolUse {
                id: "1".into(),
                name: "Bash".into(),
                input: serde_json::json!({"command": "echo [redacted]", "list": ["[redacted]"]}),
            },
        ];
        assert_eq!(content, expected);
    }
}
