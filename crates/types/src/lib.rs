//! The nouns of the runtime: content blocks, records, rules and decisions, tools and models. Plain data with serde; no
//! behaviour beyond what keeps the data well-formed.

mod actor;
mod answer;
pub mod content;
pub mod decision;
pub mod display;
pub mod hook;
pub mod hosts;
mod inbox;
pub mod model;
pub mod permission;
pub mod record;
pub mod server;
pub mod task;
pub mod tool;
pub mod workspace;

pub use actor::{Actor, Place};
pub use answer::{AskKind, ExternalResult};
pub use content::{ContentBlock, ImageSource, Message, MessageContent, Role, ToolResultContent};
pub use decision::{Behavior, Considered, Decision, DecisionLayer, PermissionMode, RuleOrigin, RuleSource};
pub use hook::{HookEvent, HookOutcome, HookRun, HookVerdict, Hooked, OnFailure};
pub use inbox::{InboxBody, InboxEntry, InboxOutcome, InboxReply};
pub use model::{ModelFailure, ModelFailureClass, ModelReply, ModelTotals, Purpose, StopReason, Usage};
pub use permission::{PermissionUpdate, RuleValue, UpdateDestination, Worktree, WorktreeChange};
pub use record::{Record, RecordBody};
pub use task::{AGENT_TASK, AgentAccount, ParkedCall, TaskEnded, TaskParked, TaskStarted, TaskStatus};
pub use tool::{
    Access, CallOutcome, CommandEnvironment, Observation, ReplayClass, ToolAnnotations, ToolDefinition,
};
