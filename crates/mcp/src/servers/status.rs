//! How one server is doing, and the row that hosts read about it: the documented fields, never a secret, and what the
//! server says of itself bounded and plain.

use std::sync::Arc;

use qoder_core::ports::Tool;
use serde_json::{Map, Value, json};
use tokio::task::AbortHandle;

use super::Made;
use crate::peer::Challenge;
use crate::result::plain;
use crate::{Greeting, ListedTool};
use qoder_types::server::NamedServer;

/// Bytes of an error that a row shows.
const LONGEST_ERROR: usize = 8 * 1024;
/// Bytes of a description that a row shows.
const LONGEST_DESCRIPTION: usize = 2048;

/// How a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerStatus {
    /// Nothing was tried yet.
    Pending,
    /// The handshake is on its way.
    Connecting,
    /// Its tools can be called.
    Connected,
    /// It cannot be used.
    Failed,
    /// It wants credentials.
    NeedsAuth,
    /// It was switched off, or it is not approved.
    Disabled,
}

impl ServerStatus {
    /// The documented word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Failed => "failed",
            Self::NeedsAuth => "needs-auth",
            Self::Disabled => "disabled",
        }
    }

    /// False while an attempt to connect is pending or in flight.
    #[must_use]
    pub fn is_settled(self) -> bool {
        match self {
            Self::Pending | Self::Connecting => false,
            Self::Connected | Self::Failed | Self::NeedsAuth | Self::Disabled => true,
        }
    }
}

/// A server of the session.
pub(super) struct Server {
    pub(super) named: NamedServer,
    /// The way to it, once it was needed.
    pub(super) made: Option<Made>,
    pub(super) status: ServerStatus,
    /// Why it cannot be used, or what is wrong with it although it can.
    pub(super) error: Option<String>,
    pub(super) greeting: Greeting,
    pub(super) tools: Vec<Arc<dyn Tool>>,
    /// Counts connections; what belongs to an earlier one is ignored.
    pub(super) attempt: u64,
    /// Looks after the connection.
    pub(super) task: Option<AbortHandle>,
    /// What it asked for when it last refused.
    pub(super) challenge: Option<Challenge>,
    /// True while a person is asked for credentials.
    pub(super) authorizing: bool,
    /// Why nothing is ever started of it.
    pub(super) refused: Option<String>,
    /// True when it ended by itself after it had worked: the next use may start it again.
    pub(super) may_restart: bool,
}

impl Server {
    pub(super) fn new(named: NamedServer) -> Self {
        let status = if named.config.enabled { ServerStatus::Pending } else { ServerStatus::Disabled };
        Self {
            named,
            made: None,
            status,
            error: None,
            greeting: Greeting::default(),
            tools: Vec::new(),
            attempt: 0,
            task: None,
            challenge: None,
            authorizing: false,
            refused: None,
            may_restart: false,
        }
    }

    /// Nothing is on its way: it has been tried, and no question for credentials is open.
    pub(super) fn is_done(&self) -> bool {
        self.status.is_settled() && !self.authorizing
    }

    /// It cannot be used; its tools are gone.
    pub(super) fn fail(&mut self, problem: impl Into<String>) {
        self.status = ServerStatus::Failed;
        self.error = Some(problem.into());
        self.authorizing = false;
        self.forget();
    }

    /// Forgets what an earlier connection brought.
    pub(super) fn forget(&mut self) {
        self.greeting = Greeting::default();
        self.tools.clear();
        self.may_restart = false;
    }

    /// Ends the task that looks after the connection.
    pub(super) fn stop(&mut self) {
        self.attempt += 1;
        self.authorizing = false;
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    /// Everything that hosts may know.
    pub(super) fn row(&self) -> Value {
        let mut row = json!({
            "name": self.named.name, "status": self.status.as_str(),
            "config": self.named.config.shown, "scope": self.named.scope.as_str(),
        });
        if let Some(info) = &self.greeting.server_info {
            row["serverInfo"] = shown_info(info);
        }
        if let Some(error) = &self.error {
            row["error"] = json!(plain(error, LONGEST_ERROR));
        }
        if self.status == ServerStatus::Connected {
            row["tools"] = self.greeting.tools.iter().map(tool_row).collect();
        }
        row
    }
}

/// `name`, `title` and `version` of a server, whatever else it says.
fn shown_info(info: &Value) -> Value {
    let keys = ["name", "title", "version"].into_iter();
    let texts = keys.filter_map(|key| Some((key.to_owned(), json!(plain(info.get(key)?.as_str()?, 256)))));
    texts.collect::<Map<_, _>>().into()
}

/// The bare name, and the hints without their suffix; only those that were set.
fn tool_row(tool: &ListedTool) -> Value {
    let mut row = json!({ "name": tool.name });
    if let Some(text) = &tool.description {
        row["description"] = json!(plain(text, LONGEST_DESCRIPTION));
    }
    let hints = tool.annotations.as_ref().and_then(Value::as_object);
    let mut shown = Map::new();
    for (key, word) in
        [("readOnlyHint", "readOnly"), ("destructiveHint", "destructive"), ("openWorldHint", "openWorld")]
    {
        if let Some(value) = hints.and_then(|hints| hints.get(key)).filter(|value| value.is_boolean()) {
            shown.insert(word.to_owned(), value.clone());
        }
    }
    if !shown.is_empty() {
        row["annotations"] = Value::Object(shown);
    }
    row
}
