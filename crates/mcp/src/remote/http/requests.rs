//! Requests to one remote server: the configured headers, the token of the moment, one more attempt after a refusal, and
//! bodies that end at a limit. What can go wrong has a type, whose text is for people and holds no token.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reqwest::{Client, RequestBuilder, Response};
use secrecy::{ExposeSecret, SecretString};
use sse_stream::{Sse, SseStream};
use url::Url;

use super::client::{self, Refused};
use crate::authorization::{AuthorizationError, Authorizer};
use crate::peer::Challenge;
use crate::remote::events::shortened;
use crate::remote::fault::Fault;
use crate::remote::{PeerContext, wire};

/// Bytes of a refusal's body that are looked at.
const LONGEST_REFUSAL: usize = 16 * 1024;
/// Headers that belong to the protocol.
const RESERVED: [&str; 5] =
    ["accept", "content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id"];

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::remote) enum HttpProblem {
    /// The server was not reached.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// It was reached, and then the connection broke.
    #[error("the connection to the server broke: {0}")]
    Broken(String),
    /// It sent us elsewhere.
    #[error("{0}")]
    Redirect(String),
    /// It answered with another status than those of the protocol.
    #[error("the server answered with HTTP {status}{text}")]
    Status {
        /// The status.
        status: u16,
        /// What it said, with a colon before it.
        text: String,
    },
    /// It answered with too much.
    #[error("the server sent a message of more than {} MiB", .0 / (1024 * 1024))]
    TooLarge(usize),
    /// It answered with something else.
    #[error("the server's answer cannot be read: {0}")]
    Unreadable(String),
    /// It wants credentials, or other ones.
    #[error("the server wants credentials (HTTP {})", .0.status)]
    Refused(Challenge),
    /// There are credentials, and they cannot be used.
    #[error("{0}")]
    Credentials(String),
}

/// Requests to one server.
#[derive(Clone)]
pub(in crate::remote) struct Requests {
    client: Client,
    headers: HeaderMap,
    authorizer: Option<Arc<dyn Authorizer>>,
    pub(in crate::remote) fault: Arc<Fault>,
    pub(in crate::remote) longest: usize,
    /// True once the server gave the connection a session of its own.
    pub(in crate::remote) in_session: Arc<AtomicBool>,
}

impl Requests {
    /// The error is for people.
    pub(in crate::remote) fn new(
        url: &Url,
        headers: &BTreeMap<String, String>,
        context: &PeerContext,
        fault: Arc<Fault>,
    ) -> Result<Self, String> {
        let headers = header_map(headers)?;
        // A configured `Authorization` header excludes all other credentials.
        let authorizer = context.authorizer.clone().filter(|_| !headers.contains_key(AUTHORIZATION));
        Ok(Self {
            client: client::build(url, &context.environment)?,
            headers,
            authorizer,
            fault,
            longest: context.limits.message,
            in_session: Arc::default(),
        })
    }

    /// Sends what `build` makes, with a token; once more when the token was refused and there is another one.
    pub(in crate::remote) async fn send(
        &self,
        build: impl Fn(&Client) -> RequestBuilder + Send + Sync,
    ) -> Result<Response, HttpProblem> {
        let mut retried = false;
        loop {
            let mut request = build(&self.client).headers(self.headers.clone());
            let token = self.token().await?;
            if let Some(token) = &token {
                request = request.header(AUTHORIZATION, header(token)?);
            }
            let response = request.send().await.map_err(|error| network(&error))?;
            let Some(challenge) = challenge(&response) else { return Ok(response) };
            if !retried && challenge.status == 401 && self.has_another_token(token, &challenge).await {
                retried = true;
                continue;
            }
            self.fault.challenge(&challenge);
            return Err(HttpProblem::Refused(challenge));
        }
    }

    async fn token(&self) -> Result<Option<SecretString>, HttpProblem> {
        let Some(authorizer) = &self.authorizer else { return Ok(None) };
        let unusable =
            |error: AuthorizationError| HttpProblem::Credentials(format!("{error}; {}", error.hint()));
        authorizer.token().await.map_err(unusable)
    }

    async fn has_another_token(&self, sent: Option<SecretString>, challenge: &Challenge) -> bool {
        match &self.authorizer {
            // The next request for credentials finds out why there is no other one.
            Some(authorizer) => authorizer.refused(sent, challenge.clone()).await.unwrap_or(false),
            None => false,
        }
    }

    /// The whole body, up to the limit.
    pub(in crate::remote) async fn body(&self, response: Response) -> Result<Vec<u8>, HttpProblem> {
        read(response, self.longest).await?.ok_or(HttpProblem::TooLarge(self.longest))
    }

