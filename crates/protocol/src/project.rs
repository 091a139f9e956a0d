//! From records to messages: a pure projection, the same for a session that is driven, replayed or resumed. Messages that
//! have no record (partial replies, progress, state) are not made here.

use std::collections::HashMap;

use qoder_types::record::{
    Decided, InputAdmitted, InputOrigin, InputWithdrawn, RecordBody, TurnEnded, UserEntry, UserOrigin,
};
use qoder_types::{Actor, Behavior, DecisionLayer, Record, TaskEnded, TaskStarted};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::messages::{
    AssistantMessage, ResultMessage, StreamMessage, SubagentAccount, SystemMessage, UserMessage,
    WireCompactMetadata,
};
use crate::question::decision_reason_type;

/// Makes the messages of one session from its records, which it sees in order.
#[derive(Debug, Clone, Default)]
pub struct Projector {
    /// The session.
    pub session_id: String,
    /// True when prompts are repeated on the stream.
    pub replays_prompts: bool,
    /// True when the provider's request id goes onto assistant messages.
    pub exposes_request_id: bool,
    /// What the host wants to find on every user message.
    pub custom_context: Option<Map<String, Value>>,
    tasks: HashMap<String, TaskStarted>,
    /// Inputs that wait, when prompts are repeated: one that a command answered never becomes an entry.
    inputs: HashMap<String, InputAdmitted>,
}

