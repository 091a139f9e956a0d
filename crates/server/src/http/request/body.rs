//! Bodies of requests: bounded in size, time and depth, and JSON. A content type is not asked for.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::StatusCode;
use serde_json::Value;

use crate::http::errors::ApiError;

/// The most bytes of a body.
pub(super) const LARGEST: usize = 32 * 1024 * 1024;
/// How long it may take to arrive.
const PATIENCE: Duration = Duration::from_secs(60);
/// How much of a body that is refused is still taken, and how long.
const MOST_DISCARDED: usize = 256 * 1024 * 1024;
const DISCARD_PATIENCE: Duration = Duration::from_secs(10);
/// How deep JSON may be nested.
const DEEPEST: usize = 64;

/// Reads a body.
pub(super) async fn read(body: Body, announced: Option<u64>) -> Result<Bytes, ApiError> {
    let too_large =
        || ApiError::invalid(format!("The request body is larger than {} MiB.", LARGEST / 1024 / 1024));
    let mut stream = body.into_data_stream();
    if announced.is_some_and(|length| length > LARGEST as u64) {
        discard(stream);
        return Err(too_large());
    }
    let whole = async {
        let mut bytes = BytesMut::new();
        while let Some(piece) = stream.next().await {
            let piece =
                piece.map_err(|_| ApiError::invalid("The request body ended before it was complete."))?;
            if bytes.len() + piece.len() > LARGEST {
                return Err(too_large());
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.freeze())
    };
    let read = tokio::time::timeout(PATIENCE, whole).await;
    match read {
        Ok(Err(error)) => {
            discard(stream);
            Err(error)
        }
        Ok(bytes) => bytes,
        Err(_) => Err(ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "invalid_request_error",
            format!("The request body did not arrive within {} s.", PATIENCE.as_secs()),
        )),
    }
}

/// Takes what still arrives of a body that is refused, for a while. A connection that is closed before is reset by the
/// system, and most clients then never see the answer.
fn discard(mut stream: BodyDataStream) {
    tokio::spawn(async move {
        let mut taken = 0;
        let rest = async {
            while let Some(Ok(piece)) = stream.next().await {
                taken += piece.len();
                if taken > MOST_DISCARDED {
                    return;
                }
            }
        };
        // One that is slower is cut off.
        let _ = tokio::time::timeout(DISCARD_PATIENCE, rest).await;
    });
}

/// Reads JSON; an empty body is an empty object.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, ApiError> {
    if bytes.trim_ascii().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    if depth(bytes) > DEEPEST {
        return Err(ApiError::invalid(format!(
            "The request body is nested more than {DEEPEST} levels deep."
        )));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        if error.is_eof() {
            ApiError::invalid("Request body must be valid JSON.")
        } else {
            ApiError::invalid(format!("Request body must be valid JSON: {error}."))
        }
    })
}

/// How deep a text is nested, whether or not it is JSON.
fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in bytes {
        match (in_text, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b'{' | b'[') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            (true | false, _) => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_of_texts() {
        assert_eq!(depth(br#"{"a":[{"b":"[[[[\"{{{"}]}"#), 3);
        assert!(parse(format!("{}{}", "[".repeat(64), "]".repeat(64)).as_bytes()).is_ok());
        let deep = parse(format!("{}{}", "[".repeat(65), "]".repeat(65)).as_bytes()).unwrap_err();
        assert!(deep.message.contains("nested"));
        assert!(parse(&b"[".repeat(1_000_000)).is_err());
    }

    #[test]
    fn bodies_are_json_or_empty() {
        assert_eq!(parse(b" \n").unwrap(), serde_json::json!({}));
        assert_eq!(parse(b"{\"a\":").unwrap_err().message, "Request body must be valid JSON.");
        for wrong in [&b"{,}"[..], b"\xff\xfe", b"nul", b"{} {}", b"{\"a\":\"\xff\"}"] {
            assert_eq!(parse(wrong).unwrap_err().kind, "invalid_request_error");
        }
    }
}
