//! Classifies what went wrong at an endpoint: HTTP statuses, error bodies, error events and network
//! errors. Messages are for people: they carry the endpoint's own words and what to check, and never a
//! key.

use std::error::Error;

use ::http::HeaderMap;
use qoder_types::{ModelFailure, ModelFailureClass};
use serde::Deserialize;
use serde_json::Value;

use crate::route::Route;

/// A failed attempt, with the endpoint's own opinion on trying again.
#[derive(Debug)]
pub(crate) struct AttemptFailure {
    pub(crate) failure: ModelFailure,
    /// From `x-should-retry`; `None` leaves it to the class.
    pub(crate) should_retry: Option<bool>,
}

impl From<ModelFailure> for AttemptFailure {
    fn from(failure: ModelFailure) -> Self {
        Self { failure, should_retry: None }
    }
}

/// A failure without status.
pub(crate) fn failure(class: ModelFailureClass, message: impl Into<String>) -> ModelFailure {
    ModelFailure { class, message: message.into(), status: None, retry_after_ms: None }
}

/// A stream that does not follow the protocol.
pub(crate) fn malformed(message: impl Into<String>) -> ModelFailure {
    failure(ModelFailureClass::MalformedStream, message)
}

/// The `error` object that all three protocols send, as strictly as it can be relied on. Some servers send only a text.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "ErrorForm")]
pub(crate) struct ErrorBody {
    pub(crate) kind: Option<String>,
    pub(crate) message: Option<String>,
    /// Some endpoints send a number here.
    pub(crate) code: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ErrorForm {
    Text(String),
    Fields {
        #[serde(rename = "type")]
        kind: Option<String>,
        message: Option<String>,
        code: Option<Value>,
    },
    Other(serde::de::IgnoredAny),
}

impl From<ErrorForm> for ErrorBody {
    fn from(form: ErrorForm) -> Self {
        match form {
            ErrorForm::Text(message) => Self { message: Some(message), ..Self::default() },
            ErrorForm::Fields { kind, message, code } => Self { kind, message, code },
            ErrorForm::Other(_) => Self::default(),
        }
    }
}

impl ErrorBody {
    fn code_text(&self) -> Option<&str> {
        self.code.as_ref().and_then(Value::as_str)
    }
}

/// True when the endpoint's words mean that the prompt does not fit.
fn says_too_long(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["prompt is too long", "context_length_exceeded", "maximum context length", "exceeds the context window"]
        .iter()
        .any(|phrase| text.contains(phrase))
}

fn class_of_kind(kind: &str) -> Option<ModelFailureClass> {
    use ModelFailureClass as Class;
    Some(match kind {
        "authentication_error" | "invalid_api_key" => Class::Authentication,
        "permission_error" | "billing_error" => Class::Permission,
        "not_found_error" | "model_not_found" => Class::NotFound,
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => Class::RateLimit,
        "overloaded_error" | "server_is_overloaded" | "slow_down" => Class::Overloaded,
        "request_too_large" | "context_length_exceeded" => Class::ContextTooLong,
        "invalid_request_error" | "invalid_prompt" => Class::InvalidRequest,
        "api_error" | "server_error" | "internal_error" | "internal_server_error" => Class::Server,
        "timeout_error" => Class::Timeout,
        _ => return None,
    })
}

/// The failure that an `error` event inside a stream means.
pub(crate) fn from_event(error: &ErrorBody) -> ModelFailure {
    let message = error.message.clone().unwrap_or_default();
    let kind = error.kind.as_deref().or(error.code_text()).unwrap_or("error");
    let class = if says_too_long(&message) {
        ModelFailureClass::ContextTooLong
    } else {
        error
            .code_text()
            .and_then(class_of_kind)
            .or_else(|| class_of_kind(kind))
            .unwrap_or(ModelFailureClass::Server)
    };
    failure(class, format!("the endpoint reported {kind}: {message}"))
}

pub(crate) fn class_of_status(status: u16, text: &str) -> ModelFailureClass {
    use ModelFailureClass as Class;
    match status {
        413 => Class::ContextTooLong,
        400 | 422 if says_too_long(text) => Class::ContextTooLong,
        401 => Class::Authentication,
        402 | 403 => Class::Permission,
        404 => Class::NotFound,
        408 => Class::Timeout,
        429 => Class::RateLimit,
        503 | 529 => Class::Overloaded,
        500..=599 => Class::Server,
        _ => Class::InvalidRequest,
    }
}

/// The failure that an HTTP status and body mean.
pub(crate) fn from_status(status: u16, headers: &HeaderMap, body: &str, route: &Route) -> AttemptFailure {
    let detail = error_detail(body);
    let mut class = class_of_status(status, body);
    if class == ModelFailureClass::InvalidRequest && body.contains("overloaded_error") {
        class = ModelFailureClass::Overloaded;
    }
    let mut message = format!("{} answered {status}: {detail}", route.place());
    if let Some(advice) = advice(class, status, headers, route) {
        message.push_str(". ");
        message.push_str(&advice);
    }
    AttemptFailure {
        failure: ModelFailure {
            class,
            message: route.mask(&message),
            status: Some(status),
            retry_after_ms: retry_after(headers),
        },
        should_retry: match headers.get("x-should-retry").and_then(|value| value.to_str().ok()) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        },
    }
}

