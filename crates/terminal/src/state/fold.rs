//! Messages, one by one: what each adds to the cells, the figures and the lists.

use std::time::{Duration, Instant};

use qoder_protocol::SessionState;
use qoder_protocol::messages::{
    AssistantContent, ResultMessage, StreamMessage, SystemMessage, UserMessage, Word,
};
use qoder_types::record::TerminalReason;
use qoder_types::{ContentBlock, MessageContent, PermissionMode};
use serde_json::Value;

use super::cell::{CellBody, Level, Prompt, TurnEnd};
use super::partial::Kind;
use super::tasks::{Task, TaskEnd};
use super::{AgentProgress, Conversation};

/// A turn that took longer says so.
const LONG_TURN: Duration = Duration::from_secs(10);

impl Conversation {
    pub(super) fn fold_message(&mut self, message: &StreamMessage, now: Instant) {
        match message {
            StreamMessage::Assistant(reply) => match &reply.parent_tool_use_id {
                None => {
                    self.entry = reply.uuid.clone().unwrap_or_default();
                    self.fold_reply(&reply.message, reply.error.as_deref(), now);
                }
                Some(parent) => self.fold_agent(parent, &reply.message),
            },
            StreamMessage::User(message) if message.parent_tool_use_id.is_some() => {}
            StreamMessage::User(message) => self.fold_user(message, now),
            StreamMessage::PromptSuggestion(_) => {}
            StreamMessage::System(message) => self.fold_system(message, now),
            StreamMessage::Result(result) => self.fold_result(result, now),
        }
    }

    /// A prompt, or the results of tools.
    fn fold_user(&mut self, message: &UserMessage, now: Instant) {
        let uuid = message.uuid.as_deref().unwrap_or_default();
        let content = &message.message.content;
        if message.is_replay {
            self.show_prompt(prompt(uuid, content, message.typed.as_deref()));
            self.facts.begin_turn(now);
        } else {
            uuid.clone_into(&mut self.entry);
            self.take_results(content, message.tool_use_result.as_ref(), message.duration_ms);
        }
    }

    /// A complete reply: what was being written of it is replaced.
    fn fold_reply(&mut self, message: &AssistantContent, error: Option<&str>, now: Instant) {
        if self.is_caught_up {
            self.facts.begin_turn(now);
        }
        if error.is_some() {
            // The end of the turn says the same.
            self.abandon_partial(now);
            return;
        }
        let context = tokens(message);
        if context > 0 {
            self.facts.context_tokens = context;
        }
        for (index, block) in message.content.iter().enumerate() {
            match block {
                ContentBlock::Text { text } => self.finish_text(index, text),
                ContentBlock::Thinking { thinking, .. } => self.finish_thinking(index, thinking, now),
                ContentBlock::ToolUse { id, name, input } => self.add_call(index, (id, name, input), now),
                ContentBlock::RedactedThinking { .. }
                | ContentBlock::Image { .. }
                | ContentBlock::Document { .. }
                | ContentBlock::ToolResult { .. }
                | ContentBlock::Unknown(_) => {}
            }
        }
        self.abandon_partial(now);
    }

    fn finish_text(&mut self, index: usize, text: &str) {
        let place = self.take_block(index, Kind::Text);
        if text.trim().is_empty() {
            self.cells.retain(|cell| Some(cell.id) != place);
            return;
        }
        text.clone_into(&mut self.last_reply);
        self.turn_spoke = true;
        let body = CellBody::Reply { text: text.to_owned() };
        let entry = self.entry.clone();
        match place.and_then(|place| self.cell_mut(place)) {
            Some(cell) => (cell.body, cell.is_finished, cell.entry) = (body, true, entry),
            None => {
                self.push(body, true);
            }
        }
    }

    fn finish_thinking(&mut self, index: usize, text: &str, now: Instant) {
        let place = self.take_block(index, Kind::Thinking);
        match place.and_then(|place| self.cell_mut(place)) {
            Some(cell) => {
                if let CellBody::Thinking { text: shown, took, since } = &mut cell.body {
                    text.clone_into(shown);
                    if let Some(since) = since {
                        took.get_or_insert_with(|| now.saturating_duration_since(*since));
                    }
                }
                cell.is_finished = true;
            }
            None if text.trim().is_empty() => {}
            None => {
                self.push(CellBody::Thinking { text: text.to_owned(), took: None, since: None }, true);
            }
        }
    }

