//! The HTTP client of remote servers. Made at the first request. An address without TLS loads no certificates; redirects
//! stay on the same origin and keep the method, so that no header and no token gets to another host.

use std::collections::BTreeMap;

use reqwest::Client;
use reqwest::redirect::{Attempt, Policy};
use url::Url;

/// Redirects in a row.
const MOST_REDIRECTS: usize = 5;

/// A client for the server at `url`. The error is for people.
pub(super) fn build(url: &Url, environment: &BTreeMap<String, String>) -> Result<Client, String> {
    qoder_http::builder(url, environment)
        .map_err(|error| error.to_string())?
        .redirect(Policy::custom(follow))
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
