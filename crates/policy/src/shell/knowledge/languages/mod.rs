//! Small readers for the languages that programs take as arguments: what a script of `sed`, `awk` or `jq` would read,
//! write and run.

pub(crate) mod awk;
pub(crate) mod jq;
pub(crate) mod sed;
