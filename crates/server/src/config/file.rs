//! The configuration file: YAML, and so JSON too.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ConfigError, ContainerFile, Rates, Retention};

/// How often webhook endpoints are tried.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebhookRetries {
    /// Milliseconds before the second try; each further pause is four times as long.
    pub first_pause_ms: Option<u32>,
    /// The most tries.
    pub tries: Option<u32>,
}

/// What a file may say.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConfigFile {
    /// Where to listen.
    pub listen: Option<SocketAddr>,
    /// Where everything is kept.
    pub data_dir: Option<PathBuf>,
    /// The PostgreSQL database that keeps everything but workspaces.
    pub database_url: Option<String>,
    /// The same database without a pooler, for the listener.
    pub listen_url: Option<String>,
    /// What the node does.
    pub roles: Option<Vec<String>>,
    /// The folder of workspaces, for one that nodes share.
    pub workspaces: Option<PathBuf>,
    /// The object store for blobs, files and workspaces.
    pub object_store: Option<String>,
    /// Where other nodes reach this one.
    pub node_address: Option<String>,
    /// The address that clients use.
    pub public_url: Option<String>,
    /// Further names that clients may use for the server.
    pub allow_hosts: Vec<String>,
    /// Pages that may call the server from a browser.
    pub allow_origins: Vec<String>,
    /// The certificate chain.
    pub tls_cert: Option<PathBuf>,
    /// Its key.
    pub tls_key: Option<PathBuf>,
    /// True when a proxy in front does TLS.
    pub behind_proxy: Option<bool>,
    /// Proxies whose word about clients counts.
    pub trusted_proxies: Vec<IpAddr>,
    /// How many requests a token and a tenant may make.
    pub rates: Option<Rates>,
    /// The most sessions that run at the same time.
    pub max_running_sessions: Option<usize>,
    /// The most bytes that the files of a tenant may have.
    pub max_storage_bytes: Option<u64>,
    /// A file with the master key.
    pub master_key_file: Option<PathBuf>,
    /// A command that prints the master key.
    pub master_key_command: Option<String>,
    /// How often webhook endpoints are tried.
    pub webhooks: WebhookRetries,
    /// Private hosts that sessions may reach.
    pub private_hosts: Vec<String>,
    /// How long sessions are kept.
    pub retention: Retention,
    /// What a credit costs in dollars.
    pub credit_usd: Option<f64>,
    /// Where `cloud` environments run in containers.
    pub container: ContainerFile,
    /// How much is logged.
    pub log_level: Option<String>,
    /// Settings of the runtime, such as providers.
    pub settings: Map<String, Value>,
}

impl ConfigFile {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or has a field that does not exist.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let wrong = |problem: String| ConfigError::File { path: path.to_path_buf(), problem };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        serde_saphyr::from_str(&text).map_err(|error| wrong(error.to_string()))
    }
}
