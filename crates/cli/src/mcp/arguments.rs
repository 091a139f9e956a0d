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
    /// The project's .mcp.json: everybody who works on it.
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
    /// Another working directory.
    #[arg(short = 'w', long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// A settings file or JSON above all other layers.
    #[arg(long, value_name = "FILE|JSON")]
    pub settings: Option<String>,
    /// Treat the folder as trusted.
    #[arg(long)]
    pub trust: bool,
}

/// What to do with servers.
#[derive(Debug, Subcommand)]
pub enum McpAction {
    /// Describe a server: a program with its arguments after `--`, or an address.
    Add(Add),
    /// Describe a server by JSON, as it stands under `mcpServers`.
    AddJson {
        /// Its name: letters, digits, `-` and `_`.
        name: String,
        /// The description.
        json: String,
        /// Where to keep it.
        #[arg(short, long, value_enum, default_value = "local")]
        scope: ScopeName,
        #[command(flatten)]
        place: Where,
    },
    /// Connect to all servers and show how they are doing.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Where,
    },
    /// Show how a server is described, and where. Connects to nothing.
    Get {
        /// The server.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Where,
    },
    /// Connect and show everything that is known: what servers say of themselves, their tools, errors in full.
    Status {
        /// One server; all without it.
        name: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Where,
    },
    /// Remove the description of a server.
    Remove {
        /// The server.
        name: String,
        /// Where it is described; needed when it is in several places.
        #[arg(short, long, value_enum)]
        scope: Option<ScopeName>,
        #[command(flatten)]
        place: Where,
    },
    /// Let servers of this folder run, exactly as they are described now. Any change needs approval again.
    Approve {
        /// The servers; without one, those that wait are shown.
        names: Vec<String>,
        /// All that wait.
        #[arg(long, conflicts_with = "names")]
        all: bool,
        #[command(flatten)]
        place: Where,
    },
    /// Sign in to a remote server: shows the address to open, and waits until the browser comes back.
    Auth {
        /// The server.
        name: String,
        /// Only print the address.
        #[arg(long)]
        no_browser: bool,
        #[command(flatten)]
        place: Where,
    },
    /// Forget the credentials of a remote server.
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
    /// Where to keep it.
    #[arg(short, long, value_enum, default_value = "local")]
    pub scope: ScopeName,
    /// How it is reached; without it an address means http and anything else stdio.
    #[arg(short, long, value_enum)]
    pub transport: Option<TransportName>,
    /// A variable for the program: NAME=VALUE. May be repeated.
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// A header for every request: 'Name: value'. May be repeated.
    #[arg(short = 'H', long, value_name = "HEADER")]
    pub header: Vec<String>,
    /// Milliseconds that a call may take without progress.
    #[arg(long, value_name = "MS")]
    pub timeout: Option<u64>,
    /// The client that was registered with the server's authorization server.
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,
    /// The port of the sign-in's callback, where the registration fixes it.
    #[arg(long, value_name = "PORT")]
    pub callback_port: Option<u16>,
    #[command(flatten)]
    pub place: Where,
}
