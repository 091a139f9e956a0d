//! Streamable HTTP: the requests that `rmcp`'s transport makes, made by us. Sessions, resumption and starting over after
//! an expired session are the transport's work; tokens, limits, redirects and refusals are decided here.

mod client;
mod requests;
mod sse;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reqwest::Response;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use url::Url;

use self::requests::{is_of_type, status_problem};
use super::wire;

pub(super) use requests::{HttpProblem, Requests};
pub(super) use sse::EventTransport;

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
pub(super) const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const BOTH: &str = "application/json, text/event-stream";
/// Attempts to take up a stream again before it is given up.
const MOST_RESUMPTIONS: usize = 10;
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

type Failed = StreamableHttpError<HttpProblem>;

/// The transport of one connection. `typed` answers are read into `rmcp`'s types, which the newest revision needs for its
/// headers.
pub(super) fn transport(
    url: &Url,
    requests: Requests,
    typed: bool,
) -> StreamableHttpClientTransport<HttpRequests> {
    let mut resumption = ExponentialBackoff::default();
    resumption.max_times = Some(MOST_RESUMPTIONS);
    resumption.max_delay = Some(LONGEST_PAUSE);
    let longest = requests.longest;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).max_sse_event_size(longest);
    config.retry_config = Arc::new(resumption);
    config.allow_stateless = true;
    config.reinit_on_expired_session = true;
    StreamableHttpClientTransport::with_client(HttpRequests { requests, typed }, config)
}

/// What `rmcp`'s transport sends its requests through.
#[derive(Clone)]
pub(super) struct HttpRequests {
    requests: Requests,
    typed: bool,
}

impl HttpRequests {
    fn read(&self, body: &[u8]) -> Result<ServerJsonRpcMessage, HttpProblem> {
        if self.typed {
            return serde_json::from_slice(body).map_err(|error| HttpProblem::Unreadable(error.to_string()));
        }
        let mut messages = wire::read(body).map_err(HttpProblem::Unreadable)?;
        match (messages.pop(), messages.is_empty()) {
            (Some(message), true) => Ok(message),
            _ => Err(HttpProblem::Unreadable("it is not one message".to_owned())),
        }
    }

    /// A server that is gone ends the connection, so that its owner connects anew.
    fn failed(&self, problem: HttpProblem) -> Failed {
        self.requests.fault.note(problem.to_string());
        if let HttpProblem::Unreachable(_) = &problem {
            self.requests.fault.fail(problem.to_string());
        }
        match problem {
            HttpProblem::Refused(challenge) => {
                let header = challenge.www_authenticate.unwrap_or_default();
                if challenge.status == 403 {
                    StreamableHttpError::InsufficientScope(InsufficientScopeError::new(header, None))
                } else {
                    StreamableHttpError::AuthRequired(AuthRequiredError::new(header))
                }
            }
            other => StreamableHttpError::Client(other),
        }
    }

    /// What an answer to `message` means.
    async fn answer(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
        in_session: bool,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session =
            response.headers().get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if session.is_some() {
            self.requests.in_session.store(true, Ordering::Relaxed);
        }
        let JsonRpcMessage::Request(request) = message else {
            return if status.is_success() {
                Ok(StreamableHttpPostResponse::Accepted)
            } else {
                Err(self.failed(status_problem(response).await.0))
            };
        };
        if !status.is_success() {
            let (problem, body) = status_problem(response).await;
            // A refusal may be an error of the protocol, whatever its status.
            return match self.read(&body) {
                Ok(JsonRpcMessage::Error(mut error)) => {
                    if error.id.is_none() || matches!(request.request, ClientRequest::DiscoverRequest(_)) {
                        error.id = Some(request.id.clone());
                    }
                    Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), session))
                }
                Ok(_) | Err(_) => Err(self.failed(problem)),
            };
        }
        if is_of_type(&response, EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(self.requests.events(response).boxed(), session));
        }
        if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !is_of_type(&response, JSON) {
            return Err(self.failed(other_content(&response)));
        }
        let body = self.requests.body(response).await.map_err(|problem| self.failed(problem))?;
        let message = self.read(&body).map_err(|problem| self.failed(problem))?;
        Ok(StreamableHttpPostResponse::Json(message, session))
    }
}

/// An answer of another kind than was asked for.
pub(super) fn other_content(response: &Response) -> HttpProblem {
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .map_or(Cow::Borrowed("nothing that has a type"), |value| String::from_utf8_lossy(value.as_bytes()));
    HttpProblem::Unreadable(format!("it is {kind}, and no message of the protocol; check the address"))
}

fn with_session(
    custom: HashMap<HeaderName, HeaderValue>,
    session: Option<&str>,
    last_event: Option<&str>,
) -> HeaderMap {
    let mut headers: HeaderMap = custom.into_iter().collect();
    for (name, value) in [(SESSION, session), (LAST_EVENT, last_event)] {
        // What a server gave as an id and cannot be sent back is left out; it will say what it thinks of that.
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers
}

impl StreamableHttpClient for HttpRequests {
    type Error = HttpProblem;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let headers = with_session(custom_headers, session_id.as_deref(), None);
        let sent = self.requests.send(|client| {
            client
                .post(&*uri)
                .header(ACCEPT, BOTH)
                .header(CONTENT_TYPE, JSON)
                .headers(headers.clone())
                .body(body.clone())
        });
        let response = sent.await.map_err(|problem| self.failed(problem))?;
        self.answer(response, &message, session_id.is_some()).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let headers = with_session(custom_headers, Some(&session_id), None);
        let sent = self.requests.send(|client| client.delete(&*uri).headers(headers.clone()));
        // The answer is ignored: a server may not support ending its sessions this way.
        sent.await.map(drop).map_err(|problem| self.failed(problem))
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let headers = with_session(custom_headers, session_id.as_deref(), last_event_id.as_deref());
        let sent =
            self.requests.send(|client| client.get(&*uri).header(ACCEPT, EVENTS).headers(headers.clone()));
        let response = sent.await.map_err(|problem| self.failed(problem))?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !response.status().is_success() {
            return Err(self.failed(status_problem(response).await.0));
        }
        if !is_of_type(&response, EVENTS) {
            return Err(self.failed(other_content(&response)));
        }
        Ok(self.requests.events(response).boxed())
    }
}
