//! The nouns of the runtime: content blocks, messages, records, rules and decisions, tools, models and the messages on
//! the wire. Plain data with serde; no behaviour beyond what keeps the data well-formed.

mod account;
mod answer;
pub mod content;
pub mod control;
mod cut;
pub mod decision;
pub mod hook;
pub mod model;
pub mod permission;
pub mod record;
mod rewound;
pub mod task;
pub mod tool;
mod turn;
pub mod wire;

pub use account::AgentAccount;
pub use content::{ContentBlock, ImageSource, Message, MessageContent, Role, ToolResultContent};
pub use decision::{Behavior, Considered, Decision, DecisionLayer, PermissionMode, RuleOrigin, RuleSource};
pub use hook::{HookOutcome, HookRun, HookVerdict, Hooked};
pub use model::{ModelFailure, ModelFailureClass, ModelReply, ModelTotals, Purpose, StopReason, Usage};
pub use permission::{PermissionUpdate, RuleValue, UpdateDestination, Worktree, WorktreeChange};
pub use record::{Record, RecordBody};
pub use task::{AGENT_TASK, TaskEnded, TaskStarted, TaskStatus};
pub use tool::{CallOutcome, Observation, ReplayClass, ToolAnnotations, ToolDefinition};
