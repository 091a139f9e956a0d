//! The life of one connection: the handshake within its time, credentials when the server wants them, the list of tools
//! again when it changes, and what happens when it ends. A remote server that drops is reached again after growing
//! pauses; a child process that dies has failed, and the next use may start it once more.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use qoder_core::ports::Tool;
use tokio::sync::watch;

use super::authorize::Authorized;
use super::status::{Server, ServerStatus};
use super::{Inner, Made, PARTING_TIME, ServerError, Waits};
use crate::peer::Challenge;
use crate::{Greeting, ListedTool, McpTool, PeerError, PeerEvent, PeerEvents};

/// The longest pause before a dropped server is reached again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Attempts to reach a dropped server again.
const MOST_ATTEMPTS: u32 = 8;
/// Tools of one server.
const MOST_TOOLS: usize = 1_000;

/// What a server has sent since it was connected. Only the last message counts, so that a flood of them costs nothing.
#[derive(Debug, Clone, Default)]
struct Heard {
    changes_of_tools: u64,
    closed: Option<String>,
}

/// Why a connection is over.
enum End {
    /// It was there and ended.
    Dropped(String),
    /// It did not come about.
    Failed(String),
    /// The server needs credentials first, or no longer reports anything.
    Over,
}

/// What looks after a connection.
struct Keeper {
    inner: Weak<Inner>,
    name: String,
    attempt: u64,
    made: Made,
    is_remote: bool,
    waits: Waits,
    /// True once a person was asked for credentials: one that refuses what it was given is not asked again.
    asked: bool,
}

impl Inner {
    /// Begins a connection, with credentials first when the server has just refused. An earlier one ends.
    pub(super) fn begin(&self, name: &str, refused: Option<Challenge>) {
        // What comes of it is in the server's state.
        let _ = self.change(name, None, |server| {
            if self.closed.get().is_some() || server.refused.is_some() {
                return;
            }
            server.stop();
            let made = match server.made.clone().map_or_else(|| (self.maker)(&server.named), Ok) {
                Ok(made) => made,
                Err(problem) => return server.fail(problem),
            };
            server.made = Some(made.clone());
            server.may_restart = false;
            server.error = None;
            server.authorizing = refused.is_some();
            server.status =
                if refused.is_some() { ServerStatus::NeedsAuth } else { ServerStatus::Connecting };
            let keeper = Keeper {
                inner: Weak::clone(&self.this),
                name: name.to_owned(),
                attempt: server.attempt,
                made,
                is_remote: server.named.config.transport.url().is_some(),
                waits: self.waits,
                asked: false,
            };
            server.task = Some(tokio::spawn(keeper.keep(refused)).abort_handle());
        });
    }

    /// Connects a server again and waits for what comes of it, also for a person that is asked for credentials.
    pub(super) async fn reconnect(&self, name: &str, refused: Option<Challenge>) -> Result<(), ServerError> {
        if let Some(problem) = self.with(name, |server| server.refused.clone())? {
            return Err(ServerError::Unusable(problem));
        }
        self.begin(name, refused);
        self.done(name).await
    }

    /// Waits until nothing is on its way for this server.
    pub(super) async fn done(&self, name: &str) -> Result<(), ServerError> {
        self.until(|servers| servers.get(name).is_none_or(Server::is_done)).await;
        self.with(name, complaint)?.map_or(Ok(()), |problem| Err(ServerError::Unusable(problem)))
    }

    /// What the model may call now. Tools that cannot be offered are named in the row.
    fn offer(&self, server: &mut Server, listed: Vec<ListedTool>) {
        let (config, name) = (&server.named.config, &server.named.name);
        let included = |tool: &ListedTool| {
            config.include_tools.as_ref().is_none_or(|names| names.contains(&tool.name))
                && !config.exclude_tools.contains(&tool.name)
        };
        let mut problems = Vec::new();
        let mut listed: Vec<ListedTool> = listed.into_iter().filter(included).collect();
        if listed.len() > MOST_TOOLS {
            problems.push(format!("it has {} tools; the first {MOST_TOOLS} are offered", listed.len()));
            listed.truncate(MOST_TOOLS);
        }
        let mut names = HashSet::new();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        listed.retain(|tool| match McpTool::new(name, tool, self.this.clone()) {
            Ok(made) if names.insert(made.definition().name.clone()) => {
                tools.push(Arc::new(made));
                true
            }
            Ok(_) => {
                problems.push(format!("a second tool {:?} is left out", tool.name));
                false
            }
            Err(problem) => {
                problems.push(format!("the tool {:?} is left out: {problem}", tool.name));
                false
            }
        });
        server.error = (!problems.is_empty()).then(|| problems.join("; "));
        server.greeting.tools = listed;
        server.tools = tools;
    }
}

/// Why a server cannot be used now.
fn complaint(server: &Server) -> Option<String> {
    match server.status {
        ServerStatus::Connected => None,
        ServerStatus::NeedsAuth => Some("the server wants credentials (needs-auth)".to_owned()),
        ServerStatus::Disabled => Some("the server is switched off".to_owned()),
        ServerStatus::Failed | ServerStatus::Pending | ServerStatus::Connecting => {
            Some(server.error.clone().unwrap_or_else(|| "the server is not connected".to_owned()))
        }
    }
}

