//! Requests that count once: the key of the client, what it asked for, and how the answer is rendered.

use http::{HeaderMap, StatusCode};
use ring::digest::{Context, SHA256};
use serde::Serialize;

use super::errors::ApiError;
use super::request::ApiRequest;
use crate::store::{KeptAnswer, Once, OnceKey};

const LONGEST_KEY: usize = 256;

/// The key that a request has.
pub(super) fn read_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let value = headers.get("idempotency-key").or_else(|| headers.get("x-idempotency-key"));
    let Some(value) = value else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=LONGEST_KEY).contains(&key.len()));
    key.map(|key| Some(key.to_owned())).ok_or_else(|| {
        ApiError::invalid(format!(
            "The header `Idempotency-Key` must have 1 to {LONGEST_KEY} visible ASCII characters."
        ))
    })
}

/// How an effect of a request is answered.
pub fn once<T>(request: &ApiRequest, render: impl FnOnce(&T) -> KeptAnswer + Send + 'static) -> Once<T> {
    let key = request.once.as_ref().map(|key| {
        let mut digest = Context::new(&SHA256);
        for part in [request.method.as_str().as_bytes(), request.uri.as_bytes(), &request.body] {
            digest.update(&(part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        OnceKey {
            token: request.principal.token_id.clone(),
            key: key.clone(),
            digest: digest.finish().as_ref().to_vec(),
        }
    });
    Once { key, render: Box::new(render) }
}

/// An answer of JSON that can be kept.
pub fn kept(value: &impl Serialize) -> KeptAnswer {
    KeptAnswer { status: StatusCode::OK.as_u16(), body: serde_json::to_vec(value).unwrap_or_default() }
}
