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
    /// Direct URL of the database, without a pooler, for the connection that listens for notifications.
    #[arg(long, value_name = "URL", env = "QODER_SERVE_LISTEN_URL", hide_env_values = true)]
    pub listen_url: Option<String>,
    /// Roles of this node: api, drive, sweep. Default: all.
    #[arg(long, value_name = "ROLES", value_delimiter = ',', env = "QODER_SERVE_ROLES")]
    pub roles: Vec<String>,
    /// Folder for workspaces, shared by all nodes. Default: `workspaces` in the data directory.
    #[arg(long, value_name = "DIR", env = "QODER_SERVE_WORKSPACES")]
    pub workspaces: Option<PathBuf>,
    /// Host and port at which other nodes reach this one. Default: where it listens.
    #[arg(long, value_name = "ADDRESS", env = "QODER_SERVE_NODE_ADDRESS")]
    pub node_address: Option<String>,
    /// Address that clients use, such as `https://agents.example.com`.
    #[arg(long, value_name = "URL", env = "QODER_SERVE_PUBLIC_URL")]
    pub public_url: Option<String>,
    /// Additional host name to accept. May be repeated.
    #[arg(long, value_name = "NAME", value_delimiter = ',', env = "QODER_SERVE_ALLOW_HOST")]
    pub allow_host: Vec<String>,
    /// Origin whose pages may call the server. May be repeated.
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',', env = "QODER_SERVE_ALLOW_ORIGIN")]
    pub allow_origin: Vec<String>,
    /// Certificate chain (PEM).
    #[arg(long, value_name = "FILE", env = "QODER_SERVE_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", env = "QODER_SERVE_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// Expect a proxy in front of the server that terminates TLS.
    #[arg(long, env = "QODER_SERVE_BEHIND_PROXY")]
    pub behind_proxy: bool,
    /// Address whose `X-Forwarded-For` is trusted. May be repeated.
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', env = "QODER_SERVE_TRUSTED_PROXY")]
    pub trusted_proxy: Vec<IpAddr>,
    /// Run `cloud` environments in containers of this program: docker, podman, or a path. Without it, in the sandbox of this machine.
    #[arg(long, value_name = "PROGRAM", global = true, env = "QODER_SERVE_CONTAINER")]
    pub container: Option<String>,
    /// Image that containers are made of.
    #[arg(long, value_name = "IMAGE", global = true, env = "QODER_SERVE_CONTAINER_IMAGE")]
    pub container_image: Option<String>,
    /// Runtime of containers, such as runsc. Default: that of the program.
    #[arg(long, value_name = "NAME", global = true, env = "QODER_SERVE_CONTAINER_RUNTIME")]
    pub container_runtime: Option<String>,
    /// Log level: error, warn, info or debug.
    #[arg(long, value_name = "LEVEL", env = "QODER_SERVE_LOG_LEVEL")]
    pub log_level: Option<String>,
}

/// What an operator does beside a server.
#[derive(Debug, Subcommand)]
pub enum ServeAction {
    /// Create, list and revoke tokens.
    Token {
        #[command(subcommand)]
        action: TokenAction,
    },
    /// Check everything that a server needs. Exits with 1 on a problem.
    Doctor {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Migrate the database to the current schema.
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
    /// List the nodes that are serving.
    Nodes,
    /// List, release and export sessions that need an operator.
    Sessions {
        #[command(subcommand)]
        action: ServeSessionsAction,
    },
    /// Rotate the keys that seal secrets.
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
        /// Name of the user, which records and log lines show.
        #[arg(long, value_name = "NAME")]
        user: String,
        /// Tenant whose agents and sessions the token reaches. Default: the user's own.
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// Scopes: read, run, approve, admin. Default: all. `environment:ID` is the key of workers of that environment.
        #[arg(long, value_name = "SCOPES", value_delimiter = ',')]
        scopes: Vec<String>,
        /// Lifetime, such as 90d or 12h. Default: no limit.
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
