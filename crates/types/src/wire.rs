//! The messages a host reads on the stream, in the documented shapes. Borrowed where a record already holds the data, so
//! that a message is serialised straight from it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::account::AgentAccount;
use crate::content::Message;
use crate::model::{ModelTotals, StopReason, Usage};
use crate::record::{AssistantMessage, PermissionDenial, TerminalReason, TurnSubtype};

/// One line of the output stream.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamMessage<'a> {
    /// A reply of the model.
    Assistant {
        /// The reply.
        message: &'a AssistantMessage,
        /// The `Agent` call this belongs to; null on the main thread.
        parent_tool_use_id: Option<&'a str>,
        /// The session.
        session_id: &'a str,
        /// The transcript entry.
        uuid: &'a str,
        /// The provider's id of the request, where the environment asks for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<&'a str>,
        /// Why the model was not answering, on a message that stands for a failed call: `authentication_failed`,
        /// `billing_error`, `rate_limit`, `invalid_request`, `server_error` or `unknown`.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    },
    /// A tool result, or a prompt when replay is on.
    User {
        /// The message.
        message: &'a Message,
        /// The `Agent` call this belongs to; null on the main thread.
        parent_tool_use_id: Option<&'a str>,
        /// The session.
        session_id: &'a str,
        /// The transcript entry.
        uuid: &'a str,
        /// The tool's typed output.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<serde_json::Value>")]
        tool_use_result: Option<&'a RawValue>,
        /// True for an echoed prompt.
        #[serde(rename = "isReplay", skip_serializing_if = "std::ops::Not::not")]
        is_replay: bool,
        /// True for texts of the runtime.
        #[serde(rename = "isSynthetic", skip_serializing_if = "std::ops::Not::not")]
        is_synthetic: bool,
        /// What the host wants to find on every user message.
        #[serde(skip_serializing_if = "Option::is_none")]
        custom_context: Option<&'a serde_json::Map<String, serde_json::Value>>,
    },
    /// News of the runtime.
    System(SystemMessage<'a>),
    /// The end of a turn.
    Result(Box<ResultMessage<'a>>),
    /// What the person might ask next.
    PromptSuggestion {
        /// The prompt.
        suggestion: &'a str,
        /// New for each message.
        uuid: &'a str,
        /// The session.
        session_id: &'a str,
    },
}

/// A piece of a reply, when the host wants pieces. Its own type, because hosts write it around the provider's text
/// without reading that.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename = "stream_event")]
pub struct StreamEvent<'a> {
    /// One Anthropic-shaped stream event.
    #[schemars(with = "serde_json::Value")]
    pub event: &'a RawValue,
    /// The `Agent` call this belongs to; null on the main thread.
    pub parent_tool_use_id: Option<&'a str>,
    /// The session.
    pub session_id: &'a str,
    /// New for each message.
    pub uuid: &'a str,
}

/// News of the runtime, by `subtype`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum SystemMessage<'a> {
    /// The session is ready; first message of every turn.
    Init(Box<InitMessage<'a>>),
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
        error: &'a str,
        /// New for each message.
        uuid: &'a str,
        /// The session.
        session_id: &'a str,
    },
    /// Older messages were replaced by a summary.
    CompactBoundary {
        /// What the compaction was about.
        compact_metadata: WireCompactMetadata<'a>,
        /// The transcript entry.
        uuid: &'a str,
        /// The session.
        session_id: &'a str,
    },
    /// What the runtime is doing apart from the conversation.
    Status {
        /// `compacting`, or null when that is over.
        status: Option<&'a str>,
        /// The mode in force.
        #[serde(rename = "permissionMode", skip_serializing_if = "Option::is_none")]
        permission_mode: Option<&'a str>,
        /// New for each message.
        uuid: &'a str,
        /// The session.
        session_id: &'a str,
    },
    /// What a built-in command says.
    LocalCommandOutput {
        /// Its output.
        content: &'a str,
        /// New for each message.
        uuid: &'a str,
        /// The session.
        session_id: &'a str,
    },
    /// What the session is doing.
    SessionStateChanged {
        /// `running`, `idle` or `requires_action`.
        state: &'a str,
        /// New for each message.
        uuid: &'a str,
        /// The session.
        session_id: &'a str,
    },
    /// A call was denied without anyone being asked.
    PermissionDenied {
        /// The tool.
        tool_name: &'a str,
        /// The call.
        tool_use_id: &'a str,
        /// The agent that made the call, when it is not the main one.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_id: Option<&'a str>,
        /// The layer that decided.
        decision_reason_type: &'a str,
        /// Why.
        decision_reason: &'a str,
        /// What the model was told.
        message: &'a str,
        /// New for each message.
        uuid: &'a str,
        /// The session.
        session_id: &'a str,
    },
    /// A hook is called.
    HookStarted {
        /// This run of it.
        hook_id: &'a str,
        /// The hook.
        hook_name: &'a str,
        /// The event.
        hook_event: &'a str,
        /// New for each message.
        uuid: &'a str,
        /// The session.
        session_id: &'a str,
    },
    /// A hook that is a program wrote something.
    HookProgress {
        /// This run of it.
        hook_id: &'a str,
        /// The hook.
        hook_name: &'a str,
        /// The event.
        hook_event: &'a str,
        /// What it wrote since the last message.
        stdout: &'a str,
        /// See `stdout`.
        stderr: &'a str,
        /// Both.
        output: &'a str,
        /// New for each message.
        uuid: &'a str,
        /// The session.
        session_id: &'a str,
    },
    /// A hook answered, failed or was withdrawn.
    HookResponse {
        /// This run of it.
        hook_id: &'a str,
        /// The hook.
        hook_name: &'a str,
        /// The event.
        hook_event: &'a str,
        /// What it answered, or what went wrong.
        output: &'a str,
        /// What a command wrote; empty for a function.
        stdout: &'a str,
        /// See `stdout`.
        stderr: &'a str,
        /// How a command ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// `success`, `error` or `cancelled`.
        outcome: &'a str,
        /// New for each message.
        uuid: &'a str,
        /// The session.
        session_id: &'a str,
    },
    /// MCP servers are doing otherwise than before.
    McpStatusChange {
        /// The rows that changed, as `mcp_status` has them.
        servers: &'a [serde_json::Value],
        /// New for each message.
        uuid: &'a str,
        /// The session.
        session_id: &'a str,
    },
    /// A background task started.
    TaskStarted {
        /// The task.
        task_id: &'a str,
        /// The call that started it.
        tool_use_id: &'a str,
        /// What it does.
        description: &'a str,
        /// `local_bash` or `local_agent`.
        task_type: &'a str,
        /// New for each message.
        uuid: &'a str,
        /// The session.
        session_id: &'a str,
    },
    /// A background task goes on and has said something new.
    TaskProgress {
        /// The task.
        task_id: &'a str,
        /// The call that started it.
        tool_use_id: &'a str,
        /// What it does.
        description: &'a str,
        /// What it used so far.
        usage: TaskUsage,
        /// The tool that it called last, of an agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_tool_name: Option<&'a str>,
        /// The last line it said.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<&'a str>,
        /// New for each message.
        uuid: &'a str,
        /// The session.
        session_id: &'a str,
    },
    /// A background task ended.
    TaskNotification {
        /// The task.
        task_id: &'a str,
        /// The call that started it.
        tool_use_id: &'a str,
        /// `completed`, `failed` or `stopped`.
        status: &'a str,
        /// Where its output is.
        output_file: &'a str,
        /// One line for people.
        summary: &'a str,
        /// New for each message.
        uuid: &'a str,
        /// The session.
        session_id: &'a str,
    },
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
#[derive(Debug, Serialize, JsonSchema)]
pub struct WireCompactMetadata<'a> {
    /// `auto` or `manual`.
    pub trigger: &'a str,
    /// Context size before, in tokens.
    pub pre_tokens: u64,
}

