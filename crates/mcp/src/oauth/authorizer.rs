//! The credentials of one remote server: which token is sent, what is done when it is refused, and what a host brings or
//! takes away. Looks into the store once; asks the network only when a token must be got or renewed.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::exchange::Pending;
use super::http::OAuthHttp;
use super::problem::failed;
use super::store::{Entry, KeptToken, now};
use super::vault::Vault;
use crate::authorization::{AuthorizationError, Authorizer, Begun, Callback, OAuthToken};
use crate::peer::Challenge;
use qoder_types::server::{NamedServer, OAuthConfig, Transport};

/// Receives every token and secret as it becomes known, so that they can be taken out of logs and records.
pub type SecretSink = Arc<dyn Fn(&SecretString) + Send + Sync>;

/// How we name ourselves to authorization servers.
#[derive(Debug, Clone)]
pub struct ClientIdentity {
    /// For people, when a client is registered.
    pub name: String,
    /// A client-ID metadata document, for servers that take one in place of a registration.
    pub metadata_url: Option<String>,
}

impl Default for ClientIdentity {
    fn default() -> Self {
        Self { name: "qodercli".to_owned(), metadata_url: None }
    }
}

/// Credentials of one server.
#[derive(Clone)]
pub struct ServerAuthorizer {
    inner: Arc<Inner>,
}

/// What the parts of an authorizer share.
pub(super) struct Inner {
    pub(super) server: Url,
    /// What entries of the store are kept under.
    pub(super) key: String,
    pub(super) config: OAuthConfig,
    pub(super) identity: ClientIdentity,
    pub(super) vault: Vault,
    pub(super) http: Arc<OAuthHttp>,
    pub(super) pending: Mutex<HashMap<String, Pending>>,
    /// Held while a token is renewed, so that requests of this process wait for one renewal.
    pub(super) renewing: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    sink: SecretSink,
}

#[derive(Default)]
struct State {
    /// False until the store was looked into.
    looked: bool,
    entry: Option<Entry>,
    /// The token that was sent last.
    handed: Option<SecretString>,
}

impl ServerAuthorizer {
    /// The authorizer of a server. Nothing is read or asked yet.
    pub fn new(server_url: &str, config: &OAuthConfig, vault: Vault) -> Result<Self, AuthorizationError> {
        let mut server = Url::parse(server_url).map_err(|_| failed("the server's address is not a URL"))?;
        server.set_fragment(None);
        if !matches!(server.scheme(), "http" | "https") || server.host().is_none() {
            return Err(failed("the server's address is neither http nor https"));
        }
        let inner = Inner {
            key: server.to_string(),
            config: config.clone(),
            identity: ClientIdentity::default(),
            vault,
            http: Arc::new(OAuthHttp::new(&server)),
            pending: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            sink: Arc::new(|_| {}),
            server,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The authorizer of a described server; `None` for servers without an address, and for those whose description
    /// carries credentials already.
    pub fn for_server(server: &NamedServer, vault: &Vault) -> Option<Result<Self, AuthorizationError>> {
        match &server.config.transport {
            Transport::Sse { url, headers } | Transport::Http { url, headers } => {
                let given = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
                (!given).then(|| Self::new(url, &server.config.oauth, vault.clone()))
            }
            Transport::Stdio { .. } | Transport::Sdk { .. } => None,
        }
    }

    /// Under another name. Only before the authorizer is shared.
    #[must_use]
    pub fn with_identity(mut self, identity: ClientIdentity) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.identity = identity;
        }
        self
    }

    /// Sends `sink` every secret as it becomes known. Only before the authorizer is shared.
    #[must_use]
    pub fn with_secret_sink(mut self, sink: SecretSink) -> Self {
        if let Some(secret) = self.inner.config.client_secret.clone() {
            sink(&SecretString::from(secret));
        }
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.sink = sink;
        }
        self
    }

    /// The secrets that are in use now.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretString> {
        let state = self.inner.state();
        let kept = state.entry.iter().flat_map(Entry::secrets).cloned();
        kept.chain(self.inner.config.client_secret.clone().map(SecretString::from)).collect()
    }
}

impl fmt::Debug for ServerAuthorizer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ServerAuthorizer").field("server", &self.inner.key).finish_non_exhaustive()
    }
}

