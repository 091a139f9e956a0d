//! A request that passed the edge: who calls, in which dialect, with which parameters and body.

use axum::RequestExt;
use axum::extract::{FromRequest, RawPathParams, Request};
use bytes::Bytes;
use http::{HeaderMap, Method, header};
use serde_json::Value;

use super::auth::{Principal, Scope};
use super::errors::ApiError;
use super::query::Query;
use super::{body, once};
use crate::model::dialect::Dialect;

/// A request that passed the edge.
#[derive(Debug)]
pub struct ApiRequest {
    /// Who calls.
    pub principal: Principal,
    /// In which dialect.
    pub dialect: Dialect,
    /// The method.
    pub method: Method,
    /// Path and query, as sent.
    pub uri: String,
    /// The parameters in the path, in order.
    parameters: Vec<String>,
    /// The parameters behind `?`.
    pub query: Query,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The key by which the request counts once.
    pub once: Option<String>,
}

impl ApiRequest {
    /// The parameter in the path at this place.
    #[must_use]
    pub fn parameter(&self, place: usize) -> &str {
        self.parameters.get(place).map_or("", String::as_str)
    }

    /// The body as JSON; an empty one is an empty object.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn json(&self) -> Result<Value, ApiError> {
        body::parse(&self.body)
    }

    /// Makes sure that the token may do this.
    ///
    /// # Errors
    /// When it may not.
    pub fn needs(&self, scope: Scope) -> Result<(), ApiError> {
        self.principal.needs(scope)
    }
}

/// The dialect of a request: Claude's clients say which version they speak.
pub(super) fn dialect(headers: &HeaderMap) -> Dialect {
    if headers.contains_key("anthropic-version") { Dialect::Claude } else { Dialect::Qoder }
}

impl<S: Send + Sync> FromRequest<S> for ApiRequest {
    type Rejection = ApiError;

    async fn from_request(mut request: Request, _: &S) -> Result<Self, ApiError> {
        // A path that is not UTF-8 names nothing that is here.
        let parameters = request.extract_parts::<RawPathParams>().await;
        let parameters = parameters.map_err(|_| ApiError::not_found("There is no such path."))?;
        let parameters = parameters.iter().map(|(_, value)| value.to_owned()).collect();
        let principal =
            request.extensions_mut().remove::<Principal>().ok_or_else(ApiError::unauthenticated)?;
        let (parts, content) = request.into_parts();
        let announced =
            parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let uri = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
        Ok(Self {
            principal,
            dialect: dialect(&parts.headers),
            query: Query::parse(parts.uri.query().unwrap_or_default())?,
            once: if parts.method == Method::GET { None } else { once::read_key(&parts.headers)? },
            body: body::read(content, announced).await?,
            method: parts.method,
            uri,
            parameters,
            headers: parts.headers,
        })
    }
}
