//! The beginning of an authorization: the server's metadata, which client we are, which scopes to ask for, and the URL
//! that a person goes to. Everything the callback will be compared with is recorded before that URL is given out.

use std::sync::Arc;
use std::time::Instant;

use qoder_http::is_loopback;
use rmcp::transport::auth::{
    AuthorizationManager, AuthorizationMetadata, OAuthClientConfig, WWWAuthenticateParams,
};
use secrecy::ExposeSecret;
use tokio::sync::oneshot;
use url::Url;

use super::authorizer::Inner;
use super::exchange::{LIFETIME, Pending};
use super::http::OAuthHttp;
use super::listener::Listener;
use super::problem::{NO_PKCE, explained, failed};
use super::registration::METHODS_FIELD;
use super::store::{Entry, Registration, now, words};
use crate::authorization::{AuthorizationError, Begun, Callback};
use crate::peer::Challenge;

/// Longer challenges are not read.
const LONGEST_CHALLENGE: usize = 16 * 1024;

/// What an authorization server says of itself, checked.
pub(super) struct Discovered {
    pub(super) manager: AuthorizationManager,
    pub(super) metadata: AuthorizationMetadata,
}

impl Inner {
    /// Asks the server and its authorization server for their metadata.
    pub(super) async fn discover(&self, challenge: Option<&str>) -> Result<Discovered, AuthorizationError> {
        let http: Arc<OAuthHttp> = Arc::clone(&self.http);
        let mut manager = AuthorizationManager::new_with_oauth_http_client(self.server.clone(), http)
            .await
            .map_err(|error| explained(&error))?;
        let found =
            manager.resolve_metadata_from_challenge(challenge).await.map_err(|error| explained(&error))?;
        // Servers of the first revision publish nothing, and then nothing says what they can do.
        if found.source.is_discovered() && !offers_pkce(&found.metadata) {
            return Err(failed(NO_PKCE));
        }
        let endpoint = Url::parse(&found.metadata.authorization_endpoint)
            .map_err(|_| failed("the address for granting access is not a URL"))?;
        if !may_be_opened(&endpoint) {
            return Err(failed("the address for granting access is not reached by https"));
        }
        manager.set_metadata(found.metadata.clone());
        Ok(Discovered { manager, metadata: found.metadata })
    }

    /// Begins an authorization, unless a token is there that was not refused yet.
    pub(super) async fn begin(
        self: Arc<Self>,
        challenge: Option<Challenge>,
        redirect_uri: Option<String>,
    ) -> Result<Begun, AuthorizationError> {
        let kept = self.look().await?;
        if self.is_enough(kept.as_ref(), challenge.as_ref()).await {
            return Ok(Begun::Silent);
        }
        let listener = match &redirect_uri {
            Some(given) => {
                check_redirect_uri(given)?;
                None
            }
            None => Some(Listener::bind(self.config.callback_port).await?),
        };
        let redirect_uri = redirect_uri
            .or_else(|| listener.as_ref().map(|listener| listener.redirect_uri().to_owned()))
            .unwrap_or_default();
        let header = challenge
            .as_ref()
            .and_then(|challenge| challenge.www_authenticate.as_deref())
            .filter(|header| header.len() <= LONGEST_CHALLENGE);
        let asked = header.map(|header| WWWAuthenticateParams::parse(header, &self.server));
        let Discovered { mut manager, metadata } = self.discover(header).await?;

        let wider = challenge.as_ref().is_some_and(|challenge| challenge.status == 403);
        let challenged = words(asked.as_ref().and_then(|asked| asked.scope.as_deref()));
        let scopes = self.scopes(&manager, kept.as_ref(), &metadata, &challenged, wider).await;
        let names: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let client = self.client(&metadata, &redirect_uri, &scopes).await?;
        self.configure(&mut manager, metadata.clone(), &client)?;
        let auth_url = manager.get_authorization_url(&names).await.map_err(|error| explained(&error))?;
        let state = state_of(&auth_url)?;
        let (done, finished) = oneshot::channel();
        self.remember(
            state.clone(),
            Pending {
                issuer: metadata.issuer.clone(),
                issuer_is_promised: flag(&metadata, "authorization_response_iss_parameter_supported"),
                manager,
                redirect_uri,
                client,
                scopes: scopes.clone(),
                begun: Instant::now(),
                done,
            },
        );
        let returned = listener.map(|listener| {
            let waiting = Arc::clone(&self).returned(listener, state.clone(), finished);
            Box::pin(waiting) as futures::future::BoxFuture<'static, _>
        });
        let resource_metadata_url =
            asked.and_then(|asked| asked.resource_metadata_url).map(|url| url.to_string());
        Ok(Begun::Redirect { auth_url, state, scopes, resource_metadata_url, returned })
    }

    /// True when a token is kept that is worth trying.
    async fn is_enough(self: &Arc<Self>, kept: Option<&Entry>, challenge: Option<&Challenge>) -> bool {
        let Some(token) = kept.and_then(|entry| entry.token.as_ref()) else { return false };
        if challenge.is_some() && self.was_handed(token) {
            return false;
        }
        if !token.is_over(now()) {
            return true;
        }
        let renewed = Arc::clone(self).renew(token.access_token.clone()).await;
        renewed.is_ok_and(|token| token.is_some())
    }

