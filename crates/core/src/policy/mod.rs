//! The gate: one function from rules, mode, trust and what a call would touch to allow, ask or deny, with the reason.
//! Deny rules come first, then limits that nothing lifts, ask rules, allow rules, what the runtime knows, and the mode.
//! What is not understood asks; absence of a decision is a denial. It looks at path metadata through a port and at
//! nothing else.

mod address;
mod compiled;
mod decide;
mod disguise;
mod domain;
mod expand;
mod explain;
mod found;
mod glob;
mod line;
mod links;
mod matching;
mod mentions;
mod pattern;
mod places;
mod removal;
mod rule;
mod suggest;
mod words;

pub use address::{HostKind, host_is_public_name, host_matches, is_public, normal_host};
pub use compiled::Policy;
pub use decide::{Confinement, Question, Ruling, decide};
pub use pattern::PathPattern;
pub use places::{
    AGENT_MEMORY, FILES as PROTECTED_FILES, FOLDERS as PROTECTED_FOLDERS, FileSystem, NoLinks, Workspace,
    is_protected, normalise,
};
pub use rule::{Rule, RuleError, RuleSet, split_rules};
