//! The driver and everything it stands on: sessions and their log stores, the gate, settings, trust, memory files and
//! the system prompt. A front builds an [`engine::Engine`], opens a [`session::Session`] and lets a
//! [`driver::Driver`] continue from whatever the session's records say.

pub mod agent;
mod call_ids;
pub mod callbacks;
pub mod checkpoints;
mod command_rows;
mod config_tool;
mod cut;
mod driver;
pub mod elicitations;
pub mod engine;
pub mod error;
pub mod events;
pub mod gate;
mod hook_outlet;
mod image_policy;
pub mod interrupt;
mod local_files;
pub mod model_policy;
pub mod notice;
pub mod opening;
pub mod permission_check;
pub mod permission_tool;
pub mod permission_updates;
mod pieces;
pub mod prompt;
pub mod questions;
pub mod redact;
pub mod retention;
pub mod sandbox;
pub mod session;
pub mod sessions;
pub mod setup;
pub mod skill_tool;
pub mod spending;
mod structured;
pub mod task_events;
pub mod toolbox;

/// Version of the program, as sessions record it.
pub use qoder_store::VERSION;

/// Settings, trust, memory files, and definitions from files.
pub use qoder_config as config;
/// MCP servers: how they are described, spoken with and watched.
pub use qoder_mcp as mcp;
/// Where sessions are kept.
pub use qoder_store as store;
pub use qoder_store::{catalog, layout};
/// Traces and metrics for a collector.
pub use qoder_telemetry as telemetry;