impl Keeper {
    async fn keep(mut self, refused: Option<Challenge>) {
        if let Some(challenge) = refused
            && !self.authorize(challenge).await
        {
            return;
        }
        let (mut attempts, mut was_there) = (0, false);
        loop {
            let problem = match self.connection().await {
                End::Over => return,
                End::Dropped(problem) if self.is_remote => {
                    (attempts, was_there) = (0, true);
                    problem
                }
                End::Failed(problem) if was_there => problem,
                End::Dropped(problem) => {
                    self.made.peer.close().await;
                    // Its tools stay: the next call may start it again.
                    return self.change(|server| {
                        server.status = ServerStatus::Failed;
                        server.error = Some(problem);
                        server.may_restart = true;
                    });
                }
                End::Failed(problem) => {
                    let _ = tokio::time::timeout(PARTING_TIME, self.made.peer.close()).await;
                    return self.change(|server| server.fail(problem));
                }
            };
            attempts += 1;
            if attempts > MOST_ATTEMPTS {
                let problem = format!("{problem} (given up after {MOST_ATTEMPTS} attempts to reconnect)");
                return self.change(|server| server.fail(problem));
            }
            self.change(|server| {
                server.status = ServerStatus::Connecting;
                server.error = Some(problem);
            });
            tokio::time::sleep(pause(self.waits.first_pause, attempts)).await;
        }
    }

    /// One connection from the handshake to its end.
    async fn connection(&mut self) -> End {
        let (told, mut heard) = watch::channel(Heard::default());
        let greeting = loop {
            let events = self.events(told.clone());
            match tokio::time::timeout(self.waits.answer, self.made.peer.connect(events)).await {
                Ok(Ok(greeting)) => break greeting,
                Ok(Err(PeerError::NeedsAuth(challenge))) => {
                    if !self.authorize(challenge).await {
                        return End::Over;
                    }
                }
                Ok(Err(problem)) => return End::Failed(problem.to_string()),
                Err(_) => return End::Failed(format!("no answer within {} s", self.waits.answer.as_secs())),
            }
        };
        self.asked = false;
        self.connected(greeting);
        loop {
            let (tools, closed) = {
                let now = heard.borrow_and_update();
                (now.changes_of_tools, now.closed.clone())
            };
            if let Some(problem) = closed {
                return End::Dropped(problem);
            }
            if tools > 0 {
                told.send_if_modified(|heard| {
                    heard.changes_of_tools = 0;
                    false
                });
                self.list_again().await;
            }
            // This side holds a sender, so the channel cannot close.
            if heard.changed().await.is_err() {
                return End::Over;
            }
        }
    }

    fn connected(&self, mut greeting: Greeting) {
        let Some(inner) = self.inner.upgrade() else { return };
        let listed = std::mem::take(&mut greeting.tools);
        self.change(|server| {
            server.status = ServerStatus::Connected;
            server.challenge = None;
            server.authorizing = false;
            server.greeting = greeting;
            inner.offer(server, listed);
        });
    }

    async fn list_again(&self) {
        let listed = match tokio::time::timeout(self.waits.answer, self.made.peer.list_tools()).await {
            Ok(Ok(listed)) => Ok(listed),
            Ok(Err(problem)) => Err(problem.to_string()),
            Err(_) => Err(format!("no answer within {} s", self.waits.answer.as_secs())),
        };
        let Some(inner) = self.inner.upgrade() else { return };
        self.change(|server| match listed {
            Ok(listed) => inner.offer(server, listed),
            Err(problem) => server.error = Some(format!("its changed tools could not be listed: {problem}")),
        });
    }

    /// True when there are credentials now that are worth an attempt.
    async fn authorize(&mut self, challenge: Challenge) -> bool {
        let Some(inner) = self.inner.upgrade() else { return false };
        let (kept, may_ask) = (challenge.clone(), !self.asked && inner.questions.can_authorize());
        self.change(|server| {
            server.status = ServerStatus::NeedsAuth;
            server.challenge = Some(kept);
            server.authorizing =
                may_ask && server.made.as_ref().is_some_and(|made| made.authorizer.is_some());
        });
        if !may_ask {
            self.change(|server| server.authorizing = false);
            return false;
        }
        self.asked = true;
        match inner.authorize(&self.name, &self.made, challenge).await {
            Authorized::Yes => {
                self.change(|server| {
                    server.status = ServerStatus::Connecting;
                    server.authorizing = false;
                });
                true
            }
            Authorized::NotHere => {
                self.change(|server| server.authorizing = false);
                false
            }
            Authorized::No(problem) => {
                self.change(|server| server.fail(problem));
                false
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Server)) {
        if let Some(inner) = self.inner.upgrade() {
            // A server that was removed, or has another connection by now, is not this one's to change.
            let _ = inner.change(&self.name, Some(self.attempt), change);
        }
    }

    fn events(&self, told: watch::Sender<Heard>) -> PeerEvents {
        let (inner, name) = (Weak::clone(&self.inner), self.name.clone());
        Arc::new(move |event| {
            match &event {
                PeerEvent::ToolsChanged => told.send_modify(|heard| heard.changes_of_tools += 1),
                PeerEvent::Closed(problem) => {
                    told.send_modify(|heard| heard.closed = Some(problem.clone()));
                }
                PeerEvent::ResourcesChanged
                | PeerEvent::PromptsChanged
                | PeerEvent::ResourceUpdated(_)
                | PeerEvent::Log { .. } => {}
            }
            let Some(inner) = inner.upgrade() else { return };
            let listener = inner.events.read().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(listener) = listener {
                listener(&name, &event);
            }
        })
    }
}

/// The pause before an attempt, counted from 1.
fn pause(first: Duration, attempt: u32) -> Duration {
    first.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        let pause = |attempt| pause(Duration::from_secs(1), attempt);
        let seconds: Vec<u64> = (1..=8).map(|attempt| pause(attempt).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause(u32::MAX).as_secs(), 60);
    }
}
