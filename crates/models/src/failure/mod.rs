//! Classifies what went wrong at an endpoint: HTTP statuses, error bodies, error events and network
//! errors. Messages are for people: they carry the endpoint's own words and what to check, and never a
//! key.

mod meaning;

use std::error::Error;

use ::http::HeaderMap;
use qoder_types::{ModelFailure, ModelFailureClass};
use serde::Deserialize;
use serde_json::Value;

use self::meaning::{class_of_words, retry_hint, says_too_long};
use crate::routes::Route;

/// A failed attempt, with the endpoint's own opinion on trying again.
#[derive(Debug)]
pub(crate) struct AttemptFailure {
    pub(crate) failure: ModelFailure,
    /// From `x-should-retry`; `None` leaves it to the class.
    pub(crate) should_retry: Option<bool>,
    /// True when nothing listens at the address.
    pub(crate) is_refused: bool,
    /// The status and the words of a response that was an error.
    pub(crate) response: Option<(u16, String)>,
}

impl From<ModelFailure> for AttemptFailure {
    fn from(failure: ModelFailure) -> Self {
        Self { failure, should_retry: None, is_refused: false, response: None }
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
#[serde(from = "Value")]
pub(crate) struct ErrorBody {
    pub(crate) kind: Option<String>,
    pub(crate) message: Option<String>,
    /// Some endpoints send a number here.
    pub(crate) code: Option<Value>,
}

impl From<Value> for ErrorBody {
    fn from(value: Value) -> Self {
        let fields = match value {
            Value::Object(fields) => fields,
            Value::String(message) if !message.is_empty() => {
                return Self { message: Some(message), ..Self::default() };
            }
            Value::String(_) | Value::Array(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {
                return Self::default();
            }
        };
        let text = |name: &str| match fields.get(name)? {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text.clone()),
            nested @ (Value::Object(_) | Value::Array(_)) => Some(nested.to_string()),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        };
        Self {
            kind: text("type").or_else(|| text("status")),
            message: text("message").or_else(|| text("detail")),
            code: ["code", "status", "status_code"]
                .iter()
                .filter_map(|name| fields.get(*name))
                .find(|code| code.is_number() || code.as_str().is_some_and(|text| !text.is_empty()))
                .cloned(),
        }
    }
}

impl ErrorBody {
    fn code_text(&self) -> Option<&str> {
        self.code.as_ref().and_then(Value::as_str)
    }

    /// The code where it is the number of a failed HTTP status.
    fn status(&self) -> Option<u16> {
        let code = self.code.as_ref()?;
        let number = match code {
            Value::String(text) => text.trim().parse().ok()?,
            other => other.as_u64()?,
        };
        u16::try_from(number).ok().filter(|status| (400..600).contains(status))
    }

    /// True when it says nothing at all, as where a field `error` is always there.
    pub(crate) fn is_empty(&self) -> bool {
        self.kind.is_none() && self.message.is_none() && self.code.is_none()
    }
}

/// The error that a JSON text means which is no reply: under `error`, or as the text itself, alone or in a list.
pub(crate) fn refusal(text: &str) -> Option<ErrorBody> {
    let value = match serde_json::from_str(text).ok()? {
        Value::Array(list) => list.into_iter().next()?,
        other => other,
    };
    if let Some(inner) = value.get("error") {
        let mut error = ErrorBody::from(inner.clone());
        if !error.is_empty() {
            let outer = ErrorBody::from(value);
            error.message = error.message.or(outer.message);
            error.code = error.code.or(outer.code);
            return Some(error);
        }
    }
    let is_named_error = ["object", "type"].iter().any(|name| value.get(*name).is_some_and(|v| v == "error"));
    let mut error = ErrorBody::from(value);
    error.kind = error.kind.filter(|kind| kind != "error");
    (is_named_error || (error.message.is_some() && error.status().is_some())).then_some(error)
}

fn class_of_kind(kind: &str) -> Option<ModelFailureClass> {
    use ModelFailureClass as Class;
    Some(match kind {
        "authentication_error" | "invalid_api_key" => Class::Authentication,
        "permission_error" => Class::Permission,
        "billing_error" => Class::Quota,
        "not_found_error" | "model_not_found" => Class::NotFound,
        "rate_limit_error" | "rate_limit_exceeded" => Class::RateLimit,
        "insufficient_quota" => Class::Quota,
        "overloaded_error" | "server_is_overloaded" | "slow_down" => Class::Overloaded,
        "request_too_large" | "context_length_exceeded" | "exceed_context_size_error" => {
            Class::ContextTooLong
        }
        "invalid_request_error" | "invalid_prompt" => Class::InvalidRequest,
        "unavailable_error" => Class::Overloaded,
        "api_error" | "server_error" | "internal_error" | "internal_server_error" => Class::Server,
        "timeout_error" => Class::Timeout,
        _ => return None,
    })
}

/// The failure that an `error` event inside a stream means.
pub(crate) fn from_event(error: &ErrorBody) -> ModelFailure {
    use ModelFailureClass as Class;
    let message = error.message.clone().unwrap_or_else(|| "(no text)".into());
    let status = error.status();
    let code = error.code.as_ref().map(|code| code.as_str().map_or_else(|| code.to_string(), str::to_owned));
    let kind = error.kind.clone().or(code).unwrap_or_else(|| "error".into());
    let named = error.code_text().and_then(class_of_kind);
    let class = named
        .or_else(|| status.map(|status| class_of_status(status, &format!("{kind} {message}"))))
        .or_else(|| class_of_kind(&kind))
        .unwrap_or(Class::Server);
    let words = format!("{kind} {message}");
    let class = match class_of_words(status.unwrap_or(400), &words, &[]) {
        Some(meant) if matches!(class, Class::InvalidRequest | Class::Server | Class::RateLimit) => meant,
        Some(_) | None => class,
    };
    let class = match class {
        // Only where the words cannot be about something else, such as a limit on tokens per minute.
        Class::InvalidRequest | Class::Server
            if status.is_none() && (says_too_long(&message) || says_too_long(&kind)) =>
        {
            Class::ContextTooLong
        }
        other => other,
    };
    let retry_after_ms = waits(class).then(|| retry_hint(&message)).flatten();
    ModelFailure {
        status,
        retry_after_ms,
        ..failure(class, format!("the endpoint reported {kind}: {message}"))
    }
}

pub(crate) fn class_of_status(status: u16, text: &str) -> ModelFailureClass {
    use ModelFailureClass as Class;
    match status {
        413 => Class::ContextTooLong,
        400 | 422 | 500 if says_too_long(text) => Class::ContextTooLong,
        401 => Class::Authentication,
        402 => Class::Quota,
        403 => Class::Permission,
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
    let hint = retry_after(headers).or_else(|| retry_hint(body));
    let class = match class_of_words(status, body, route.profile().error_words) {
        // A quota that comes back by itself is a limit on the rate.
        Some(ModelFailureClass::Quota) if status == 429 && hint.is_some() => ModelFailureClass::RateLimit,
        Some(meant) => meant,
        None => class_of_status(status, body),
    };
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
            retry_after_ms: hint.filter(|_| retry_after(headers).is_some() || waits(class)),
        },
        should_retry: match headers.get("x-should-retry").and_then(|value| value.to_str().ok()) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        },
        is_refused: false,
        response: Some((status, body.to_owned())),
    }
}

