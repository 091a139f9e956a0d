//! Takes secrets out of records before they are written: the values of configured keys, and texts that have the shape
//! of a well-known token. What the model reads is what the log holds, so both see the same placeholder; a model that
//! never saw a secret cannot repeat it.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use qoder_types::record::{RecordBody, UserEntry};
use qoder_types::{ContentBlock, Hooked, MessageContent, ToolResultContent};
use regex::Regex;
use serde_json::Value;
use serde_json::value::RawValue;

/// Beginnings of well-known tokens. A text without any of them is not looked at further.
const PREFIXES: [&str; 14] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "ASIA",
    "AIza",
    "-----BEGIN",
    "npm_",
    "pypi-",
    "hf_",
];

/// Whole tokens. Each is long enough that ordinary words do not match.
const SHAPES: &str = r"(?x)
    -----BEGIN\ (?:[A-Z]+\ )*PRIVATE\ KEY-----(?s:.)*?-----END\ (?:[A-Z]+\ )*PRIVATE\ KEY-----
  | \bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{24,}
  | \bgh[pos]_[A-Za-z0-9]{30,}
  | \bgithub_pat_[A-Za-z0-9_]{40,}
  | \bglpat-[A-Za-z0-9_-]{20,}
  | \bxox[abprs]-[A-Za-z0-9-]{20,}
  | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
  | \bAIza[A-Za-z0-9_-]{35}
  | \bnpm_[A-Za-z0-9]{36}
  | \bpypi-[A-Za-z0-9_-]{50,}
  | \bhf_[A-Za-z0-9]{30,}";

const PLACEHOLDER: &str = "[redacted]";

/// Knows the secrets of one session.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    values: Vec<String>,
    learned: Learned,
}

/// Secrets that become known while a session runs, such as tokens of MCP servers.
#[derive(Clone, Debug, Default)]
pub struct Learned(Arc<RwLock<Vec<String>>>);

