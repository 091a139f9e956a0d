//! Renewing a token at its token endpoint (OAuth 2.0, the refresh grant).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;
use url::form_urlencoded;

use crate::model::auth::{Auth, EndpointAuth, Refresh, Secrets};
use crate::model::time::Time;
use crate::outgoing::{Outgoing, OutgoingError, Reply};

/// A token that could not be renewed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenewalError {
    /// The credential has no refresh token.
    #[error("the token is over and there is no refresh token")]
    NoRefreshToken,
    /// The token endpoint did not answer.
    #[error("the token endpoint cannot be reached: {0}")]
    Connect(#[from] OutgoingError),
    /// The token endpoint refused.
    #[error("the token endpoint answered with status {}", .0.status)]
    Refused(Reply),
    /// The database does not work.
    #[error("{0}")]
    Store(String),
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<f64>,
}

/// Asks for a new token. Answers with what the credential is then.
pub(super) async fn renewed(
    outgoing: &Outgoing,
    auth: &Auth,
    secrets: &Secrets,
) -> Result<(Auth, Secrets), RenewalError> {
    let Auth::McpOauth { mcp_server_url, refresh: Some(refresh), .. } = auth else {
        return Err(RenewalError::NoRefreshToken);
    };
    let Some(refresh_token) = &secrets.refresh_token else { return Err(RenewalError::NoRefreshToken) };
    let (headers, body) = request(refresh, secrets, refresh_token);
    let reply = outgoing.post(&refresh.token_endpoint, headers, body).await?;
    let answer =
        (200..300).contains(&reply.status).then(|| serde_json::from_str::<TokenAnswer>(&reply.body).ok());
    let Some(answer) = answer.flatten().filter(|answer| !answer.access_token.is_empty()) else {
        return Err(RenewalError::Refused(reply));
    };
    let expires_at =
        answer.expires_in.filter(|seconds| seconds.is_finite() && *seconds > 0.0).map(|seconds| {
            // Longer than ten years is as good as never.
            #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
            let milliseconds = (seconds * 1000.0).min(315_360_000_000.0) as i64;
            Time::now().after(milliseconds).0
        });
    let auth =
        Auth::McpOauth { mcp_server_url: mcp_server_url.clone(), expires_at, refresh: Some(refresh.clone()) };
    let secrets = Secrets {
        token: answer.access_token,
        refresh_token: answer.refresh_token.or_else(|| secrets.refresh_token.clone()),
        client_secret: secrets.client_secret.clone(),
    };
    Ok((auth, secrets))
}

fn request(refresh: &Refresh, secrets: &Secrets, refresh_token: &str) -> (HeaderMap, String) {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "refresh_token").append_pair("refresh_token", refresh_token);
    let secret = secrets.client_secret.as_deref().unwrap_or_default();
    match refresh.token_endpoint_auth {
        EndpointAuth::None => drop(form.append_pair("client_id", &refresh.client_id)),
        EndpointAuth::ClientSecretPost => {
            form.append_pair("client_id", &refresh.client_id).append_pair("client_secret", secret);
        }
        EndpointAuth::ClientSecretBasic => {
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let pair = STANDARD.encode(format!("{}:{}", encoded(&refresh.client_id), encoded(secret)));
            if let Ok(mut value) = HeaderValue::from_str(&format!("Basic {pair}")) {
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
        }
    }
    for (key, value) in [("scope", &refresh.scope), ("resource", &refresh.resource)] {
        if let Some(value) = value {
            form.append_pair(key, value);
        }
    }
    (headers, form.finish())
}
