//! What a front brings to a session besides its options: hooks, servers with tools that live in the front's process, and
//! the choice of the model. Each is a function; whether it runs in this process or behind a pipe is the front's affair.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::agent::AgentDefinition;
use crate::hooks::Hook;
use crate::mcp::McpPeer;

/// What a front brings to a session. `Default` is nothing.
#[derive(Clone, Default)]
pub struct Callbacks {
    /// Functions that are called around the steps of a turn.
    pub hooks: Vec<Hook>,
    /// Servers whose tools live in the front's process, by the name that the tools carry.
    pub tool_servers: Vec<(String, Arc<dyn McpPeer>)>,
    /// Agents by name, besides the one that is always there.
    pub agents: BTreeMap<String, AgentDefinition>,
    /// Chooses the model before each call of one.
    pub model_policy: Option<ModelPolicy>,
    /// Told once when the provider does not accept the credentials any more; may bring new ones.
    pub auth_expired: Option<AuthExpired>,
}

/// Chooses the model for one call. The question is the documented `ModelPolicyContext`, the answer a model's name with
/// optional `parameters` and `credentials`; an error ends the run.
pub type ModelPolicy = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// Told that the credentials are not accepted any more, with the reason.
pub type AuthExpired = Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>;
