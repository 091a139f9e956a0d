//! What a person does once: an AGENTS.md, an API key, completions for the shell.

pub mod completions;
pub mod init;
pub mod login;
