//! What a run is configured by: settings in layers, folder trust, memory files, and definitions from files (agents,
//! skills, commands, plugins, hooks and MCP servers). Reads and writes files; starts no process and asks no one.

pub mod agents;
pub mod commands;
pub mod configuration;
pub mod extensions;
pub mod home;
pub mod hooks;
pub mod memory;
pub mod plugins;
pub mod scripts;
pub mod server_config;
pub mod servers;
pub mod settings;
pub mod skills;
pub mod sources;
pub mod trust;

pub use configuration::Configuration;
