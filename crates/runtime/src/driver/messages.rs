//! From records to the messages a host reads.

use qoder_core::next::EndReason;
use qoder_core::ports::Model;
use qoder_types::record::{AssistantMessage, RecordBody, TurnEnded};
use qoder_types::wire::{InitMessage, ResultMessage, StreamMessage, SystemMessage};
use qoder_types::{ContentBlock, PermissionMode, Record, Role, StopReason, Usage};

use super::Driver;
use super::hook_events::failure_kind;
use crate::VERSION;
use crate::agent;
use crate::error::DriveError;
use crate::events::{Event, Host};
use crate::extensions::Plugin;
use crate::extensions::plugin::error_rows;
use crate::session::new_id;

/// A version that clients of the sibling CLI accept; ours is in `qodercli_version`.
const COMPATIBLE_VERSION: &str = "2.1.325";

/// The model of messages that no model said.
const SYNTHETIC_MODEL: &str = "<synthetic>";

/// Optional behaviours that hosts may count on.
pub const CAPABILITIES: [&str; 1] = ["interrupt_receipt_v1"];

impl Driver<'_> {
    pub(super) fn emit_init(&self) -> Result<(), DriveError> {
        let engine = self.engine;
        let facts = engine.model.facts();
        let uuid = new_id();
        let tools = engine.toolbox.names();
        let commands = self.command_names();
        let loaded = engine.extensions.current();
        let agents =
            if engine.toolbox.get(agent::NAME).is_some() { loaded.agents.names() } else { Vec::new() };
        self.emit(&StreamMessage::System(SystemMessage::Init(Box::new(InitMessage {
            session_id: &self.session.id,
            uuid: &uuid,
            cwd: &self.session.state.cwd,
            model: &facts.name,
            permission_mode: self.limits.permission_mode.as_str(),
            tools: tools.iter().map(String::as_str).collect(),
            mcp_servers: engine.toolbox.servers().summary(),
            slash_commands: commands.iter().map(String::as_str).collect(),
            agents,
            skills: loaded.skills.names(),
            plugins: loaded.plugins.iter().map(Plugin::row).collect(),
            plugin_errors: error_rows(&loaded.problems),
            output_style: "default",
            api_key_source: facts.key_source,
            qodercli_version: VERSION,
            claude_code_version: COMPATIBLE_VERSION,
            protocol_version: "1",
            capabilities: CAPABILITIES.to_vec(),
            offline: facts.provider == "offline",
        }))))
    }

    pub(super) fn emit_user(&self, record: &Record, is_replay: bool) -> Result<(), DriveError> {
        let RecordBody::User(entry) = &record.body else { return Ok(()) };
        self.emit(&StreamMessage::User {
            message: &entry.message,
            parent_tool_use_id: None,
            session_id: &self.session.id,
            uuid: &entry.uuid,
            tool_use_result: entry.tool_use_result.as_deref(),
            is_replay,
            is_synthetic: entry.is_meta,
            custom_context: self.engine.custom_context.as_ref(),
        })
    }

    pub(super) fn emit_assistant(&self, record: &Record) -> Result<(), DriveError> {
        let RecordBody::Assistant(entry) = &record.body else { return Ok(()) };
        self.emit(&StreamMessage::Assistant {
            message: &entry.message,
            parent_tool_use_id: None,
            session_id: &self.session.id,
            uuid: &entry.uuid,
            request_id: entry.request_id.as_deref().filter(|_| self.engine.expose_request_id),
            error: None,
        })
    }

    /// A model call failed for good: the host gets a message in the model's place, in the words of the failure. It is not
    /// part of the conversation.
    pub(super) fn emit_failed_call(&self, reason: &EndReason) -> Result<(), DriveError> {
        let EndReason::ModelFailed { message, status, class } = reason else { return Ok(()) };
        let text = self.session.redactor().text(message).into_owned();
        let synthetic = AssistantMessage {
            id: format!("msg_{}", new_id().replace('-', "")),
            kind: "message".to_owned(),
            role: Role::Assistant,
            model: SYNTHETIC_MODEL.to_owned(),
            content: vec![ContentBlock::text(text)],
            stop_reason: Some(StopReason::StopSequence),
            stop_sequence: None,
            usage: Usage::default(),
        };
        let uuid = new_id();
        self.emit(&StreamMessage::Assistant {
            message: &synthetic,
            parent_tool_use_id: None,
            session_id: &self.session.id,
            uuid: &uuid,
            request_id: None,
            error: Some(failure_kind(*class, *status)),
        })
    }

    pub(super) fn emit_status(&self, status: Option<&str>) -> Result<(), DriveError> {
        let uuid = new_id();
        self.emit(&StreamMessage::System(SystemMessage::Status {
            status,
            permission_mode: None,
            uuid: &uuid,
            session_id: &self.session.id,
        }))
    }

    pub(super) fn emit_mode(&self, mode: PermissionMode) -> Result<(), DriveError> {
        let uuid = new_id();
        self.emit(&StreamMessage::System(SystemMessage::Status {
            status: None,
            permission_mode: Some(mode.as_str()),
            uuid: &uuid,
            session_id: &self.session.id,
        }))
    }
}

/// Announces the end of a turn, also one that an earlier process finished.
pub fn emit_result(host: &dyn Host, session_id: &str, end: &TurnEnded) -> Result<(), DriveError> {
    let uuid = new_id();
    let message = StreamMessage::Result(Box::new(ResultMessage {
        subtype: end.subtype,
        is_error: end.is_error,
        duration_ms: end.duration_ms,
        duration_api_ms: end.duration_api_ms,
        num_turns: end.num_turns,
        session_id,
        uuid: &uuid,
        result: end.result.as_deref(),
        structured_output: end.structured_output.as_ref(),
        stop_reason: end.stop_reason.as_ref(),
        terminal_reason: end.terminal_reason,
        total_cost_usd: end.total_cost_usd,
        usage: &end.usage,
        model_usage: &end.model_usage,
        permission_denials: &end.permission_denials,
        subagents: &end.subagents,
        errors: end.is_error.then_some(end.errors.as_slice()),
        error_code: end.error_code,
        api_error_status: end.api_error_status,
    }));
    host.emit(Event::Message(&message)).map_err(DriveError::Output)
}
