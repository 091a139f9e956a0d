//! What the command line says about MCP servers.

use qoder_config::servers::Flags;

use crate::command_line::arguments::ProtocolArguments;

/// The servers of the command line.
pub fn server_flags(arguments: &ProtocolArguments) -> Flags {
    Flags {
        configs: arguments.mcp_config.clone(),
        strict: arguments.strict_mcp_config,
        allowed: arguments.allowed_mcp_server_names.clone(),
    }
}