/// True for classes after which waiting may help.
fn waits(class: ModelFailureClass) -> bool {
    matches!(class, ModelFailureClass::RateLimit | ModelFailureClass::Overloaded)
}

fn advice(class: ModelFailureClass, status: u16, headers: &HeaderMap, route: &Route) -> Option<String> {
    use ModelFailureClass as Class;
    match class {
        Class::Authentication => Some(format!("Check the key: {}", route.key_origin())),
        Class::NotFound => Some(format!(
            "Check the model id `{}` and the base URL; `qodercli --list-models` shows what the endpoint offers",
            route.model
        )),
        Class::InvalidRequest if (300..400).contains(&status) => headers
            .get("location")
            .and_then(|value| value.to_str().ok())
            .map(|target| format!("It redirects to {target}; put the final address into the base URL")),
        Class::Quota => Some(
            "The quota or credit of the account is used up, which no retry mends. Check its plan and billing, or use another \
             model"
                .to_owned(),
        ),
        Class::ContextTooLong => Some(
            "The conversation does not fit into the context window of the model: shorten the prompt, or use a model with a \
             larger window"
                .to_owned(),
        ),
        Class::Permission
        | Class::RateLimit
        | Class::Overloaded
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
    let error = refusal(body).or_else(|| serde_json::from_str::<ErrorBody>(body).ok()).unwrap_or_default();
    if let Some(message) = &error.message {
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

/// A request that could not be sent.
pub(crate) fn from_sending(error: &reqwest::Error, route: &Route) -> AttemptFailure {
    let mut source: Option<&dyn Error> = error.source();
    let mut is_refused = false;
    while let Some(inner) = source {
        let inner_error = inner.downcast_ref::<std::io::Error>();
        is_refused |= inner_error.is_some_and(|inner| inner.kind() == std::io::ErrorKind::ConnectionRefused);
        source = inner.source();
    }
    let should_retry = is_certificate(&innermost(error)).then_some(false);
    // An address that never takes a connection is as good as one that refuses it, and each try takes half a minute.
    is_refused |= error.is_connect() && error.is_timeout();
    AttemptFailure { is_refused, should_retry, ..from_network(error, route).into() }
}

/// True when the server closed the connection before it answered.
pub(crate) fn is_closed(error: &reqwest::Error) -> bool {
    use std::io::ErrorKind as Kind;
    if error.is_connect() || error.is_timeout() {
        return false;
    }
    let mut source: Option<&dyn Error> = error.source();
    while let Some(inner) = source {
        let kind = inner.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let is_gone = matches!(
            kind,
            Some(Kind::ConnectionReset | Kind::BrokenPipe | Kind::ConnectionAborted | Kind::UnexpectedEof)
        );
        if is_gone || inner.to_string().contains("connection closed before message completed") {
            return true;
        }
        source = inner.source();
    }
    false
}

/// What the system said; the outer errors only wrap it.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause = String::new();
    let mut source: Option<&dyn Error> = error.source();
    while let Some(inner) = source {
        cause = inner.to_string();
        source = inner.source();
    }
    if cause.is_empty() { "unknown network error".into() } else { cause }
}

/// True when the certificate of the server is not trusted.
fn is_certificate(cause: &str) -> bool {
    let cause = cause.to_ascii_lowercase();
    ["certificate", "unknownissuer", "causedasendentity", "self-signed", "self signed"]
        .iter()
        .any(|word| cause.contains(word))
}

/// What to do about a connection that could not be made.
fn connection_advice(cause: &str, route: &Route) -> String {
    let lower = cause.to_ascii_lowercase();
    let origin = format!("{}://{}", route.base().scheme(), route.place());
    if lower.contains("causedasendentity") {
        return "The certificate of the server is that of an authority: sign one for the server with it, or make it again with \
                `openssl req -x509 -addext basicConstraints=critical,CA:FALSE …`, and name it in SSL_CERT_FILE"
            .to_owned();
    }
    if is_certificate(cause) {
        return "The certificate of the server is not trusted: put it, or that of its issuer, into a file and name that in \
                SSL_CERT_FILE or NODE_EXTRA_CA_CERTS"
            .to_owned();
    }
    let is_plain = ["corrupt message", "invalidcontenttype", "invalid http version", "wrong version"];
    if route.base().scheme() == "https" && is_plain.iter().any(|word| lower.contains(word)) {
        return format!(
            "The server does not speak TLS: write `{}` as the base URL",
            origin.replacen("https://", "http://", 1)
        );
    }
    "Check the base URL, that the server runs and is reachable, and HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
        .to_owned()
}

/// The failure that a broken or impossible connection means.
pub(crate) fn from_network(error: &reqwest::Error, route: &Route) -> ModelFailure {
    if error.is_timeout() && !error.is_connect() {
        return failure(ModelFailureClass::Timeout, format!("{} did not answer in time", route.place()));
    }
    let cause = innermost(error);
    let place = route.place();
    let message = if error.is_connect() {
        format!("cannot connect to {}: {cause}. {}", route.way(), connection_advice(&cause, route))
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
