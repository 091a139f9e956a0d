//! News of the runtime, by subtype.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// News of the runtime, by `subtype`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum SystemMessage {
    /// The session is ready; first message of every turn.
    Init(Box<InitMessage>),
    /// A model call failed and is tried again.
    ApiRetry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How many retries there may be.
        max_retries: u32,
        /// How long the runtime waits now.
        retry_delay_ms: u64,
        /// The HTTP status; null for network errors.
        error_status: Option<u16>,
        /// What went wrong.
        error: String,
        /// New for each message.
        uuid: String,
        /// The session.
        session_id: String,
    },
    /// Older messages were replaced by a summary.
    CompactBoundary {
        /// What the compaction was about.
        compact_metadata: WireCompactMetadata,
        /// The transcript entry.
        uuid: String,
        /// The session.
        session_id: String,
    },
    /// The conversation continues from an earlier entry. Only where prompts are echoed.
    ConversationCut {
        /// The last entry that stays; null when the conversation begins anew.
        at: Option<String>,
        /// New for each message.
        uuid: String,
        /// The session.
        session_id: String,
    },
    /// What the runtime is doing apart from the conversation.
    Status {
        /// `compacting`, or null when that is over.
        status: Option<String>,
        /// The mode in force.
        #[serde(rename = "permissionMode", skip_serializing_if = "Option::is_none")]
        permission_mode: Option<String>,
        /// New for each message.
        uuid: String,
        /// The session.
        session_id: String,
    },
    /// What a built-in command says.
    LocalCommandOutput {
        /// Its output.
        content: String,
        /// New for each message.
        uuid: String,
        /// The session.
        session_id: String,
    },
    /// What the session is doing.
    SessionStateChanged {
        /// `running`, `idle` or `requires_action`.
        state: String,
        /// New for each message.
        uuid: String,
        /// The session.
        session_id: String,
    },
    /// A call was denied without anyone being asked.
    PermissionDenied {
        /// The tool.
        tool_name: String,
        /// The call.
        tool_use_id: String,
        /// The agent that made the call, when it is not the main one.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_id: Option<String>,
        /// The layer that decided.
        decision_reason_type: String,
        /// Why.
        decision_reason: String,
        /// What the model was told.
        message: String,
        /// New for each message.
        uuid: String,
        /// The session.
        session_id: String,
    },
    /// A hook is called.
    HookStarted {
        /// This run of it.
        hook_id: String,
        /// The hook.
        hook_name: String,
        /// The event.
        hook_event: String,
        /// New for each message.
        uuid: String,
        /// The session.
        session_id: String,
    },
    /// A hook that is a program wrote something.
    HookProgress {
        /// This run of it.
        hook_id: String,
        /// The hook.
        hook_name: String,
        /// The event.
        hook_event: String,
        /// What it wrote since the last message.
        stdout: String,
        /// See `stdout`.
        stderr: String,
        /// Both.
        output: String,
        /// New for each message.
        uuid: String,
        /// The session.
        session_id: String,
    },
    /// A hook answered, failed or was withdrawn.
    HookResponse {
        /// This run of it.
        hook_id: String,
        /// The hook.
        hook_name: String,
        /// The event.
        hook_event: String,
        /// What it answered, or what went wrong.
        output: String,
        /// What a command wrote; empty for a function.
        stdout: String,
        /// See `stdout`.
        stderr: String,
        /// How a command ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// `success`, `error` or `cancelled`.
        outcome: String,
        /// New for each message.
        uuid: String,
        /// The session.
        session_id: String,
    },
    /// A warning for the user: a rule that can never match, files that are not used for lack of trust and the like.
    Notice {
        /// `warning`.
        level: String,
        /// What it is about: `untrusted_folder` or `general`.
        kind: String,
        /// What happened and what to do.
        message: String,
        /// The files that it names; absolute paths.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        files: Vec<String>,
        /// New for each message.
        uuid: String,
        /// The session.
        session_id: String,
    },
    /// MCP servers are doing otherwise than before.
    McpStatusChange {
        /// The rows that changed, as `mcp_status` has them.
        servers: Vec<Value>,
        /// New for each message.
        uuid: String,
        /// The session.
        session_id: String,
    },
    /// A background task started.
    TaskStarted {
        /// The task.
        task_id: String,
        /// The call that started it.
        tool_use_id: String,
        /// What it does.
        description: String,
        /// `local_bash` or `local_agent`.
        task_type: String,
        /// New for each message.
        uuid: String,
        /// The session.
        session_id: String,
    },
    /// A background task runs and has said something new.
    TaskProgress {
        /// The task.
        task_id: String,
        /// The call that started it.
        tool_use_id: String,
        /// What it does.
        description: String,
        /// What it used so far.
        usage: TaskUsage,
        /// The tool that it called last, of an agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_tool_name: Option<String>,
        /// The last line it said.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// New for each message.
        uuid: String,
        /// The session.
        session_id: String,
    },
    /// A background task ended.
    TaskNotification {
        /// The task.
        task_id: String,
        /// The call that started it.
        tool_use_id: String,
        /// `completed`, `failed` or `stopped`.
        status: String,
        /// Where its output is.
        output_file: String,
        /// One line for people.
        summary: String,
        /// New for each message.
        uuid: String,
        /// The session.
        session_id: String,
    },
}

