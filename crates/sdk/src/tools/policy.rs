//! What a server's description decides about its tools.

use serde::{Deserialize, Serialize};

/// The permission of one tool of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServerToolPolicy {
    /// The tool.
    pub name: String,
    /// What is decided about it.
    pub permission_policy: PermissionPolicy,
}

/// What is decided about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionPolicy {
    /// It runs.
    AlwaysAllow,
    /// The host or person is asked.
    AlwaysAsk,
    /// It does not run.
    AlwaysDeny,
}
