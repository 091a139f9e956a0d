//! Every request of an authorization: https except on this machine, only to public places or to where the server itself
//! is, to addresses that were checked, without following redirects, with bounded answers. The protocol library follows
//! redirects of metadata within one origin by itself and sends each hop through here again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use qoder_http::{innermost, is_local_name, is_loopback};
use qoder_types::hosts::{HostKind, host_is_public_name, is_public, normal_host};
use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use url::Url;

/// Metadata, registrations and tokens are small.
const LARGEST_BODY: usize = 1024 * 1024;
/// Shorter than the patience of those who wait for the lock of a server.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Why a request was not made, or its answer not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{0} is not reached by https")]
    Plain(String),
    #[error("{0} is not a public place, and the server is elsewhere")]
    NotPublic(String),
    #[error("the address carries credentials or has no host")]
    Address,
    #[error("the answer of {0} is larger than {LARGEST_BODY} bytes")]
    TooLarge(String),
    #[error("{0} did not answer in time")]
    Late(String),
    #[error("{0} cannot be reached: {1}")]
    Network(String, String),
    #[error("HTTP cannot be set up: {0}")]
    Setup(String),
}

/// The client of one server's authorizations.
pub(crate) struct OAuthHttp {
    rules: Arc<Rules>,
    plain: OnceLock<Client>,
    secure: OnceLock<Client>,
}

/// Which places may be asked on behalf of a server.
#[derive(Debug)]
pub(super) struct Rules {
    server_host: String,
    server_is_here: bool,
}

impl Rules {
    pub(super) fn new(server: &Url) -> Self {
        let server_host = normal_host(server.host_str().unwrap_or_default());
        Self { server_is_here: is_loopback(server), server_host }
    }

    /// Checks what the address itself says; names are checked again by what they resolve to.
    fn check(&self, url: &Url) -> Result<(), Refused> {
        if !url.username().is_empty() || url.password().is_some() || url.host().is_none() {
            return Err(Refused::Address);
        }
        let host = normal_host(url.host_str().unwrap_or_default());
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(url) => {}
            _ => return Err(Refused::Plain(host)),
        }
        if self.is_known(&host) || (self.server_is_here && is_loopback(url)) {
            return Ok(());
        }
        match host_is_public_name(&host) {
            HostKind::PublicName => Ok(()),
            HostKind::NonPublicLiteral | HostKind::NonPublicName => Err(Refused::NotPublic(host)),
        }
    }

    /// The person named this host when the server was configured.
    fn is_known(&self, host: &str) -> bool {
        host == self.server_host
    }

    fn check_address(&self, host: &str, address: SocketAddr) -> bool {
        let local = address.ip().is_loopback();
        self.is_known(host)
            || is_public(address.ip())
            || (self.server_is_here && local && is_local_name(host))
    }
}

/// Looks names up and hands on only checked addresses, so that no second lookup can lead elsewhere. A proxy looks the
/// names up itself; then only the proxy's own name comes here.
struct CheckedLookup {
    rules: Arc<Rules>,
    proxies: Vec<String>,
}

impl Resolve for CheckedLookup {
    fn resolve(&self, name: Name) -> Resolving {
        let host = normal_host(name.as_str());
        let (rules, proxied) = (Arc::clone(&self.rules), self.proxies.contains(&host));
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            if !proxied && !found.iter().all(|address| rules.check_address(&host, *address)) {
                return Err(Box::new(Refused::NotPublic(host)) as OAuthHttpClientError);
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

impl OAuthHttp {
    pub(crate) fn new(server: &Url) -> Self {
        Self { rules: Arc::new(Rules::new(server)), plain: OnceLock::new(), secure: OnceLock::new() }
    }

    /// Made at the first request; an address without TLS loads no certificates.
    fn client(&self, url: &Url) -> Result<Client, Refused> {
        let slot = if url.scheme() == "http" { &self.plain } else { &self.secure };
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let environment = qoder_http::variables()
            .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
            .collect::<BTreeMap<_, _>>();
        let proxies = qoder_http::proxies(&environment);
        let names = proxies.iter().filter_map(Url::host_str).map(normal_host).collect();
        let built = qoder_http::builder(url, &environment)
            .map_err(|error| Refused::Setup(error.to_string()))?
            .dns_resolver(Arc::new(CheckedLookup { rules: Arc::clone(&self.rules), proxies: names }))
            .build()
            .map_err(|error| Refused::Setup(error.to_string()))?;
        Ok(slot.get_or_init(|| built).clone())
    }

    /// Makes a request.
    pub(crate) async fn ask(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<http::Response<Vec<u8>>, Refused> {
        let request = reqwest::Request::try_from(named(request)).map_err(|_| Refused::Address)?;
        self.rules.check(request.url())?;
        let host = normal_host(request.url().host_str().unwrap_or_default());
        let client = self.client(request.url())?;
        let answer = async {
            let mut response = client.execute(request).await.map_err(|error| network(&host, &error))?;
            let mut built = http::Response::builder().status(response.status());
            for (name, value) in response.headers() {
                built = built.header(name, value);
            }
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(|error| network(&host, &error))? {
                if body.len() + chunk.len() > LARGEST_BODY {
                    return Err(Refused::TooLarge(host.clone()));
                }
                body.extend_from_slice(&chunk);
            }
            built.body(body).map_err(|error| Refused::Network(host.clone(), error.to_string()))
        };
        tokio::time::timeout(TIMEOUT, answer).await.unwrap_or_else(|_| Err(Refused::Late(host.clone())))
    }
}

impl OAuthHttpClient for OAuthHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            self.ask(request.request).await.map_err(|error| Box::new(error) as OAuthHttpClientError)
        })
    }
}

