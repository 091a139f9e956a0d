//! Requests to the server: reads and writes as JSON. A write that may have been lost is made again under the same key, so that
//! it counts once.

use std::collections::BTreeMap;
use std::time::Duration;

use qoder_runtime::sessions::new_id;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use url::Url;

use super::address::Address;

/// How long one request may take, streams aside.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a request is made before the server counts as out of reach.
const ATTEMPTS: u32 = 3;
/// The longest text of an error that is repeated.
const LONGEST_ERROR: usize = 500;

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The server was not reached, or failed.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// It refused.
    #[error("the server refused ({status}): {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Why.
        message: String,
    },
    /// It answered what is no answer of this API.
    #[error("the server's answer cannot be read: {0}")]
    Unreadable(String),
}

impl ServerError {
    /// True when trying again may help.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { status, .. } => matches!(status, 408 | 429) || *status >= 500,
            Self::Unreadable(_) => false,
        }
    }
}

/// The server that drives a session.
pub struct ServerClient {
    client: Client,
    /// The session.
    pub address: Address,
}

impl ServerClient {
    /// A client for the server of this address.
    pub fn new(address: Address, environment: &BTreeMap<String, String>) -> Result<Self, ServerError> {
        let builder = qoder_http::builder(&address.session, environment);
        let builder = builder.map_err(|error| ServerError::Unreachable(error.to_string()))?;
        let client = builder.build().map_err(|error| unreachable_because(&error))?;
        Ok(Self { client, address })
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.client
            .request(method, url)
            .bearer_auth(&self.address.token)
            // In this dialect a message that arrives while a turn runs is queued.
            .header("anthropic-version", "2023-06-01")
            .header("anthropic-beta", "managed-agents-2026-04-01")
    }

    /// Reads something.
    pub async fn get(&self, url: Url) -> Result<Value, ServerError> {
        self.repeated(|| self.request(Method::GET, url.clone())).await
    }

    /// Writes something, once.
    pub async fn post(&self, url: Url, body: &Value) -> Result<Value, ServerError> {
        let (key, body) = (new_id(), body.to_string());
        self.repeated(|| {
            self.request(Method::POST, url.clone())
                .header("content-type", "application/json")
                .header("idempotency-key", key.as_str())
                .body(body.clone())
        })
        .await
    }

    /// Opens a stream of events, behind the one that was seen last.
    pub async fn stream(&self, url: Url, after: Option<&str>) -> Result<Response, ServerError> {
        let mut request = self.request(Method::GET, url);
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let response = request.send().await.map_err(|error| unreachable_because(&error))?;
        if response.status() == StatusCode::OK { Ok(response) } else { Err(refusal(response).await) }
    }

    async fn repeated(&self, request: impl Fn() -> RequestBuilder) -> Result<Value, ServerError> {
        let mut attempt = 1;
        loop {
            let answer = once(request()).await;
            match answer {
                Err(error) if error.is_passing() && attempt < ATTEMPTS => {
                    tokio::time::sleep(Duration::from_millis(250) * attempt).await;
                    attempt += 1;
                }
                other => return other,
            }
        }
    }
}

async fn once(request: RequestBuilder) -> Result<Value, ServerError> {
    let response = request.timeout(PATIENCE).send().await.map_err(|error| unreachable_because(&error))?;
    if !response.status().is_success() {
        return Err(refusal(response).await);
    }
    let text = response.text().await.map_err(|error| unreachable_because(&error))?;
    serde_json::from_str(&text).map_err(|error| ServerError::Unreadable(error.to_string()))
}

fn unreachable_because(error: &reqwest::Error) -> ServerError {
    ServerError::Unreachable(qoder_http::innermost(error))
}

async fn refusal(response: Response) -> ServerError {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap_or_default();
    let message = serde_json::from_str::<Value>(&text)
        .ok()
        .and_then(|body| body["error"]["message"].as_str().map(str::to_owned))
        .unwrap_or(text);
    ServerError::Refused { status, message: message.chars().take(LONGEST_ERROR).collect() }
}
