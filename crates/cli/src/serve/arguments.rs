//! The arguments of `qodercli serve`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Examples for `qodercli serve --help`.
pub const HELP: &str = "\
Examples:
  qodercli serve
  qodercli serve --listen 127.0.0.1:0 --data-dir ./data
  qodercli serve token create --user ana
  qodercli serve doctor
  qodercli serve --database-url postgres://qoder@db.example.com/qoder

Without a key for a model's provider the embedded `offline` model answers. docs/server.md explains first steps, docs/cloud-api.md
the routes.";

/// `qodercli serve`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = false, subcommand_negates_reqs = true)]
pub struct ServeArguments {
    #[command(flatten)]
    pub data: DataArguments,
    #[command(flatten)]
    pub listening: ListenArguments,
    #[command(subcommand)]
    pub action: Option<ServeAction>,
}

/// Where everything is kept.
#[derive(Debug, Args)]
pub struct DataArguments {
    /// Folder for the database, blobs, workspaces and the master key. Default: `server` in the configuration directory.
    #[arg(long, value_name = "DIR", global = true, env = "QODER_SERVE_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// PostgreSQL database that several nodes share, such as `postgres://user@host/name`. Default: SQLite in the data directory.
    #[arg(long, value_name = "URL", global = true, env = "QODER_SERVE_DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Object store for blobs, files and workspaces: `s3://bucket/prefix`, `gs://…`, `az://…` or `file:///folder`. Credentials come from
    /// the store's variables, such as AWS_ACCESS_KEY_ID. Default: the database or the data directory.
    #[arg(long, value_name = "URL", global = true, env = "QODER_SERVE_OBJECT_STORE")]
    pub object_store: Option<String>,
    /// Configuration file (YAML or JSON). Options on the command line outrank it.
    #[arg(long, value_name = "FILE", global = true, env = "QODER_SERVE_CONFIG")]
    pub config: Option<PathBuf>,
}

/// How clients reach the server.
#[derive(Debug, Args)]
pub struct ListenArguments {
    /// Address to listen on; port 0 picks a free one. Default: 127.0.0.1:8400.
    #[arg(long, value_name = "ADDRESS", env = "QODER_SERVE_LISTEN")]
    pub listen: Option<SocketAddr>,
    /// Same database without a pooler in between, for the connection that listens for news of other nodes.
    #[arg(long, value_name = "URL", env = "QODER_SERVE_LISTEN_URL", hide_env_values = true)]
    pub listen_url: Option<String>,
    /// What this node does: api, drive, sweep. All of them without it.
    #[arg(long, value_name = "ROLES", value_delimiter = ',', env = "QODER_SERVE_ROLES")]
    pub roles: Vec<String>,
    /// Folder for workspaces, for one that all nodes share. Default: `workspaces` in the data directory.
    #[arg(long, value_name = "DIR", env = "QODER_SERVE_WORKSPACES")]
    pub workspaces: Option<PathBuf>,
    /// Host and port at which other nodes reach this one. Default: where it listens.
    #[arg(long, value_name = "ADDRESS", env = "QODER_SERVE_NODE_ADDRESS")]
    pub node_address: Option<String>,
    /// Address that clients use, such as `https://agents.example.com`.
    #[arg(long, value_name = "URL", env = "QODER_SERVE_PUBLIC_URL")]
    pub public_url: Option<String>,
    /// Answer to this name, too. May be repeated.
    #[arg(long, value_name = "NAME", value_delimiter = ',', env = "QODER_SERVE_ALLOW_HOST")]
    pub allow_host: Vec<String>,
    /// Let pages of this origin call the server. May be repeated.
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',', env = "QODER_SERVE_ALLOW_ORIGIN")]
    pub allow_origin: Vec<String>,
    /// Certificate chain (PEM).
    #[arg(long, value_name = "FILE", env = "QODER_SERVE_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", env = "QODER_SERVE_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// A proxy in front of the server does TLS.
    #[arg(long, env = "QODER_SERVE_BEHIND_PROXY")]
    pub behind_proxy: bool,
    /// Believe `X-Forwarded-For` of this address. May be repeated.
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', env = "QODER_SERVE_TRUSTED_PROXY")]
    pub trusted_proxy: Vec<IpAddr>,
    /// How much to log: error, warn, info or debug.
    #[arg(long, value_name = "LEVEL", env = "QODER_SERVE_LOG_LEVEL")]
    pub log_level: Option<String>,
}

/// What an operator does beside a server.
#[derive(Debug, Subcommand)]
pub enum ServeAction {
    /// Tokens: create, list and revoke them.
    Token {
        #[command(subcommand)]
        action: TokenAction,
    },
    /// Check everything that a server needs. Exit code 1 when something does not work.
    Doctor {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Bring the database up to date.
    Migrate {
        /// Only print whether there is something to do; exit code 1 when there is.
        #[arg(long)]
        check: bool,
    },
    /// Copy the database to a file while the server runs.
    Backup {
        /// The new file.
        file: PathBuf,
    },
    /// List nodes that serve.
    Nodes,
    /// Sessions that need an operator.
    Sessions {
        #[command(subcommand)]
        action: ServeSessionsAction,
    },
    /// Keys that seal secrets.
    Keys {
        #[command(subcommand)]
        action: KeysAction,
    },
}

/// What to do about tokens.
#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Create a token and print it, once.
    Create {
        /// Who gets it. Records and log lines name the user.
        #[arg(long, value_name = "NAME")]
        user: String,
        /// Whose agents and sessions it reaches; the user's own without it.
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// What it may do: read, run, approve, admin. All of them without it.
        #[arg(long, value_name = "SCOPES", value_delimiter = ',')]
        scopes: Vec<String>,
        /// When it ends, such as 90d or 12h.
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List tokens, without their secret parts.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token. Its streams end within 5 s.
    Revoke {
        /// The token's ID, as `token list` prints it.
        id: String,
    },
}

/// What to do about sessions.
#[derive(Debug, Subcommand)]
pub enum ServeSessionsAction {
    /// List sessions that stopped their node too often and are not continued.
    Quarantined,
    /// Continue a quarantined session.
    Release {
        /// The session.
        id: String,
    },
    /// Print the log of a session, one JSON object a line.
    Export {
        /// The session.
        id: String,
    },
}

/// What to do about keys.
#[derive(Debug, Subcommand)]
pub enum KeysAction {
    /// Replace the master key. A running server has to be restarted afterwards.
    Rotate,
}