/// Names the client in a form that only proves it in a header: some servers, the official Python one among them, look it
/// up by the form first. RFC 6749 (3.2.1) lets every client do so.
fn named(mut request: http::Request<Vec<u8>>) -> http::Request<Vec<u8>> {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let is_form = header(http::header::CONTENT_TYPE) == Some("application/x-www-form-urlencoded");
    let proof = header(http::header::AUTHORIZATION)
        .and_then(|value| value.strip_prefix("Basic "))
        .and_then(|value| STANDARD.decode(value).ok())
        .and_then(|value| String::from_utf8(value).ok());
    if let Some((client_id, _)) = proof.as_deref().and_then(|proof| proof.split_once(':'))
        && is_form
        && !url::form_urlencoded::parse(request.body()).any(|(name, _)| name == "client_id")
    {
        // It is encoded in the header as it is in a form.
        let parameter = format!("&client_id={client_id}");
        request.body_mut().extend_from_slice(parameter.as_bytes());
    }
    request
}

fn network(host: &str, error: &reqwest::Error) -> Refused {
    Refused::Network(host.to_owned(), innermost(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(server: &str, place: &str) -> bool {
        Rules::new(&Url::parse(server).unwrap()).check(&Url::parse(place).unwrap()).is_ok()
    }

    #[test]
    fn only_https_and_this_machine_and_public_places() {
        let server = "https://mcp.example.com/mcp";
        assert!(verdict(server, "https://mcp.example.com/token"));
        assert!(verdict(server, "https://login.example.org/token"));
        assert!(!verdict(server, "http://login.example.org/token"));
        assert!(!verdict(server, "http://127.0.0.1:9/token"));
        assert!(!verdict(server, "https://10.0.0.8/token"));
        assert!(!verdict(server, "https://[::ffff:169.254.169.254]/latest"));
        assert!(!verdict(server, "https://metadata.google.internal/"));
        assert!(!verdict(server, "https://u:p@mcp.example.com/token"));
        assert!(!verdict(server, "ftp://mcp.example.com/token"));
    }

    #[test]
    fn a_server_on_this_machine_may_have_its_authorization_server_here() {
        assert!(verdict("http://127.0.0.1:1/mcp", "http://localhost:2/token"));
        assert!(verdict("http://localhost:1/mcp", "https://login.example.org/token"));
        assert!(!verdict("http://localhost:1/mcp", "https://192.168.0.1/token"));
    }

    #[test]
    fn a_private_server_is_asked_where_it_is_and_nowhere_else() {
        assert!(verdict("https://mcp.corp/mcp", "https://mcp.corp/token"));
        assert!(!verdict("https://mcp.corp/mcp", "http://mcp.corp/token"));
        assert!(!verdict("https://mcp.corp/mcp", "https://other.corp/token"));
    }

    #[test]
    fn names_that_lead_inside_are_refused_by_their_addresses() {
        let rules = Rules::new(&Url::parse("https://mcp.example.com").unwrap());
        let inside: SocketAddr = "10.1.2.3:0".parse().unwrap();
        assert!(!rules.check_address("login.example.org", inside));
        assert!(rules.check_address("mcp.example.com", inside));
        let here = Rules::new(&Url::parse("http://localhost:1").unwrap());
        assert!(here.check_address("localhost", "127.0.0.1:0".parse().unwrap()));
        assert!(!here.check_address("rebound.example.org", "127.0.0.1:0".parse().unwrap()));
    }
}
