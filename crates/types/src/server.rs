//! The description of an MCP server: how it is reached, what is decided about its tools, and where it was described.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

/// Where a description came from; the later ones win over the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A plugin.
    Plugin,
    /// The project's `.mcp.json`.
    Project,
    /// The user's settings.
    User,
    /// The folder's local settings.
    Local,
    /// The command line, or the options of an SDK.
    Flag,
    /// In the program that started us.
    Sdk,
}

impl Scope {
    /// The word for people and for status rows.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plugin => "plugin",
            Self::Project => "project",
            Self::User => "user",
            Self::Local => "local",
            Self::Flag => "dynamic",
            Self::Sdk => "sdk",
        }
    }
}

/// What is decided about a tool of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolPolicy {
    /// It runs: an allow rule of the description's source.
    AlwaysAllow,
    /// A person is asked: an ask rule.
    AlwaysAsk,
    /// It does not run: a deny rule.
    AlwaysDeny,
    /// The classifier judges each call; where it does not, a person is asked. Only [`ToolPolicies`] has it.
    Auto,
}

/// What a program that opens sessions has decided about their tools, each by its exact name: no other name of the tool, and
/// no access of another tool, is meant. A policy only tightens what rules and places allow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPolicies {
    /// By the name that the model calls.
    pub tools: BTreeMap<String, ToolPolicy>,
    /// By the name of the MCP server, for those of its tools that are not listed.
    pub servers: BTreeMap<String, ToolPolicy>,
}

impl ToolPolicies {
    /// The policy of the tool that the model calls by this name.
    #[must_use]
    pub fn of(&self, tool: &str) -> Option<ToolPolicy> {
        let of_server = || {
            let (server, _) = tool.strip_prefix("mcp__")?.split_once("__")?;
            self.servers.get(server)
        };
        self.tools.get(tool).or_else(of_server).copied()
    }
}

/// A client that was registered with an authorization server beforehand, and where the callback goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthConfig {
    /// The registered client.
    pub client_id: Option<String>,
    /// Its secret, when it has one.
    pub client_secret: Option<String>,
    /// Scopes to ask for in place of those that the server names.
    pub scopes: Option<Vec<String>>,
    /// The port of the loopback callback, for registrations that fix it.
    pub callback_port: Option<u16>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A child process that speaks on its pipes; an argument vector, never a shell string.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Added to a cleaned environment.
        env: BTreeMap<String, String>,
        /// Its working directory; the session's when `None`.
        cwd: Option<PathBuf>,
    },
    /// Legacy server-sent events.
    Sse {
        /// The address of the stream.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
    },
    /// Streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
    },
    /// In the program that started us, under this name.
    Sdk {
        /// The name there.
        name: String,
    },
}

impl Transport {
    /// The word of the field `type`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Sse { .. } => "sse",
            Self::Http { .. } => "http",
            Self::Sdk { .. } => "sdk",
        }
    }

    /// The address of a remote server.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Sse { url, .. } | Self::Http { url, .. } => Some(url),
            Self::Stdio { .. } | Self::Sdk { .. } => None,
        }
    }
}

/// The description of one server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// How it is reached.
    pub transport: Transport,
    /// What is decided about its tools, by their names on the server.
    pub policies: Vec<(String, ToolPolicy)>,
    /// Only these tools, when given; by their names on the server.
    pub include_tools: Option<Vec<String>>,
    /// Not these tools.
    pub exclude_tools: Vec<String>,
    /// How long a call may take without progress.
    pub timeout: Option<Duration>,
    /// False when it is switched off.
    pub enabled: bool,
    /// True when it may ask the session's model for replies.
    pub sampling: bool,
    /// For servers that want OAuth.
    pub oauth: OAuthConfig,
    /// The description as it was written, secrets of `env` and `headers` replaced, for status rows.
    pub shown: Value,
}

impl ServerConfig {
    /// A server that is reached so, with every tool it has and no time limit of its own.
    #[must_use]
    pub fn new(transport: Transport, shown: Value) -> Self {
        Self {
            transport,
            policies: Vec::new(),
            include_tools: None,
            exclude_tools: Vec::new(),
            timeout: None,
            enabled: true,
            sampling: false,
            oauth: OAuthConfig::default(),
            shown,
        }
    }
}

/// A described server with its name and where the description came from.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedServer {
    /// The key in `mcpServers`: letters, digits, `-` and `_`, without `__`.
    pub name: String,
    /// The description.
    pub config: ServerConfig,
    /// Where it came from.
    pub scope: Scope,
}
