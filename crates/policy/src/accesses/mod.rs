//! What a call would touch: paths with their links followed, commands with what they read and change, hosts. Everything
//! that rules and modes are compared with is computed here; nothing is decided.

mod expand;
pub(crate) mod find;
mod glob;
mod links;
mod mentions;
mod removal;