    /// A reply of an agent: its calls are what it does.
    fn fold_agent(&mut self, parent: &str, message: &AssistantContent) {
        let used = tokens(message);
        let Some(call) = self.call_mut(parent) else { return };
        let progress = call.agent.get_or_insert_with(AgentProgress::default);
        progress.tokens += used;
        for block in &message.content {
            if let ContentBlock::ToolUse { name, input, .. } = block {
                progress.calls += 1;
                progress.last_tool = Some(name.clone());
                progress.about = about(input);
            }
        }
    }

    fn fold_system(&mut self, message: &SystemMessage, now: Instant) {
        match message {
            SystemMessage::Init(init) => {
                self.facts.take_init(init);
                self.facts.begin_turn(now);
            }
            SystemMessage::ApiRetry { attempt, max_retries, retry_delay_ms, error, .. } => {
                let wait = retry_delay_ms.div_ceil(1000);
                let text = format!("retrying in {wait} s ({attempt}/{max_retries}): {error}");
                self.facts.set_activity(Some(text));
            }
            SystemMessage::CompactBoundary { compact_metadata, .. } => {
                let tokens = compact_metadata.pre_tokens;
                self.rule(format!("conversation summarised, {tokens} tokens before"));
            }
            SystemMessage::ConversationCut { at: None, .. } => {
                self.prompts.clear();
                self.rule("new conversation");
            }
            SystemMessage::ConversationCut { at: Some(at), .. } => self.cut_back_to(at),
            SystemMessage::Status { status, permission_mode, .. } => {
                if let Some(mode) = permission_mode.as_deref().and_then(PermissionMode::parse) {
                    self.facts.mode = mode;
                } else {
                    let doing = status.as_deref().map(|status| match status {
                        "compacting" => "summarising the conversation".to_owned(),
                        other => other.to_owned(),
                    });
                    self.facts.set_activity(doing);
                }
            }
            SystemMessage::LocalCommandOutput { content, .. } => {
                self.turn_spoke = true;
                self.command_output(content.clone());
            }
            SystemMessage::SessionStateChanged { state, .. } => match SessionState::parse(state) {
                Some(SessionState::Idle) => {
                    self.facts.state = SessionState::Idle;
                    self.facts.turn = None;
                }
                Some(state) => {
                    self.facts.begin_turn(now);
                    self.facts.state = state;
                }
                None => {}
            },
            SystemMessage::PermissionDenied { tool_name, tool_use_id, decision_reason, .. } => {
                self.deny_call(tool_name, tool_use_id, decision_reason);
            }
            SystemMessage::HookStarted { .. }
            | SystemMessage::HookProgress { .. }
            | SystemMessage::HookResponse { .. } => {}
            SystemMessage::Notice { message, .. } => self.notice(Level::Warning, message.clone()),
            SystemMessage::McpStatusChange { servers, .. } => self.fold_servers(servers),
            SystemMessage::TaskStarted { task_id, description, task_type, .. } => {
                let is_agent = task_type == qoder_types::AGENT_TASK;
                self.tasks.started(Task::new(task_id, description, is_agent, now));
            }
            SystemMessage::TaskProgress { task_id, usage, last_tool_name, summary, .. } => {
                self.tasks.progressed(task_id, *usage, last_tool_name.as_ref(), summary.as_ref());
            }
            SystemMessage::TaskNotification {
                task_id, tool_use_id, status, output_file, summary, ..
            } => {
                let (status, output_file) = (status.clone(), output_file.clone());
                let end = TaskEnd { status, summary: summary.clone(), output_file };
                self.end_task(task_id, tool_use_id, end);
            }
        }
    }

    fn end_task(&mut self, task_id: &str, tool_use_id: &str, end: TaskEnd) {
        let level = if end.status == "completed" { Level::Info } else { Level::Warning };
        let text = match end.summary.as_str() {
            "" => format!("Background task {}", end.status),
            summary => summary.to_owned(),
        };
        let is_news = self.tasks.ended(task_id, end);
        // A call that is still open says how its agent ended by its own result.
        if is_news && self.call(tool_use_id).is_none_or(super::Call::is_done) {
            self.notice(level, text);
        }
    }