impl Learned {
    /// Takes a secret in; one too short to be one is ignored.
    pub fn add(&self, secret: &str) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if secret.len() >= 8 && !known.iter().any(|one| one == secret) {
            known.push(secret.to_owned());
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<String>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Redactor {
    /// A redactor for these values; ones too short to be secrets are ignored.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<String> = values.into_iter().filter(|value| value.len() >= 8).collect();
        // A longer value may contain a shorter one.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self { values, learned: Learned::default() }
    }

    /// Also takes out what is learned later.
    #[must_use]
    pub fn learning(mut self, learned: &Learned) -> Self {
        self.learned = learned.clone();
        self
    }

    /// The text without secrets.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for value in self.values.iter().chain(self.learned.read().iter()) {
            if text.contains(value.as_str()) {
                text = Cow::Owned(text.replace(value.as_str(), PLACEHOLDER));
            }
        }
        if PREFIXES.iter().any(|prefix| text.contains(prefix))
            && let Some(shapes) = shapes()
            && let Cow::Owned(replaced) = shapes.replace_all(&text, PLACEHOLDER)
        {
            text = Cow::Owned(replaced);
        }
        text
    }

    /// Takes secrets out of a record's body.
    pub fn body(&self, body: &mut RecordBody) {
        match body {
            RecordBody::User(entry) => self.user(entry),
            RecordBody::InputAdmitted(input) => self.content(&mut input.message.content),
            RecordBody::Assistant(entry) => self.reply(&mut entry.message.content),
            RecordBody::ModelFailed(failed) => self.string(&mut failed.failure.message),
            RecordBody::TurnEnded(ended) => ended.errors.iter_mut().for_each(|error| self.string(error)),
            RecordBody::Epoch(epoch) => epoch.system.iter_mut().for_each(|text| self.string(text)),
            RecordBody::Answered(answer) => {
                if let Some(input) = &mut answer.updated_input {
                    self.values_in_json(input);
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
            RecordBody::TaskEnded(task) => self.string(&mut task.summary),
            RecordBody::Hooked(hooked) => self.hooked(hooked),
            RecordBody::SessionStarted(_)
            | RecordBody::System(_)
            | RecordBody::InputWithdrawn(_)
            | RecordBody::ModelRequested(_)
            | RecordBody::Decided(_)
            | RecordBody::Asked(_)
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

    /// The JSON without secrets.
    pub(crate) fn json(&self, mut value: Value) -> Value {
        self.value(&mut value);
        value
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
    /// before a token would hide where it begins, and a value may be written with escapes.
    fn raw(&self, raw: &RawValue) -> Option<Box<RawValue>> {
        let text = raw.get();
        let escaped = |value: &String| value.contains(|c: char| matches!(c, '"' | '\\') || c.is_control());
        let suspect = PREFIXES.iter().any(|prefix| text.contains(prefix))
            || self
                .values
                .iter()
                .chain(self.learned.read().iter())
                .any(|value| escaped(value) || text.contains(value.as_str()));
        if !suspect {
            return None;
        }
        let mut value: Value = serde_json::from_str(text).ok()?;
        self.value(&mut value).then(|| serde_json::value::to_raw_value(&value).ok()).flatten()
    }

    /// True when something was taken out.
    fn value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => match self.text(text) {
                Cow::Owned(clean) => {
                    *text = clean;
                    true
                }
                Cow::Borrowed(_) => false,
            },
            // Every part is looked at, so no short circuit.
            Value::Array(items) => items.iter_mut().fold(false, |found, item| self.value(item) | found),
            Value::Object(map) => map.values_mut().fold(false, |found, item| self.value(item) | found),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
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
            ContentBlock::ToolResult { content: ToolResultContent::Text(text), .. } => self.string(text),
            ContentBlock::ToolResult { content: ToolResultContent::Blocks(blocks), .. } => {
                blocks.iter_mut().for_each(|block| self.block(block));
            }
            ContentBlock::Image { .. }
            | ContentBlock::Document { .. }
            | ContentBlock::ToolUse { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::RedactedThinking { .. }
            | ContentBlock::Unknown(_) => {}
        }
    }

    /// Takes the values of our own keys out of a reply. Shapes stay: a reply can only repeat what the model was shown,
    /// and that was clean. Reasoning that is changed does not fit its signature any more, so it is left out whole.
    fn reply(&self, content: &mut Vec<ContentBlock>) {
        content.retain(|block| match block {
            ContentBlock::Thinking { thinking, signature } => {
                !self.holds_value(thinking) && !self.holds_value(signature)
            }
            _ => true,
        });
        for block in content {
            match block {
                ContentBlock::Text { text } => self.values_in(text),
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

    fn holds_value(&self, text: &str) -> bool {
        self.values.iter().chain(self.learned.read().iter()).any(|value| text.contains(value.as_str()))
    }

    fn values_in(&self, text: &mut String) {
        for value in self.values.iter().chain(self.learned.read().iter()) {
            if text.contains(value.as_str()) {
                *text = text.replace(value.as_str(), PLACEHOLDER);
            }
        }
    }

    fn values_in_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.values_in(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.values_in_json(item)),
            Value::Object(map) => map.values_mut().for_each(|item| self.values_in_json(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A piece of a reply on its way to the host, as JSON text. Keys have no characters that JSON escapes.
    #[must_use]
    pub fn piece<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.holds_value(text) {
            return Cow::Borrowed(text);
        }
        let mut text = text.to_owned();
        self.values_in(&mut text);
        Cow::Owned(text)
    }

    fn string(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
        }
    }
}

fn shapes() -> Option<&'static Regex> {
    static COMPILED: OnceLock<Option<Regex>> = OnceLock::new();
    COMPILED.get_or_init(|| Regex::new(SHAPES).ok()).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_cleaned_string_by_string() {
        let redactor = Redactor::new(["quoted\"secret".to_owned()]);
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let clean = |value: &Value| {
            redactor.raw(&serde_json::value::to_raw_value(value).unwrap()).map(|raw| raw.get().to_owned())
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
        redactor.reply(&mut content);
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
        assert_eq!(redactor.piece(r#"{"text":"my-own-secret-value"}"#), r#"{"text":"[redacted]"}"#);
    }

    #[test]
    fn values_and_shapes_are_taken_out_and_ordinary_text_stays() {
        let redactor = Redactor::new(["my-own-secret-value".to_owned(), "short".to_owned()]);
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let cases = [
            ("key my-own-secret-value!".to_owned(), "key [redacted]!".to_owned()),
            (format!("push with {token}"), "push with [redacted]".to_owned()),
            (format!("sk-ant-api03-{}", "x".repeat(40)), "[redacted]".to_owned()),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nb".to_owned(),
                "a\n[redacted]\nb".to_owned(),
            ),
            ("a short sk-learn import of ghp_x".to_owned(), "a short sk-learn import of ghp_x".to_owned()),
        ];
        for (text, clean) in cases {
            assert_eq!(redactor.text(&text), clean);
        }
        assert!(shapes().is_some());
    }
}
