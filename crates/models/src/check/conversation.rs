//! One conversation of a probe with a model: it asks, keeps what was said, and can answer calls and ask again.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use qoder_core::ports::{Model, ModelEvent, ModelRequest, PromptMessage, Thinking};
use qoder_types::{
    ContentBlock, Message, MessageContent, ModelFailure, ModelReply, Purpose, Role, ToolDefinition,
    ToolResultContent,
};

use crate::failure::malformed;

/// A conversation.
pub(super) struct Conversation {
    model: Arc<dyn Model>,
    tools: Arc<[ToolDefinition]>,
    messages: Vec<Arc<PromptMessage>>,
    thinking: Thinking,
    effort: Option<String>,
}

/// A reply, and how it came.
pub(super) struct Answer {
    pub(super) reply: ModelReply,
    /// How many pieces of text or arguments came before the reply was complete.
    pub(super) pieces: usize,
    /// What was done otherwise than asked, so that the server took the request.
    pub(super) notices: Vec<String>,
}

impl Answer {
    /// All text of the reply.
    pub(super) fn text(&self) -> String {
        let texts = self.reply.content.iter().filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            ContentBlock::Image { .. }
            | ContentBlock::Document { .. }
            | ContentBlock::ToolUse { .. }
            | ContentBlock::ToolResult { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::RedactedThinking { .. }
            | ContentBlock::Unknown(_) => None,
        });
        texts.collect::<Vec<_>>().join(" ")
    }

    /// The calls of the reply: id, name and input.
    pub(super) fn calls(&self) -> Vec<(&str, &str, &serde_json::Value)> {
        let calls = self.reply.content.iter().filter_map(|block| match block {
            ContentBlock::ToolUse { id, name, input } => Some((id.as_str(), name.as_str(), input)),
            ContentBlock::Text { .. }
            | ContentBlock::Image { .. }
            | ContentBlock::Document { .. }
            | ContentBlock::ToolResult { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::RedactedThinking { .. }
            | ContentBlock::Unknown(_) => None,
        });
        calls.collect()
    }

    /// True when the reply shows reasoning.
    pub(super) fn has_reasoning(&self) -> bool {
        self.reply.content.iter().any(|block| {
            matches!(block, ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. })
        })
    }
}

impl Conversation {
    pub(super) fn new(model: &Arc<dyn Model>) -> Self {
        Self {
            model: Arc::clone(model),
            tools: Arc::from([]),
            messages: Vec::new(),
            thinking: Thinking::Default,
            effort: None,
        }
    }

    pub(super) fn with_tools(mut self, tools: Vec<ToolDefinition>) -> Self {
        self.tools = tools.into();
        self
    }

    pub(super) fn with_thinking(mut self, thinking: Thinking, effort: &str) -> Self {
        self.thinking = thinking;
        self.effort = Some(effort.to_owned());
        self
    }

    /// Adds a message of the user.
    pub(super) fn push_user(&mut self, content: Vec<ContentBlock>) {
        self.add(Role::User, content);
    }

    /// Adds the result of every call of an answer.
    pub(super) fn answer_calls(&mut self, answer: &Answer, result: &str) {
        let results = answer.calls().into_iter().map(|(id, _, _)| ContentBlock::ToolResult {
            tool_use_id: id.to_owned(),
            content: ToolResultContent::Text(result.to_owned()),
            is_error: false,
        });
        self.push_user(results.collect());
    }

    /// Asks for a reply, and keeps it.
    pub(super) async fn ask(&mut self, max_output_tokens: u32) -> Result<Answer, ModelFailure> {
        let request = ModelRequest {
            purpose: Purpose::Main,
            session_id: "models-check".to_owned(),
            system: Arc::from([
                "You are being tested. Follow the request exactly and keep it short.".to_owned()
            ]),
            tools: Arc::clone(&self.tools),
            messages: self.messages.clone(),
            max_output_tokens: Some(max_output_tokens),
            thinking: self.thinking,
            effort: self.effort.clone(),
            parameters: BTreeMap::new(),
            partial: true,
        };
        let mut events = self.model.stream(request);
        let (mut pieces, mut notices) = (0, Vec::new());
        while let Some(event) = events.next().await {
            match event? {
                ModelEvent::Partial(json) => pieces += usize::from(json.contains("_delta\"")),
                ModelEvent::Retry { .. } | ModelEvent::Fallback { .. } => pieces = 0,
                ModelEvent::Notice(notice) => notices.push(notice.text),
                ModelEvent::Reply(reply) => {
                    self.add(Role::Assistant, reply.content.clone());
                    return Ok(Answer { reply: *reply, pieces, notices });
                }
            }
        }
        Err(malformed("the model ended without a reply"))
    }

    fn add(&mut self, role: Role, content: Vec<ContentBlock>) {
        self.messages
            .push(Arc::new(PromptMessage::new(Message { role, content: MessageContent::Blocks(content) })));
    }
}