    /// Servers that want something of the person are reported once.
    fn fold_servers(&mut self, servers: &[Value]) {
        for row in servers {
            let (Some(name), Some(status)) = (row["name"].as_str(), row["status"].as_str()) else { continue };
            let text = match status {
                "needs-auth" => format!("MCP server `{name}` needs a sign-in: /mcp"),
                "failed" => {
                    let error = row["error"].as_str().unwrap_or("it did not start");
                    format!("MCP server `{name}` failed: {error}")
                }
                _ => {
                    let before = self.reported_servers.len();
                    self.reported_servers.retain(|(known, _)| known != name);
                    if status == "connected" && self.reported_servers.len() < before {
                        self.notice(Level::Info, format!("MCP server `{name}` is connected"));
                    }
                    continue;
                }
            };
            if self.reported_servers.insert((name.to_owned(), status.to_owned())) {
                self.notice(Level::Warning, text);
            }
        }
    }

    /// The conversation continues from an entry. What is not printed yet is taken back; the rest is marked.
    fn cut_back_to(&mut self, at: &str) {
        let place = self.cells.iter().rposition(|cell| cell.entry == at);
        match place {
            Some(place) if !self.is_caught_up || self.holds_all => self.cells.truncate(place + 1),
            Some(_) | None => self.rule("the conversation was taken back to an earlier message"),
        }
        if let Some(place) = self.prompts.iter().position(|prompt| prompt.uuid == at) {
            self.prompts.truncate(place + 1);
        }
    }

    fn fold_result(&mut self, result: &ResultMessage, now: Instant) {
        self.close_open(now);
        self.settle_todo();
        let spoke = std::mem::take(&mut self.turn_spoke);
        self.facts.take_result(result);
        let reason = result.terminal_reason.as_ref().and_then(Word::known);
        let end = match reason.unwrap_or(TerminalReason::Completed) {
            TerminalReason::AbortedStreaming | TerminalReason::AbortedTools => Some(TurnEnd::Interrupted),
            TerminalReason::MaxTurns | TerminalReason::MaxBudget | TerminalReason::MaxTaskBudget => {
                Some(TurnEnd::Limit(result.errors.join("; ")))
            }
            TerminalReason::Completed
            | TerminalReason::ApiError
            | TerminalReason::HookStopped
            | TerminalReason::StructuredOutputRetries
                if result.is_error =>
            {
                Some(TurnEnd::Failed(result.errors.clone()))
            }
            TerminalReason::Completed
            | TerminalReason::ApiError
            | TerminalReason::HookStopped
            | TerminalReason::StructuredOutputRetries => {
                // What a built-in command said is on record with the end of its turn alone.
                if let Some(text) = result.result.as_ref().filter(|text| !spoke && !text.is_empty()) {
                    self.command_output(text.clone());
                }
                let took = Duration::from_millis(result.duration_ms);
                (took >= LONG_TURN)
                    .then_some(TurnEnd::Done { took, cost: result.total_cost_usd.unwrap_or_default() })
            }
        };
        if let Some(end) = end {
            self.push(CellBody::End(end), true);
        }
    }
}

/// What a reply holds of the model's context.
fn tokens(reply: &AssistantContent) -> u64 {
    reply.usage.map_or(0, |usage| usage.total_input() + usage.output_tokens)
}

/// A prompt as the person wrote it.
fn prompt(uuid: &str, content: &MessageContent, typed: Option<&str>) -> Prompt {
    let images = match content {
        MessageContent::Text(_) => 0,
        MessageContent::Blocks(blocks) => {
            blocks.iter().filter(|block| matches!(block, ContentBlock::Image { .. })).count()
        }
    };
    let text = typed.map_or_else(|| content.to_text(), str::to_owned);
    Prompt { uuid: uuid.to_owned(), text, images }
}

/// What a call is about, in a few words.
pub(super) fn about(input: &Value) -> String {
    let telling =
        ["command", "file_path", "notebook_path", "pattern", "query", "url", "path", "description", "prompt"];
    let text = telling.iter().find_map(|field| input.get(field)?.as_str()).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}
