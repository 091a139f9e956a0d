//! The driver and everything it stands on: sessions and their log stores, the gate, settings, trust, memory files and
//! the system prompt. A front builds an [`engine::Engine`], opens a [`session::Session`] and lets a
//! [`driver::Driver`] go on from whatever the session's records say.

pub mod agent;
mod call_ids;
pub mod callbacks;
pub mod catalog;
pub mod checkpoints;
pub mod commands;
mod config_tool;
mod cut;
pub mod driver;
pub mod engine;
pub mod error;
pub mod events;
pub mod extensions;
pub mod gate;
pub mod hooks;
mod image_policy;
pub mod interrupt;
pub mod layout;
pub mod live;
mod local_files;
pub mod mcp_sources;
pub mod memory;
pub mod model_policy;
pub mod notice;
pub mod opening;
pub mod permission_answer;
pub mod permission_check;
pub mod permission_updates;
mod pieces;
pub mod prompt;
pub mod questions;
pub mod redact;
mod redacted_host;
pub mod retention;
pub mod sandbox;
pub mod session;
pub mod settings;
pub mod setup;
pub mod skills;
pub mod spending;
pub mod store;
mod structured;
pub mod switched_model;
pub mod task_events;
pub mod toolbox;
pub mod trust;

/// Version of the program, as sessions record it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// MCP servers: how they are described, spoken with and watched.
pub use qoder_mcp as mcp;
/// Traces and metrics for a collector.
pub use qoder_telemetry as telemetry;