    /// The events of a body. One that is too large ends the connection.
    pub(in crate::remote) fn events(
        &self,
        response: Response,
    ) -> impl Stream<Item = Result<Sse, sse_stream::Error>> + Send + 'static {
        let (fault, longest) = (Arc::clone(&self.fault), self.longest);
        let mut size = EventSize::default();
        let bytes = response.bytes_stream().map(move |piece: reqwest::Result<Bytes>| {
            let piece = piece.map_err(|error| network(&error))?;
            if size.observe(&piece) > longest {
                let problem = HttpProblem::TooLarge(longest);
                fault.fail(problem.to_string());
                return Err(problem);
            }
            Ok(piece)
        });
        SseStream::from_bytes_stream(bytes).map(|event| event.map(readable))
    }
}

/// An event whose message cannot be read is an error for the request that waits for it, instead of being skipped.
fn readable(mut event: Sse) -> Sse {
    if let Some(data) = event.data.as_deref().filter(|data| data.starts_with('{'))
        && serde_json::from_str::<serde_json::Value>(data).is_err()
        && let Ok(messages) = wire::read(data.as_bytes())
        && let [error] = messages.as_slice()
    {
        event.data = serde_json::to_string(error).ok();
    }
    event
}

/// A token as it travels; never shown.
fn header(token: &SecretString) -> Result<HeaderValue, HttpProblem> {
    let unusable = |_| HttpProblem::Credentials("the token holds characters that cannot be sent".to_owned());
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret())).map_err(unusable)?;
    value.set_sensitive(true);
    Ok(value)
}

/// What an answer that is no success says. Reads a bounded part of it.
pub(in crate::remote) async fn status_problem(response: Response) -> (HttpProblem, Vec<u8>) {
    let status = response.status().as_u16();
    let body = read(response, LONGEST_REFUSAL).await.ok().flatten().unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    let plain: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let plain = shortened(plain.trim(), 300);
    let text = if plain.is_empty() { String::new() } else { format!(": {plain}") };
    (HttpProblem::Status { status, text }, body)
}

/// The body, or `None` when it is longer than `limit`.
async fn read(mut response: Response, limit: usize) -> Result<Option<Vec<u8>>, HttpProblem> {
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| network(&error))? {
        if bytes.len() + piece.len() > limit {
            return Ok(None);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Some(bytes))
}

/// True when the body calls itself `kind`.
pub(in crate::remote) fn is_of_type(response: &Response, kind: &str) -> bool {
    let named = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    named.len() >= kind.len() && named[..kind.len()].eq_ignore_ascii_case(kind.as_bytes())
}

/// A refusal for which other credentials help.
fn challenge(response: &Response) -> Option<Challenge> {
    let www_authenticate =
        response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let lacks_scope = || www_authenticate.as_deref().is_some_and(|text| text.contains("insufficient_scope"));
    match response.status() {
        StatusCode::UNAUTHORIZED => Some(Challenge { status: 401, www_authenticate }),
        StatusCode::FORBIDDEN if lacks_scope() => Some(Challenge { status: 403, www_authenticate }),
        _ => None,
    }
}

/// What went wrong below, in the words of the innermost cause: the outer ones only repeat the URL.
fn network(error: &reqwest::Error) -> HttpProblem {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        if let Some(refused) = inner.downcast_ref::<Refused>() {
            return HttpProblem::Redirect(refused.to_string());
        }
        cause = inner;
    }
    if error.is_connect() {
        return HttpProblem::Unreachable(cause.to_string());
    }
    HttpProblem::Broken(cause.to_string())
}

fn header_map(headers: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let parsed =
            HeaderName::try_from(name).map_err(|_| format!("`{name}` cannot be the name of a header"))?;
        if RESERVED.contains(&parsed.as_str()) {
            return Err(format!("the header `{name}` belongs to the protocol and cannot be configured"));
        }
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        map.insert(parsed, value);
    }
    Ok(map)
}

/// Counts the bytes of the event that is being received.
#[derive(Debug, Default)]
struct EventSize {
    event: usize,
    line: usize,
}

impl EventSize {
    /// The largest size that the event had within these bytes.
    fn observe(&mut self, bytes: &[u8]) -> usize {
        let mut largest = 0;
        for byte in bytes {
            match byte {
                b'\n' if self.line == 0 => self.event = 0,
                b'\n' => self.line = 0,
                b'\r' => {}
                _ => {
                    self.line += 1;
                    self.event += 1;
                    largest = largest.max(self.event);
                }
            }
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_with_an_empty_line() {
        let mut size = EventSize::default();
        assert_eq!(size.observe(b"data: 12\r\ndata: 3"), 15);
        assert_eq!(size.observe(b"4\n\n"), 16);
        assert_eq!(size.observe(b"data: x\n\ndata"), 7);
    }

    #[test]
    fn headers_of_the_protocol_cannot_be_configured() {
        let headers = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        assert_eq!(header_map(&headers("X-Key", "v")).unwrap().len(), 1);
        assert!(header_map(&headers("Mcp-Session-Id", "v")).unwrap_err().contains("belongs to the protocol"));
        assert!(header_map(&headers("a b", "v")).is_err());
        let problem = header_map(&headers("X-Key", "secret\n")).unwrap_err();
        assert!(!problem.contains("secret"), "{problem}");
    }
}
