//! The edge: what every request passes before a route sees it. It has a name that the server answers to, a token and a rate; every
//! answer has the request's id, and an error the documented shape.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use super::address;
use super::auth::Authenticator;
use super::errors::ApiError;
use super::hosts::HostRules;
use super::rates::RateLimiter;
use crate::observe::{Level, Log, Metrics};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const OTHER_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const LONGEST_REQUEST_ID: usize = 128;
/// Routes without a token; links to files and requests of other nodes carry their own signature.
const OPEN: [&str; 5] =
    ["/health", "/ready", "/openapi.json", "/files/{id}/{ticket}", "/internal/sessions/{key}/pieces"];

/// The address of the connection that a request came by.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// What every request passes.
#[derive(Debug)]
pub struct Edge {
    /// Names and pages.
    pub hosts: HostRules,
    /// Tokens.
    pub tokens: Arc<Authenticator>,
    /// Rates.
    pub rates: RateLimiter,
    /// Proxies whose word about clients counts.
    pub trusted_proxies: Vec<IpAddr>,
    /// Log lines.
    pub log: Log,
    /// Numbers.
    pub metrics: Arc<Metrics>,
}

/// Lets a request pass the edge.
pub async fn pass(State(edge): State<Arc<Edge>>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let id = request_id(request.headers());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or("unknown", MatchedPath::as_str);
    let route =
        route.strip_prefix("/api/v1/cloud").or_else(|| route.strip_prefix("/v1")).unwrap_or(route).to_owned();
    let origin =
        edge.hosts.check(request.headers(), request.uri().authority().map(http::uri::Authority::as_str));
    let mut response = match &origin {
        Err(error) => error.render(&id),
        Ok(Some(_)) if method == Method::OPTIONS => preflight(),
        Ok(_) => match edge.admit(&mut request, &route).await {
            Err(error) => error.render(&id),
            Ok(()) => match answer(next, request).await {
                Some(response) => finish(response, &id),
                None => {
                    edge.log.error("panic", &[("route", &route), ("request_id", &id)]);
                    ApiError::internal().render(&id)
                }
            },
        },
    };
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value.clone());
        headers.insert(OTHER_REQUEST_ID, value);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(Some(Ok(origin))) = origin.map(|origin| origin.map(|origin| HeaderValue::from_str(&origin))) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("origin"));
    }
    edge.metrics.request(&method, &route, response.status(), begun.elapsed());
    if edge.log.writes(Level::Debug) {
        let (status, micros) =
            (response.status().as_u16().to_string(), begun.elapsed().as_micros().to_string());
        let fields = [
            ("method", method.as_str()),
            ("route", &route),
            ("status", &status),
            ("us", &micros),
            ("request_id", &id),
        ];
        edge.log.write(Level::Debug, "request", &fields);
    }
    response
}

/// Has a route answer; `None` when it panicked. What changes something is done to its end also when the client hangs up meanwhile: a
/// session that was claimed and gets no seat would be driven by no one.
async fn answer(next: Next, request: Request) -> Option<Response> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return AssertUnwindSafe(next.run(request)).catch_unwind().await.ok();
    }
    tokio::spawn(next.run(request)).await.ok()
}

impl Edge {
    async fn admit(&self, request: &mut Request, route: &str) -> Result<(), ApiError> {
        if OPEN.contains(&route) {
            return Ok(());
        }
        let peer = request.extensions().get::<Peer>().map_or(IpAddr::from([127, 0, 0, 1]), |peer| peer.0);
        let from = address::of_client(peer, request.headers(), &self.trusted_proxies);
        let principal = self.tokens.authenticate(request.headers(), from).await?;
        let writes = !matches!(*request.method(), Method::GET | Method::HEAD);
        let taken = self.rates.take(&principal.token_id, &principal.tenant.name, writes, Instant::now());
        if let Err(seconds) = taken {
            let message = format!("Too many requests. Try again in {seconds} s.");
            let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
            error.retry_after = Some(seconds);
            return Err(error);
        }
        request.extensions_mut().insert(principal);
        Ok(())
    }
}

/// The id of a request: the client's own where it can be written back, else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let own = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let is_plain = |id: &&str| {
        (1..=LONGEST_REQUEST_ID).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
    };
    own.filter(is_plain).map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned)
}

/// Errors of routes get their shape; so do those that the router makes by itself.
fn finish(mut response: Response, id: &str) -> Response {
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        return error.render(id);
    }
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let message = "The path does not take this method.";
        let mut error =
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", message).render(id);
        if let Some(allowed) = response.headers_mut().remove(header::ALLOW) {
            error.headers_mut().insert(header::ALLOW, allowed);
        }
        return error;
    }
    response
}

/// What a browser asks before a page may call.
fn preflight() -> Response {
    let mut response = Response::new(axum::body::Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    let allowed = "authorization, content-type, idempotency-key, last-event-id, x-api-key, x-request-id, anthropic-version, \
                   anthropic-beta";
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}
