//! Fetching one page: hop by hop, each one checked from the start.
//!
//! A redirect on the same host is followed up to five times; one to another host is handed back, because that host needs
//! a decision of its own. The connection goes to the checked addresses while the request keeps the name.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION,
};
use reqwest::{Response, StatusCode};
use url::Url;

use crate::web::client::{builder, network, read_body};
use crate::web::error::WebError;
use crate::web::hosts::{Hosts, Target, read_url};

/// The most redirects that are followed.
pub(crate) const REDIRECTS: usize = 5;
/// The largest body that is read.
pub(crate) const BODY_BYTES: usize = 10 * 1024 * 1024;

/// What a server sent.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// Where it came from in the end.
    pub(crate) url: Url,
    /// The status.
    pub(crate) status: StatusCode,
    /// The whole content type, as it was sent.
    pub(crate) content_type: String,
    /// The body.
    pub(crate) bytes: Vec<u8>,
}

/// How a fetch ended.
#[derive(Debug)]
pub(crate) enum Answer {
    /// With a body.
    Body(Fetched),
    /// With the advice to ask another host.
    Elsewhere {
        /// The page that said so.
        url: Url,
        /// The status.
        status: StatusCode,
        /// Where it points.
        to: Url,
    },
}

/// Fetches a checked target.
pub(crate) async fn fetch(hosts: &Hosts, first: Target) -> Result<Answer, WebError> {
    let mut target = first;
    for _ in 0..=REDIRECTS {
        let response = send(&target).await?;
        let status = response.status();
        let Some(to) = redirection(&target.url, status, response.headers())? else {
            return body(target, response).await.map(Answer::Body);
        };
        drop(response);
        let checked = read_url(to.as_str())?;
        if qoder_types::hosts::normal_host(checked.host_str().unwrap_or_default()) != target.host {
            return Ok(Answer::Elsewhere { url: target.url, status, to: checked });
        }
        target = hosts.target(checked).await?;
    }
    Err(WebError::Redirects { host: target.host, limit: REDIRECTS })
}

/// Finds nothing: every name that may be connected to comes with its checked addresses.
#[derive(Debug)]
struct NoLookup;

impl Resolve for NoLookup {
    fn resolve(&self, name: Name) -> Resolving {
        let problem = format!("{} was not checked", name.as_str());
        Box::pin(async move { Err(problem.into()) })
    }
}

async fn send(target: &Target) -> Result<Response, WebError> {
    let addresses: Vec<SocketAddr> =
        target.addresses.iter().map(|address| SocketAddr::new(*address, 0)).collect();
    let name = target.url.host_str().unwrap_or_default();
    let client = builder()
        .dns_resolver(Arc::new(NoLookup))
        .resolve_to_addrs(name, &addresses)
        .build()
        .map_err(|error| WebError::Setup { problem: error.to_string() })?;
    client
        .get(target.url.clone())
        .header(ACCEPT, "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.8, */*;q=0.5")
        .header(ACCEPT_ENCODING, "identity")
        .send()
        .await
        .map_err(|error| network(&target.host, &error))
}

/// Where a redirecting answer points; `None` when it is no redirect.
fn redirection(from: &Url, status: StatusCode, headers: &HeaderMap) -> Result<Option<Url>, WebError> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = headers.get(LOCATION) else { return Ok(None) };
    let unreadable = |problem: String| WebError::Unreadable {
        problem: format!("the redirect of {from} is broken, {problem}"),
    };
    let text = std::str::from_utf8(location.as_bytes()).map_err(|error| unreadable(error.to_string()))?;
    from.join(text).map(Some).map_err(|error| unreadable(error.to_string()))
}

async fn body(target: Target, response: Response) -> Result<Fetched, WebError> {
    let header = |name: HeaderName| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().trim().to_owned()
    };
    let encoding = header(CONTENT_ENCODING);
    if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
        return Err(WebError::Packed { host: target.host, encoding });
    }
    let content_type = header(CONTENT_TYPE);
    let status = response.status();
    let bytes = read_body(response, &target.host, BODY_BYTES).await?;
    Ok(Fetched { url: target.url, status, content_type, bytes })
}
