//! The address of a PostgreSQL database, as operators write it. A server on another machine is reached over TLS with a proven
//! certificate, unless the address says `sslmode=disable`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use url::form_urlencoded;

/// How long connecting to one host may take.
const CONNECT: Duration = Duration::from_secs(5);
/// A connection that hears nothing for this long is asked whether it is there.
const QUIET: Duration = Duration::from_secs(10);
const ASKED_AGAIN: Duration = Duration::from_secs(3);

/// An address that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DatabaseUrlError(String);

/// The address of a database. Its password is not shown.
#[derive(Debug, Clone)]
pub struct DatabaseUrl {
    config: Config,
    /// A file with the certificates that count, in place of those of the system.
    pub(super) root_certificates: Option<PathBuf>,
}

impl DatabaseUrl {
    /// Reads `postgres://user:password@host:port/database?sslmode=…&sslrootcert=…`.
    ///
    /// # Errors
    /// When it is not the address of a PostgreSQL database.
    pub fn parse(text: &str) -> Result<Self, DatabaseUrlError> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            let problem = "must begin with `postgres://`; leave it out to use SQLite in the data directory";
            return Err(DatabaseUrlError(problem.to_owned()));
        }
        let (address, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut root_certificates, mut mode) = (None, None);
        let mut kept = form_urlencoded::Serializer::new(String::new());
        // In such an address a plus sign is one, not a space.
        for (name, value) in form_urlencoded::parse(query.replace('+', "%2B").as_bytes()) {
            match (&*name, &*value) {
                ("sslrootcert", path) => root_certificates = Some(PathBuf::from(path)),
                ("sslmode", word) => mode = Some(word.to_owned()),
                (name, value) => drop(kept.append_pair(name, value)),
            }
        }
        let kept = kept.finish().replace('+', "%20");
        let address = if kept.is_empty() { address.to_owned() } else { format!("{address}?{kept}") };
        let mut config: Config = address.parse().map_err(|error: tokio_postgres::Error| {
            let cause =
                std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            DatabaseUrlError(format!("cannot be read: {error}{cause}"))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(DatabaseUrlError("names no host".to_owned()));
        }
        config.ssl_mode(match mode.as_deref() {
            None if is_local(&config) => SslMode::Disable,
            None | Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
            Some("disable") => SslMode::Disable,
            Some("prefer" | "allow") => SslMode::Prefer,
            Some(other) => {
                let problem = format!(
                    "has the sslmode `{other}`; accepted are disable, prefer, require and verify-full"
                );
                return Err(DatabaseUrlError(problem));
            }
        });
        config.connect_timeout(CONNECT).keepalives(true).keepalives_idle(QUIET);
        config.keepalives_interval(ASKED_AGAIN).keepalives_retries(3).tcp_user_timeout(QUIET);
        if config.get_application_name().is_none() {
            config.application_name("qodercli");
        }
        Ok(Self { config, root_certificates })
    }

    pub(in crate::store::postgres) fn config(&self) -> Config {
        self.config.clone()
    }

    /// The first server's host and port, where it is reached over a network.
    #[must_use]
    pub fn server(&self) -> Option<(String, u16)> {
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        if let Some(address) = self.config.get_hostaddrs().first() {
            return Some((address.to_string(), port));
        }
        self.config.get_hosts().iter().find_map(|host| match host {
            Host::Tcp(name) => Some((name.clone(), port)),
            Host::Unix(_) => None,
        })
    }

    /// Where the database is, without its password.
    #[must_use]
    pub fn describe(&self) -> String {
        let hosts: Vec<String> = self
            .config
            .get_hosts()
            .iter()
            .map(|host| match host {
                Host::Tcp(name) => name.clone(),
                Host::Unix(path) => path.display().to_string(),
            })
            .chain(self.config.get_hostaddrs().iter().map(ToString::to_string))
            .collect();
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or("postgres");
        format!("PostgreSQL database `{database}` on {}", hosts.join(", "))
    }
}

/// True when the database is on this machine.
fn is_local(config: &Config) -> bool {
    let is_local_host = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            qoder_http::is_local_name(name)
                || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    };
    config.get_hosts().iter().all(is_local_host) && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_is_reached_over_tls_unless_the_address_says_otherwise() {
        let mode = |text: &str| DatabaseUrl::parse(text).unwrap().config.get_ssl_mode();
        for (text, wanted) in [
            ("postgres://u@localhost/d", SslMode::Disable),
            ("postgres://u@127.0.0.1:5433/d", SslMode::Disable),
            ("postgres://u@%2Ftmp%2Fx/d", SslMode::Disable),
            ("postgresql://u@db.example.com/d", SslMode::Require),
            ("postgres://u@localhost,db.example.com/d", SslMode::Require),
            ("postgres://u@db.example.com/d?sslmode=disable", SslMode::Disable),
            ("postgres://u@localhost/d?sslmode=verify-full&sslrootcert=%2Fca.pem", SslMode::Require),
        ] {
            assert_eq!(mode(text), wanted, "{text}");
        }
        let url = DatabaseUrl::parse("postgres://u:secret@h/d?sslrootcert=%2Fca.pem&options=-c%20x%3D1+2");
        let url = url.unwrap();
        assert_eq!(url.root_certificates, Some(PathBuf::from("/ca.pem")));
        assert_eq!(url.config.get_options(), Some("-c x=1+2"));
        assert_eq!(url.describe(), "PostgreSQL database `d` on h");
        assert!(!format!("{url:?}").contains("secret"));
    }

    #[test]
    fn what_is_not_an_address_is_refused() {
        for (text, part) in [
            ("mysql://h/d", "must begin with"),
            ("data.db", "must begin with"),
            ("postgres://", "names no host"),
            ("postgres://h/d?sslmode=no", "sslmode `no`"),
            ("postgres://h:port/d", "cannot be read"),
        ] {
            let error = DatabaseUrl::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
