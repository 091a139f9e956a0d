//! Requests of a worker to the server. Results go out in the dialect of workers; a session shows its variables in the other one.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use url::Url;

/// How long one request may take, streams aside.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a server may be away, and the pause between requests meanwhile.
const AWAY: Duration = Duration::from_secs(120);
const AWAY_PAUSE: Duration = Duration::from_millis(500);
/// The longest text of an error that is repeated.
const LONGEST_ERROR: usize = 500;

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// The server was not reached, or its answer makes no sense.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// It refused.
    #[error("the server refused ({status}): {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Why.
        message: String,
        /// The last heartbeat that the server knows, where it says so.
        last_beat: Option<String>,
    },
}

impl WorkError {
    /// True when trying again may help.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { status, .. } => matches!(status, 408 | 429) || *status >= 500,
        }
    }

    /// The status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Unreachable(_) => None,
            Self::Refused { status, .. } => Some(*status),
        }
    }
}

/// A server as a worker reaches it, with the token for its requests.
#[derive(Clone)]
pub struct WorkClient {
    client: Client,
    base: Url,
    token: String,
    worker: String,
}

impl WorkClient {
    /// A client for the server of this address.
    pub fn new(
        base: Url,
        token: String,
        worker: String,
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, WorkError> {
        let builder = qoder_http::builder(&base, environment);
        let builder = builder.map_err(|error| WorkError::Unreachable(error.to_string()))?;
        let client = builder.build().map_err(|error| unreachable_because(&error))?;
        Ok(Self { client, base, token, worker })
    }

    /// The same with another token.
    pub fn with_token(&self, token: String) -> Self {
        Self { token, ..self.clone() }
    }

    /// The address, for programs that this one starts.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// The token, for programs that this one starts.
    pub fn token(&self) -> &str {
        &self.token
    }

    fn request(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        url.query_pairs_mut().extend_pairs(query);
        self.client.request(method, url).bearer_auth(&self.token).header("worker-id", &self.worker)
    }

    /// Reads something.
    pub async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, WorkError> {
        as_json(self.request(Method::GET, path, query)).await
    }

    /// Reads something, also while the server is away for a while.
    pub async fn get_patiently(&self, path: &[&str]) -> Result<Value, WorkError> {
        let until = Instant::now() + AWAY;
        loop {
            match self.get(path, &[]).await {
                Err(error) if error.is_passing() && Instant::now() < until => sleep(AWAY_PAUSE).await,
                other => return other,
            }
        }
    }

    /// Writes something.
    pub async fn post(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        body: &Value,
    ) -> Result<Value, WorkError> {
        let request = self.request(Method::POST, path, query).header("content-type", "application/json");
        // In this dialect a result that is sent again is answered with the one that is stored.
        let request = request.header("anthropic-version", "2023-06-01");
        as_json(request.body(body.to_string())).await
    }

    /// Reads bytes.
    pub async fn bytes(&self, path: &[&str]) -> Result<Vec<u8>, WorkError> {
        let response = sent(self.request(Method::GET, path, &[]).timeout(PATIENCE)).await?;
        Ok(response.bytes().await.map_err(|error| unreachable_because(&error))?.to_vec())
    }

    /// Opens a stream of events, behind the one that was seen last.
    pub async fn stream(&self, path: &[&str], after: Option<&str>) -> Result<Response, WorkError> {
        let mut request = self.request(Method::GET, path, &[]);
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        sent(request).await
    }
}

async fn as_json(request: RequestBuilder) -> Result<Value, WorkError> {
    let response = sent(request.timeout(PATIENCE)).await?;
    let text = response.text().await.map_err(|error| unreachable_because(&error))?;
    serde_json::from_str(&text).map_err(|error| WorkError::Unreachable(error.to_string()))
}

async fn sent(request: RequestBuilder) -> Result<Response, WorkError> {
    let response = request.send().await.map_err(|error| unreachable_because(&error))?;
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status().as_u16();
    let text = response.text().await.unwrap_or_default();
    let error = serde_json::from_str::<Value>(&text).map(|body| body["error"].clone()).unwrap_or_default();
    let message = error["message"].as_str().unwrap_or(&text).chars().take(LONGEST_ERROR).collect();
    let last_beat = error["details"]["current_state"]["last_heartbeat"].as_str().map(str::to_owned);
    Err(WorkError::Refused { status, message, last_beat })
}

fn unreachable_because(error: &reqwest::Error) -> WorkError {
    WorkError::Unreachable(qoder_http::innermost(error))
}
