//! Credentials of servers: asked for when a server wants them and a host or person can get them, and the four orders with
//! which a host brings, renews or forgets them by itself.

use std::sync::Arc;

use futures::FutureExt;
use serde::Serialize;

use super::status::Server;
use super::{Inner, Made, McpServers, ServerError};
use crate::authorization::{AuthorizationError, Authorizer, Begun, Callback, OAuthToken};
use crate::peer::Challenge;
use crate::questions::{OAuthAnswer, OAuthQuestion};

/// What asking for credentials came to.
pub(super) enum Authorized {
    /// There are some now.
    Yes,
    /// No one is attached who can get them for this server.
    NotHere,
    /// There will be none, and why.
    No(String),
}

/// What the beginning of an authorization came to, as hosts read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Authentication {
    /// Where a person has to go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_url: Option<String>,
    /// False when credentials were there or could be renewed.
    pub requires_user_action: bool,
}

impl Inner {
    /// Asks the host or person that is attached. Waits for a person.
    pub(super) async fn authorize(&self, name: &str, made: &Made, challenge: Challenge) -> Authorized {
        let Some(authorizer) = &made.authorizer else { return Authorized::NotHere };
        let server_url = self.with(name, |server| server.named.config.transport.url().map(str::to_owned));
        let Ok(Some(server_url)) = server_url else { return Authorized::NotHere };
        let begun = match authorizer.begin(Some(challenge), None).await {
            Ok(begun) => begun,
            Err(error) => return Authorized::No(described(&error)),
        };
        let Begun::Redirect { auth_url, state, scopes, resource_metadata_url, returned } = begun else {
            return Authorized::Yes;
        };
        let question = OAuthQuestion {
            server_name: name.to_owned(),
            server_url,
            auth_url,
            state,
            scopes: (!scopes.is_empty()).then_some(scopes),
            resource_metadata_url,
        };
        let returned = returned.unwrap_or_else(|| std::future::pending().boxed());
        // The browser may come back to us by itself while the host still waits for it.
        let kept = tokio::select! {
            answer = self.questions.authorize(question) => match answer {
                OAuthAnswer::Token(token) => authorizer.inject(token).await,
                OAuthAnswer::CallbackUrl(url) => authorizer.finish(Callback::Url(url)).await,
                OAuthAnswer::Code { code, state } => authorizer.finish(Callback::Code { code, state }).await,
                OAuthAnswer::Rejected => {
                    return Authorized::No("the host refused to get credentials for the server".to_owned());
                }
            },
            kept = returned => kept,
        };
        kept.map_or_else(|error| Authorized::No(described(&error)), |()| Authorized::Yes)
    }

    fn authorizer(&self, name: &str) -> Result<Arc<dyn Authorizer>, ServerError> {
        let made = {
            let mut servers = self.write();
            let Some(server) = servers.get_mut(name) else { return Err(super::unknown(name, &servers)) };
            if server.made.is_none() {
                server.made = Some((self.maker)(&server.named).map_err(ServerError::Unusable)?);
            }
            server.made.clone()
        };
        made.and_then(|made| made.authorizer).ok_or_else(|| ServerError::NoCredentials(name.to_owned()))
    }
}

impl McpServers {
    /// Begins an authorization, or renews what is there. When a person has to go somewhere, [`submit_callback`] ends it, or
    /// the browser comes back to our own address.
    ///
    /// [`submit_callback`]: Self::submit_callback
    ///
    /// # Errors
    /// When there is no such server, it takes no credentials, or it cannot be asked for its metadata.
    pub async fn authenticate(
        &self,
        name: &str,
        redirect_uri: Option<String>,
    ) -> Result<Authentication, ServerError> {
        let authorizer = self.inner.authorizer(name)?;
        let challenge = self.inner.with(name, |server| server.challenge.clone())?;
        match authorizer.begin(challenge, redirect_uri).await? {
            Begun::Silent => {
                self.inner.reconnect(name, None).await?;
                Ok(Authentication { auth_url: None, requires_user_action: false })
            }
            Begun::Redirect { auth_url, returned, .. } => {
                if let Some(returned) = returned {
                    let (inner, name) = (std::sync::Weak::clone(&self.inner.this), name.to_owned());
                    tokio::spawn(async move {
                        let kept = returned.await;
                        let Some(inner) = inner.upgrade() else { return };
                        match kept {
                            Ok(()) => inner.begin(&name, None),
                            Err(error) => inner.complain(&name, &error),
                        }
                    });
                }
                Ok(Authentication { auth_url: Some(auth_url), requires_user_action: true })
            }
        }
    }

    /// Ends an authorization with the URL to which the person was sent back, and connects the server.
    ///
    /// # Errors
    /// When the URL belongs to no authorization that was begun here, or the server still cannot be used.
    pub async fn submit_callback(&self, name: &str, callback_url: String) -> Result<(), ServerError> {
        let authorizer = self.inner.authorizer(name)?;
        authorizer.finish(Callback::Url(callback_url)).await?;
        self.inner.reconnect(name, None).await
    }

    /// Takes a token that was got elsewhere, and connects the server.
    ///
    /// # Errors
    /// When it cannot be kept, or the server still cannot be used.
    pub async fn inject_token(&self, name: &str, token: OAuthToken) -> Result<(), ServerError> {
        let authorizer = self.inner.authorizer(name)?;
        authorizer.inject(token).await?;
        self.inner.reconnect(name, None).await
    }

    /// Forgets the credentials of a server. It is asked for new ones at its next use.
    ///
    /// # Errors
    /// When there is no such server, or what is kept cannot be removed.
    pub async fn clear_credentials(&self, name: &str) -> Result<(), ServerError> {
        let authorizer = self.inner.authorizer(name)?;
        Ok(authorizer.clear().await?)
    }
}

impl Inner {
    /// Says in the row why there are no credentials; a connection that works is left alone.
    fn complain(&self, name: &str, error: &AuthorizationError) {
        let _ = self.change(name, None, |server: &mut Server| {
            if server.status != super::ServerStatus::Connected {
                server.error = Some(described(error));
            }
        });
    }
}

fn described(error: &AuthorizationError) -> String {
    format!("{error}; {}", error.hint())
}
