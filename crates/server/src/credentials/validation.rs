//! Trying out a credential: its token is put to the MCP server, and renewed once when the server does not take it.

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};

use super::{Credentials, OpenedCredential, RenewalError};
use crate::model::auth::Secrets;
use crate::model::ids::TenantId;
use crate::model::time::Time;
use crate::outgoing::{OutgoingError, Reply};
use crate::secrets::DataKey;

/// The most characters of a server's answer that are shown.
const SHOWN: usize = 4_096;
const PROBE: &str = "initialize";

impl Credentials {
    /// Tries a credential for an MCP server out. Answers with what clients read.
    pub async fn validate(
        &self,
        tenant: TenantId,
        key: &DataKey,
        opened: OpenedCredential,
        server: &str,
    ) -> Value {
        let has_refresh_token = opened.secrets.refresh_token.is_some();
        let (id, vault) = (opened.credential().id, opened.credential().vault);
        let mut known = vec![opened.secrets.clone()];
        let mut probe = self.probe(server, &opened.secrets).await;
        let mut refresh = Value::Null;
        if is_refused(&probe) {
            refresh = match self.renew(tenant, key, opened).await {
                Ok(renewed) => {
                    probe = self.probe(server, &renewed.secrets).await;
                    known.push(renewed.secrets);
                    json!({ "status": "succeeded", "http_response": null })
                }
                Err(RenewalError::NoRefreshToken) => {
                    json!({ "status": "no_refresh_token", "http_response": null })
                }
                Err(RenewalError::Refused(reply)) => {
                    json!({ "status": "failed", "http_response": shown(&reply, &known) })
                }
                Err(RenewalError::Connect(_) | RenewalError::Store(_)) => {
                    json!({ "status": "connect_error", "http_response": null })
                }
            };
        }
        let status = match &probe {
            Ok(reply) if (200..300).contains(&reply.status) => "valid",
            Ok(reply) if matches!(reply.status, 401 | 403) => "invalid",
            Ok(_) | Err(_) => "unknown",
        };
        let response = probe.as_ref().ok().map(|reply| shown(reply, &known));
        json!({
            "type": "vault_credential_validation", "credential_id": id, "vault_id": vault, "status": status,
            "has_refresh_token": has_refresh_token, "refresh": refresh,
            "mcp_probe": { "method": PROBE, "http_response": response }, "validated_at": Time::now(),
        })
    }

    async fn probe(&self, server: &str, secrets: &Secrets) -> Result<Reply, OutgoingError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let bearer = HeaderValue::from_str(&format!("Bearer {}", secrets.token));
        let mut bearer = bearer.map_err(|_| OutgoingError::Failed("the token cannot be sent".to_owned()))?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
        let client = json!({ "name": "qodercli", "version": env!("CARGO_PKG_VERSION") });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": PROBE,
            "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client } });
        self.outgoing.post(server, headers, body.to_string()).await
    }
}

fn is_refused(probe: &Result<Reply, OutgoingError>) -> bool {
    probe.as_ref().is_ok_and(|reply| matches!(reply.status, 401 | 403))
}

/// An answer as clients read it, without anything secret that the server repeats.
fn shown(reply: &Reply, known: &[Secrets]) -> Value {
    let mut body = reply.body.clone();
    for secret in known.iter().flat_map(Secrets::values).filter(|secret| !secret.is_empty()) {
        body = body.replace(secret.as_str(), "[redacted]");
    }
    let short: String = body.chars().take(SHOWN).collect();
    let is_truncated = reply.is_truncated || short.len() < body.len();
    json!({ "status_code": reply.status, "content_type": reply.content_type, "body": short,
        "body_truncated": is_truncated })
}
