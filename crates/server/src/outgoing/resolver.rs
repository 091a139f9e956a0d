//! Names on behalf of a tenant: a name that leads into the operator's network is refused, however public it looks.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::addresses::is_private;

/// Resolves names to public addresses alone.
#[derive(Debug, Clone)]
pub(super) struct PublicNames {
    /// Names that may lead anywhere: those of the operator's proxies.
    trusted: Vec<String>,
}

impl PublicNames {
    pub(super) fn new(environment: &BTreeMap<String, String>) -> Self {
        let proxies = qoder_http::proxies(environment);
        Self { trusted: proxies.iter().filter_map(|url| url.host_str().map(str::to_owned)).collect() }
    }
}

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        let is_trusted = self.trusted.iter().any(|trusted| trusted.eq_ignore_ascii_case(name.as_str()));
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let public: Vec<SocketAddr> =
                found.into_iter().filter(|address| is_trusted || !is_private(address.ip())).collect();
            if public.is_empty() {
                return Err(format!("{} has no public address", name.as_str()).into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn resolves(name: &str, trusted: &[&str]) -> bool {
        let trusted = trusted.iter().map(|name| (*name).to_owned()).collect();
        PublicNames { trusted }.resolve(name.parse().unwrap()).await.is_ok()
    }

    #[tokio::test]
    async fn a_name_that_leads_inside_is_refused_unless_it_is_a_proxy() {
        assert!(!resolves("localhost", &[]).await);
        assert!(resolves("localhost", &["LocalHost"]).await);
    }
}
