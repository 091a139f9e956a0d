//! The `scripted` model: answers from a playbook, for testing agents without a provider.
//!
//! Which reply comes next follows from the request alone: the turns so far are matched again, so a session
//! that is resumed in another process continues at the right place. Errors take the same path as an endpoint's.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use qoder_core::ports::{ModelFacts, ModelRequest, PromptMessage};
use qoder_types::{ContentBlock, MessageContent, ModelFailure, ModelFailureClass, Purpose, Role, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::calls::Endpoint;
use crate::error::ModelConfigError;
use crate::failure::{AttemptFailure, excerpt, failure};
use crate::offline::{estimate_usage, summary};
use crate::settings::Price;
use crate::settings::catalog::Entry;
use crate::wires::partial::emit_whole;
use crate::wires::reply::{Decoded, Sink};
use crate::wires::stop_reason;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Playbook {
    replies: Vec<Reply>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Reply {
    when: When,
    text: Option<String>,
    thinking: Option<String>,
    tool_calls: Vec<Call>,
    error: Option<ScriptedError>,
    delay_ms: u64,
    chunks: Option<usize>,
    stop_reason: Option<String>,
    usage: Option<Usage>,
    repeat: bool,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct When {
    turn: Option<usize>,
    contains: Option<String>,
    last_tool_result_contains: Option<String>,
    purpose: Option<Purpose>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    #[serde(default)]
    input: Option<Value>,
    id: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScriptedError {
    status: u16,
    #[serde(default)]
    message: String,
    times: Option<u32>,
    retry_after_ms: Option<u64>,
}

impl Reply {
    /// True when nothing is said once the errors are used up.
    fn is_only_error(&self) -> bool {
        self.error.is_some() && self.text.is_none() && self.thinking.is_none() && self.tool_calls.is_empty()
    }
}

/// What a turn answers to.
struct View {
    turn: usize,
    purpose: Purpose,
    said: String,
    results: String,
}

/// How far the conversation has been matched, so that a long one is not matched again at every turn.
#[derive(Default)]
struct Progress {
    /// True for the conversation of an agent.
    of_agent: bool,
    position: usize,
    last: Option<Arc<PromptMessage>>,
    turns: usize,
    used: Vec<bool>,
    failed: HashMap<(usize, usize), u32>,
}

/// Answers from a playbook.
pub(crate) struct Scripted {
    path: String,
    replies: Vec<Reply>,
    entry: Entry,
    progress: Mutex<Progress>,
}

/// What one call comes to.
enum Outcome {
    Fail(ScriptedError),
    Say(Box<Reply>),
    Summarise,
}

impl Scripted {
    /// Reads the playbook.
    pub(crate) fn open(path: &Path, entry: Entry) -> Result<Self, ModelConfigError> {
        let shown = path.display().to_string();
        let unreadable =
            |line, reason: String| ModelConfigError::Unreadable { path: shown.clone(), line, reason };
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(None, error.to_string()))?;
        let replies = parse(&text).map_err(|(line, reason)| unreadable(Some(line), reason))?;
        Ok(Self { path: shown, replies, entry, progress: Mutex::new(Progress::default()) })
    }

    /// The first reply that fits and is still there.
    fn find(&self, view: &View, used: &[bool]) -> Option<usize> {
        self.replies
            .iter()
            .enumerate()
            .find(|(index, reply)| !used.get(*index).copied().unwrap_or(false) && fits(&reply.when, view))
            .map(|(index, _)| index)
    }

    /// Takes the turns that already happened off the playbook.
    fn catch_up(&self, progress: &mut Progress, messages: &[Arc<PromptMessage>], of_agent: bool) {
        let same = match &progress.last {
            Some(last) => {
                messages.get(progress.position.wrapping_sub(1)).is_some_and(|at| Arc::ptr_eq(at, last))
            }
            None => progress.position == 0,
        };
        if !same || progress.of_agent != of_agent || progress.used.len() != self.replies.len() {
            let failed = std::mem::take(&mut progress.failed);
            let used = vec![false; self.replies.len()];
            *progress = Progress { of_agent, used, failed, ..Progress::default() };
        }
        let purpose = if of_agent { Purpose::Subagent } else { Purpose::Main };
        for (index, message) in messages.iter().enumerate().skip(progress.position) {
            if message.message.role != Role::Assistant {
                continue;
            }
            let view = view_of(&messages[progress.position..index], progress.turns + 1, purpose);
            while let Some(found) = self.find(&view, &progress.used) {
                let reply = &self.replies[found];
                if !reply.repeat {
                    progress.used[found] = true;
                }
                if reply.repeat || !reply.is_only_error() {
                    break;
                }
            }
            progress.turns += 1;
            progress.position = index + 1;
            progress.last = Some(Arc::clone(message));
        }
    }

    fn choose(&self, request: &ModelRequest) -> Result<Outcome, ModelFailure> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        self.catch_up(&mut progress, &request.messages, request.purpose == Purpose::Subagent);
        let view = view_of(&request.messages[progress.position..], progress.turns + 1, request.purpose);
        let mut used = progress.used.clone();
        while let Some(index) = self.find(&view, &used) {
            let reply = &self.replies[index];
            if let Some(error) = &reply.error {
                let failed = progress.failed.entry((index, view.turn)).or_default();
                if error.times.is_none_or(|times| *failed < times) {
                    *failed += 1;
                    return Ok(Outcome::Fail(error.clone()));
                }
                if reply.is_only_error() {
                    used[index] = true;
                    continue;
                }
            }
            return Ok(Outcome::Say(Box::new(reply.clone())));
        }
        if request.purpose == Purpose::Compact {
            return Ok(Outcome::Summarise);
        }
        Err(self.no_match(&view, &used))
    }

    fn no_match(&self, view: &View, used: &[bool]) -> ModelFailure {
        let mut message = format!(
            "the playbook {} has no reply for turn {}. Asked was: `{}`",
            self.path,
            view.turn,
            excerpt(&view.said)
        );
        if !view.results.is_empty() {
            message.push_str(&format!("; the tool results say: `{}`", excerpt(&view.results)));
        }
        message.push_str(". Its replies are:");
        for (index, reply) in self.replies.iter().enumerate().take(20) {
            let state = if used.get(index).copied().unwrap_or(false) { " (used)" } else { "" };
            message.push_str(&format!(" [{}] {}{state};", index + 1, describe(&reply.when)));
        }
        if self.replies.len() > 20 {
            message.push_str(&format!(" and {} more", self.replies.len() - 20));
        }
        failure(ModelFailureClass::Configuration, message)
    }

    async fn answer(&self, request: &ModelRequest, sink: &Sink) -> Result<Decoded, AttemptFailure> {
        let reply = match self.choose(request)? {
            Outcome::Fail(error) => return Err(to_failure(&error).into()),
            Outcome::Say(reply) => *reply,
            Outcome::Summarise => Reply { text: Some(summary::write(&request.messages)), ..Reply::default() },
        };
        if reply.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(reply.delay_ms)).await;
        }
        let content = content_of(&reply);
        let calls = !reply.tool_calls.is_empty();
        let reason = reply.stop_reason.as_deref().unwrap_or(if calls { "tool_use" } else { "end_turn" });
        let decoded = Decoded {
            id: format!("msg_{}", uuid::Uuid::new_v4().simple()),
            model: "scripted".into(),
            usage: reply.usage.unwrap_or_else(|| estimate_usage(request, &content)),
            content,
            stop_reason: Some(stop_reason(reason)),
            request_id: None,
            note: None,
        };
        if request.partial {
            emit_whole(sink.clone(), &decoded, reply.chunks.unwrap_or(4));
        }
        Ok(decoded)
    }
}

