//! The HTTP client of the tools that reach the internet, and reading a bounded body.
//!
//! No proxy of the environment, no cookies, no referer, no redirect by itself, no unpacking, no connection kept: what is
//! requested is exactly what was checked. TLS is set up at the first request, never at start.

use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Response};

use crate::web::error::WebError;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// A client builder with everything ambient switched off.
pub(crate) fn builder() -> ClientBuilder {
    static PROVIDER: OnceLock<()> = OnceLock::new();
    PROVIDER.get_or_init(|| {
        // The host may have installed one already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .http1_only()
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("qodercli/", env!("CARGO_PKG_VERSION")))
}

/// The body, refused as soon as it is known to be longer than `limit`.
pub(crate) async fn read_body(mut response: Response, host: &str, limit: usize) -> Result<Vec<u8>, WebError> {
    let too_large = || WebError::TooLarge { host: host.to_owned(), limit };
    let announced = response.content_length().unwrap_or(0);
    if announced > limit as u64 {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(announced).unwrap_or(0));
    while let Some(chunk) = response.chunk().await.map_err(|error| network(host, &error))? {
        if bytes.len() + chunk.len() > limit {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// What went wrong, in the words of the innermost cause: the outer ones only repeat the URL.
pub(crate) fn network(host: &str, error: &reqwest::Error) -> WebError {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    WebError::Network { host: host.to_owned(), problem: cause.to_string() }
}
