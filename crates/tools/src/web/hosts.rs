//! Which hosts a fetch may reach, and at which addresses.
//!
//! Every address of a name is checked and only checked addresses are handed on for the connection, so that no second
//! lookup can lead elsewhere. Places that are not public need a rule that names the host.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use qoder_types::hosts::{HostKind, host_is_public_name, host_matches, is_public, normal_host};
use url::{Host, Url};

use crate::web::error::WebError;

/// Says which hosts may be reached although they are not public. The host is given in lower case, in ASCII form, and
/// without a dot at the end. By default none.
#[derive(Clone)]
pub struct PrivateHosts(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl PrivateHosts {
    /// Asks `allows` each time, so that rules which change are followed.
    pub fn new(allows: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(allows))
    }

    /// Exactly these: a host, or `*.h` for the subdomains of `h`.
    #[must_use]
    pub fn from_patterns(patterns: Vec<String>) -> Self {
        Self::new(move |host| patterns.iter().any(|pattern| host_matches(pattern, host)))
    }

    fn allows(&self, host: &str) -> bool {
        (self.0)(host)
    }
}

impl Default for PrivateHosts {
    fn default() -> Self {
        Self::new(|_| false)
    }
}

impl fmt::Debug for PrivateHosts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PrivateHosts")
    }
}

/// Says which hosts a rule keeps from being fetched from, in the spelling of [`PrivateHosts`]. By default none.
#[derive(Clone)]
pub struct DeniedHosts(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl DeniedHosts {
    /// Asks `denies` each time, so that rules which change are followed.
    pub fn new(denies: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(denies))
    }

    pub(crate) fn denies(&self, host: &str) -> bool {
        (self.0)(host)
    }
}

impl Default for DeniedHosts {
    fn default() -> Self {
        Self::new(|_| false)
    }
}

/// Finds the addresses of a name.
pub trait NameLookup: fmt::Debug + Send + Sync {
    /// All addresses of `host`.
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// Asks the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

impl NameLookup for SystemLookup {
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A URL that may be requested, and where its host is.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The URL; plain http is upgraded already.
    pub(crate) url: Url,
    /// The host as hosts are compared.
    pub(crate) host: String,
    /// The checked addresses; never empty.
    pub(crate) addresses: Vec<IpAddr>,
}

/// The checks.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) private: PrivateHosts,
    pub(crate) lookup: Arc<dyn NameLookup>,
}

impl Hosts {
    /// Checks a URL from the start.
    pub(crate) async fn target(&self, mut url: Url) -> Result<Target, WebError> {
        let host = checked_host(&url)?;
        let allowed = self.private.allows(&host);
        if !allowed && host_is_public_name(&host) != HostKind::PublicName {
            return Err(WebError::NotPublic { host });
        }
        let addresses = self.addresses(&url, &host).await?;
        if !allowed && !addresses.iter().copied().all(is_public) {
            return Err(WebError::NotPublic { host });
        }
        // A server inside has often no certificate, and nothing between it and us.
        let inside = allowed && !addresses.iter().copied().any(is_public);
        if url.scheme() == "http" && !inside && url.set_scheme("https").is_err() {
            return Err(WebError::Scheme { scheme: "http".to_owned() });
        }
        Ok(Target { url, host, addresses })
    }

    async fn addresses(&self, url: &Url, host: &str) -> Result<Vec<IpAddr>, WebError> {
        let found =
            match url.host() {
                Some(Host::Ipv4(address)) => vec![IpAddr::V4(address)],
                Some(Host::Ipv6(address)) => vec![IpAddr::V6(address)],
                Some(Host::Domain(_)) => self.lookup.lookup(host.to_owned()).await.map_err(|error| {
                    WebError::Unknown { host: host.to_owned(), problem: error.to_string() }
                })?,
                None => Vec::new(),
            };
        if found.is_empty() {
            return Err(WebError::Unknown { host: host.to_owned(), problem: "no address".to_owned() });
        }
        Ok(found)
    }
}

/// Reads a URL that a model or a server wrote.
pub(crate) fn read_url(text: &str) -> Result<Url, WebError> {
    /// Longer ones are mistakes or carry data out.
    const LONGEST: usize = 8_192;
    if text.len() > LONGEST {
        return Err(WebError::TooLong { limit: LONGEST });
    }
    let mut url =
        Url::parse(text.trim()).map_err(|error| WebError::Unreadable { problem: error.to_string() })?;
    checked_host(&url)?;
    // The part behind # is for the reader and never sent.
    url.set_fragment(None);
    Ok(url)
}

/// Scheme, credentials and host; the host comes back as hosts are compared.
fn checked_host(url: &Url) -> Result<String, WebError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(WebError::Scheme { scheme: url.scheme().to_owned() });
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(WebError::Credentials);
    }
    let host = normal_host(url.host_str().unwrap_or_default());
    if host.is_empty() {
        return Err(WebError::Unreadable { problem: "it has no host".to_owned() });
    }
    Ok(host)
}
