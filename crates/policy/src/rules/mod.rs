//! The rules of the allow, ask and deny lists: their grammar, and the form in which the gate compares them with calls.

pub(crate) mod compiled;
pub(crate) mod pattern;
pub(crate) mod quoted_code;
mod rule;
mod updates;
pub(crate) mod words;

pub use compiled::Policy;
pub use pattern::PathPattern;
pub use rule::{Rule, RuleError, RuleSet, split_rules};
