//! The gate: one function from rules, mode, trust and what a call would touch to allow, ask or deny, with the reason.
//! Deny rules come first, then limits that nothing lifts, ask rules, allow rules, what the runtime knows, and the mode.
//! What is not understood asks; absence of a decision is a denial. It looks at path metadata through a port and at
//! nothing else.
//!
//! [`shell`] reads commands as bash does and knows what common programs read, change and remove.

mod accesses;
mod decide;
mod hosts;
mod places;
mod rules;
pub mod shell;

pub use decide::{Confinement, Question, Ruling, decide};
pub use places::{FileSystem, NoLinks, PlaceError, normalise};
pub use qoder_types::workspace::{AGENT_MEMORY, PROTECTED_FILES, PROTECTED_FOLDERS, Workspace, is_protected};
pub use rules::{PathPattern, Policy, Rule, RuleError, RuleSet, split_rules};
