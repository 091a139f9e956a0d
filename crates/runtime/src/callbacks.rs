//! What a front brings to a session besides its options: hooks, servers and who answers their questions, and the choice of
//! the model. Each is a function; whether it runs in this process or behind a pipe is the front's affair.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

pub use crate::elicitations::Elicitations;
use crate::mcp::questions::{Elicitation, ElicitationAnswer, OAuthAnswer, OAuthQuestion};
use crate::mcp::remote::ConnectionPool;
use crate::mcp::{McpPeer, RefusedServer};
use qoder_config::agents::AgentDefinition;
use qoder_config::hooks::Hook;
use qoder_config::servers::Flags;
use qoder_types::server::NamedServer;

/// What a front brings to a session. `Default` is nothing.
#[derive(Clone, Default)]
pub struct Callbacks {
    /// Functions that are called around the steps of a turn.
    pub hooks: Vec<Hook>,
    /// The servers to connect.
    pub servers: Vec<NamedServer>,
    /// Servers that are shown and not connected.
    pub refused_servers: Vec<RefusedServer>,
    /// What the command line says about servers.
    pub server_flags: Flags,
    /// Connections that this session shares with others of its process. Without it every server gets its own, and may ask
    /// questions.
    pub connections: Option<ConnectionPool>,
    /// Finds servers whose tools live in the front's process.
    pub own_servers: Option<OwnServers>,
    /// Agents by name, besides the one that is always there.
    pub agents: BTreeMap<String, AgentDefinition>,
    /// Chooses the model before each call of one.
    pub model_policy: Option<ModelPolicy>,
    /// Called once when the provider no longer accepts the credentials; may bring new ones.
    pub auth_expired: Option<AuthExpired>,
    /// Puts questions of servers to a person; without it they are cancelled.
    pub elicitation: Option<OnElicitation>,
    /// Puts questions of servers to the subscribers of the session, in place of `elicitation`.
    pub elicitations: Option<Elicitations>,
    /// Gets credentials for servers; without it they stay in `needs-auth`.
    pub mcp_oauth: Option<OnMcpOAuth>,
}

impl Callbacks {
    /// What puts a question of a server to a person.
    pub(crate) fn on_elicitation(&self) -> Option<OnElicitation> {
        self.elicitations.as_ref().map(Elicitations::callback).or_else(|| self.elicitation.clone())
    }
}

/// The way to a server in the front's process, by its name there.
pub type OwnServers = Arc<dyn Fn(&str) -> Option<Arc<dyn McpPeer>> + Send + Sync>;

/// Chooses the model for one call. The question is the documented `ModelPolicyContext`, the answer a model's name with
/// optional `parameters` and `credentials`; an error ends the run.
pub type ModelPolicy = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// Called with the reason when the credentials are no longer accepted.
pub type AuthExpired = Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>;

/// Puts a question of a server to a person. An error counts as no answer.
pub type OnElicitation =
    Arc<dyn Fn(Elicitation) -> BoxFuture<'static, Result<ElicitationAnswer, String>> + Send + Sync>;

/// Gets credentials for a server. An error counts as a refusal.
pub type OnMcpOAuth =
    Arc<dyn Fn(OAuthQuestion) -> BoxFuture<'static, Result<OAuthAnswer, String>> + Send + Sync>;
