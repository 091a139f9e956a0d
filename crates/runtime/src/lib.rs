//! Sessions and what drives them. A front opens a session from [`sessions::Sessions`] and holds a handle; `setup` and
//! `callbacks` are what it opens one with. What else is public serves the subcommands of `qodercli`; `cargo xtask check` has
//! the list of what each front may use.

mod agents;
pub mod callbacks;
pub mod checkpoints;
mod driver;
mod elicitations;
mod engine;
pub mod error;
pub mod events;
mod model_policy;
pub mod permission_check;
mod permissions;
pub mod session;
pub mod sessions;
pub mod setup;
mod tools;

pub use engine::interrupt::{Cancelled, Interrupt};

/// Version of the program, as sessions record it.
pub use qoder_store::VERSION;

/// Settings, trust, memory files, and definitions from files.
pub use qoder_config as config;
/// MCP servers: how they are described, spoken with and watched.
pub use qoder_mcp as mcp;
/// Programs that end with everything they started.
pub use qoder_process::ServerProcess;
/// The sandbox of commands, and the hosts that a proxy leaves.
pub use qoder_process::sandbox as confinement;
/// Where sessions are kept.
pub use qoder_store as store;
pub use qoder_store::{catalog, layout};
/// Traces and metrics for a collector.
pub use qoder_telemetry as telemetry;
/// Built-in tools in a process of their own, inside of a session's environment.
pub use qoder_tools::host as tool_host;
