//! Answers that are not errors.

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use super::errors::ApiError;
use crate::store::KeptAnswer;

/// An answer of JSON.
///
/// # Errors
/// When the value cannot be written as JSON.
pub fn json(value: &impl Serialize) -> Result<Response, ApiError> {
    let body = serde_json::to_vec(value).map_err(|_| ApiError::internal())?;
    Ok(rendered(KeptAnswer { status: StatusCode::OK.as_u16(), body }))
}

/// An answer that was rendered before.
#[must_use]
pub fn rendered(answer: KeptAnswer) -> Response {
    let mut response = Response::new(answer.body.into());
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
