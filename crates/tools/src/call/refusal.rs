//! Results that end a call early: a refusal that the model can act on, and an interruption.

use qoder_core::ports::ToolOutcome;
use qoder_types::CallOutcome;

/// A result that ends a call early; boxed because it is large and rare.
pub type Refusal = Box<ToolOutcome>;

/// A failure that the model can act on.
pub(crate) fn refusal(text: impl Into<String>) -> Refusal {
    Box::new(ToolOutcome::failed(text))
}

/// The result of a call that was stopped before it had one.
pub(crate) fn interrupted() -> ToolOutcome {
    ToolOutcome {
        outcome: CallOutcome::Interrupted,
        ..ToolOutcome::failed("The call was interrupted before it finished.")
    }
}