    /// Waits for the browser, or for a caller that brings the callback another way.
    async fn returned(
        self: Arc<Self>,
        listener: Listener,
        state: String,
        mut finished: oneshot::Receiver<Result<(), AuthorizationError>>,
    ) -> Result<(), AuthorizationError> {
        let waited = tokio::time::timeout(LIFETIME, async {
            tokio::select! {
                url = listener.callback(&state) => Arc::clone(&self).finish(Callback::Url(url?)).await,
                outcome = &mut finished => outcome
                    .unwrap_or_else(|_| Err(failed("another authorization took the place of this one"))),
            }
        });
        waited.await.unwrap_or_else(|_| Err(failed("the browser did not come back within 10 minutes")))
    }

    /// What to ask for: what a person configured, else what the server asks for, else what it describes. When a token
    /// lacks something, what was granted is asked for again together with that.
    async fn scopes(
        &self,
        manager: &AuthorizationManager,
        kept: Option<&Entry>,
        metadata: &AuthorizationMetadata,
        challenged: &[String],
        wider: bool,
    ) -> Vec<String> {
        let mut scopes = match &self.config.scopes {
            Some(configured) => configured.clone(),
            None => manager.select_initial_scopes(&[]).await,
        };
        if wider {
            let granted = kept
                .filter(|entry| entry.issuer == metadata.issuer)
                .and_then(|entry| entry.token.as_ref())
                .map(|token| token.scopes.clone())
                .unwrap_or_default();
            scopes = [&granted[..], &scopes[..], challenged].concat();
        }
        let mut seen = std::collections::HashSet::new();
        scopes.retain(|scope| seen.insert(scope.clone()));
        scopes
    }

    /// Which client we are: the configured one, our metadata document, one registered before for the same callback, or
    /// one registered now.
    async fn client(
        &self,
        metadata: &AuthorizationMetadata,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<Registration, AuthorizationError> {
        let document = self
            .identity
            .metadata_url
            .as_ref()
            .filter(|_| flag(metadata, "client_id_metadata_document_supported"));
        if let Some(client_id) = self.config.client_id.as_ref().or(document) {
            return Ok(Registration {
                client_id: client_id.clone(),
                client_secret: None,
                redirect_uri: redirect_uri.to_owned(),
                auth_method: None,
            });
        }
        if let Some(client) = self.registered(metadata, redirect_uri).await? {
            return Ok(client);
        }
        self.register(metadata, redirect_uri, scopes).await
    }

    async fn registered(
        &self,
        metadata: &AuthorizationMetadata,
        redirect_uri: &str,
    ) -> Result<Option<Registration>, AuthorizationError> {
        let Some(issuer) = &metadata.issuer else { return Ok(None) };
        let entries = self.vault.entries(&self.key).await?;
        let same_issuer = entries.into_iter().filter(|entry| entry.issuer.as_ref() == Some(issuer));
        Ok(same_issuer.filter_map(|entry| entry.client).find(|client| {
            // An ID that is a document's address is not a registration; it is used above.
            client.redirect_uri == redirect_uri && !client.client_id.starts_with("https://")
        }))
    }

    /// Makes the library speak as a client. The secret of a configured one stays in the configuration.
    pub(super) fn configure(
        &self,
        manager: &mut AuthorizationManager,
        mut metadata: AuthorizationMetadata,
        client: &Registration,
    ) -> Result<(), AuthorizationError> {
        let mut config = OAuthClientConfig::new(client.client_id.clone(), client.redirect_uri.clone());
        let secret = if self.config.client_id.as_ref() == Some(&client.client_id) {
            self.config.client_secret.clone()
        } else {
            client.client_secret.as_ref().map(|secret| secret.expose_secret().to_owned())
        };
        if let Some(secret) = secret.filter(|_| client.auth_method.as_deref() != Some("none")) {
            config = config.with_client_secret(secret);
        }
        if let Some(method) = &client.auth_method {
            // The library chooses among those listed.
            metadata.additional_fields.insert(METHODS_FIELD.to_owned(), serde_json::json!([method]));
        }
        manager.set_metadata(metadata);
        manager.configure_client(config).map_err(|error| explained(&error))
    }
}

fn offers_pkce(metadata: &AuthorizationMetadata) -> bool {
    let methods = metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
    methods.iter().any(|method| method == "S256")
}

fn flag(metadata: &AuthorizationMetadata, name: &str) -> bool {
    metadata.additional_fields.get(name).and_then(serde_json::Value::as_bool).unwrap_or(false)
}

/// A person's browser is sent there.
fn may_be_opened(url: &Url) -> bool {
    let plain = url.username().is_empty() && url.password().is_none();
    plain && (url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url)))
}

fn check_redirect_uri(text: &str) -> Result<(), AuthorizationError> {
    let url = Url::parse(text).map_err(|_| failed("the redirect URI is not a URL"))?;
    // Applications have schemes of their own; these would run or show something instead.
    let harmful = matches!(url.scheme(), "javascript" | "data" | "file" | "blob" | "about" | "vbscript");
    if harmful || url.fragment().is_some() || (url.scheme() == "http" && !is_loopback(&url)) {
        return Err(failed("the redirect URI must be https, on this machine, or an application's own"));
    }
    Ok(())
}

fn state_of(auth_url: &str) -> Result<String, AuthorizationError> {
    let url = Url::parse(auth_url).map_err(|_| failed("the address for granting access is not a URL"))?;
    let mut states = url.query_pairs().filter(|(name, _)| name == "state");
    match (states.next(), states.next()) {
        (Some((_, state)), None) => Ok(state.into_owned()),
        (Some(_), Some(_)) | (None, _) => Err(failed("the address for granting access brings its own state")),
    }
}
