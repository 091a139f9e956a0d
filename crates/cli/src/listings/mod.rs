//! Commands that print what is in force: settings, agents, hooks, skills, commands, models, the sandbox.

pub mod agents;
pub mod config;
pub mod definitions;
pub mod hooks;
pub mod models;
pub mod sandbox;
