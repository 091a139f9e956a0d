//! The configuration of a server: what the command line says, then the environment, then a file, then defaults. A file with a
//! field that does not exist is refused.

mod container;
mod file;
mod rates;
mod retention;
mod roles;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde_json::{Map, Value};

pub use container::{ContainerConfig, ContainerFile, ContainerOptions};
pub use file::{ConfigFile, WebhookRetries};
pub use rates::Rates;
pub use retention::Retention;
pub use roles::Roles;

use crate::model::delivery::RetrySchedule;
use crate::observe::Level;
use crate::outgoing::PrivateAddresses;
use crate::secrets::MasterSource;
use crate::store::ObjectStoreUrl;
use crate::store::postgres::DatabaseUrl;

/// The variable that holds the master key.
const MASTER_VARIABLE: &str = "QODER_MASTER_KEY";
/// Where a server listens when nothing else is said.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8400);
/// The most sessions that run at the same time.
const MOST_SEATS: usize = 256;
/// The most bytes that the files of a tenant may have.
const MOST_STORAGE: u64 = 10 * 1024 * 1024 * 1024;
/// What a credit costs in dollars.
const CREDIT_USD: f64 = 0.01;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A value cannot be used.
    #[error("`{option}` {problem}")]
    Option {
        /// The option.
        option: &'static str,
        /// What is wrong with its value.
        problem: String,
    },
}

impl ConfigError {
    fn option(option: &'static str, problem: impl Into<String>) -> Self {
        Self::Option { option, problem: problem.into() }
    }

    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File { .. } => "config_file",
            Self::Option { .. } => "config_option",
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::File { .. } => "docs/server.md lists the fields of the file",
            Self::Option { .. } => "`qodercli serve --help` lists what each option takes",
        }
    }
}

/// What the command line and the environment say. What they leave out is taken from the file, then from the defaults.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// The file.
    pub config: Option<PathBuf>,
    /// Where to listen.
    pub listen: Option<SocketAddr>,
    /// Where everything is kept.
    pub data_dir: Option<PathBuf>,
    /// The PostgreSQL database that keeps everything but workspaces.
    pub database_url: Option<String>,
    /// The same database without a pooler, for the listener.
    pub listen_url: Option<String>,
    /// What the node does.
    pub roles: Vec<String>,
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
    pub behind_proxy: bool,
    /// Proxies whose word about clients counts.
    pub trusted_proxies: Vec<IpAddr>,
    /// Where `cloud` environments run in containers.
    pub container: ContainerOptions,
    /// How much is logged.
    pub log_level: Option<String>,
}

/// The configuration of a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where everything is kept, or what is not in the database.
    pub data_dir: PathBuf,
    /// The PostgreSQL database; SQLite in the data directory without it.
    pub database_url: Option<DatabaseUrl>,
    /// The same database without a pooler, for the listener.
    pub listen_url: Option<DatabaseUrl>,
    /// What the node does.
    pub roles: Roles,
    /// The folder of workspaces.
    pub workspaces: PathBuf,
    /// True when the operator names that folder, which nodes then share.
    pub are_workspaces_named: bool,
    /// The object store for blobs, files and workspaces.
    pub object_store: Option<ObjectStoreUrl>,
    /// Where other nodes reach this one, when that is not where it listens.
    pub node_address: Option<String>,
    /// The address that clients use.
    pub public_url: Option<url::Url>,
    /// Further names that clients may use for the server.
    pub allow_hosts: Vec<String>,
    /// Pages that may call the server from a browser.
    pub allow_origins: Vec<String>,
    /// The certificate chain and its key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// True when a proxy in front does TLS.
    pub behind_proxy: bool,
    /// Proxies whose word about clients counts.
    pub trusted_proxies: Vec<IpAddr>,
    /// How many requests a token and a tenant may make.
    pub rates: Option<Rates>,
    /// The most sessions that run at the same time.
    pub most_seats: usize,
    /// The most bytes that the files of a tenant may have.
    pub storage_quota: u64,
    /// Where the master key comes from; without it, the database that nodes share keeps it.
    pub master_key: Option<MasterSource>,
    /// Which addresses sessions may reach besides public ones.
    pub private_addresses: PrivateAddresses,
    /// When webhook endpoints are tried.
    pub webhooks: RetrySchedule,
    /// Settings of the runtime, such as providers.
    pub settings: Map<String, Value>,
    /// How long sessions are kept.
    pub retention: Retention,
    /// What a credit costs in dollars.
    pub credit_usd: f64,
    /// How `cloud` environments run in containers; in the sandbox of this machine without it.
    pub container: Option<ContainerConfig>,
    /// How much is logged.
    pub log_level: Level,
    /// The environment of the process, for the model's provider.
    pub environment: BTreeMap<String, String>,
}