impl Projector {
    /// A projector for a session.
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self { session_id: session_id.into(), ..Self::default() }
    }

    /// Learns of a task that started in a record that this projector does not see.
    pub fn know_task(&mut self, start: &TaskStarted) {
        self.tasks.entry(start.task_id.clone()).or_insert_with(|| start.clone());
    }

    /// The message of a record; most records have none.
    pub fn project(&mut self, record: &Record) -> Option<StreamMessage> {
        let seq = record.seq;
        match &record.body {
            RecordBody::User(entry) => self.user(entry),
            RecordBody::Assistant(entry) => Some(StreamMessage::Assistant(Box::new(AssistantMessage {
                message: entry.message.clone().into(),
                session_id: Some(self.session_id.clone()),
                uuid: Some(entry.uuid.clone()),
                request_id: entry.request_id.clone().filter(|_| self.exposes_request_id),
                ..AssistantMessage::default()
            }))),
            RecordBody::System(entry) => {
                let metadata = entry.compact_metadata.as_ref()?;
                Some(StreamMessage::System(SystemMessage::CompactBoundary {
                    compact_metadata: WireCompactMetadata {
                        trigger: metadata.trigger.clone(),
                        pre_tokens: metadata.pre_tokens,
                    },
                    uuid: entry.uuid.clone(),
                    session_id: self.session_id.clone(),
                }))
            }
            RecordBody::InputAdmitted(input) => {
                if self.replays_prompts && input.origin != InputOrigin::System {
                    self.inputs.insert(input.input_id.clone(), input.clone());
                }
                None
            }
            RecordBody::InputWithdrawn(withdrawn) => self.withdrawn(withdrawn),
            RecordBody::Cut(cut) => self.replays_prompts.then(|| {
                StreamMessage::System(SystemMessage::ConversationCut {
                    at: cut.at.clone(),
                    uuid: self.uuid(seq),
                    session_id: self.session_id.clone(),
                })
            }),
            RecordBody::Decided(decided) => self.denial(decided, seq),
            RecordBody::TurnEnded(end) => Some(self.result(end, seq)),
            RecordBody::TaskStarted(start) => {
                self.know_task(start);
                Some(self.task_started(start))
            }
            RecordBody::TaskEnded(end) => {
                self.tasks.get(&end.task_id).map(|start| self.task_ended(start, end))
            }
            _ => None,
        }
    }

    /// A prompt that never became an entry: the program answered it, or a hook refused it. One that its sender took back was
    /// never asked.
    fn withdrawn(&mut self, withdrawn: &InputWithdrawn) -> Option<StreamMessage> {
        let input = self.inputs.remove(&withdrawn.input_id)?;
        let typed =
            (input.origin == InputOrigin::Shell).then(|| format!("!{}", input.message.content.to_text()));
        (!withdrawn.by.is_host()).then(|| {
            StreamMessage::User(Box::new(UserMessage {
                message: input.message.into(),
                session_id: Some(self.session_id.clone()),
                uuid: Some(input.input_id),
                is_replay: true,
                custom_context: self.custom_context.clone(),
                typed,
                ..UserMessage::default()
            }))
        })
    }

    fn user(&mut self, entry: &UserEntry) -> Option<StreamMessage> {
        if let Some(input) = &entry.input_id {
            self.inputs.remove(input);
        }
        let is_replay = match entry.origin {
            UserOrigin::ToolResult => false,
            UserOrigin::Prompt if self.replays_prompts => true,
            UserOrigin::Prompt | UserOrigin::Notice | UserOrigin::Summary => return None,
        };
        Some(StreamMessage::User(Box::new(UserMessage {
            message: entry.message.clone().into(),
            session_id: Some(self.session_id.clone()),
            uuid: Some(entry.uuid.clone()),
            // The log holds it as text; what is no JSON was never written.
            tool_use_result: entry
                .tool_use_result
                .as_ref()
                .and_then(|raw| serde_json::from_str(raw.get()).ok()),
            is_replay,
            is_synthetic: entry.is_meta,
            custom_context: self.custom_context.clone(),
            typed: entry.typed.clone(),
            duration_ms: entry.duration_ms,
            ..UserMessage::default()
        })))
    }

    /// A call was denied without the host: a host that answered, and a hook that denied it, know.
    fn denial(&self, decided: &Decided, seq: u64) -> Option<StreamMessage> {
        let decision = &decided.decision;
        let by_host = decision.answered_by.as_ref().is_some_and(Actor::is_host);
        if decision.behavior == Behavior::Allow || by_host || decision.layer == DecisionLayer::Hook {
            return None;
        }
        Some(StreamMessage::System(SystemMessage::PermissionDenied {
            tool_name: decided.tool_name.clone(),
            tool_use_id: decided.tool_use_id.clone(),
            agent_id: None,
            decision_reason_type: decision_reason_type(decision.layer).to_owned(),
            decision_reason: decision.reason.clone(),
            message: denial_text(&decided.tool_name, decision.layer, &decision.reason),
            uuid: self.uuid(seq),
            session_id: self.session_id.clone(),
        }))
    }

    /// The result of a turn whose end is record number `seq`.
    #[must_use]
    pub fn result(&self, end: &TurnEnded, seq: u64) -> StreamMessage {
        StreamMessage::Result(Box::new(ResultMessage {
            subtype: end.subtype.into(),
            is_error: end.is_error,
            duration_ms: end.duration_ms,
            duration_api_ms: end.duration_api_ms,
            num_turns: end.num_turns,
            session_id: self.session_id.clone(),
            uuid: self.uuid(seq),
            result: end.result.clone(),
            structured_output: end.structured_output.clone(),
            stop_reason: end.stop_reason.clone(),
            terminal_reason: Some(end.terminal_reason.into()),
            total_cost_usd: Some(end.total_cost_usd),
            usage: Some(end.usage),
            model_usage: end.model_usage.clone(),
            permission_denials: end.permission_denials.clone(),
            subagents: end.subagents.iter().map(SubagentAccount::from).collect(),
            errors: if end.is_error { end.errors.clone() } else { Vec::new() },
            error_code: end.error_code,
            api_error_status: end.api_error_status,
            extra: Map::new(),
        }))
    }

    /// That a task started.
    #[must_use]
    pub fn task_started(&self, start: &TaskStarted) -> StreamMessage {
        StreamMessage::System(SystemMessage::TaskStarted {
            task_id: start.task_id.clone(),
            tool_use_id: start.tool_use_id.clone(),
            description: start.description.clone(),
            task_type: start.task_type.clone(),
            uuid: self.derived(&format!("{}/started", start.task_id)),
            session_id: self.session_id.clone(),
        })
    }

    /// That a task ended.
    #[must_use]
    pub fn task_ended(&self, start: &TaskStarted, end: &TaskEnded) -> StreamMessage {
        StreamMessage::System(SystemMessage::TaskNotification {
            task_id: end.task_id.clone(),
            tool_use_id: start.tool_use_id.clone(),
            status: end.status.on_the_stream().to_owned(),
            output_file: start.output_file.clone(),
            summary: end.summary.clone(),
            uuid: self.derived(&format!("{}/ended", end.task_id)),
            session_id: self.session_id.clone(),
        })
    }

    /// The id of the message of a record that has none of its own: the same for every reader.
    #[must_use]
    pub fn uuid(&self, seq: u64) -> String {
        self.derived(&seq.to_string())
    }

    fn derived(&self, what: &str) -> String {
        let digest = Sha256::digest(format!("{}/{what}", self.session_id));
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(digest.iter()).for_each(|(byte, from)| *byte = *from);
        uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
    }
}

/// What the model reads about a denied call. A person's and a hook's own words come without an addition.
#[must_use]
pub fn denial_text(tool: &str, layer: DecisionLayer, reason: &str) -> String {
    match layer {
        DecisionLayer::Person | DecisionLayer::Hook => reason.to_owned(),
        DecisionLayer::Rule
        | DecisionLayer::BuiltIn
        | DecisionLayer::SafetyCheck
        | DecisionLayer::Mode
        | DecisionLayer::Unattended
        | DecisionLayer::Classifier
        | DecisionLayer::Sandbox => format!("Permission to use {tool} was denied: {reason}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_record_is_the_same_for_every_reader_and_differs_between_records() {
        let (one, same) = (Projector::new("s"), Projector::new("s"));
        assert_eq!(one.uuid(7), same.uuid(7));
        assert_ne!(one.uuid(7), one.uuid(8));
        assert_ne!(one.uuid(7), Projector::new("t").uuid(7));
        assert_eq!(one.uuid(7).len(), 36);
    }
}
