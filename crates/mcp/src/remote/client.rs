//! The HTTP client of remote servers. Made at the first request. An address without TLS loads no certificates; redirects
//! stay on the same origin and keep the method, so that no header and no token gets to another host.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use reqwest::redirect::{Attempt, Policy};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use url::{Host, Url};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Redirects in a row.
const MOST_REDIRECTS: usize = 5;
/// Variables that name further certificates.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"];
/// Variables that name proxies.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// A client for the server at `url`. The error is for people.
pub(super) fn build(url: &Url, environment: &BTreeMap<String, String>) -> Result<Client, String> {
    let tls = if url.scheme() == "http" { without_roots()? } else { with_platform_roots(environment)? };
    let mut builder = Client::builder();
    if is_loopback(url) && !proxy_is_local(environment) {
        // A proxy elsewhere cannot reach a server on this machine.
        builder = builder.no_proxy();
    }
    builder
        .tls_backend_preconfigured(tls)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(60))
        .referer(false)
        .redirect(Policy::custom(follow))
        .user_agent(concat!("qodercli/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| format!("cannot set up HTTP: {error}"))
}

/// Why a redirect is not followed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(String);

fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let target = attempt.url().clone();
    let Some(first) = attempt.previous().first() else { return attempt.stop() };
    if first.origin() != target.origin() {
        let host = target.host_str().unwrap_or("nowhere").to_owned();
        let port = target.port().map(|port| format!(":{port}")).unwrap_or_default();
        return attempt.error(Refused(format!(
            "the server redirects to another host, {}://{host}{port}, which is not followed; configure that address if it \
             is the right one",
            target.scheme()
        )));
    }
    let status = attempt.status().as_u16();
    if !matches!(status, 307 | 308) {
        return attempt.error(Refused(format!(
            "the server redirects to {} with status {status}, which would lose the message",
            target.path()
        )));
    }
    if attempt.previous().len() > MOST_REDIRECTS {
        return attempt.error(Refused(format!("the server redirects more than {MOST_REDIRECTS} times")));
    }
    attempt.follow()
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// True when a proxy is configured that runs on this machine itself.
fn proxy_is_local(environment: &BTreeMap<String, String>) -> bool {
    PROXIES.iter().any(|name| {
        let value = environment.get(*name).map(String::as_str).unwrap_or_default();
        let address = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
        Url::parse(&address).is_ok_and(|url| is_loopback(&url))
    })
}

/// The provider is passed on explicitly; no process-wide default is installed, so nothing can panic over it.
fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("cannot set up TLS: {error}"))
}

fn without_roots() -> Result<ClientConfig, String> {
    Ok(builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn with_platform_roots(environment: &BTreeMap<String, String>) -> Result<ClientConfig, String> {
    let mut extra = Vec::new();
    for name in CERTIFICATES {
        if let Some(path) = environment.get(name).filter(|path| !path.is_empty()) {
            let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
            extra.extend(
                read.map_err(|error| format!("cannot read the certificates in {path} ({name}): {error}"))?,
            );
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(extra, provider).map_err(|error| {
        format!("cannot load the system's certificates: {error}. Install a CA bundle or set SSL_CERT_FILE")
    })?;
    let mut tls =
        builder()?.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(tls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_built_without_a_process_wide_tls_provider() {
        let url = |text: &str| Url::parse(text).unwrap();
        assert!(build(&url("http://localhost:1"), &BTreeMap::new()).is_ok());
        let environment = BTreeMap::from([("SSL_CERT_FILE".to_owned(), "/does/not/exist.pem".to_owned())]);
        let refused = build(&url("https://example.test"), &environment).unwrap_err();
        assert!(refused.contains("SSL_CERT_FILE"), "{refused}");
    }
}
