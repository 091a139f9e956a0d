//! The HTTP client of a route. Made at the first request, kept for the life of the
//! model so that turns share a connection. An address without TLS loads no
//! certificates.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use qoder_types::{ModelFailure, ModelFailureClass};
use reqwest::redirect::Policy;
use reqwest::{Client, NoProxy, Proxy};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use crate::failure::failure;
use crate::route::{Route, is_loopback};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Tools may run for minutes between two turns; the connection should still be there.
const POOL_IDLE: Duration = Duration::from_secs(900);

/// Variables that name further certificates.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"];
/// Every variable that this file looks at; those behind the first two name proxies.
pub(crate) const VARIABLES: [&str; 8] = [
    CERTIFICATES[0],
    CERTIFICATES[1],
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// Builds the client for a route.
pub(crate) fn build(route: &Route, environment: &BTreeMap<String, String>) -> Result<Client, ModelFailure> {
    let tls = if route.is_plain() { without_roots()? } else { with_platform_roots(environment)? };
    let mut builder = Client::builder();
    if let Some(proxy) = route.proxy().filter(|proxy| !route.is_loopback() || is_loopback(proxy)) {
        let proxy = Proxy::all(proxy.clone())
            .map_err(|error| configuration(format!("the proxy cannot be used: {error}")))?;
        builder = builder.proxy(proxy.no_proxy(NoProxy::from_env()));
    } else if route.is_loopback() && (route.proxy().is_some() || !proxy_is_local(environment)) {
        // A proxy elsewhere cannot reach a server on this machine.
        builder = builder.no_proxy();
    }
    builder
        .tls_backend_preconfigured(tls)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE)
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(60))
        // `x-api-key` would travel along to wherever a redirect points.
        .redirect(Policy::none())
        .user_agent(concat!("qodercli/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| configuration(format!("cannot set up HTTP: {error}")))
}

/// True when a proxy is configured that runs on this machine itself.
fn proxy_is_local(environment: &BTreeMap<String, String>) -> bool {
    VARIABLES[CERTIFICATES.len()..].iter().any(|name| {
        let value = environment.get(*name).map(String::as_str).unwrap_or_default();
        let address = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
        reqwest::Url::parse(&address).is_ok_and(|url| is_loopback(&url))
    })
}

fn configuration(message: String) -> ModelFailure {
    failure(ModelFailureClass::Configuration, message)
}

/// The provider is passed on explicitly; no process-wide default is installed, so nothing can panic over it.
fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, ModelFailure> {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| configuration(format!("cannot set up TLS: {error}")))
}

fn without_roots() -> Result<ClientConfig, ModelFailure> {
    Ok(builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn with_platform_roots(environment: &BTreeMap<String, String>) -> Result<ClientConfig, ModelFailure> {
    let mut extra = Vec::new();
    for name in CERTIFICATES {
        if let Some(path) = environment.get(name).filter(|path| !path.is_empty()) {
            extra.extend(read_roots(name, path)?);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(extra, provider).map_err(|error| {
        configuration(format!(
            "cannot load the system's certificates: {error}. Install a CA bundle or set SSL_CERT_FILE"
        ))
    })?;
    let mut tls =
        builder()?.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    // One request at a time gains nothing from HTTP/2, and its machinery is large.
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(tls)
}

fn read_roots(name: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, ModelFailure> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| configuration(format!("cannot read the certificates in {path} ({name}): {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Protocol;
    use crate::route::Credentials;

    #[test]
    fn clients_are_built_without_a_process_wide_tls_provider() {
        let route = |url: &str| {
            Route::new("p", Protocol::AnthropicMessages, url, Credentials::default(), "test").unwrap()
        };
        assert!(build(&route("http://localhost:1"), &BTreeMap::new()).is_ok());
        let environment =
            BTreeMap::from([("NODE_EXTRA_CA_CERTS".to_owned(), "/does/not/exist.pem".to_owned())]);
        let refused = build(&route("https://example.test"), &environment).unwrap_err();
        assert!(refused.message.contains("NODE_EXTRA_CA_CERTS"), "{}", refused.message);
        assert_eq!(refused.class, ModelFailureClass::Configuration);
    }
}
