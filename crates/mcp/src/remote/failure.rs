//! What `rmcp` reports, in our terms: a refusal for want of credentials, an error of the protocol, a connection that is
//! gone, or a failure in words. The causes of an error are walked, because the challenge of a server lies at their end.

use std::error::Error;

use rmcp::model::{ErrorData, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpError,
};

use super::events::shortened;
use super::fault::{CLOSED, Fault};
use super::http::HttpProblem;
use crate::PeerError;
use crate::peer::Challenge;

/// Characters of a server's own words that are passed on.
const LONGEST_WORDS: usize = 4_000;

/// What `rmcp`'s transport reports of ours.
type Carried = StreamableHttpError<HttpProblem>;

/// Why a request failed.
pub(super) fn of_request(error: ServiceError, fault: &Fault) -> PeerError {
    match error {
        ServiceError::McpError(error) => refused(&error),
        ServiceError::TransportSend(error) => of_cause(error.error.as_ref(), fault),
        ServiceError::TransportClosed => gone(fault),
        ServiceError::Cancelled { .. } => PeerError::Failed("the call was interrupted".to_owned()),
        other => PeerError::Failed(other.to_string()),
    }
}

/// Why a connection did not come about.
pub(super) fn of_start(error: ClientInitializeError, fault: &Fault) -> PeerError {
    let mapped = match error {
        ClientInitializeError::TransportError { error, .. } => of_cause(error.error.as_ref(), fault),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return of_start(*fallback, fault),
        ClientInitializeError::JsonRpcError(error) => refused(&error),
        ClientInitializeError::ConnectionClosed(_) => gone(fault),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            PeerError::Failed(format!(
                "the server speaks no revision of the protocol that is known here; it offers: {}",
                shortened(&versions.join(", "), LONGEST_WORDS)
            ))
        }
        ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            PeerError::Failed("the server answered the handshake with a wrong id".to_owned())
        }
        ClientInitializeError::ExpectedInitResult(_) | ClientInitializeError::ExpectedInitResponse(_) => {
            PeerError::Failed("the server's answer to the handshake cannot be read".to_owned())
        }
        other => PeerError::Failed(shortened(&other.to_string(), LONGEST_WORDS)),
    };
    match (mapped, fault.last_challenge()) {
        // Before anything stood, what went wrong last is the reason.
        (PeerError::Closed(problem), None) if problem == CLOSED => PeerError::Failed(fault.best_text()),
        // The refusal may have hit a message without an answer, such as a notification.
        (PeerError::Closed(_), Some(challenge)) => PeerError::NeedsAuth(challenge),
        // Nothing was ever there that could be gone.
        (PeerError::Closed(problem), None) => PeerError::Failed(problem),
        (mapped, _) => mapped,
    }
}

/// The server's own error.
fn refused(error: &ErrorData) -> PeerError {
    PeerError::Refused { code: i64::from(error.code.0), message: shortened(&error.message, LONGEST_WORDS) }
}

/// The connection is gone, for the reason that was written down.
pub(super) fn gone(fault: &Fault) -> PeerError {
    PeerError::Closed(fault.text().unwrap_or_else(|| CLOSED.to_owned()))
}

/// Walks the causes of what a transport reported.
pub(super) fn of_cause(error: &(dyn Error + 'static), fault: &Fault) -> PeerError {
    let header = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let mut cause = Some(error);
    while let Some(current) = cause {
        if let Some(required) = current.downcast_ref::<AuthRequiredError>() {
            let www_authenticate = header(&required.www_authenticate_header);
            return PeerError::NeedsAuth(Challenge { status: 401, www_authenticate });
        }
        if let Some(lacking) = current.downcast_ref::<InsufficientScopeError>() {
            let www_authenticate = header(&lacking.www_authenticate_header);
            return PeerError::NeedsAuth(Challenge { status: 403, www_authenticate });
        }
        if let Some(problem) = current.downcast_ref::<HttpProblem>() {
            return of_problem(problem);
        }
        if let Some(problem) = client_problem(current) {
            return of_problem(problem);
        }
        if let Some(StreamableHttpError::TransportChannelClosed) = current.downcast_ref::<Carried>() {
            return gone(fault);
        }
        if current.downcast_ref::<std::io::Error>().is_some() {
            return gone(fault);
        }
        cause = current.source();
    }
    match fault.text() {
        Some(reason) => PeerError::Closed(reason),
        None => PeerError::Failed(shortened(&error.to_string(), LONGEST_WORDS)),
    }
}

/// `rmcp` wraps our problem without calling it its cause.
fn client_problem<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a HttpProblem> {
    match error.downcast_ref::<Carried>()? {
        StreamableHttpError::Client(problem) => Some(problem),
        _ => None,
    }
}

/// A problem of a request over HTTP.
pub(super) fn of_problem(problem: &HttpProblem) -> PeerError {
    match problem {
        HttpProblem::Refused(challenge) => PeerError::NeedsAuth(challenge.clone()),
        HttpProblem::Unreachable(_) | HttpProblem::Broken(_) => PeerError::Closed(problem.to_string()),
        HttpProblem::Redirect(_)
        | HttpProblem::Status { .. }
        | HttpProblem::TooLarge(_)
        | HttpProblem::Unreadable(_)
        | HttpProblem::Credentials(_) => PeerError::Failed(problem.to_string()),
    }
}

/// True when a server refused the first message in the way that one does which only knows legacy events.
pub(super) fn is_legacy(error: &ClientInitializeError) -> bool {
    let ClientInitializeError::TransportError { error, .. } = error else { return false };
    matches!(client_problem(error.error.as_ref()), Some(HttpProblem::Status { status: 404 | 405, .. }))
}
