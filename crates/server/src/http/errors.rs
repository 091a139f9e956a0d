//! Errors as clients read them: one envelope with the fields of both dialects.

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::store::DbError;

/// Asks clients not to repeat the request.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// An answer that is an error.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: StatusCode,
    /// The documented type.
    pub kind: &'static str,
    /// What went wrong, and what to do.
    pub message: String,
    /// The field that is wrong.
    pub field: Option<String>,
    /// A stable name for programs.
    pub code: Option<&'static str>,
    /// Seconds after which the request may be repeated.
    pub retry_after: Option<u64>,
    /// The state of the thing, where the documented interface has it.
    pub current_state: Option<Box<Value>>,
}

impl ApiError {
    /// An error of this kind.
    pub fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            message: message.into(),
            field: None,
            code: None,
            retry_after: None,
            current_state: None,
        }
    }

    /// The request cannot be understood.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// No one knows the token.
    #[must_use]
    pub fn unauthenticated() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "authentication_error", "Invalid API key or token.")
    }

    /// The token may not do this.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found_error", message)
    }

    /// Something failed here.
    #[must_use]
    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "api_error",
            "internal error. This is a bug; please report it.",
        )
    }

    /// Something does not work at this moment.
    pub fn unavailable(message: impl Into<String>) -> Self {
        let mut error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "api_error", message);
        error.retry_after = Some(1);
        error
    }

    /// The body of the answer.
    #[must_use]
    pub fn body(&self, request_id: &str) -> Value {
        let mut error = json!({ "type": self.kind, "message": self.message });
        if let Some(field) = &self.field {
            error["param"] = json!(field);
        }
        if let Some(code) = self.code {
            error["details"] = json!({ "error_code": code });
        }
        if let Some(state) = &self.current_state {
            error["details"]["current_state"] = Value::clone(state);
        }
        json!({ "type": "error", "request_id": request_id, "error": error })
    }

    /// The answer, for a request of this id.
    #[must_use]
    pub fn render(&self, request_id: &str) -> Response {
        let mut response = Response::new(self.body(request_id).to_string().into());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::CONFLICT {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The edge renders the error, because it knows the request's id.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        let mut error = Self::invalid(problem.message);
        error.field = problem.field;
        error.code = problem.code;
        error
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound(message) => Self::not_found(message),
            Refusal::Conflict { message, code } => {
                // Some conflicts have types of their own.
                let kind = code.filter(|code| code.ends_with("_error")).unwrap_or("conflict_error");
                let mut error = Self::new(StatusCode::CONFLICT, kind, message);
                error.code = code;
                error
            }
            Refusal::Invalid(problem) => problem.into(),
        }
    }
}

/// What a store reports beside refusals is for the operator; clients learn that it does not work.
impl From<DbError> for ApiError {
    fn from(error: DbError) -> Self {
        match error {
            DbError::Refused(refusal) => refusal.into(),
            DbError::Unavailable(_) | DbError::Fenced(_) => {
                Self::unavailable("The database does not answer at this moment. Try again.")
            }
            DbError::Corrupt(_) | DbError::Schema { .. } => Self::internal(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_has_the_fields_of_both_dialects() {
        let problem = Problem::field("name", "is required").with_code("invalid_metadata");
        let body = ApiError::from(problem).body("r1");
        let expected = json!({ "type": "error", "request_id": "r1", "error": {
            "type": "invalid_request_error", "message": "`name` is required", "param": "name",
            "details": { "error_code": "invalid_metadata" } } });
        assert_eq!(body, expected);
        let conflict = ApiError::from(Refusal::conflict("no")).render("r1");
        assert_eq!(conflict.headers()[SHOULD_RETRY], "false");
        let busy = ApiError::from(DbError::Unavailable("disk /secret/path full".to_owned()));
        assert!(!busy.message.contains("secret"), "paths of the host stay here");
        assert_eq!(busy.render("r1").headers()[header::RETRY_AFTER], "1");
    }
}
