//! The gate: one pure function from rules, mode, trust and what a call would touch to allow, ask or deny, with the
//! reason. Deny rules come first, then limits that nothing lifts, ask rules, allow rules, what the runtime knows, and
//! the mode. What is not understood asks; absence of a decision is a denial.

mod command;
mod danger;
mod decide;
mod pattern;
mod rule;

pub use command::{CommandReading, read_command};
pub use decide::{Question, ResolvedAccess, Workspace, decide, hidden_from_search, is_protected};
pub use pattern::PathPattern;
pub use rule::{Rule, RuleError, RuleSet, split_rules};
