//! Skills and commands through the real program: how files define them, what the model reads of them, what `/name`
//! comes to, and that whatever they run or read passes the gate. One module per behaviour.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod arguments;
mod broken_files;
mod built_in;
mod conditional_skills;
mod included_files;
mod linked_files;
mod listed;
mod shell_lines;
mod skill_names;
mod skill_permissions;
mod skills_found;
mod skills_loaded;
mod turn_models;
mod turn_rules;
mod unknown_commands;
