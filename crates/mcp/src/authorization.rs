//! Credentials of one remote server, as the rest of the crate sees them: a token to send, what to do when it is refused,
//! and the four ways in which a host may bring one. How tokens are got and kept is behind [`Authorizer`].

use futures::future::BoxFuture;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::peer::Challenge;

/// A token as hosts give it (RFC 6749's names).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuthToken {
    /// What is sent with each request.
    pub access_token: String,
    /// `Bearer` unless it says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_type: Option<String>,
    /// Gets another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// Seconds until it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
    /// Unix seconds at which it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// What it is good for, separated by spaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

impl OAuthToken {
    /// True when it is sent as a bearer token; no other type can be used.
    #[must_use]
    pub fn is_bearer(&self) -> bool {
        self.token_type.as_ref().is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"))
    }
}

impl std::fmt::Debug for OAuthToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("OAuthToken(…)")
    }
}

/// How the callback of a granted authorization came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Callback {
    /// The whole URL.
    Url(String),
    /// The two parts that matter.
    Code {
        /// The authorization code.
        code: String,
        /// The state as it came back.
        state: String,
    },
}

/// What the beginning of an authorization came to.
pub enum Begun {
    /// A token was there or could be renewed: no one has to do anything.
    Silent,
    /// A person must go to `auth_url`.
    Redirect {
        /// Where the person grants access.
        auth_url: String,
        /// The state that the callback must bring back.
        state: String,
        /// What is asked for.
        scopes: Vec<String>,
        /// Where the server describes itself, when it said so.
        resource_metadata_url: Option<String>,
        /// With our own loopback address as target: completes when the browser came back and the token is kept. `None`
        /// when the caller gave a `redirect_uri`; then [`Authorizer::finish`] is called.
        returned: Option<BoxFuture<'static, Result<(), AuthorizationError>>>,
    },
}

/// Why there is no token. No text contains one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorizationError {
    /// The server, its metadata or its token endpoint did what it must not.
    #[error("the authorization failed: {0}")]
    Failed(String),
    /// The callback does not belong to an authorization that was begun here.
    #[error("the callback does not belong to this authorization: {0}")]
    ForeignCallback(String),
    /// The person said no.
    #[error("access was denied: {0}")]
    Denied(String),
    /// The tokens cannot be kept or read.
    #[error("the stored credentials cannot be used: {0}")]
    Store(String),
}

impl AuthorizationError {
    /// A stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Failed(_) => "mcp_oauth_failed",
            Self::ForeignCallback(_) => "mcp_oauth_foreign_callback",
            Self::Denied(_) => "mcp_oauth_denied",
            Self::Store(_) => "mcp_oauth_store",
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Failed(_) => "check the server's address and its authorization server",
            Self::ForeignCallback(_) => "begin again and use the URL of that attempt",
            Self::Denied(_) => "grant access in the browser",
            Self::Store(_) => "check the owner and the mode of the token file; remove it to sign in anew",
        }
    }
}

/// The credentials of one remote server.
pub trait Authorizer: Send + Sync {
    /// The token to send now, renewed when it is about to expire; `None` without credentials.
    fn token(&self) -> BoxFuture<'static, Result<Option<SecretString>, AuthorizationError>>;
    /// The server refused a request with the token `sent`, or without one. True when another token is there now (renewed here, or by another process) and the
    /// request is worth sending again.
    fn refused(
        &self,
        sent: Option<SecretString>,
        challenge: Challenge,
    ) -> BoxFuture<'static, Result<bool, AuthorizationError>>;
    /// Begins an authorization; asks the server for its metadata. `redirect_uri` overrides our own loopback address.
    fn begin(
        &self,
        challenge: Option<Challenge>,
        redirect_uri: Option<String>,
    ) -> BoxFuture<'static, Result<Begun, AuthorizationError>>;
    /// Ends one with what came back.
    fn finish(&self, callback: Callback) -> BoxFuture<'static, Result<(), AuthorizationError>>;
    /// Takes a token that was got elsewhere.
    fn inject(&self, token: OAuthToken) -> BoxFuture<'static, Result<(), AuthorizationError>>;
    /// Forgets everything that is kept for this server.
    fn clear(&self) -> BoxFuture<'static, Result<(), AuthorizationError>>;
}