/// See [`SystemMessage::Init`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct InitMessage<'a> {
    /// The session.
    pub session_id: &'a str,
    /// New for each message.
    pub uuid: &'a str,
    /// Working directory.
    pub cwd: &'a str,
    /// The model's name.
    pub model: &'a str,
    /// The mode in force.
    #[serde(rename = "permissionMode")]
    pub permission_mode: &'a str,
    /// Advertised tools.
    pub tools: Vec<&'a str>,
    /// MCP servers with their status.
    pub mcp_servers: Vec<serde_json::Value>,
    /// Slash commands.
    pub slash_commands: Vec<&'a str>,
    /// Subagents.
    pub agents: Vec<&'a str>,
    /// Skills.
    pub skills: Vec<&'a str>,
    /// Plugins.
    pub plugins: Vec<serde_json::Value>,
    /// What could not be loaded of plugins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugin_errors: Vec<serde_json::Value>,
    /// Output style.
    pub output_style: &'a str,
    /// Where the key came from.
    #[serde(rename = "apiKeySource")]
    pub api_key_source: &'a str,
    /// Version of this program.
    pub qodercli_version: &'a str,
    /// A version that clients of the sibling CLI accept.
    pub claude_code_version: &'a str,
    /// Version of the stdio protocol.
    pub protocol_version: &'a str,
    /// Optional behaviours of this runtime.
    pub capabilities: Vec<&'a str>,
    /// True when the built-in offline model answers, which is not a language model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub offline: bool,
}

