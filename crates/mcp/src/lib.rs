//! MCP servers of a session: who they are, how they are doing, and the tools they bring. A server is reached through
//! [`McpPeer`], whatever carries the messages; its tools are offered beside the built-in ones and pass the same gate.
//!
//! * [`peer`]: how one is spoken with. * [`questions`]: what servers ask of us.
//! * [`authorization`]: credentials of remote servers. * [`McpServers`]: all servers of a session.

pub mod authorization;
mod by_name;
pub mod conformance;
pub mod lazy;
pub mod names;
pub mod oauth;
pub mod peer;
pub mod prompts;
pub mod questions;
pub mod remote;
mod resources;
mod result;
mod servers;
mod tool;
mod tunnel;

pub use by_name::{ByName, Offers};
pub use names::tool_name;
pub use peer::{CallToolResult, Greeting, ListedTool, McpPeer, PeerError, PeerEvent, PeerEvents, ToolCall};
pub use result::plain;
pub use servers::{
    Authentication, EventListener, Made, McpServers, RefusedServer, Replaced, START_WAIT, ServerError,
    ServerMaker, ServerStatus, StatusListener,
};
pub use tool::McpTool;
pub use tunnel::{Tunnel, TunnelSend};

/// The version that servers get.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
