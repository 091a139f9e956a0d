//! The fields of events that do not depend on what came before.

use qoder_types::record::{TerminalReason, TurnEnded};
use qoder_types::{
    ContentBlock, ModelFailure, ModelFailureClass, StopReason as ModelStop, ToolResultContent, Usage,
};
use serde_json::{Value, json};

use crate::model::ids::EventId;
use crate::model::status::StopReason;
use crate::model::usage::rounded;

/// `span.model_request_end`.
pub(super) fn span_end(start: EventId, is_error: bool, usage: &Usage, credits: f64) -> Value {
    let mut usage = json!({
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
    });
    if credits > 0.0 {
        usage["credits"] = json!(rounded(credits));
    }
    json!({ "model_request_start_id": start, "is_error": is_error, "model_usage": usage })
}

/// `session.error` for a model call that failed for good.
pub(super) fn model_error(failure: &ModelFailure) -> Value {
    let kind = match failure.class {
        ModelFailureClass::Overloaded => "model_overloaded_error",
        ModelFailureClass::RateLimit => "model_rate_limited_error",
        ModelFailureClass::Quota => "billing_error",
        ModelFailureClass::Authentication
        | ModelFailureClass::Permission
        | ModelFailureClass::NotFound
        | ModelFailureClass::InvalidRequest
        | ModelFailureClass::ContextTooLong
        | ModelFailureClass::Server
        | ModelFailureClass::Network
        | ModelFailureClass::Timeout
        | ModelFailureClass::MalformedStream
        | ModelFailureClass::Configuration => "model_request_failed_error",
    };
    error(kind, &failure.message)
}

/// `session.error` for a turn that ended with something else than a failed model call.
pub(super) fn turn_error(ended: &TurnEnded) -> Value {
    error("unknown_error", &ended.errors.join(" "))
}

fn error(kind: &str, message: &str) -> Value {
    json!({ "error": { "type": kind, "message": message, "retry_status": { "type": "exhausted" } } })
}

/// Why a session is idle after a turn.
pub(super) fn stop_reason(ended: &TurnEnded) -> StopReason {
    match ended.terminal_reason {
        TerminalReason::Completed
        | TerminalReason::AbortedStreaming
        | TerminalReason::AbortedTools
        | TerminalReason::HookStopped
        | TerminalReason::MaxTurns
        | TerminalReason::StructuredOutputRetries => StopReason::EndTurn,
        TerminalReason::MaxBudget | TerminalReason::MaxTaskBudget => StopReason::BudgetReached,
        TerminalReason::ApiError if ended.stop_reason == Some(ModelStop::Refusal) => StopReason::Refusal,
        TerminalReason::ApiError => StopReason::RetriesExhausted,
    }
}

/// The blocks of a tool's result.
pub(super) fn result_blocks(content: &ToolResultContent) -> Vec<Value> {
    match content {
        ToolResultContent::Text(text) => vec![json!({ "type": "text", "text": text })],
        ToolResultContent::Blocks(blocks) => blocks.iter().map(block).collect(),
    }
}

fn block(block: &ContentBlock) -> Value {
    serde_json::to_value(block).unwrap_or(Value::Null)
}

/// The input of a call as an object, which clients expect.
pub(super) fn input_object(input: &Value) -> Value {
    match input {
        Value::Object(_) => input.clone(),
        other => json!({ "value": other }),
    }
}