impl Config {
    /// Puts the configuration together.
    ///
    /// # Errors
    /// When the file cannot be read, or a value cannot be used.
    pub fn load(options: ServeOptions, environment: BTreeMap<String, String>) -> Result<Self, ConfigError> {
        let file = match &options.config {
            Some(path) => ConfigFile::read(path)?,
            None => ConfigFile::default(),
        };
        let data_dir = options.data_dir.or(file.data_dir).unwrap_or_else(|| default_data_dir(&environment));
        let database_url = database_url("--database-url", options.database_url.or(file.database_url))?;
        let listen_url = listener_url(options.listen_url.or(file.listen_url), &database_url)?;
        let roles = Roles::read(if options.roles.is_empty() { file.roles } else { Some(options.roles) })?;
        let named = options.workspaces.or(file.workspaces);
        let are_workspaces_named = named.is_some();
        let workspaces = named.unwrap_or_else(|| data_dir.join("workspaces"));
        let object_store = object_store(options.object_store.or(file.object_store))?;
        let node_address = node_address(options.node_address.or(file.node_address))?;
        let public_url = options.public_url.or(file.public_url);
        let public_url = public_url
            .map(|text| {
                text.parse::<url::Url>()
                    .map_err(|error| ConfigError::option("--public-url", error.to_string()))
            })
            .transpose()?;
        let tls = tls(options.tls_cert.or(file.tls_cert), options.tls_key.or(file.tls_key))?;
        let listen = options.listen.or(file.listen).unwrap_or(LISTEN);
        let behind_proxy = options.behind_proxy || file.behind_proxy.unwrap_or(false);
        let is_loopback = listen.ip().is_loopback();
        if !is_loopback && tls.is_none() && !behind_proxy {
            let problem = format!(
                "is `{listen}`, which other machines reach; give `--tls-cert` and `--tls-key`, or `--behind-proxy` when a \
                 proxy does TLS"
            );
            return Err(ConfigError::option("--listen", problem));
        }
        let log_level = log_level(options.log_level.or(file.log_level))?;
        let credit_usd = file.credit_usd.unwrap_or(CREDIT_USD);
        if !credit_usd.is_finite() || credit_usd <= 0.0 {
            return Err(ConfigError::option("credit_usd", "must be a price above 0"));
        }
        let most_seats = file.max_running_sessions.unwrap_or(MOST_SEATS);
        if most_seats == 0 {
            return Err(ConfigError::option("max_running_sessions", "must be at least 1"));
        }
        Ok(Self {
            master_key: master_key(
                &environment,
                (file.master_key_command, file.master_key_file),
                database_url.is_none().then_some(&data_dir),
            ),
            private_addresses: PrivateAddresses { all: is_loopback, hosts: file.private_hosts },
            rates: (!is_loopback).then(|| file.rates.unwrap_or_default()),
            allow_hosts: [options.allow_hosts, file.allow_hosts].concat(),
            allow_origins: [options.allow_origins, file.allow_origins].concat(),
            trusted_proxies: [options.trusted_proxies, file.trusted_proxies].concat(),
            storage_quota: file.max_storage_bytes.unwrap_or(MOST_STORAGE),
            webhooks: retry_schedule(&file.webhooks)?,
            retention: file.retention.checked()?,
            container: ContainerConfig::read(options.container, file.container)?,
            settings: file.settings,
            listen,
            data_dir,
            database_url,
            listen_url,
            roles,
            workspaces,
            are_workspaces_named,
            object_store,
            node_address,
            public_url,
            tls,
            behind_proxy,
            most_seats,
            credit_usd,
            log_level,
            environment,
        })
    }

