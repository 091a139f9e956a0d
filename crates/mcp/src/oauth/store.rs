//! What is kept for a server, and the trait of the places it is kept in. Secrets are written out here and nowhere else;
//! none of these types shows one when it is printed.

use rmcp::transport::auth::OAuthTokenResponse;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};

use crate::authorization::{AuthorizationError, OAuthToken};

/// Tokens of an hour are renewed this long before they end; shorter ones when a quarter of their life is left.
const RENEW_BEFORE_SECONDS: u64 = 60;

/// Why a place cannot be used. No text contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

impl From<StoreError> for AuthorizationError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.0)
    }
}

/// A client as an authorization server knows it. Kept beside the tokens: without it nothing can be renewed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Registration {
    /// The client.
    pub client_id: String,
    /// Its secret, when it has one.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "written_option")]
    pub client_secret: Option<SecretString>,
    /// The callback it was registered with; another one needs another registration.
    pub redirect_uri: String,
    /// How it proves who it is, in the words of the registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_method: Option<String>,
}

/// A token as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptToken {
    /// What is sent.
    #[serde(serialize_with = "written")]
    pub access_token: SecretString,
    /// Gets another one; used once when the server gives a new one for it.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "written_option")]
    pub refresh_token: Option<SecretString>,
    /// What it is good for.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Unix seconds.
    pub received_at: u64,
    /// Unix seconds; `None` when the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

/// Everything kept for one server and one issuer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// The server's address.
    pub server: String,
    /// Who issued it; `None` for a token that a host brought, and for servers without metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The client it was issued to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Registration>,
    /// The token; at most one entry of a server has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<KeptToken>,
}

/// A place for tokens. Calls block, so they are made where that is allowed.
pub trait TokenStore: Send + Sync {
    /// Everything kept for a server, whatever the issuer.
    fn entries(&self, server: &str) -> Result<Vec<Entry>, StoreError>;
    /// Puts these in the place of everything kept for the server; nothing is kept when there are none.
    fn replace(&self, server: &str, entries: &[Entry]) -> Result<(), StoreError>;
}

impl KeptToken {
    /// From what a host brought.
    pub(super) fn from_host(token: &OAuthToken, now: u64) -> Self {
        let expires_at = token.expires_at.or_else(|| Some(now.saturating_add(token.expires_in?)));
        Self {
            access_token: SecretString::from(token.access_token.clone()),
            refresh_token: token.refresh_token.clone().map(SecretString::from),
            scopes: words(token.scope.as_deref()),
            received_at: now,
            expires_at,
        }
    }

    /// From a token endpoint. An answer that names no scope granted what was `requested`. The error says why the answer
    /// cannot be used.
    pub(super) fn from_response(
        response: &OAuthTokenResponse,
        requested: &[String],
        now: u64,
    ) -> Result<Self, &'static str> {
        let token = serde_json::to_value(response).and_then(serde_json::from_value);
        let token: OAuthToken = token.map_err(|_| "the token endpoint's answer cannot be read")?;
        if !token.is_bearer() {
            return Err("the token endpoint issued a token of another type than Bearer; it was dropped");
        }
        let mut kept = Self::from_host(&token, now);
        if token.scope.is_none() {
            kept.scopes = requested.to_vec();
        }
        Ok(kept)
    }

    /// As the protocol library holds it.
    pub(super) fn to_response(&self) -> Option<OAuthTokenResponse> {
        serde_json::from_value(serde_json::json!({
            "access_token": self.access_token.expose_secret(),
            "token_type": "Bearer",
            "refresh_token": self.refresh_token.as_ref().map(ExposeSecret::expose_secret),
        }))
        .ok()
    }

    /// True when it has ended.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// True when it ends so soon that it should be renewed before it is sent.
    pub(super) fn ends_soon(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| {
            let life = end.saturating_sub(self.received_at);
            end <= now.saturating_add(RENEW_BEFORE_SECONDS.min(life / 4))
        })
    }

    /// True when both are the same token.
    pub(super) fn is(&self, access_token: &SecretString) -> bool {
        self.access_token.expose_secret() == access_token.expose_secret()
    }
}

impl Entry {
    /// Every secret of the entry.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        let token = self
            .token
            .iter()
            .flat_map(|token| std::iter::once(&token.access_token).chain(token.refresh_token.as_ref()));
        token.chain(self.client.iter().filter_map(|client| client.client_secret.as_ref()))
    }
}

/// Unix seconds.
pub(super) fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or_default()
}

/// A list of scopes as it is written in headers and answers.
pub(super) fn words(scopes: Option<&str>) -> Vec<String> {
    scopes.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn written<S: Serializer>(secret: &SecretString, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(secret.expose_secret())
}

fn written_option<S: Serializer>(secret: &Option<SecretString>, out: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(ExposeSecret::expose_secret).serialize(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(received_at: u64, expires_at: Option<u64>) -> KeptToken {
        KeptToken {
            access_token: SecretString::from("access-secret"),
            refresh_token: Some(SecretString::from("refresh-secret")),
            scopes: vec!["a".to_owned()],
            received_at,
            expires_at,
        }
    }

    #[test]
    fn only_bearer_tokens_are_kept() {
        for (kind, kept) in [("Bearer", true), ("bearer", true), ("mac", false), ("N_A", false), ("", false)]
        {
            let answer = serde_json::json!({ "access_token": "t", "token_type": kind });
            let response: OAuthTokenResponse = serde_json::from_value(answer).unwrap();
            assert_eq!(KeptToken::from_response(&response, &[], 0).is_ok(), kept, "{kind}");
        }
    }

    #[test]
    fn tokens_are_renewed_shortly_before_they_end() {
        assert!(!token(0, None).ends_soon(u64::MAX));
        assert!(!token(1_000, Some(4_600)).ends_soon(4_539));
        assert!(token(1_000, Some(4_600)).ends_soon(4_540));
        assert!(!token(1_000, Some(4_600)).is_over(4_599));
        assert!(token(1_000, Some(4_600)).is_over(4_600));
        // One of eight seconds is not renewed at once.
        assert!(!token(1_000, Some(1_008)).ends_soon(1_005));
        assert!(token(1_000, Some(1_008)).ends_soon(1_006));
    }

    #[test]
    fn nothing_printed_shows_a_secret() {
        let client = Registration {
            client_id: "id".to_owned(),
            client_secret: Some(SecretString::from("client-secret")),
            redirect_uri: String::new(),
            auth_method: None,
        };
        let entry =
            Entry { server: "s".to_owned(), issuer: None, client: Some(client), token: Some(token(0, None)) };
        let shown = format!("{entry:?}");
        assert!(!shown.contains("-secret"), "{shown}");
        assert_eq!(entry.secrets().count(), 3);
        let written = serde_json::to_string(&entry).unwrap();
        let read: Entry = serde_json::from_str(&written).unwrap();
        assert_eq!(read.token.unwrap().access_token.expose_secret(), "access-secret");
    }
}
