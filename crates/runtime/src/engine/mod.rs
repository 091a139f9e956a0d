//! What a session is driven with: model, tools, gate, limits and the fixed part of the prompt. Built once by a front;
//! holds nothing of a session's state.

pub(crate) mod command_rows;
pub mod interrupt;
pub mod server_requests;
pub mod spending;

use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

use qoder_core::Limits;
use qoder_core::ports::{CommandEnvironment, Model, Thinking};
use qoder_policy::Confinement;
use qoder_tools::SessionShared;
use qoder_types::Purpose;
use serde_json::{Map, Value};

use self::interrupt::Ending;
use self::server_requests::ServerRequests;
use self::spending::Spending;
use crate::callbacks::AuthExpired;
use crate::checkpoints::Checkpoints;
use crate::events::{Hub, Outlet};
use crate::permissions::Gate;
use crate::permissions::PermissionUpdates;
use crate::session::OpenedLog;
use crate::session::redact::Redactor;
use crate::telemetry::Telemetry;
use crate::tools::toolbox::Toolbox;
use qoder_config::extensions::Extensions;
use qoder_config::memory::Memory;
use qoder_hooks::Hooks;
use qoder_models::ModelByName;
use qoder_models::SwitchedModel;
use qoder_protocol::CallPlace;

/// What a session and its agents have in common.
pub struct Common {
    /// What files define: agents, skills, commands.
    pub extensions: Arc<Extensions>,
    /// Changes of permissions on their way into force.
    pub updates: PermissionUpdates,
    /// Judges calls in auto mode, when one is configured.
    pub classifier: Option<Classifier>,
    /// Whether the command of a Bash call would run in the sandbox.
    pub confines: Confines,
    /// What may be spent.
    pub spending: Arc<Spending>,
    /// How the environment of commands differs from that of this process.
    pub environment: Arc<CommandEnvironment>,
    /// Keeps files before tools change them; `None` unless the caller asked for it.
    pub checkpoints: Option<Arc<Checkpoints>>,
    /// The session's hub, to which sinks are attached.
    pub hub: Arc<Hub>,
    /// Memory files and rules, and where more of them are found.
    pub memory: Arc<Memory>,
    /// What the host wants to find on every user message.
    pub custom_context: Option<Map<String, Value>>,
    /// Knows the secrets.
    pub redactor: Redactor,
    /// Watches the session and its agents, when it is on.
    pub telemetry: Option<Telemetry>,
    /// Where the session is kept, once it is open; its agents are kept below it.
    pub log: OnceLock<OpenedLog>,
    /// That the process is about to end.
    pub ending: Ending,
}

/// How the model is asked.
#[derive(Debug)]
pub struct RequestStyle {
    /// Why: for the main conversation or a subagent's.
    pub purpose: Purpose,
    /// How much to think.
    pub thinking: Thinking,
    /// `low` … `max`. It may be changed while the session runs.
    pub effort: RwLock<Option<String>>,
    /// How much the model may vary its words; its provider's choice without it.
    pub temperature: Option<f64>,
    /// Limit for a reply.
    pub max_output_tokens: Option<u32>,
}

/// What bounds a turn.
#[derive(Debug, Clone, Copy, Default)]
pub struct TurnBounds {
    /// Model calls; `None` is unlimited.
    pub max_turns: Option<u64>,
    /// Time; `None` is unlimited.
    pub time_limit: Option<Duration>,
}

/// What a front asked for besides messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct FrontWishes {
    /// True when prompts are echoed on the stream.
    pub replay_user_messages: bool,
    /// True when suggestions for the next prompt follow results.
    pub prompt_suggestions: bool,
    /// True when the provider's request id goes onto assistant messages.
    pub expose_request_id: bool,
}

