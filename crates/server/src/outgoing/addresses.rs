//! Which addresses the server may send to on behalf of a tenant.

use std::collections::BTreeMap;
use std::net::IpAddr;

use url::{Host, Url};

use super::OutgoingError;

/// Which addresses sessions may reach besides public ones.
#[derive(Debug, Clone, Default)]
pub struct PrivateAddresses {
    /// Every address.
    pub all: bool,
    /// These hosts.
    pub hosts: Vec<String>,
}

impl PrivateAddresses {
    /// True when names that are not listed have to lead to public addresses.
    pub(super) fn checks(&self, url: &Url) -> bool {
        !self.all && !self.hosts.iter().any(|allowed| Some(allowed.as_str()) == url.host_str())
    }

    /// Where the host of an address leads, as curl writes it, when its name has to lead to public addresses; nothing when any
    /// address will do, or a proxy looks the name up.
    ///
    /// # Errors
    /// When the address is refused, or its name leads nowhere public.
    pub async fn resolve(
        &self,
        url: &Url,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<String>, OutgoingError> {
        let host = url.host_str().unwrap_or_default();
        if self.refuses(url.as_str()) {
            return Err(OutgoingError::Refused(host.to_owned()));
        }
        let (Some(Host::Domain(name)), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Ok(None);
        };
        if !self.checks(url) || !qoder_http::proxies(environment).is_empty() {
            return Ok(None);
        }
        let found = tokio::net::lookup_host((name, port)).await;
        let found = found.map_err(|error| OutgoingError::Failed(format!("{name}: {error}")))?;
        let public = found.map(|address| address.ip()).find(|address| !is_private(*address));
        let address = public.ok_or_else(|| OutgoingError::Refused(host.to_owned()))?;
        Ok(Some(match address {
            IpAddr::V4(address) => format!("{name}:{port}:{address}"),
            IpAddr::V6(address) => format!("{name}:{port}:[{address}]"),
        }))
    }

    /// True for an address on this machine or in a private network that no one has listed. A name is looked at as it is written; what
    /// it resolves to is checked when a request is sent.
    #[must_use]
    pub fn refuses(&self, url: &str) -> bool {
        is_refused(url, self)
    }
}

fn is_refused(url: &str, private: &PrivateAddresses) -> bool {
    if private.all {
        return false;
    }
    let Ok(url) = Url::parse(url) else { return true };
    let Some(host) = url.host() else { return true };
    if private.hosts.iter().any(|allowed| Some(allowed.as_str()) == url.host_str()) {
        return false;
    }
    match host {
        Host::Ipv4(address) => is_private(IpAddr::V4(address)),
        Host::Ipv6(address) => is_private(IpAddr::V6(address)),
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            let below = |suffix: &str| {
                name.eq_ignore_ascii_case(suffix)
                    || name.to_ascii_lowercase().ends_with(&format!(".{suffix}"))
            };
            !name.contains('.')
                || ["localhost", "local", "internal", "home.arpa"].iter().any(|suffix| below(suffix))
        }
    }
}

/// True for an address on this machine or in a private network.
pub(super) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
                || address.is_broadcast()
                || address.is_multicast()
                || (first == 100 && (64..128).contains(&second))
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => is_private(IpAddr::V4(address)),
            None => {
                address.is_loopback()
                    || address.is_unspecified()
                    || address.is_multicast()
                    || address.is_unique_local()
                    || address.is_unicast_link_local()
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_refused_unless_they_are_listed() {
        let none = PrivateAddresses::default();
        for url in [
            "http://127.0.0.1:8080/mcp",
            "http://[::1]/",
            "http://localhost/",
            "http://10.0.0.5/",
            "http://192.168.1.1/",
            "http://169.254.169.254/latest/meta-data",
            "http://100.64.0.1/",
            "http://[fd00::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://printer/",
            "http://a.internal/",
            "http://0.0.0.0/",
            "http://2130706433/",
            "nonsense",
        ] {
            assert!(is_refused(url, &none), "{url}");
        }
        for url in ["https://mcp.example.com/", "http://8.8.8.8/", "https://[2606:4700::1111]/"] {
            assert!(!is_refused(url, &none), "{url}");
        }
        let listed = PrivateAddresses { all: false, hosts: vec!["10.0.0.5".to_owned()] };
        assert!(!is_refused("http://10.0.0.5:9/", &listed) && is_refused("http://10.0.0.6/", &listed));
        assert!(!is_refused("http://127.0.0.1/", &PrivateAddresses { all: true, hosts: Vec::new() }));
    }
}