    /// The database in SQLite.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.data_dir.join("server.db")
    }

    /// The folder of blobs.
    #[must_use]
    pub fn blobs(&self) -> PathBuf {
        self.data_dir.join("blobs")
    }

    /// A folder for the runtime, without settings of anyone.
    #[must_use]
    pub fn runtime_root(&self) -> PathBuf {
        self.data_dir.join("runtime")
    }

    /// Held by the process that serves.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        self.data_dir.join("serve.lock")
    }

    /// Names the data directory among those of all nodes.
    #[must_use]
    pub fn home_file(&self) -> PathBuf {
        self.data_dir.join("node.id")
    }
}

/// How much is logged.
fn log_level(given: Option<String>) -> Result<Level, ConfigError> {
    let level = given.unwrap_or_else(|| "info".to_owned());
    Level::parse(&level).ok_or_else(|| {
        let problem = format!("is `{level}`; accepted are error, warn, info and debug");
        ConfigError::option("--log-level", problem)
    })
}

fn retry_schedule(webhooks: &WebhookRetries) -> Result<RetrySchedule, ConfigError> {
    let default = RetrySchedule::default();
    let schedule = RetrySchedule {
        first_pause_ms: webhooks.first_pause_ms.map_or(default.first_pause_ms, i64::from),
        tries: webhooks.tries.map_or(default.tries, u64::from),
    };
    if schedule.first_pause_ms == 0 || schedule.tries == 0 {
        return Err(ConfigError::option("webhooks", "must have a pause and a number of tries above 0"));
    }
    Ok(schedule)
}

/// The certificate chain and its key, both or neither.
fn tls(
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<Option<(PathBuf, PathBuf)>, ConfigError> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(ConfigError::option("--tls-key", "is required with `--tls-cert`")),
        (None, Some(_)) => Err(ConfigError::option("--tls-cert", "is required with `--tls-key`")),
    }
}

fn object_store(text: Option<String>) -> Result<Option<ObjectStoreUrl>, ConfigError> {
    let parse = |text: String| {
        ObjectStoreUrl::parse(&text).map_err(|error| ConfigError::option("--object-store", error.to_string()))
    };
    text.filter(|text| !text.is_empty()).map(parse).transpose()
}

/// A host and a port.
fn node_address(text: Option<String>) -> Result<Option<String>, ConfigError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let parsed = url::Url::parse(&format!("http://{text}"));
    let is_plain = text
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0))
        && parsed.is_ok_and(|url| url.path() == "/" && url.query().is_none() && url.username().is_empty());
    if !is_plain {
        let problem = format!("is `{text}`; give a host and a port, such as `10.0.0.5:8400`");
        return Err(ConfigError::option("--node-address", problem));
    }
    Ok(Some(text))
}

fn database_url(option: &'static str, text: Option<String>) -> Result<Option<DatabaseUrl>, ConfigError> {
    let parse = |text: String| {
        DatabaseUrl::parse(&text).map_err(|error| ConfigError::option(option, error.to_string()))
    };
    text.filter(|text| !text.is_empty()).map(parse).transpose()
}

fn listener_url(
    text: Option<String>,
    database: &Option<DatabaseUrl>,
) -> Result<Option<DatabaseUrl>, ConfigError> {
    let url = database_url("--listen-url", text)?;
    if url.is_some() && database.is_none() {
        return Err(ConfigError::option("--listen-url", "needs `--database-url`"));
    }
    Ok(url)
}

/// Without a file that is named, the key is made in the data directory; a node of many keeps it in the database.
fn master_key(
    environment: &BTreeMap<String, String>,
    (command, file): (Option<String>, Option<PathBuf>),
    data_dir: Option<&PathBuf>,
) -> Option<MasterSource> {
    if let Some(key) = environment.get(MASTER_VARIABLE).filter(|key| !key.trim().is_empty()) {
        return Some(MasterSource::Variable(key.clone()));
    }
    match (command, file, data_dir) {
        (Some(command), _, _) => Some(MasterSource::Command(command)),
        (None, Some(file), _) => Some(MasterSource::File(file)),
        (None, None, data_dir) => Some(MasterSource::File(data_dir?.join("master.key"))),
    }
}

