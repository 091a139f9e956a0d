//! Answers that are not errors.

use axum::body::Body;
use axum::response::Response;
use futures::Stream;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use super::errors::ApiError;
use crate::store::{DbError, KeptAnswer};

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

/// An answer of bytes that a client saves under a name. A browser shows them in no case.
pub fn bytes(
    content: impl Stream<Item = Result<bytes::Bytes, DbError>> + Send + 'static,
    length: u64,
    media_type: &str,
    name: &str,
) -> Response {
    let mut response = Response::new(Body::from_stream(content));
    let headers = response.headers_mut();
    let octets = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(media_type).unwrap_or(octets));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    let plain: String = name
        .chars()
        .map(
            |each| if each.is_ascii_graphic() && !"\"\\;".contains(each) || each == ' ' { each } else { '_' },
        )
        .collect();
    let encoded: String =
        url::form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20");
    let disposition = format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}");
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    response
}
