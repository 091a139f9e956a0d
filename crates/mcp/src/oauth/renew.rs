//! Renewing a token: once for all requests of this process and for all processes. Under the lock the store is read
//! again, so that a refresh token that the server takes only once is used only once.

use std::sync::Arc;

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, CredentialStore as _, InMemoryCredentialStore, StoredCredentials,
};
use secrecy::SecretString;

use super::authorizer::Inner;
use super::flow::Discovered;
use super::problem::{explained, failed};
use super::store::{Entry, KeptToken, Registration, now};
use crate::authorization::AuthorizationError;

impl Inner {
    /// Another token than `stale`: one that is there already, or a renewed one. `None` when a person must grant access
    /// anew. Continues when the caller stops waiting: a token that was renewed must be kept.
    pub(super) async fn renew(
        self: Arc<Self>,
        stale: SecretString,
    ) -> Result<Option<KeptToken>, AuthorizationError> {
        let work = tokio::spawn(async move {
            let _one = self.renewing.lock().await;
            if let Some(token) = self.other_than(&stale) {
                return Ok(Some(token));
            }
            self.renew_across_processes(&stale).await
        });
        work.await.unwrap_or_else(|error| Err(failed(&format!("the renewal ended early: {error}"))))
    }

    async fn renew_across_processes(
        &self,
        stale: &SecretString,
    ) -> Result<Option<KeptToken>, AuthorizationError> {
        let Some(entry) = self.look().await? else { return Ok(None) };
        if let Some(token) = self.other_than(stale) {
            return Ok(Some(token));
        }
        let Some(client) = self.client_of(&entry) else { return Ok(None) };
        if entry.token.as_ref().is_none_or(|token| token.refresh_token.is_none()) {
            return Ok(None);
        }
        // Asked before the lock is taken: a slow server keeps only its own users waiting.
        let Discovered { mut manager, metadata } = self.discover(None).await?;
        if entry.client.is_some() && entry.issuer != metadata.issuer {
            // The token belongs to an issuer that the server no longer names; it is not sent to the new one.
            return Ok(None);
        }
        self.configure(&mut manager, metadata, &client)?;

        let locked = self.vault.lock(&self.key).await?;
        let Some(entry) = self.look().await? else { return Ok(None) };
        if let Some(token) = self.other_than(stale) {
            return Ok(Some(token));
        }
        let Some(token) = entry.token.clone() else { return Ok(None) };
        match refresh(&mut manager, &client, &token).await {
            Ok(renewed) => {
                let kept = Entry { token: Some(renewed.clone()), ..entry };
                self.keep(&locked, kept).await?;
                Ok(Some(renewed))
            }
            Err(AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired) => {
                // It will not be taken the next time either; the client stays known.
                self.keep(&locked, Entry { token: None, ..entry }).await?;
                Ok(None)
            }
            Err(error) => Err(explained(&error)),
        }
    }

    /// The client that a token was issued to. Without a registration it can only be the configured one.
    fn client_of(&self, entry: &Entry) -> Option<Registration> {
        let configured = self.config.client_id.as_ref();
        match (&entry.client, configured) {
            (Some(client), Some(configured)) if client.client_id != *configured => None,
            (Some(client), _) => Some(client.clone()),
            (None, Some(configured)) => Some(Registration {
                client_id: configured.clone(),
                client_secret: None,
                redirect_uri: self.key.clone(),
                auth_method: None,
            }),
            (None, None) => None,
        }
    }
}

/// One request to the token endpoint.
async fn refresh(
    manager: &mut AuthorizationManager,
    client: &Registration,
    token: &KeptToken,
) -> Result<KeptToken, AuthError> {
    let unreadable = || AuthError::TokenRefreshFailed("the token cannot be read".to_owned());
    let response = token.to_response().ok_or_else(unreadable)?;
    let store = InMemoryCredentialStore::new();
    let credentials =
        StoredCredentials::new(client.client_id.clone(), Some(response), token.scopes.clone(), None);
    store.save(credentials).await?;
    manager.set_credential_store(store);
    let renewed = manager.refresh_token().await?;
    KeptToken::from_response(&renewed, &token.scopes, now())
        .map_err(|problem| AuthError::TokenRefreshFailed(problem.to_owned()))
}
