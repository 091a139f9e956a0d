//! Requests that the server sends on behalf of a tenant: to token endpoints, to MCP servers that are tried out and to
//! webhook endpoints. Their answers are
//! bounded, and addresses inside of the operator's network are refused unless they are listed.

mod addresses;
mod resolver;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use url::Url;

use self::resolver::PublicNames;
pub use addresses::PrivateAddresses;
pub use webhooks::{WebhookStatistics, Webhooks};

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// The most bytes of an answer.
const LARGEST: usize = 64 * 1024;

/// Sends requests.
#[derive(Debug, Clone)]
pub struct Outgoing {
    environment: BTreeMap<String, String>,
    private: PrivateAddresses,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// What its body is.
    pub content_type: String,
    /// Its body, as far as it is taken.
    pub body: String,
    /// True when there was more of it.
    pub is_truncated: bool,
}

/// A request that got no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutgoingError {
    /// The address is not one to send to.
    #[error("the address {0} is not public, and this server does not list it")]
    Refused(String),
    /// The request failed.
    #[error("{0}")]
    Failed(String),
}

impl Outgoing {
    /// With the proxies and certificates of this environment.
    #[must_use]
    pub fn new(environment: BTreeMap<String, String>, private: PrivateAddresses) -> Self {
        Self { environment, private }
    }

    /// Posts a body.
    ///
    /// # Errors
    /// When the address is refused, or no answer comes.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: String) -> Result<Reply, OutgoingError> {
        let failed = |problem: String| OutgoingError::Failed(problem);
        let parsed = Url::parse(url).map_err(|error| failed(error.to_string()))?;
        if self.private.refuses(url) {
            return Err(OutgoingError::Refused(parsed.host_str().unwrap_or_default().to_owned()));
        }
        let mut client =
            qoder_http::builder(&parsed, &self.environment).map_err(|error| failed(error.to_string()))?;
        if self.private.checks(&parsed) {
            client = client.dns_resolver(Arc::new(PublicNames::new(&self.environment)));
        }
        let client =
            client.timeout(PATIENCE).build().map_err(|error| failed(qoder_http::innermost(&error)))?;
        let sent = client.request(Method::POST, parsed).headers(headers).body(body).send().await;
        let response = sent.map_err(|error| failed(qoder_http::innermost(&error)))?;
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let (status, content_type) =
            (response.status().as_u16(), content_type.unwrap_or_default().to_owned());
        let (mut bytes, mut is_truncated) = (Vec::new(), false);
        let mut stream = response.bytes_stream();
        while let Some(piece) = stream.next().await {
            let piece = piece.map_err(|error| failed(qoder_http::innermost(&error)))?;
            let room = LARGEST - bytes.len();
            bytes.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() > room {
                is_truncated = true;
                break;
            }
            // A server of events may leave its answer open; its first words say enough.
            if content_type.starts_with("text/event-stream") {
                break;
            }
        }
        let body = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Reply { status, content_type, body, is_truncated })
    }
}
