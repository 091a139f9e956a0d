//! The end of an authorization: the callback is matched with what was begun, compared with what was recorded then, and
//! its code is exchanged for a token, which is kept. Each beginning can be ended once, within ten minutes.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rmcp::transport::auth::AuthorizationManager;
use tokio::sync::oneshot;

use super::authorizer::Inner;
use super::callback::{self, Outcome, Returned};
use super::problem::{explained, failed};
use super::store::{Entry, KeptToken, Registration, now};
use crate::authorization::{AuthorizationError, Callback};

/// How long a person may take.
pub(super) const LIFETIME: Duration = Duration::from_secs(600);
/// The most authorizations that wait for their callback; a further one replaces the oldest.
const MOST_PENDING: usize = 8;

/// An authorization that was begun.
pub(super) struct Pending {
    pub(super) manager: AuthorizationManager,
    pub(super) issuer: Option<String>,
    pub(super) issuer_is_promised: bool,
    pub(super) redirect_uri: String,
    pub(super) client: Registration,
    pub(super) scopes: Vec<String>,
    pub(super) begun: Instant,
    /// Sends the outcome to the task that waits at the loopback address.
    pub(super) done: oneshot::Sender<Result<(), AuthorizationError>>,
}

impl Inner {
    /// Remembers an authorization until its callback comes.
    pub(super) fn remember(&self, state: String, pending: Pending) {
        let mut all = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, pending| pending.begun.elapsed() < LIFETIME);
        if all.len() >= MOST_PENDING
            && let Some(oldest) =
                all.iter().min_by_key(|(_, pending)| pending.begun).map(|(state, _)| state.clone())
        {
            all.remove(&oldest);
        }
        all.insert(state, pending);
    }

    /// Ends an authorization. Continues when the caller stops waiting: a code that was exchanged must be kept.
    pub(super) async fn finish(self: Arc<Self>, callback: Callback) -> Result<(), AuthorizationError> {
        let returned = callback::read(&callback)?;
        let pending = {
            let mut all = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            all.remove(&returned.state).filter(|pending| pending.begun.elapsed() < LIFETIME)
        };
        let Some(pending) = pending else {
            return Err(AuthorizationError::ForeignCallback(
                "its state is not known here, was used already, or is older than 10 minutes".to_owned(),
            ));
        };
        let work = tokio::spawn(async move {
            let (done, outcome) = self.exchange(pending, returned).await;
            // The receiver is gone when the callback came another way.
            let _ = done.send(outcome.clone());
            outcome
        });
        work.await
            .unwrap_or_else(|error| Err(failed(&format!("the exchange of the code ended early: {error}"))))
    }

    async fn exchange(
        &self,
        pending: Pending,
        returned: Returned,
    ) -> (oneshot::Sender<Result<(), AuthorizationError>>, Result<(), AuthorizationError>) {
        let Pending { manager, issuer, issuer_is_promised, redirect_uri, client, scopes, done, .. } = pending;
        let outcome = async {
            if !returned.arrived_at(&redirect_uri) {
                return Err(AuthorizationError::ForeignCallback("it arrived at another address".to_owned()));
            }
            check_issuer(&returned, issuer.as_deref(), issuer_is_promised)?;
            let code = match returned.outcome {
                Outcome::Code(code) => code,
                Outcome::Error(code, description) => {
                    return Err(callback::refusal(&code, description.as_deref()));
                }
            };
            let response = manager
                .exchange_code_for_token_with_issuer(&code, &returned.state, returned.issuer.as_deref())
                .await
                .map_err(|error| explained(&error))?;
            let token = KeptToken::from_response(&response, &scopes, now()).map_err(failed)?;
            let entry = Entry { server: self.key.clone(), issuer, client: Some(client), token: Some(token) };
            let locked = self.vault.lock(&self.key).await?;
            self.keep(&locked, entry).await
        };
        (done, outcome.await)
    }
}

/// The issuer that answers must be the one that was asked; nothing of another's answer is used or shown.
fn check_issuer(
    returned: &Returned,
    expected: Option<&str>,
    promised: bool,
) -> Result<(), AuthorizationError> {
    match (&returned.issuer, expected) {
        (Some(issuer), Some(expected)) if issuer == expected => Ok(()),
        (Some(_), _) => Err(failed("the callback comes from another issuer than the one that was asked")),
        (None, _) if promised => Err(failed(
            "the callback does not name its issuer, although the authorization server always does; give the \
             whole callback URL",
        )),
        (None, _) => Ok(()),
    }
}
