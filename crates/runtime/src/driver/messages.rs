//! From records to the messages a host reads.

use qoder_core::next::EndReason;
use qoder_core::ports::Model;
use qoder_protocol::Projector;
use qoder_protocol::messages::{
    AssistantContent, AssistantMessage, InitMessage, StreamMessage, SystemMessage,
};
use qoder_types::{ContentBlock, PermissionMode, Record, StopReason, Usage};

use super::Driver;
use crate::VERSION;
use crate::driver::hooks::events::failure_kind;
use crate::error::DriveError;
use crate::events::Event;
use crate::session::new_id;
use qoder_config::agents::NAME as AGENT_TOOL;
use qoder_config::plugins::Plugin;
use qoder_config::plugins::error_rows;

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
        let loaded = engine.common.extensions.current();
        let agents =
            if engine.toolbox.get(AGENT_TOOL).is_some() { loaded.agents.names() } else { Vec::new() };
        self.emit(&StreamMessage::System(SystemMessage::Init(Box::new(InitMessage {
            session_id: self.session.id.clone(),
            uuid: new_id(),
            cwd: self.session.state.cwd.clone(),
            model: facts.name,
            permission_mode: self.limits.permission_mode.as_str().to_owned(),
            tools: engine.toolbox.names(),
            mcp_servers: engine.toolbox.servers().summary(),
            slash_commands: self.command_names(),
            agents: agents.into_iter().map(str::to_owned).collect(),
            skills: loaded.skills.names().into_iter().map(str::to_owned).collect(),
            plugins: loaded.plugins.iter().map(Plugin::row).collect(),
            plugin_errors: error_rows(&loaded.problems),
            output_style: "default".to_owned(),
            api_key_source: facts.key_source.to_owned(),
            qodercli_version: VERSION.to_owned(),
            claude_code_version: COMPATIBLE_VERSION.to_owned(),
            protocol_version: "1".to_owned(),
            capabilities: CAPABILITIES.iter().map(|&word| word.to_owned()).collect(),
            offline: facts.provider == "offline",
            ..InitMessage::default()
        }))))
    }

    /// Announces the end of the last turn, also one that an earlier process finished and could not announce.
    ///
    /// # Errors
    /// When it cannot be passed on.
    pub fn emit_result(&self) -> Result<(), DriveError> {
        let Some(end) = &self.session.state.last_turn else { return Ok(()) };
        let message = self.projector().result(end, self.session.state.last_turn_seq);
        self.engine.outlet.emit(Event::Message(&message)).map_err(DriveError::Output)
    }

    /// Emits the message of a record, if it has one.
    pub(super) fn emit_record(&self, record: &Record) -> Result<(), DriveError> {
        match self.projector().project(record) {
            Some(message) => self.emit(&message),
            None => Ok(()),
        }
    }

    pub(super) fn projector(&self) -> Projector {
        let mut projector = Projector::new(self.session.id.as_str());
        projector.replays_prompts = self.engine.front.replay_user_messages;
        projector.exposes_request_id = self.engine.front.expose_request_id;
        projector.custom_context.clone_from(&self.engine.common.custom_context);
        projector
    }

    /// A model call failed for good: the host gets a message in the model's place, in the words of the failure. It is not
    /// part of the conversation.
    pub(super) fn emit_failed_call(&self, reason: &EndReason) -> Result<(), DriveError> {
        let EndReason::ModelFailed { message, class, .. } = reason else { return Ok(()) };
        let text = self.session.redactor().text(message).into_owned();
        let synthetic = AssistantContent {
            id: format!("msg_{}", new_id().replace('-', "")),
            model: SYNTHETIC_MODEL.to_owned(),
            content: vec![ContentBlock::text(text)],
            stop_reason: Some(StopReason::StopSequence),
            usage: Some(Usage::default()),
            ..AssistantContent::default()
        };
        self.emit(&StreamMessage::Assistant(Box::new(AssistantMessage {
            message: synthetic,
            session_id: Some(self.session.id.clone()),
            uuid: Some(new_id()),
            error: Some(failure_kind(*class).to_owned()),
            ..AssistantMessage::default()
        })))
    }

    pub(super) fn emit_status(&self, status: Option<&str>) -> Result<(), DriveError> {
        self.emit(&StreamMessage::System(SystemMessage::Status {
            status: status.map(str::to_owned),
            permission_mode: None,
            uuid: new_id(),
            session_id: self.session.id.clone(),
        }))
    }

    pub(super) fn emit_mode(&self, mode: PermissionMode) -> Result<(), DriveError> {
        self.emit(&StreamMessage::System(SystemMessage::Status {
            status: None,
            permission_mode: Some(mode.as_str().to_owned()),
            uuid: new_id(),
            session_id: self.session.id.clone(),
        }))
    }
}
