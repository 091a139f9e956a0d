//! The HTTP clients of routes. A client is made at the first request and kept, so that turns, models and sessions that reach
//! the same server by the same way share its connections. An address without TLS loads no certificates.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use qoder_http::is_loopback;
use qoder_types::{ModelFailure, ModelFailureClass};
use reqwest::{Client, NoProxy, Proxy};

use super::Route;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Tools may run for minutes between two turns; the connection should still be there.
const POOL_IDLE: Duration = Duration::from_secs(900);

/// The most clients that are kept. Programs reach a handful of servers; one whose users name their own must not grow with
/// them.
const MOST_KEPT: usize = 256;

/// HTTP clients by the way to a server. Clones share them; a program with many sessions gives all of them a clone.
#[derive(Clone, Default)]
pub struct HttpClients(Arc<Mutex<HashMap<Way, Client>>>);

/// What two routes have in common that can share connections.
#[derive(PartialEq, Eq, Hash)]
struct Way {
    origin: String,
    proxy: Option<String>,
    /// The variables that change how a client is made.
    variables: Vec<(&'static str, String)>,
}

impl HttpClients {
    /// The client for a route.
    pub(crate) fn get(
        &self,
        route: &Route,
        environment: &BTreeMap<String, String>,
    ) -> Result<Client, ModelFailure> {
        let way = Way {
            origin: route.base().origin().ascii_serialization(),
            proxy: route.proxy().map(ToString::to_string),
            variables: qoder_http::variables()
                .filter_map(|name| Some((name, environment.get(name)?.clone())))
                .collect(),
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = kept.get(&way) {
            return Ok(client.clone());
        }
        let client = build(route, environment)?;
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(way, client.clone());
        Ok(client)
    }
}

impl std::fmt::Debug for HttpClients {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("HttpClients").finish_non_exhaustive()
    }
}

/// Builds the client for a route.
fn build(route: &Route, environment: &BTreeMap<String, String>) -> Result<Client, ModelFailure> {
    let mut builder =
        qoder_http::builder(route.base(), environment).map_err(|error| configuration(error.to_string()))?;
    if let Some(proxy) = route.proxy() {
        builder = if !route.is_loopback() || is_loopback(proxy) {
            let proxy = Proxy::all(proxy.clone())
                .map_err(|error| configuration(format!("the proxy cannot be used: {error}")))?;
            builder.proxy(proxy.no_proxy(NoProxy::from_env()))
        } else {
            // A proxy elsewhere cannot reach a server on this machine.
            builder.no_proxy()
        };
    }
    builder
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE)
        .build()
        .map_err(|error| configuration(format!("cannot set up HTTP: {error}")))
}

fn configuration(message: String) -> ModelFailure {
    ModelFailure { class: ModelFailureClass::Configuration, message, status: None, retry_after_ms: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Protocol;
    use crate::routes::Credentials;

    #[test]
    fn routes_to_one_server_share_a_client_and_others_do_not() {
        let route = |url: &str| {
            Route::new("p", Protocol::AnthropicMessages, url, Credentials::default(), "test").unwrap()
        };
        let (clients, none) = (HttpClients::default(), BTreeMap::new());
        let kept = |clients: &HttpClients| clients.0.lock().unwrap().len();
        for url in ["http://localhost:1", "http://localhost:1/v1", "http://localhost:1/other"] {
            clients.clone().get(&route(url), &none).unwrap();
        }
        assert_eq!(kept(&clients), 1);
        clients.get(&route("http://localhost:2"), &none).unwrap();
        let proxied = BTreeMap::from([("HTTP_PROXY".to_owned(), "http://127.0.0.1:9".to_owned())]);
        clients.get(&route("http://localhost:1"), &proxied).unwrap();
        assert_eq!(kept(&clients), 3);
        for port in 1..=MOST_KEPT {
            clients.get(&route(&format!("http://127.0.0.1:{port}")), &none).unwrap();
        }
        assert!(kept(&clients) <= MOST_KEPT);
    }

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
