//! What a session is driven with: model, tools, gate, limits and the fixed part of the prompt. Built once by a front;
//! holds nothing of a session's state.

use std::path::PathBuf;
use std::sync::Arc;

use qoder_core::Limits;
use qoder_core::ports::{Model, Thinking};
use qoder_tools::SessionShared;

use crate::events::Host;
use crate::gate::Gate;
use crate::memory::NestedMemory;
use crate::toolbox::Toolbox;

/// What a session is driven with.
pub struct Engine {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The tools the model may call.
    pub toolbox: Toolbox,
    /// Decides about calls.
    pub gate: Gate,
    /// Model calls per turn; `None` is unlimited.
    pub max_turns: Option<u64>,
    /// How much to think.
    pub thinking: Thinking,
    /// `low` … `max`.
    pub effort: Option<String>,
    /// Limit for a reply.
    pub max_output_tokens: Option<u32>,
    /// The system prompt this process would use, and what it was made from.
    pub system: SystemPrompt,
    /// Directories the session may work in; real paths.
    pub roots: Arc<[PathBuf]>,
    /// Names of environment variables that children must not inherit.
    pub hidden_environment: Arc<[String]>,
    /// What the tools share: background tasks.
    pub shared: Arc<SessionShared>,
    /// Whoever listens.
    pub host: Arc<dyn Host>,
    /// Finds memory files of folders below the working directory.
    pub nested_memory: Option<NestedMemory>,
    /// True when prompts are echoed on the stream.
    pub replay_user_messages: bool,
    /// True when the provider's request id goes onto assistant messages.
    pub expose_request_id: bool,
}

/// A system prompt and what it was made from.
#[derive(Debug, Clone)]
pub struct SystemPrompt {
    /// The text, in blocks.
    pub blocks: Vec<String>,
    /// Equal sources give the recorded text of an earlier process the right to stay.
    pub source: String,
}

impl Engine {
    /// The limits that bound a turn.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let facts = self.model.facts();
        let most = self.max_output_tokens.map_or(facts.max_output_tokens, u64::from);
        Limits {
            max_turns: self.max_turns,
            context_window: facts.context_window,
            max_output_tokens: most.min(facts.max_output_tokens),
            permission_mode: self.gate.mode,
        }
    }
}
