//! What every front of a run reports alike: that the offline model answers, and that a session cannot continue.

use qoder_core::State;
use qoder_runtime::sessions::SessionHandle;
use qoder_runtime::sessions::new_id;

use crate::command_line::arguments::OutputFormat;
use crate::exit::Fault;
use crate::run::options;
use crate::screen;

/// Says on stderr that no language model answers.
pub fn tell_offline(session: &SessionHandle) {
    if session.model().provider == "offline" {
        screen::print_note(
            "note: the built-in offline model answers, which is not a language model. Set ANTHROPIC_API_KEY or \
             OPENAI_API_KEY, or add `providers` to the settings, to use one.",
        );
    }
}

/// Programs that read JSON learn of a session that cannot be opened, written or continued by a result message, too. It has
/// what the unfinished turn came to so far.
pub fn announce_failure(fault: Fault, format: OutputFormat, session_id: &str, state: &State) -> Fault {
    let fault = fault
        .reworded(options::option_names(&crate::command_line::environment::environment()))
        .naming_session(session_id);
    if format != OutputFormat::Text {
        let turn = state.turn.clone().unwrap_or_default();
        let message = serde_json::json!({
            "type": "result", "subtype": "error_during_execution", "is_error": true, "duration_ms": 0,
            "duration_api_ms": turn.duration_api_ms, "num_turns": turn.model_calls, "session_id": session_id,
            "uuid": new_id(), "errors": [fault.message], "usage": turn.usage, "total_cost_usd": state.total_cost_usd,
            "modelUsage": state.totals, "permission_denials": turn.denials,
        });
        // The fault itself is printed on stderr, whether or not this is read.
        let _ = screen::print_json_line(message.to_string());
    }
    fault
}
