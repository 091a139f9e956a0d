//! Connections to servers outside of this process: child processes, legacy server-sent events and streamable HTTP, all on
//! `rmcp`'s client. What a server may cost is bounded here: message sizes, lists, waiting, and what it prints.
//!
//! * [`peer()`] makes the connection for a description. * `peer.rs`: its life. * [`ConnectionPool`]: connections that sessions share. * `ask.rs`: one request and its timer.
//! * `handler`: what servers ask and send. * `stdio.rs`, `http`: what carries the messages. * `wire`: how they are read.

mod ask;
mod events;
mod failure;
mod fault;
mod handler;
mod http;
mod listing;
mod peer;
mod pool;
mod stdio;
mod wire;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::authorization::Authorizer;
use crate::questions::ServerQuestions;
use crate::{CallToolResult, Greeting, ListedTool, McpPeer, PeerError, PeerEvents, ToolCall};
use qoder_types::server::{NamedServer, Transport};

pub use peer::RemotePeer;
pub use pool::ConnectionPool;

/// How long a call may take without progress when its server's description says nothing.
pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// How a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifecycle {
    /// `initialize` and `notifications/initialized`, as all revisions up to 2025-11-25 have it.
    #[default]
    Initialize,
    /// `server/discover`, and every request describes itself: revision 2026-07-28.
    Discover,
}

/// What a server may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From the start until the tools are known.
    pub start_up: Duration,
    /// A call without progress, unless the description of the server says otherwise.
    pub call: Duration,
    /// Any other request.
    pub request: Duration,
    /// How long a child process may take to end by itself once its input is closed.
    pub ending: Duration,
    /// One message, in bytes; also a whole list of tools.
    pub message: usize,
    /// Tools of one server.
    pub tools: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start_up: Duration::from_secs(30),
            call: DEFAULT_CALL_TIMEOUT,
            request: Duration::from_secs(120),
            ending: Duration::from_secs(1),
            message: 8 * 1024 * 1024,
            tools: 1_000,
        }
    }
}

/// What connections need, besides the description of their server.
#[derive(Clone)]
pub struct PeerContext {
    /// Where child processes start when their description names no directory.
    pub cwd: PathBuf,
    /// The environment of child processes, before what their description adds. Contains no secret of ours: see
    /// [`clean_environment`].
    pub environment: Arc<BTreeMap<String, String>>,
    /// Who answers what servers ask.
    pub questions: Arc<dyn ServerQuestions>,
    /// Credentials of a remote server.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// How the connection begins.
    pub lifecycle: Lifecycle,
    /// The revision to offer in `initialize`; the newest one that has it when `None`.
    pub protocol_version: Option<String>,
    /// What the server may cost.
    pub limits: Limits,
}

impl PeerContext {
    /// With an empty environment, without credentials and with the default limits.
    pub fn new(cwd: impl Into<PathBuf>, questions: Arc<dyn ServerQuestions>) -> Self {
        Self {
            cwd: cwd.into(),
            environment: Arc::default(),
            questions,
            authorizer: None,
            lifecycle: Lifecycle::default(),
            protocol_version: None,
            limits: Limits::default(),
        }
    }
}

/// The environment that servers may see: `variables` without those named in `hidden`, and without functions that a shell
/// would take in place of commands.
#[must_use]
pub fn clean_environment<'a>(
    variables: impl IntoIterator<Item = (&'a String, &'a String)>,
    hidden: &[String],
) -> BTreeMap<String, String> {
    variables
        .into_iter()
        .filter(|(name, _)| !hidden.contains(name) && !name.starts_with("BASH_FUNC_"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The connection to a described server; nothing is started before `connect` is called. A server inside the front's
/// process is not ours to reach: its connection only says so.
#[must_use]
pub fn peer(server: &NamedServer, context: &PeerContext) -> Arc<dyn McpPeer> {
    match &server.config.transport {
        Transport::Stdio { .. } | Transport::Sse { .. } | Transport::Http { .. } => {
            Arc::new(RemotePeer::new(server.clone(), context.clone()))
        }
        Transport::Sdk { name } => Arc::new(Elsewhere(name.clone())),
    }
}

/// A server that the front was to bring and did not.
struct Elsewhere(String);

impl Elsewhere {
    fn refuse<T: Send + 'static>(&self) -> BoxFuture<'static, Result<T, PeerError>> {
        let problem = format!(
            "the server `{}` lives in the program that started this one, which did not bring it",
            self.0
        );
        std::future::ready(Err(PeerError::Failed(problem))).boxed()
    }
}

impl McpPeer for Elsewhere {
    fn connect(&self, _: PeerEvents) -> BoxFuture<'static, Result<Greeting, PeerError>> {
        self.refuse()
    }

    fn list_tools(&self) -> BoxFuture<'static, Result<Vec<ListedTool>, PeerError>> {
        self.refuse()
    }

    fn call(&self, _: ToolCall) -> BoxFuture<'static, Result<CallToolResult, PeerError>> {
        self.refuse()
    }

    fn request(&self, _: &'static str, _: Value) -> BoxFuture<'static, Result<Value, PeerError>> {
        self.refuse()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_environment_has_no_hidden_variable_and_no_function() {
        let variables: BTreeMap<String, String> =
            [("PATH", "/bin"), ("SECRET_KEY", "x"), ("BASH_FUNC_ls%%", "() { :; }")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
        let clean = clean_environment(&variables, &["SECRET_KEY".to_owned()]);
        assert_eq!(clean, BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]));
    }
}
