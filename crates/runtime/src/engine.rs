//! What a session is driven with: model, tools, gate, limits and the fixed part of the prompt. Built once by a front;
//! holds nothing of a session's state.

use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

use qoder_core::Limits;
use qoder_core::policy::Confinement;
use qoder_core::ports::{CommandEnvironment, Model, Thinking};
use qoder_tools::SessionShared;
use qoder_types::Purpose;
use serde_json::{Map, Value};

use crate::callbacks::AuthExpired;
use crate::checkpoints::Checkpoints;
use crate::events::{Hub, Outlet};
use crate::gate::Gate;
use crate::interrupt::Ending;
use crate::permission_updates::PermissionUpdates;
use crate::questions::Questions;
use crate::session::Mirror;
use crate::spending::Spending;
use crate::toolbox::Toolbox;
use qoder_config::extensions::Extensions;
use qoder_config::memory::Memory;
use qoder_hooks::Hooks;
use qoder_models::ModelByName;
use qoder_models::SwitchedModel;

/// What a session is driven with.
pub struct Engine {
    /// The model. It may be switched while the session runs.
    pub model: Arc<SwitchedModel>,
    /// Finds the model that a command names for its turn. None where a front chooses the model before each call, and for
    /// an agent, which has no commands.
    pub turn_models: Option<ModelByName>,
    /// What files define: agents, skills, commands.
    pub extensions: Arc<Extensions>,
    /// The tools the model may call.
    pub toolbox: Toolbox,
    /// Answers the questions of the servers; none for an agent, whose servers are those of the main session.
    pub questions: Option<Arc<Questions>>,
    /// Called around the steps of a turn.
    pub hooks: Arc<Hooks>,
    /// Decides about calls.
    pub gate: Arc<Gate>,
    /// Changes of permissions on their way into force.
    pub updates: PermissionUpdates,
    /// Judges calls in auto mode, when one is configured.
    pub classifier: Option<Classifier>,
    /// Whether the command of a Bash call would run in the sandbox.
    pub confines: Confines,
    /// Why the model is asked: for the main conversation or a subagent's.
    pub purpose: Purpose,
    /// The agent that the session is of, when it is not the main one.
    pub agent: Option<AgentIdentity>,
    /// Model calls per turn; `None` is unlimited.
    pub max_turns: Option<u64>,
    /// How long a turn may take; `None` is unlimited.
    pub time_limit: Option<Duration>,
    /// What may be spent, shared with the agents it starts.
    pub spending: Arc<Spending>,
    /// How much to think.
    pub thinking: Thinking,
    /// `low` … `max`. It may be changed while the session runs.
    pub effort: RwLock<Option<String>>,
    /// How much the model may vary its words; its provider's choice without it.
    pub temperature: Option<f64>,
    /// Limit for a reply.
    pub max_output_tokens: Option<u32>,
    /// The system prompt this process would use, and what it was made from.
    pub system: SystemPrompt,
    /// How the environment of commands differs from that of this process.
    pub environment: Arc<CommandEnvironment>,
    /// Called once when the provider no longer accepts the credentials.
    pub auth_expired: Mutex<Option<AuthExpired>>,
    /// Keeps files before tools change them; `None` unless the caller asked for it.
    pub checkpoints: Option<Arc<Checkpoints>>,
    /// What the tools share: background tasks.
    pub shared: Arc<SessionShared>,
    /// Where events leave: the hub, or for an agent the way through its parent.
    pub(crate) outlet: Arc<dyn Outlet>,
    /// The session's hub, to which sinks are attached.
    pub hub: Arc<Hub>,
    /// Memory files and rules, and where more of them are found.
    pub memory: Arc<Memory>,
    /// True when a prompt that begins with `/` is text like any other.
    pub no_commands: bool,
    /// True when prompts are echoed on the stream.
    pub replay_user_messages: bool,
    /// What the host wants to find on every user message.
    pub custom_context: Option<Map<String, Value>>,
    /// True when suggestions for the next prompt follow results.
    pub prompt_suggestions: bool,
    /// True when the provider's request id goes onto assistant messages.
    pub expose_request_id: bool,
    /// Gets the logs of agents, when sessions are copied elsewhere.
    pub mirror: Arc<OnceLock<Mirror>>,
    /// That the process is about to end.
    pub ending: Ending,
}

/// Says for the input of a Bash call whether its command would run in the sandbox.
pub type Confines = Arc<dyn Fn(&Value) -> Confinement + Send + Sync>;

/// A model that judges calls in auto mode.
#[derive(Clone)]
pub struct Classifier {
    /// The model.
    pub model: Arc<dyn Model>,
    /// What the settings say besides, in words.
    pub hints: String,
}

/// An agent as hooks get it.
#[derive(Debug, Clone)]
pub struct AgentIdentity {
    /// Identifies the agent.
    pub agent_id: String,
    /// Which agent it is.
    pub agent_type: String,
    /// The session that started it.
    pub session_id: String,
    /// The log of that session; empty when nothing is kept.
    pub transcript_path: String,
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
    /// Whether a call's command would run in the sandbox.
    #[must_use]
    pub fn confinement(&self, tool: &str, input: &Value) -> Confinement {
        if tool == "Bash" { (self.confines)(input) } else { Confinement::None }
    }

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
            exhausted: self.spending.exhausted(),
            option_names: self.gate.option_names,
        }
    }
}