impl Endpoint for Scripted {
    fn facts(&self) -> ModelFacts {
        ModelFacts {
            name: "scripted".into(),
            provider: "scripted".into(),
            context_window: self.entry.context_window,
            max_output_tokens: self.entry.max_output_tokens,
            key_source: "none",
        }
    }

    fn price(&self) -> Option<Price> {
        self.entry.price
    }

    fn attempt<'a>(
        &'a self,
        request: &'a ModelRequest,
        sink: &'a Sink,
    ) -> BoxFuture<'a, Result<Decoded, AttemptFailure>> {
        Box::pin(self.answer(request, sink))
    }
}

fn content_of(reply: &Reply) -> Vec<ContentBlock> {
    let mut content = Vec::new();
    if let Some(thinking) = &reply.thinking {
        content.push(ContentBlock::Thinking { thinking: thinking.clone(), signature: "scripted".into() });
    }
    if let Some(text) = reply.text.as_ref().filter(|text| !text.is_empty()) {
        content.push(ContentBlock::text(text.clone()));
    }
    content.extend(reply.tool_calls.iter().map(|call| ContentBlock::ToolUse {
        id: call.id.clone().unwrap_or_else(|| format!("toolu_{}", uuid::Uuid::new_v4().simple())),
        name: call.name.clone(),
        input: call.input.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new())),
    }));
    content
}

