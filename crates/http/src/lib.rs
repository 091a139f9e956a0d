//! One way to make HTTP clients: which certificates count, when a proxy is not asked, and no redirect that would carry
//! a key elsewhere. Models, MCP servers and telemetry begin with the builder from here and add what is theirs; the tools
//! for the web have a stricter client of their own.
//! Nothing is set up before a client is made, and an address without TLS loads no certificates.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use rustls_platform_verifier::Verifier;
use url::{Host, Url};

/// How long connecting may take unless the caller says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Variables that name further certificates.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"];
/// Variables that name proxies.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Why a client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum HttpSetupError {
    /// A file with certificates cannot be read.
    #[error("cannot read the certificates in {path} ({variable}): {problem}")]
    Certificates {
        /// The variable that names the file.
        variable: &'static str,
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A variable names a proxy that is not an address. Its value may hold a password.
    #[error("{0} is not the address of a proxy; write it as http://HOST:PORT, or unset it")]
    Proxy(&'static str),
    /// The system's certificates cannot be loaded.
    #[error("cannot load the system's certificates: {0}. Install a CA bundle or set SSL_CERT_FILE")]
    System(String),
    /// TLS has nothing to begin with.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

/// The variables that [`builder`] looks at.
pub fn variables() -> impl Iterator<Item = &'static str> {
    CERTIFICATES.into_iter().chain(PROXIES)
}

/// A client for `url`: no redirects, no referer, no proxy elsewhere for an address on this machine.
///
/// # Errors
/// When certificates cannot be read.
pub fn builder(url: &Url, environment: &BTreeMap<String, String>) -> Result<ClientBuilder, HttpSetupError> {
    let tls = if url.scheme() == "http" { without_roots()? } else { for_http(platform_tls(environment)?) };
    let mut builder = Client::builder();
    if is_loopback(url) && !proxies(environment).iter().any(is_loopback) {
        // A proxy elsewhere cannot reach a server on this machine.
        builder = builder.no_proxy();
    } else if let Some((variable, None)) = named_proxy(url, environment) {
        return Err(HttpSetupError::Proxy(variable));
    }
    Ok(builder
        .tls_backend_preconfigured(tls)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(60))
        // A key in a header of its own would travel along to wherever a redirect points.
        .redirect(Policy::none())
        .referer(false)
        .user_agent(concat!("qodercli/", env!("CARGO_PKG_VERSION"))))
}

/// The proxies that the environment names.
#[must_use]
pub fn proxies(environment: &BTreeMap<String, String>) -> Vec<Url> {
    let values = PROXIES.iter().filter_map(|name| environment.get(*name)).filter(|value| !value.is_empty());
    values.filter_map(|value| proxy_url(value)).collect()
}

fn proxy_url(value: &str) -> Option<Url> {
    let value = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
    Url::parse(&value).ok()
}

/// The variable that names a proxy for `url`, and the proxy where it can be read.
fn named_proxy(url: &Url, environment: &BTreeMap<String, String>) -> Option<(&'static str, Option<Url>)> {
    let [http, http_lower, https, https_lower, all, all_lower] = PROXIES;
    let [first, second] = if url.scheme() == "https" { [https, https_lower] } else { [http, http_lower] };
    [first, second, all, all_lower].into_iter().find_map(|name| {
        let value = environment.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())?;
        Some((name, proxy_url(value)))
    })
}

/// The proxy through which `url` is reached, for people: its host and port, and the variable that names it.
#[must_use]
pub fn proxy_of(url: &Url, environment: &BTreeMap<String, String>) -> Option<String> {
    let host = url.host_str()?.to_ascii_lowercase();
    let excepted = ["NO_PROXY", "no_proxy"].iter().filter_map(|name| environment.get(*name));
    let is_excepted = excepted
        .flat_map(|list| list.split(','))
        .map(|name| name.trim().trim_start_matches('.'))
        .any(|name| {
            name == "*"
                || (!name.is_empty()
                    && host.strip_suffix(name).is_some_and(|front| front.is_empty() || front.ends_with('.')))
        });
    let (variable, proxy) = named_proxy(url, environment).filter(|_| !is_excepted)?;
    let proxy = proxy.filter(|proxy| !is_loopback(url) || is_loopback(proxy))?;
    let port = proxy.port_or_known_default().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}{port} ({variable})", proxy.host_str()?))
}

/// True for an address on this machine.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_local_name(name),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// True for a name that always means this machine.
#[must_use]
pub fn is_local_name(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// The words of the innermost cause: the outer ones only repeat the address.
#[must_use]
pub fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The provider is passed on explicitly; no process-wide default is installed, so nothing can panic over it.
fn tls() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, HttpSetupError> {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpSetupError::Tls(error.to_string()))
}

fn without_roots() -> Result<ClientConfig, HttpSetupError> {
    Ok(tls()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// TLS for a client of any protocol: the system's certificates count, and those that the environment names.
///
/// # Errors
/// When certificates cannot be read.
pub fn platform_tls(environment: &BTreeMap<String, String>) -> Result<ClientConfig, HttpSetupError> {
    let mut extra: Vec<CertificateDer<'static>> = Vec::new();
    for variable in CERTIFICATES {
        let Some(path) = environment.get(variable).filter(|path| !path.is_empty()) else { continue };
        let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
        extra.extend(read.map_err(|error| HttpSetupError::Certificates {
            variable,
            path: path.clone(),
            problem: error.to_string(),
        })?);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(extra, provider)
        .map_err(|error| HttpSetupError::System(error.to_string()))?;
    Ok(tls()?.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// One request at a time gains nothing from HTTP/2, and its machinery is large.
fn for_http(mut tls: ClientConfig) -> ClientConfig {
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    tls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn clients_are_built_without_a_process_wide_tls_provider() {
        assert!(builder(&url("http://localhost:1"), &BTreeMap::new()).unwrap().build().is_ok());
        for variable in CERTIFICATES {
            let environment = BTreeMap::from([(variable.to_owned(), "/does/not/exist.pem".to_owned())]);
            let refused = builder(&url("https://example.test"), &environment).unwrap_err().to_string();
            assert!(refused.contains(variable), "{refused}");
            assert!(builder(&url("http://example.test"), &environment).is_ok(), "it loads no certificates");
        }
    }

    #[test]
    fn this_machine_is_known_by_its_addresses_and_names() {
        for here in ["http://localhost", "http://a.localhost:1", "http://127.9.9.9", "http://[::1]:2"] {
            assert!(is_loopback(&url(here)), "{here}");
        }
        for elsewhere in ["http://localhost.example.com", "http://10.0.0.1", "http://[::2]", "data:x"] {
            assert!(!is_loopback(&url(elsewhere)), "{elsewhere}");
        }
    }

    #[test]
    fn proxies_are_those_of_the_environment_given() {
        let environment = BTreeMap::from([
            ("HTTPS_PROXY".to_owned(), "127.0.0.1:3128".to_owned()),
            ("all_proxy".to_owned(), "socks5://proxy.test:1".to_owned()),
            ("http_proxy".to_owned(), String::new()),
        ]);
        let found: Vec<String> = proxies(&environment).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["http://127.0.0.1:3128/", "socks5://proxy.test:1"]);
    }
}
