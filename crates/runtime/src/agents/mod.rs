//! Agents: child sessions with a conversation and a log of their own that work on one task and return their last words.
//! A child sees the same gate, with the rules and the mode the parent has at that moment; it can be given less, never
//! more. This file owns what children are made of; the tool that starts them, their engine and their run are beside it.

mod child;
mod ending;
mod judge;
mod limits;
mod memory;
mod observed;
mod outlet;
pub(crate) mod own_hooks;
mod run;
mod servers;
mod tool;

use std::sync::Arc;

use qoder_config::agents::AgentDefinition;
use qoder_core::ports::Tool;

use crate::engine::{Common, SystemPrompt};
use crate::events::Outlet;
use crate::mcp::McpServers;
use crate::mcp::lazy::Lazy;
use crate::permissions::Gate;
use crate::store::SessionLocation;
use crate::tools::toolbox::Offered;
use limits::AgentSlots;
use qoder_hooks::Hooks;
use qoder_models::{ModelByName, SwitchedModel};

pub use limits::AgentLimits;
pub(crate) use memory::{MemoryPlaces, OwnMemory};
pub use qoder_config::agents::NAME;
pub use tool::{Agents, named};

/// Makes the servers that a definition describes for its agent alone, none of them started. The error says why the agent
/// cannot have one of them.
pub type OwnServers = Arc<dyn Fn(&AgentDefinition) -> Result<Option<McpServers>, String> + Send + Sync>;

/// What children are made of.
#[derive(Clone)]
pub struct AgentTool {
    /// What the session and its agents have in common.
    pub common: Arc<Common>,
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
    /// The session's system prompt.
    pub system: SystemPrompt,
    /// Where the parent's events leave.
    pub(crate) outlet: Arc<dyn Outlet>,
    /// The agents that are parents of one another.
    pub tree: AgentTree,
}

/// Where in the tree of agents children are started.
#[derive(Clone)]
pub struct AgentTree {
    slots: Arc<AgentSlots>,
    own_servers: OwnServers,
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

impl AgentTree {
    /// The agents of a session; `own_servers` makes the servers that definitions describe, and `forwards_text` says
    /// whether the host reads what agents say and think.
    #[must_use]
    pub fn new(limits: AgentLimits, own_servers: OwnServers, forwards_text: bool) -> Self {
        let slots = Arc::new(AgentSlots::new(limits));
        Self { slots, own_servers, forwards_text, may_park: true, parent: None }
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

impl AgentTool {
    /// Where the session, or agent, is kept that starts agents here.
    fn location(&self) -> Result<&SessionLocation, String> {
        match &self.tree.parent {
            Some(parent) => Ok(&parent.location),
            None => match self.common.log.get() {
                Some(log) => Ok(&log.location),
                None => Err("its session is not open".to_owned()),
            },
        }
    }
}
