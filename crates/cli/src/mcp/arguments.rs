//! The arguments of `qodercli mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub const HELP: &str = "\
Examples:
  qodercli mcp add git -- uvx mcp-server-git --repository .
  qodercli mcp add -s user -e API_KEY=${MY_KEY} search -- npx -y some-search-server
  qodercli mcp add -t http -H 'Authorization: Bearer ${TOKEN}' docs https://docs.example.com/mcp
  qodercli mcp add-json -s project time '{\"command\": \"uvx\", \"args\": [\"mcp-server-time\"]}'
  qodercli mcp list
  qodercli mcp auth docs

Scopes: local is .qoder/settings.local.json, project is .mcp.json (both of the project, used when the folder is trusted),
user is settings.json in your configuration. ${NAME} and ${NAME:-default} stand for variables of the environment; quote them,
so that the file holds the name and not the secret. Servers that others put into a project run only after
`qodercli mcp approve`.";

/// Which file a server is described in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScopeName {
    /// Your configuration: every project.
    User,
    /// The project's .qoder/settings.local.json: you, in this project.
    Local,
    /// The project's .mcp.json: everyone who works on it.
    Project,
}

impl ScopeName {
    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Local => "local",
            Self::Project => "project",
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TransportName {
    /// A program that speaks on its pipes.
    Stdio,
    /// Legacy server-sent events.
    Sse,
    /// Streamable HTTP.
    Http,
}

/// Where the command looks.
#[derive(Debug, Clone, Default, Args)]
pub struct Where {
    /// Working directory.
    #[arg(short = 'w', long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Settings file, or JSON, that overrides all other layers.
    #[arg(long, value_name = "FILE|JSON")]
    pub settings: Option<String>,
    /// Treat the folder as trusted for this command.
    #[arg(long)]
    pub trust: bool,
}

/// What to do with servers.
#[derive(Debug, Subcommand)]
pub enum McpAction {
    /// Add a server: a program with its arguments after `--`, or a URL.
    Add(Add),
    /// Add a server as JSON, in the form used under `mcpServers`.
    AddJson {
        /// Its name: letters, digits, `-` and `_`.
        name: String,
        /// The description.
        json: String,
        /// Scope to write to.
        #[arg(short, long, value_enum, default_value = "local")]
        scope: ScopeName,
        #[command(flatten)]
        place: Where,
    },
    /// Connect to all servers and print their status.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Where,
    },
    /// Print the configuration of a server and the file it is in, without connecting.
    Get {
        /// The server.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Where,
    },
    /// Connect and print all details: descriptions, tools, errors in full.
    Status {
        /// One server; all without it.
        name: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Where,
    },
    /// Remove a server.
    Remove {
        /// The server.
        name: String,
        /// Where it is described; needed when it is in several places.
        #[arg(short, long, value_enum)]
        scope: Option<ScopeName>,
        #[command(flatten)]
        place: Where,
    },
    /// Approve servers of this folder as they are configured now. A change needs approval again.
    Approve {
        /// The servers; without one, those that wait are shown.
        names: Vec<String>,
        /// All that wait.
        #[arg(long, conflicts_with = "names")]
        all: bool,
        #[command(flatten)]
        place: Where,
    },
    /// Sign in to a remote server: print the URL to open, and wait for the browser's callback.
    Auth {
        /// The server.
        name: String,
        /// Only print the address.
        #[arg(long)]
        no_browser: bool,
        #[command(flatten)]
        place: Where,
    },
    /// Remove the stored credentials of a remote server.
    Logout {
        /// The server.
        name: String,
        #[command(flatten)]
        place: Where,
    },
}

/// A server to describe.
#[derive(Debug, Args)]
pub struct Add {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// The program, or the address of a remote server.
    #[arg(value_name = "COMMAND|URL")]
    pub target: String,
    /// The program's arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
    /// Scope to write to.
    #[arg(short, long, value_enum, default_value = "local")]
    pub scope: ScopeName,
    /// Transport. Default: http for a URL, stdio for a program.
    #[arg(short, long, value_enum)]
    pub transport: Option<TransportName>,
    /// Environment variable for the program: NAME=VALUE. May be repeated.
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Header for every request: 'Name: value'. May be repeated.
    #[arg(short = 'H', long, value_name = "HEADER")]
    pub header: Vec<String>,
    /// Timeout of a call without progress, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub timeout: Option<u64>,
    /// OAuth client ID registered with the authorization server.
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,
    /// Port of the OAuth callback, when the registration fixes it.
    #[arg(long, value_name = "PORT")]
    pub callback_port: Option<u16>,
    #[command(flatten)]
    pub place: Where,
}