impl SystemMessage {
    /// The id of the message.
    #[must_use]
    pub fn uuid(&self) -> &str {
        match self {
            Self::Init(init) => &init.uuid,
            Self::ApiRetry { uuid, .. }
            | Self::CompactBoundary { uuid, .. }
            | Self::ConversationCut { uuid, .. }
            | Self::Status { uuid, .. }
            | Self::LocalCommandOutput { uuid, .. }
            | Self::SessionStateChanged { uuid, .. }
            | Self::PermissionDenied { uuid, .. }
            | Self::HookStarted { uuid, .. }
            | Self::HookProgress { uuid, .. }
            | Self::HookResponse { uuid, .. }
            | Self::Notice { uuid, .. }
            | Self::McpStatusChange { uuid, .. }
            | Self::TaskStarted { uuid, .. }
            | Self::TaskProgress { uuid, .. }
            | Self::TaskNotification { uuid, .. } => uuid,
        }
    }
}

/// What a task used. A shell command uses time alone.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub struct TaskUsage {
    /// Tokens of all its model calls.
    pub total_tokens: u64,
    /// Its tool calls.
    pub tool_uses: u64,
    /// How long it runs.
    pub duration_ms: u64,
}

/// See [`SystemMessage::CompactBoundary`].
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WireCompactMetadata {
    /// `auto` or `manual`.
    pub trigger: String,
    /// Context size before, in tokens.
    pub pre_tokens: u64,
}

/// See [`SystemMessage::Init`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InitMessage {
    /// The session.
    pub session_id: String,
    /// New for each message.
    pub uuid: String,
    /// Working directory.
    pub cwd: String,
    /// The model's name.
    pub model: String,
    /// The mode in force.
    #[serde(rename = "permissionMode")]
    pub permission_mode: String,
    /// What the model may call.
    pub tools: Vec<String>,
    /// MCP servers with `name` and `status`.
    pub mcp_servers: Vec<Value>,
    /// Slash commands.
    pub slash_commands: Vec<String>,
    /// Subagents.
    pub agents: Vec<String>,
    /// Skills.
    pub skills: Vec<String>,
    /// Plugins.
    pub plugins: Vec<Value>,
    /// What could not be loaded of plugins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugin_errors: Vec<Value>,
    /// Output style.
    pub output_style: String,
    /// Where the key came from.
    #[serde(rename = "apiKeySource")]
    pub api_key_source: String,
    /// Version of this program.
    pub qodercli_version: String,
    /// A version that clients of the sibling CLI accept.
    pub claude_code_version: String,
    /// Version of the stdio protocol.
    pub protocol_version: String,
    /// Optional behaviours of this runtime.
    pub capabilities: Vec<String>,
    /// True when the built-in offline model answers, which is not a language model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub offline: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_of_a_task_has_the_documented_shape() {
        let message = crate::messages::StreamMessage::System(SystemMessage::TaskProgress {
            task_id: "bash_1".to_owned(),
            tool_use_id: "toolu_1".to_owned(),
            description: "builds".to_owned(),
            usage: TaskUsage { duration_ms: 5_000, ..TaskUsage::default() },
            last_tool_name: None,
            summary: None,
            uuid: "u".to_owned(),
            session_id: "s".to_owned(),
        });
        let expected = serde_json::json!({
            "type": "system", "subtype": "task_progress", "task_id": "bash_1", "tool_use_id": "toolu_1",
            "description": "builds", "usage": { "total_tokens": 0, "tool_uses": 0, "duration_ms": 5_000 },
            "uuid": "u", "session_id": "s",
        });
        assert_eq!(serde_json::to_value(&message).unwrap(), expected);
    }
}
