//! MCP servers of a session: who they are, how they are doing, and the tools they bring. A server is reached through
//! [`McpPeer`], whatever carries the messages; its tools stand beside the built-in ones and pass the same gate.
//!
//! * [`config`]: how a server is described. * [`peer`]: how one is spoken with. * [`questions`]: what servers ask of us.
//! * [`authorization`]: credentials of remote servers. * [`McpServers`]: all servers of a session.

pub mod authorization;
pub mod config;
pub mod conformance;
pub mod oauth;
pub mod peer;
pub mod questions;
pub mod remote;
mod result;
mod servers;
mod tool;
mod tunnel;

pub use peer::{CallToolResult, Greeting, ListedTool, McpPeer, PeerError, PeerEvent, PeerEvents, ToolCall};
pub use servers::{McpServers, Replaced, ServerStatus};
pub use tool::{McpTool, tool_name};
pub use tunnel::{Tunnel, TunnelSend};

/// The version that servers are told.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