impl Authorizer for ServerAuthorizer {
    fn token(&self) -> BoxFuture<'static, Result<Option<SecretString>, AuthorizationError>> {
        let inner = Arc::clone(&self.inner);
        async move { inner.token().await }.boxed()
    }

    fn refused(
        &self,
        sent: Option<SecretString>,
        challenge: Challenge,
    ) -> BoxFuture<'static, Result<bool, AuthorizationError>> {
        let inner = Arc::clone(&self.inner);
        async move { inner.refused(sent, &challenge).await }.boxed()
    }

    fn begin(
        &self,
        challenge: Option<Challenge>,
        redirect_uri: Option<String>,
    ) -> BoxFuture<'static, Result<Begun, AuthorizationError>> {
        Arc::clone(&self.inner).begin(challenge, redirect_uri).boxed()
    }

    fn finish(&self, callback: Callback) -> BoxFuture<'static, Result<(), AuthorizationError>> {
        Arc::clone(&self.inner).finish(callback).boxed()
    }

    fn inject(&self, token: OAuthToken) -> BoxFuture<'static, Result<(), AuthorizationError>> {
        let inner = Arc::clone(&self.inner);
        async move { inner.inject(&token).await }.boxed()
    }

    fn clear(&self) -> BoxFuture<'static, Result<(), AuthorizationError>> {
        let inner = Arc::clone(&self.inner);
        async move {
            let locked = inner.vault.lock(&inner.key).await?;
            inner.vault.forget(&locked, &inner.key).await?;
            inner.pending.lock().unwrap_or_else(PoisonError::into_inner).clear();
            *inner.state() = State { looked: true, ..State::default() };
            Ok(())
        }
        .boxed()
    }
}

impl Inner {
    async fn token(self: Arc<Self>) -> Result<Option<SecretString>, AuthorizationError> {
        let known = {
            let state = self.state();
            state.looked.then(|| state.entry.clone())
        };
        let entry = match known {
            Some(entry) => entry,
            None => self.look().await?,
        };
        let Some(token) = entry.and_then(|entry| entry.token) else { return Ok(None) };
        if !token.ends_soon(now()) {
            return Ok(Some(self.hand(&token)));
        }
        match Arc::clone(&self).renew(token.access_token.clone()).await {
            Ok(Some(renewed)) => Ok(Some(self.hand(&renewed))),
            // Better a token that may just do than none.
            Ok(None) | Err(_) if !token.is_over(now()) => Ok(Some(self.hand(&token))),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn refused(
        self: Arc<Self>,
        sent: Option<SecretString>,
        challenge: &Challenge,
    ) -> Result<bool, AuthorizationError> {
        let Some(sent) = sent else {
            // Nothing was sent; another process may have signed in meanwhile.
            let kept = self.look().await?.and_then(|entry| entry.token);
            return Ok(kept.is_some_and(|token| !token.is_over(now())));
        };
        if challenge.status != 401 {
            // The same grant again does not help; a wider one of another process does.
            let kept = self.look().await?.and_then(|entry| entry.token);
            return Ok(kept.is_some_and(|token| !token.is_over(now()) && !token.is(&sent)));
        }
        Ok(self.renew(sent).await?.is_some())
    }

    async fn inject(&self, token: &OAuthToken) -> Result<(), AuthorizationError> {
        if !token.is_bearer() {
            return Err(failed("only bearer tokens can be used"));
        }
        let kept = KeptToken::from_host(token, now());
        let entry = Entry { server: self.key.clone(), issuer: None, client: None, token: Some(kept) };
        let locked = self.vault.lock(&self.key).await?;
        self.keep(&locked, entry).await
    }

    /// Keeps an entry and uses it from now on.
    pub(super) async fn keep(
        &self,
        locked: &super::lock::Locked,
        entry: Entry,
    ) -> Result<(), AuthorizationError> {
        if let Some(token) = &entry.token {
            usable(&token.access_token)?;
        }
        self.vault.keep(locked, entry.clone()).await?;
        self.learn(&entry);
        let mut state = self.state();
        state.looked = true;
        state.entry = Some(entry);
        Ok(())
    }

    /// Reads what is kept now, which another process may have changed.
    pub(super) async fn look(&self) -> Result<Option<Entry>, AuthorizationError> {
        let entries = self.vault.entries(&self.key).await?;
        let entry = entries.into_iter().find(|entry| entry.token.is_some());
        if let Some(entry) = &entry {
            self.learn(entry);
        }
        let mut state = self.state();
        state.looked = true;
        state.entry.clone_from(&entry);
        Ok(entry)
    }

    /// True when this is the token that was sent last.
    pub(super) fn was_handed(&self, token: &KeptToken) -> bool {
        self.state().handed.as_ref().is_some_and(|handed| token.is(handed))
    }

    /// The token that is in use, when it is another one than `stale`.
    pub(super) fn other_than(&self, stale: &SecretString) -> Option<KeptToken> {
        let state = self.state();
        let token = state.entry.as_ref()?.token.as_ref()?;
        (!token.is(stale) && !token.is_over(now())).then(|| token.clone())
    }

    fn hand(&self, token: &KeptToken) -> SecretString {
        self.state().handed = Some(token.access_token.clone());
        token.access_token.clone()
    }

    fn learn(&self, entry: &Entry) {
        entry.secrets().for_each(|secret| (self.sink)(secret));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A token goes into a header as it is.
fn usable(token: &SecretString) -> Result<(), AuthorizationError> {
    let token = token.expose_secret();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(failed("the token is empty or has characters that no header can carry"));
    }
    Ok(())
}
