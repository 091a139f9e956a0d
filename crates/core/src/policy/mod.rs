//! The gate: one pure function from rules, mode, trust and what a call would touch to allow, ask or deny, with the
//! reason. Deny rules come first, then limits that nothing lifts, ask rules, allow rules, what the runtime knows, and
//! the mode. What is not understood asks; absence of a decision is a denial.

mod address;
mod command;
mod danger;
mod decide;
mod pattern;
mod rule;

pub use address::{HostKind, host_is_public_name, host_matches, is_public, normal_host};
pub use command::{CommandReading, read_command};
pub use decide::{Question, ResolvedAccess, Workspace, decide, hidden_from_search, is_protected};
pub use pattern::PathPattern;
pub use rule::{Rule, RuleError, RuleSet, split_rules};