fn to_failure(error: &ScriptedError) -> ModelFailure {
    let message = if error.message.is_empty() { "scripted error" } else { &error.message };
    ModelFailure {
        class: crate::failure::class_of_status(error.status, message),
        message: format!("the playbook answered {}: {message}", error.status),
        status: Some(error.status),
        retry_after_ms: error.retry_after_ms,
    }
}

fn fits(when: &When, view: &View) -> bool {
    when.purpose.unwrap_or(Purpose::Main) == view.purpose
        && when.turn.is_none_or(|turn| turn == view.turn)
        && when.contains.as_ref().is_none_or(|text| view.said.contains(text.as_str()))
        && when.last_tool_result_contains.as_ref().is_none_or(|text| view.results.contains(text.as_str()))
}

fn describe(when: &When) -> String {
    let mut parts = Vec::new();
    parts.extend(when.turn.map(|turn| format!("turn {turn}")));
    parts.extend(when.contains.as_ref().map(|text| format!("contains `{}`", excerpt(text))));
    parts.extend(
        when.last_tool_result_contains
            .as_ref()
            .map(|text| format!("tool result contains `{}`", excerpt(text))),
    );
    parts.extend(when.purpose.map(|purpose| format!("purpose {purpose:?}").to_lowercase()));
    if parts.is_empty() { "always".into() } else { parts.join(" and ") }
}

/// What was said and returned since the last reply.
fn view_of(messages: &[Arc<PromptMessage>], turn: usize, purpose: Purpose) -> View {
    let mut view = View { turn, purpose, said: String::new(), results: String::new() };
    let add = |kept: &mut String, text: &str| {
        if !kept.is_empty() {
            kept.push('\n');
        }
        kept.push_str(text);
    };
    for message in messages {
        match &message.message.content {
            MessageContent::Text(text) => add(&mut view.said, text),
            MessageContent::Blocks(blocks) => {
                for block in blocks {
                    match block {
                        ContentBlock::Text { text } => add(&mut view.said, text),
                        ContentBlock::ToolResult { content, .. } => {
                            add(&mut view.results, &content.to_text())
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    view
}

/// Reads a playbook: an object with `replies`, a list of replies, or one reply per line. Lines that start with `//` are
/// comments. The error names the line.
fn parse(text: &str) -> Result<Vec<Reply>, (usize, String)> {
    // Some editors put a byte order mark in front.
    let text: String = text
        .trim_start_matches('\u{feff}')
        .lines()
        .map(|line| if line.trim_start().starts_with("//") { "\n".into() } else { format!("{line}\n") })
        .collect();
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(&text).map_err(|error| (error.line(), error.to_string()));
    }
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let by_lines = serde_json::from_str::<Value>(first)
        .is_ok_and(|value| value.is_object() && value.get("replies").is_none());
    if !by_lines {
        return serde_json::from_str::<Playbook>(&text)
            .map(|playbook| playbook.replies)
            .map_err(|error| (error.line(), error.to_string()));
    }
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| serde_json::from_str(line).map_err(|error| (index + 1, error.to_string())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn playbooks_come_in_three_forms_with_comments() {
        let object = "{\n// hello\n\"replies\": [{\"text\": \"a\"}, {\"text\": \"b\"}]}";
        assert_eq!(parse(object).unwrap().len(), 2);
        assert_eq!(parse("\u{feff}[{\"text\":\"a\"}]").unwrap().len(), 1);
        assert_eq!(parse("\u{feff}// a mark in front\n{\"text\":\"a\"}").unwrap().len(), 1);
        assert_eq!(
            parse("// one per line\n{\"text\":\"a\"}\n\n{\"text\":\"b\",\"repeat\":true}").unwrap().len(),
            2
        );
    }

    #[test]
    fn mistakes_name_their_line() {
        let (line, reason) = parse("{\"replies\": [\n{\"text\": \"a\"},\n{\"txt\": \"b\"}]}").unwrap_err();
        assert_eq!(line, 3);
        assert!(reason.contains("txt"), "{reason}");
        assert_eq!(parse("{\"text\":\"a\"}\n{\"text\":").unwrap_err().0, 2);
        assert_eq!(parse("nonsense").unwrap_err().0, 1);
    }
}