/// What a session, or an agent, is driven with.
pub struct Engine {
    /// What the session and its agents have in common.
    pub common: Arc<Common>,
    /// The model. It may be switched while the session runs.
    pub model: Arc<SwitchedModel>,
    /// Finds the model that a command names for its turn. None where a front chooses the model before each call, and for
    /// an agent, which has no commands.
    pub turn_models: Option<ModelByName>,
    /// The tools the model may call.
    pub toolbox: Toolbox,
    /// Answers the questions of the servers; none for an agent, whose servers are those of the main session.
    pub questions: Option<Arc<ServerRequests>>,
    /// Called around the steps of a turn.
    pub hooks: Arc<Hooks>,
    /// Decides about calls.
    pub gate: Arc<Gate>,
    /// The agent that the session is of, when it is not the main one.
    pub agent: Option<AgentIdentity>,
    /// What bounds a turn.
    pub bounds: TurnBounds,
    /// How the model is asked.
    pub style: RequestStyle,
    /// The system prompt this process would use, and what it was made from.
    pub system: SystemPrompt,
    /// Called once when the provider no longer accepts the credentials.
    pub auth_expired: Mutex<Option<AuthExpired>>,
    /// What the tools share: background tasks.
    pub shared: Arc<SessionShared>,
    /// Where events leave: the hub, or for an agent the way through its parent.
    pub(crate) outlet: Arc<dyn Outlet>,
    /// True when a prompt that begins with `/` is text like any other.
    pub no_commands: bool,
    /// True when a session whose calls wait for answers stays open.
    pub stays_open: bool,
    /// What the front asked for besides messages.
    pub front: FrontWishes,
}

/// What an agent's engine has of its own.
pub(crate) struct AgentParts {
    pub(crate) model: Arc<SwitchedModel>,
    pub(crate) toolbox: Toolbox,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) agent: AgentIdentity,
    pub(crate) max_turns: u64,
    pub(crate) style: RequestStyle,
    pub(crate) system: SystemPrompt,
    pub(crate) outlet: Arc<dyn Outlet>,
}

/// Says for the input of a Bash call whether its command would run in the sandbox.
pub type Confines = Arc<dyn Fn(&Value) -> Confined + Send + Sync>;

/// What the sandbox means for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confined {
    /// What the gate makes of it: a command that is confined but not allowed for that is judged like any other.
    pub confinement: Confinement,
    /// True when the command would run in the sandbox.
    pub sandboxed: bool,
}

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
    /// The engine of an agent: what it has in common with its session, and what is its own. It has no commands, no front
    /// and no time limit beside that of its task.
    pub(crate) fn for_agent(common: &Arc<Common>, parts: AgentParts) -> Self {
        Self {
            common: Arc::clone(common),
            model: parts.model,
            turn_models: None,
            toolbox: parts.toolbox,
            questions: None,
            hooks: parts.hooks,
            gate: parts.gate,
            agent: Some(parts.agent),
            bounds: TurnBounds { max_turns: Some(parts.max_turns), time_limit: None },
            style: parts.style,
            system: parts.system,
            auth_expired: Mutex::default(),
            shared: SessionShared::new(),
            outlet: parts.outlet,
            no_commands: true,
            stays_open: false,
            front: FrontWishes::default(),
        }
    }

    /// Whether a call's command would run in the sandbox.
    #[must_use]
    pub fn confinement(&self, tool: &str, input: &Value) -> Confinement {
        if tool == "Bash" { (self.common.confines)(input).confinement } else { Confinement::None }
    }

    /// Where a call's command would run; nothing for calls that run no command.
    #[must_use]
    pub fn place(&self, tool: &str, input: &Value, cwd: &str) -> Option<CallPlace> {
        let sandboxed = || (self.common.confines)(input).sandboxed;
        (tool == "Bash").then(|| CallPlace { directory: cwd.to_owned(), sandboxed: sandboxed() })
    }

    /// The limits that bound a turn.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let facts = self.model.facts();
        let most = self.style.max_output_tokens.map_or(facts.max_output_tokens, u64::from);
        Limits {
            max_turns: self.bounds.max_turns,
            context_window: facts.context_window,
            max_output_tokens: most.min(facts.max_output_tokens),
            permission_mode: self.gate.mode,
            exhausted: self.common.spending.exhausted(),
            option_names: self.gate.option_names,
        }
    }
}