/// The end of a turn.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResultMessage<'a> {
    /// How it ended.
    pub subtype: TurnSubtype,
    /// True unless it succeeded.
    pub is_error: bool,
    /// Wall time.
    pub duration_ms: u64,
    /// Time spent waiting for the model.
    pub duration_api_ms: u64,
    /// Model calls.
    pub num_turns: u64,
    /// The session.
    pub session_id: &'a str,
    /// New for each message.
    pub uuid: &'a str,
    /// The final text, on success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<&'a str>,
    /// The answer in the shape that was asked for, on success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<&'a serde_json::Value>,
    /// Why the model stopped last.
    pub stop_reason: Option<&'a StopReason>,
    /// Why the turn ended.
    pub terminal_reason: TerminalReason,
    /// Money of the session so far.
    pub total_cost_usd: f64,
    /// Tokens of this turn.
    pub usage: &'a Usage,
    /// Totals per model.
    #[serde(rename = "modelUsage")]
    pub model_usage: &'a BTreeMap<String, ModelTotals>,
    /// Calls that were denied.
    pub permission_denials: &'a [PermissionDenial],
    /// The agents that ended since the last result, with what each used.
    #[serde(skip_serializing_if = "<[AgentAccount]>::is_empty")]
    pub subagents: &'a [AgentAccount],
    /// What went wrong, on errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<&'a [String]>,
    /// The documented number of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<u32>,
    /// The endpoint's HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_error_status: Option<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_of_a_task_has_the_documented_shape() {
        let message = StreamMessage::System(SystemMessage::TaskProgress {
            task_id: "bash_1",
            tool_use_id: "toolu_1",
            description: "builds",
            usage: TaskUsage { duration_ms: 5_000, ..TaskUsage::default() },
            last_tool_name: None,
            summary: None,
            uuid: "u",
            session_id: "s",
        });
        let expected = serde_json::json!({
            "type": "system", "subtype": "task_progress", "task_id": "bash_1", "tool_use_id": "toolu_1",
            "description": "builds", "usage": { "total_tokens": 0, "tool_uses": 0, "duration_ms": 5_000 },
            "uuid": "u", "session_id": "s",
        });
        assert_eq!(serde_json::to_value(&message).unwrap(), expected);
    }
}