fn advice(class: ModelFailureClass, status: u16, headers: &HeaderMap, route: &Route) -> Option<String> {
    use ModelFailureClass as Class;
    match class {
        Class::Authentication => Some(format!("Check the key: {}", route.key_origin())),
        Class::NotFound => Some(format!(
            "Check the model id `{}` and the base URL; --list-models shows what the endpoint offers",
            route.model
        )),
        Class::InvalidRequest if (300..400).contains(&status) => headers
            .get("location")
            .and_then(|value| value.to_str().ok())
            .map(|target| format!("It redirects to {target}; put the final address into the base URL")),
        Class::Permission
        | Class::RateLimit
        | Class::Overloaded
        | Class::ContextTooLong
        | Class::InvalidRequest
        | Class::Server
        | Class::Network
        | Class::Timeout
        | Class::MalformedStream
        | Class::Configuration => None,
    }
}

/// The words of an error body: `error.message` with its type, or the first part of whatever came.
fn error_detail(body: &str) -> String {
    #[derive(Deserialize)]
    struct Wrapper {
        error: ErrorBody,
    }
    if let Ok(Wrapper { error }) = serde_json::from_str::<Wrapper>(body)
        && let Some(message) = &error.message
    {
        return match error.kind.as_deref().or(error.code_text()) {
            Some(kind) => format!("{kind}: {message}"),
            None => message.clone(),
        };
    }
    if body.trim().is_empty() { "(no text)".into() } else { excerpt(body) }
}

/// The first 200 characters on one line.
pub(crate) fn excerpt(text: &str) -> String {
    let mut short: String =
        text.trim().chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.trim().chars().nth(200).is_some() {
        short.push('…');
    }
    short
}

/// How long the endpoint asks to wait, from `retry-after-ms` or `retry-after` (seconds or a date).
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return to_milliseconds(milliseconds);
    }
    let value = text("retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return to_milliseconds(seconds * 1000.0);
    }
    let date = httpdate::parse_http_date(value).ok()?;
    let wait = date.duration_since(std::time::SystemTime::now()).unwrap_or_default();
    u64::try_from(wait.as_millis()).ok()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to a day before the cast"
)]
fn to_milliseconds(value: f64) -> Option<u64> {
    value.is_finite().then(|| value.clamp(0.0, 86_400_000.0) as u64)
}

/// The failure that a broken or impossible connection means.
pub(crate) fn from_network(error: &reqwest::Error, route: &Route) -> ModelFailure {
    if error.is_timeout() && !error.is_connect() {
        return failure(ModelFailureClass::Timeout, format!("{} did not answer in time", route.place()));
    }
    let mut cause = String::new();
    let mut source: Option<&dyn Error> = error.source();
    while let Some(inner) = source {
        // The innermost cause is what the system said; the outer ones only wrap it.
        cause = inner.to_string();
        source = inner.source();
    }
    if cause.is_empty() {
        cause = "unknown network error".into();
    }
    let place = route.place();
    let message = if error.is_connect() {
        format!(
            "cannot connect to {place}: {cause}. Check the base URL, that the server runs and is reachable, and HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
        )
    } else {
        format!("the connection to {place} broke: {cause}. Check the network and any proxy in between")
    };
    failure(ModelFailureClass::Network, route.mask(&message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_understands_seconds_milliseconds_and_dates() {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "1.5".parse().unwrap());
        assert_eq!(retry_after(&headers), Some(1500));
        headers.insert("retry-after-ms", "20".parse().unwrap());
        assert_eq!(retry_after(&headers), Some(20));
        let mut dated = HeaderMap::new();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(30);
        dated.insert("retry-after", httpdate::fmt_http_date(later).parse().unwrap());
        let wait = retry_after(&dated).unwrap();
        assert!((20_000..=30_000).contains(&wait), "{wait}");
        dated.insert("retry-after", "soon".parse().unwrap());
        assert_eq!(retry_after(&dated), None);
    }

    #[test]
    fn excerpt_is_short_and_one_line() {
        let long = format!("<html>\n{}", "x".repeat(500));
        let short = excerpt(&long);
        assert_eq!(short.chars().count(), 201);
        assert!(!short.contains('\n'));
    }

    #[test]
    fn an_error_may_be_only_a_text() {
        assert_eq!(error_detail(r#"{"error":"model not loaded"}"#), "model not loaded");
        assert_eq!(error_detail(r#"{"error":{"message":"m","code":7}}"#), "m");
        assert_eq!(error_detail(r#"{"error":[1]}"#), r#"{"error":[1]}"#);
        assert_eq!(error_detail(" "), "(no text)");
    }

    #[test]
    fn events_are_classified_by_type_code_and_words() {
        let event = |kind: &str, message: &str| ErrorBody {
            kind: Some(kind.into()),
            message: Some(message.into()),
            code: None,
        };
        assert_eq!(from_event(&event("overloaded_error", "busy")).class, ModelFailureClass::Overloaded);
        assert_eq!(
            from_event(&event("invalid_request_error", "prompt is too long: 5 > 3")).class,
            ModelFailureClass::ContextTooLong
        );
        assert_eq!(from_event(&event("brand_new", "?")).class, ModelFailureClass::Server);
    }
}
