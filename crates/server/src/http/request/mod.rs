//! A request that passed the edge: who calls, in which dialect, with which parameters and body.

mod body;
mod form;
mod query;

use axum::RequestExt;
use axum::extract::{FromRequest, RawPathParams, Request};
use bytes::Bytes;
use http::{HeaderMap, Method, header};
use serde_json::Value;

use super::auth::{Principal, Scope};
use super::errors::ApiError;
use super::once;
use crate::model::dialect::Dialect;

pub use form::{FormPart, FormReader, form};
pub use query::Query;

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

impl ApiRequest {
    /// Everything but the body, and the request that still has it.
    async fn begin(mut request: Request) -> Result<(Self, Request), ApiError> {
        // A path that is not UTF-8 names nothing that is here.
        let parameters = request.extract_parts::<RawPathParams>().await;
        let parameters = parameters.map_err(|_| ApiError::not_found("There is no such path."))?;
        let parameters = parameters.iter().map(|(_, value)| value.to_owned()).collect();
        let principal =
            request.extensions_mut().remove::<Principal>().ok_or_else(ApiError::unauthenticated)?;
        let (headers, method) = (request.headers().clone(), request.method().clone());
        let uri = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
        let begun = Self {
            principal,
            dialect: dialect(&headers),
            query: Query::parse(request.uri().query().unwrap_or_default())?,
            once: if method == Method::GET { None } else { once::read_key(&headers)? },
            body: Bytes::new(),
            method,
            uri,
            parameters,
            headers,
        };
        Ok((begun, request))
    }

    /// The length that the body is announced with.
    fn announced(&self) -> Option<u64> {
        self.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok())
    }
}

impl<S: Send + Sync> FromRequest<S> for ApiRequest {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (mut begun, request) = Self::begin(request).await?;
        begun.body = body::read(request.into_body(), begun.announced()).await?;
        Ok(begun)
    }
}
