//! The HTTP client of a route. Made at the first request, kept for the life of the
//! model so that turns share a connection. An address without TLS loads no
//! certificates.

use std::collections::BTreeMap;
use std::time::Duration;

use qoder_http::is_loopback;
use qoder_types::{ModelFailure, ModelFailureClass};
use reqwest::{Client, NoProxy, Proxy};

use crate::failure::failure;
use crate::route::Route;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Tools may run for minutes between two turns; the connection should still be there.
const POOL_IDLE: Duration = Duration::from_secs(900);

/// Builds the client for a route.
pub(crate) fn build(route: &Route, environment: &BTreeMap<String, String>) -> Result<Client, ModelFailure> {
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
    failure(ModelFailureClass::Configuration, message)
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
