//! Agents: child sessions with a conversation and a log of their own that work on one task and return their last words.
//! A child sees the same gate, with the rules and the mode the parent has at that moment; it can be given less, never
//! more. This file owns what children are made of; the tool that starts them, their engine and their run are beside it.

mod account;
mod child;
mod judge;
mod limits;
mod logs;
pub(crate) mod lost;
mod memory;
mod observed;
mod outlet;
pub(crate) mod own_hooks;
mod run;
mod servers;
mod sidecar;
mod tool;

use std::sync::{Arc, OnceLock};

use qoder_config::agents::AgentDefinition;
use qoder_core::ports::{CommandEnvironment, Tool};
use serde_json::{Map, Value};

use crate::checkpoints::Checkpoints;
use crate::engine::{Classifier, Confines, SystemPrompt};
use crate::events::{Hub, Outlet};
use crate::gate::Gate;
use crate::interrupt::Ending;
use crate::mcp::McpServers;
use crate::mcp::lazy::Lazy;
use crate::permission_updates::PermissionUpdates;
use crate::redact::Redactor;
use crate::session::OpenedLog;
use crate::spending::Spending;
use crate::store::SessionLocation;
use crate::telemetry::Telemetry;
use crate::toolbox::Offered;
use limits::Room;
use qoder_config::extensions::Extensions;
use qoder_config::memory::Memory;
use qoder_hooks::Hooks;
use qoder_models::{ModelByName, SwitchedModel};

pub use limits::AgentLimits;
pub use logs::{AgentLog, agent_logs};
pub(crate) use memory::{MemoryPlaces, OwnMemory};
pub use qoder_config::agents::NAME;
pub use tool::{Agents, named};

/// Makes the servers that a definition describes for its agent alone, none of them started. The error says why the agent
/// cannot have one of them.
pub type OwnServers = Arc<dyn Fn(&AgentDefinition) -> Result<Option<McpServers>, String> + Send + Sync>;

/// What children are made of.
#[derive(Clone)]
pub struct AgentTool {
    /// The agents there are, among what files define.
    pub extensions: Arc<Extensions>,
    /// Finds the models that definitions name.
    pub models: ModelByName,
    /// The model they speak with.
    pub model: Arc<SwitchedModel>,
    /// The tools of the session, also those that a rule hides from its model; some are not for children.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The session's servers.
    pub servers: Arc<McpServers>,
    /// Which tools of the servers there are for children.
    pub offered: Offered,
    /// Decides whether tools of servers are looked up by name.
    pub lazy: Arc<Lazy>,
    /// The session's hooks bind children too.
    pub hooks: Arc<Hooks>,
    /// The parent's gate.
    pub gate: Arc<Gate>,
    /// The session's way of changing permissions.
    pub updates: PermissionUpdates,
    /// The session's judge of auto mode.
    pub classifier: Option<Classifier>,
    /// The session's system prompt.
    pub system: SystemPrompt,
    /// The session's memory files and rules.
    pub memory: Arc<Memory>,
    /// Where the parent's events leave.
    pub(crate) outlet: Arc<dyn Outlet>,
    /// The session's hub.
    pub hub: Arc<Hub>,
    /// How the environment of commands differs from that of this process.
    pub environment: Arc<CommandEnvironment>,
    /// Knows the secrets.
    pub redactor: Redactor,
    /// Whether commands run in the sandbox.
    pub confines: Confines,
    /// What the session's host wants to find on every user message.
    pub custom_context: Option<Map<String, Value>>,
    /// What the session and its agents may spend together.
    pub spending: Arc<Spending>,
    /// The session's checkpoints keep what children change.
    pub checkpoints: Option<Arc<Checkpoints>>,
    /// Watches children too, when it is on.
    pub telemetry: Option<Telemetry>,
    /// The agents that are parents of one another.
    pub family: Family,
}

/// Where in the tree of agents children are started.
#[derive(Clone)]
pub struct Family {
    room: Arc<Room>,
    log: Arc<OnceLock<OpenedLog>>,
    own_servers: OwnServers,
    ending: Ending,
    /// True when the host reads what they say and think, not only what they do.
    forwards_text: bool,
    /// True when a call of one may wait in its log after the process has ended.
    may_park: bool,
    /// The agent that starts them; `None` is the session itself.
    parent: Option<Arc<Parent>>,
}

/// An agent that starts agents.
struct Parent {
    /// Where it is kept.
    location: SessionLocation,
    /// Counts from 1.
    depth: u64,
    definition: AgentDefinition,
}

impl Family {
    /// The agents of a session; `own_servers` makes the servers that definitions describe, and `forwards_text` says
    /// whether the host reads what agents say and think.
    #[must_use]
    pub fn new(limits: AgentLimits, own_servers: OwnServers, forwards_text: bool) -> Self {
        let room = Arc::new(Room::new(limits));
        Self {
            room,
            log: Arc::default(),
            own_servers,
            ending: Ending::default(),
            forwards_text,
            may_park: true,
            parent: None,
        }
    }

    /// That the process of the session and its agents is about to end.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.ending.clone()
    }

    /// Where the session is kept, once it is open.
    #[must_use]
    pub fn log(&self) -> Arc<OnceLock<OpenedLog>> {
        Arc::clone(&self.log)
    }

    /// Where the session, or agent, is kept that starts agents here.
    fn location(&self) -> Result<&SessionLocation, String> {
        match &self.parent {
            Some(parent) => Ok(&parent.location),
            None => match self.log.get() {
                Some(log) => Ok(&log.location),
                None => Err("its session is not open".to_owned()),
            },
        }
    }

    /// The depth of an agent that is started here.
    fn depth(&self) -> u64 {
        self.parent.as_ref().map_or(1, |parent| parent.depth + 1)
    }

    /// True when the agent of this name may be started here.
    fn reaches(&self, name: &str) -> bool {
        self.parent.as_ref().is_none_or(|parent| parent.definition.may_delegate(name))
    }
}