/// `server` in the folder of the program's own files.
fn default_data_dir(environment: &BTreeMap<String, String>) -> PathBuf {
    qoder_runtime::config::home::config_root(environment).join("server")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str, options: ServeOptions) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.yaml");
        std::fs::write(&path, text).unwrap();
        let environment = BTreeMap::from([("HOME".to_owned(), "/home/ana".to_owned())]);
        Config::load(ServeOptions { config: Some(path), ..options }, environment)
    }

    #[test]
    fn the_command_line_outranks_the_file_and_the_file_the_defaults() {
        let defaults = Config::load(ServeOptions::default(), BTreeMap::new()).unwrap();
        assert_eq!((defaults.listen, defaults.rates), (LISTEN, None), "no rates on loopback");
        assert!(defaults.private_addresses.all);
        let file = "listen: 127.0.0.1:9000\ndata_dir: /srv/data\nsettings:\n  providers: {}\n";
        let config = load(file, ServeOptions::default()).unwrap();
        assert_eq!((config.listen.port(), config.database()), (9000, PathBuf::from("/srv/data/server.db")));
        assert!(config.settings.contains_key("providers"));
        let listen = Some("127.0.0.1:1".parse().unwrap());
        let config = load(file, ServeOptions { listen, ..ServeOptions::default() }).unwrap();
        assert_eq!(config.listen.port(), 1);
        let json = load(r#"{ "listen": "127.0.0.1:7" }"#, ServeOptions::default()).unwrap();
        assert_eq!(json.listen.port(), 7, "JSON is YAML");
        let shared =
            load("database_url: postgres://h/d\nworkspaces: /srv/shared", ServeOptions::default()).unwrap();
        assert_eq!(shared.workspaces, PathBuf::from("/srv/shared"));
        assert_eq!(shared.master_key, None, "every node gets the key");
    }

    #[test]
    fn an_address_that_others_reach_needs_tls_or_a_proxy() {
        let listen = Some("0.0.0.0:8400".parse().unwrap());
        let options = ServeOptions { listen, ..ServeOptions::default() };
        let refused = Config::load(options.clone(), BTreeMap::new()).unwrap_err();
        assert!(refused.to_string().contains("--behind-proxy"), "{refused}");
        let proxied =
            Config::load(ServeOptions { behind_proxy: true, ..options.clone() }, BTreeMap::new()).unwrap();
        assert!(proxied.rates.is_some() && !proxied.private_addresses.all);
        let half = ServeOptions { tls_cert: Some("c.pem".into()), ..options };
        assert!(Config::load(half, BTreeMap::new()).unwrap_err().to_string().contains("--tls-key"));
    }

    #[test]
    fn a_file_with_a_mistake_is_refused() {
        for (text, part) in [
            ("listne: 127.0.0.1:1", "listne"),
            ("listen: nowhere", "listen"),
            ("log_level: loud", "--log-level"),
            ("credit_usd: 0", "credit_usd"),
            ("retention: { days: 0 }", "retention"),
            ("retention: { tenants: { shop: 0 } }", "retention"),
            ("max_running_sessions: 0", "max_running_sessions"),
            ("rates: { writes_per_minute: 1, x: 2 }", "x"),
            ("webhooks: { tries: 0 }", "webhooks"),
            ("database_url: mysql://h/d", "--database-url"),
            ("listen_url: postgres://h/d", "needs `--database-url`"),
            ("roles: [cook]", "--roles"),
            ("node_address: http://h:1/x", "--node-address"),
            ("node_address: h", "--node-address"),
            ("object_store: ftp://h/x", "--object-store"),
            ("[", "configuration"),
            ("container: { program: podman }", "--container-image"),
            ("container: { image: debian }", "--container"),
            ("container: { program: podman, image: debian, network: host }", "container.network"),
        ] {
            let error = load(text, ServeOptions::default()).unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
        let container = "container: { program: /usr/bin/podman, image: debian, runtime: crun, pids: 0 }";
        let options = ContainerOptions { runtime: Some("runsc".to_owned()), ..ContainerOptions::default() };
        let config = load(container, ServeOptions { container: options, ..ServeOptions::default() }).unwrap();
        let container = config.container.unwrap();
        assert!(container.is_podman() && container.pids.is_none());
        assert_eq!(container.runtime.as_deref(), Some("runsc"), "the command line outranks the file");
        let missing = ServeOptions { config: Some("/nowhere/serve.yaml".into()), ..ServeOptions::default() };
        assert!(Config::load(missing, BTreeMap::new()).is_err());
    }
}
