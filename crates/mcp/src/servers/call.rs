//! Calls of tools: the connection is looked at first, so that a server which is on its way is waited for, one that died is
//! started once more, and one that wants credentials gets the chance to be given some. Whatever goes wrong is a text that
//! the model can act on.

use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

use super::Inner;
use super::status::{Server, ServerStatus};
use crate::peer::Challenge;
use crate::tool::ToolCaller;
use crate::{CallToolResult, McpPeer, PeerError, ToolCall};

/// How long a call waits for a server that is being connected.
const CONNECTION_WAIT: Duration = Duration::from_secs(30);

/// What has to happen before a call.
enum Next {
    Go(Arc<dyn McpPeer>),
    Wait,
    StartAgain,
    Authorize(Challenge),
    Give(PeerError),
}

impl ToolCaller for Inner {
    fn call_tool<'a>(
        &'a self,
        server: &'a str,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<CallToolResult, String>> {
        Box::pin(self.call(server, call))
    }
}

impl Inner {
    /// Calls a tool of a server by its name there.
    pub(crate) async fn call(&self, server: &str, call: ToolCall) -> Result<CallToolResult, String> {
        let cancelled = call.cancelled.clone();
        let (mut refused, mut lost) = (false, false);
        loop {
            let peer = tokio::select! {
                biased;
                () = cancelled.clone() => return Err("the call was interrupted".to_owned()),
                peer = self.usable(server) => peer.map_err(|error| described(server, &error))?,
            };
            let attempt = self.with(server, |server| server.attempt).map_err(|error| error.to_string())?;
            match peer.call(call.clone()).await {
                Err(PeerError::NeedsAuth(challenge)) if !refused => {
                    refused = true;
                    tokio::select! {
                        biased;
                        () = cancelled.clone() => return Err("the call was interrupted".to_owned()),
                        renewed = self.renew(server, challenge) => renewed.map_err(|error| described(server, &error))?,
                    }
                }
                Err(error @ PeerError::NeedsAuth(_)) => {
                    self.needs_auth(server, &error);
                    return Err(described(server, &error));
                }
                // Nothing was sent, so the call can go to the next connection.
                Err(PeerError::NotConnected(_)) if !lost => {
                    lost = true;
                    tokio::select! {
                        biased;
                        () = cancelled.clone() => return Err("the call was interrupted".to_owned()),
                        () = self.left(server, attempt) => {}
                    }
                }
                Err(PeerError::Closed(problem)) => {
                    return Err(format!(
                        "the connection to the server `{server}` ended during the call ({problem}); the call may or may \
                         not have had its effect"
                    ));
                }
                other => {
                    if other.is_ok() && refused_before(self, server) {
                        let _ = self.change(server, None, |server| server.status = ServerStatus::Connected);
                    }
                    return other.map_err(|error| error.to_string());
                }
            }
        }
    }

    /// The way to a server that can be asked now.
    pub(super) async fn usable(&self, name: &str) -> Result<Arc<dyn McpPeer>, PeerError> {
        let (mut waited, mut started, mut asked) = (false, false, false);
        loop {
            match self.with(name, |server| next(server, self.questions.can_authorize()))? {
                Next::Go(peer) => return Ok(peer),
                Next::Wait if !waited => {
                    waited = true;
                    // What it came to is looked at again.
                    let _ = tokio::time::timeout(CONNECTION_WAIT, self.done(name)).await;
                }
                Next::Wait => {
                    return Err(PeerError::Failed("it is still being connected; try later".to_owned()));
                }
                Next::StartAgain if !started => {
                    started = true;
                    self.begin(name, None);
                    waited = false;
                }
                Next::Authorize(challenge) if !asked => {
                    asked = true;
                    self.renew(name, challenge).await?;
                }
                Next::StartAgain => return Err(PeerError::Failed("it ended again".to_owned())),
                Next::Authorize(challenge) => return Err(PeerError::NeedsAuth(challenge)),
                Next::Give(problem) => return Err(problem),
            }
        }
    }

    /// Completes when the row says that a connection has ended which a call found dead.
    async fn left(&self, name: &str, attempt: u64) {
        let is_left = |server: &Server| server.attempt != attempt || server.status != ServerStatus::Connected;
        let noticed = self.until(|servers| servers.get(name).is_none_or(is_left));
        // Without the notice the call reports what it finds.
        let _ = tokio::time::timeout(CONNECTION_WAIT, noticed).await;
    }

    /// Gets credentials for a server that has just refused, if a host or person can be asked; one question for all calls.
    async fn renew(&self, name: &str, challenge: Challenge) -> Result<(), PeerError> {
        let is_asking = self.with(name, |server| server.authorizing)?;
        let refused = PeerError::NeedsAuth(challenge.clone());
        let renewed = if is_asking {
            self.done(name).await
        } else if self.questions.can_authorize() {
            self.reconnect(name, Some(challenge)).await
        } else {
            self.needs_auth(name, &refused);
            return Err(refused);
        };
        match (renewed, self.with(name, |server| server.status)?) {
            (Ok(()), _) => Ok(()),
            (Err(_), ServerStatus::NeedsAuth) => Err(refused),
            (Err(problem), _) => Err(problem.into()),
        }
    }

    /// The row says that the server wants credentials; its tools stay, so that a later call can try again.
    fn needs_auth(&self, name: &str, error: &PeerError) {
        let PeerError::NeedsAuth(challenge) = error else { return };
        // A server that was removed meanwhile needs no status.
        let _ = self.change(name, None, |server| {
            server.status = ServerStatus::NeedsAuth;
            server.challenge = Some(challenge.clone());
        });
    }
}

/// True when the row says that credentials are wanted, although a call has just been served.
fn refused_before(servers: &Inner, name: &str) -> bool {
    servers.with(name, |server| server.status == ServerStatus::NeedsAuth && !server.authorizing) == Ok(true)
}

fn next(server: &Server, can_authorize: bool) -> Next {
    match (server.status, &server.made) {
        (ServerStatus::Connected, Some(made)) => Next::Go(Arc::clone(&made.peer)),
        (ServerStatus::Pending | ServerStatus::Connecting, _) => Next::Wait,
        (ServerStatus::NeedsAuth, _) if server.authorizing => Next::Wait,
        (ServerStatus::NeedsAuth, made) => {
            let challenge = server.challenge.clone().unwrap_or_default();
            match made {
                Some(made) if can_authorize && made.authorizer.is_some() => Next::Authorize(challenge),
                // Credentials may have come from another process; the server knows.
                Some(made) => Next::Go(Arc::clone(&made.peer)),
                None => Next::Give(PeerError::NeedsAuth(challenge)),
            }
        }
        (ServerStatus::Failed, _) if server.may_restart => Next::StartAgain,
        (ServerStatus::Disabled, _) => Next::Give(PeerError::Failed("it is switched off".to_owned())),
        (ServerStatus::Failed | ServerStatus::Connected, _) => {
            let problem = server.error.clone().unwrap_or_else(|| "it is not connected".to_owned());
            Next::Give(PeerError::Failed(problem))
        }
    }
}

fn described(server: &str, error: &PeerError) -> String {
    match error {
        PeerError::NeedsAuth(challenge) => format!(
            "the server `{server}` needs authentication (HTTP {}); a person has to sign in to it, then the call can be \
             repeated",
            challenge.status
        ),
        PeerError::Failed(problem) | PeerError::Closed(problem) | PeerError::NotConnected(problem) => {
            format!("the server `{server}` cannot be used: {problem}")
        }
        PeerError::Refused { .. } => error.to_string(),
    }
}
