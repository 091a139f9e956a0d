//! A session with its engine and what arrives for it: waits until there is something to drive, drives it, and ends it.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_protocol::SessionState;
use qoder_protocol::messages::{StreamMessage, SystemMessage};
use qoder_types::record::TurnEnded;
use tokio::sync::oneshot;

use super::mail::{Mail, ServedAt};
use super::sign_ins;
use crate::driver::DriverLink;
use crate::driver::{Driver, Inbox};
use crate::engine::Engine;
use crate::engine::interrupt::Interrupt;
use crate::engine::server_requests::SigningIn;
use crate::error::DriveError;
use crate::events::emit_state;
use crate::events::{Event, Outlet};
use crate::mcp::StatusListener;
use crate::session::{Session, new_id};

/// A session with its engine and what arrives for it.
pub(super) struct Live {
    pub(super) engine: Arc<Engine>,
    pub(super) session: Session,
    pub(super) inbox: Option<Inbox>,
    /// Completes when no front can send anything more.
    released: oneshot::Receiver<()>,
    connecting: Option<BoxFuture<'static, ()>>,
    /// True when its turn waits for answers and nothing has arrived since.
    waits: bool,
    _mail: Option<Mail>,
}

impl Live {
    /// Takes a session over: the way to it, and what keeps it going until it is dropped.
    pub(super) fn new(
        engine: Arc<Engine>,
        mut session: Session,
        served_at: ServedAt,
    ) -> (Self, DriverLink, oneshot::Sender<()>) {
        let (inner, inbox) = DriverLink::new();
        let (held, released) = oneshot::channel();
        let servers = Arc::clone(engine.toolbox.servers());
        let signing_in = engine.questions.as_ref().map(|questions| questions.signing_in());
        servers.listen(status_listener(
            &engine.outlet,
            &session.id,
            (signing_in.unwrap_or_default(), inner.clone()),
        ));
        if let Some(questions) = &engine.questions {
            questions.belong_to(Arc::new(inner.clone()));
        }
        let late = inner.clone();
        engine.hooks.belong_to(Arc::new(move || {
            late.send(|driver| {
                driver.take_all_late()?;
                Ok(())
            });
        }));
        let mail = session
            .take_inbox()
            .map(|left| Mail::serve(left, inner.clone(), served_at, Arc::clone(&engine.common.hub)));
        let connecting = async move {
            servers.start();
            servers.ready().await;
        }
        .boxed();
        let (inbox, connecting) = (Some(inbox), Some(connecting));
        let live = Self { engine, session, inbox, released, connecting, waits: false, _mail: mail };
        (live, inner, held)
    }

    /// The session.
    #[must_use]
    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// The session, after the drive has ended.
    pub(super) fn into_session(self) -> Session {
        self.session
    }

    /// Waits until there is something to drive; commands are obeyed meanwhile. False when nothing more can come.
    /// Nothing is lost when the wait is given up.
    pub(super) async fn ready(&mut self) -> Result<bool, DriveError> {
        let patience = self.engine.hooks.services().map(|services| services.idle_after);
        let mut idle = Box::pin(tokio::time::sleep(patience.unwrap_or(Duration::MAX)));
        let mut told = !self.session.has_begun || patience.is_none();
        loop {
            let unfinished = self.session.state.is_unfinished() && !self.waits;
            if unfinished || self.session.agents_to_resume().next().is_some() {
                self.connected().await?;
                return Ok(true);
            }
            if self.begins_alone() {
                return Ok(true);
            }
            let Some(inbox) = &mut self.inbox else { return Ok(false) };
            tokio::select! {
                // What was sent before the last handle was gone still counts.
                biased;
                arrival = inbox.recv() => match arrival {
                    Some(arrival) => {
                        self.driver().take(arrival)?;
                        self.waits = false;
                    }
                    None => self.inbox = None,
                },
                () = self.session.task_events.arrival() => {
                    // The front that stopped a task is answered before its end is announced.
                    tokio::task::yield_now().await;
                    self.driver().forward_task_events()?;
                }
                () = connection(&mut self.connecting) => self.connecting = None,
                _ = &mut self.released => self.inbox = None,
                () = &mut idle, if !told => {
                    told = true;
                    let text = "The session waits for a prompt";
                    self.driver().notification("idle_prompt", "Waiting", text, &serde_json::Value::Null);
                }
            }
        }
    }

    /// Drives what there is to drive; `interrupt` stops the turn that runs. Answers with the last turn's end.
    pub(super) async fn turn(&mut self, interrupt: Interrupt) -> Result<Option<TurnEnded>, DriveError> {
        let begins = self.begins_alone();
        if !begins {
            self.state(SessionState::Running)?;
        }
        let mut driver = Driver::new(&self.engine, &mut self.session, interrupt.clone());
        if let Some(inbox) = self.inbox.take() {
            driver = driver.with_inbox(inbox);
        }
        let ended = if begins { driver.begin_early().await.map(|()| None) } else { driver.run().await };
        self.inbox = driver.into_inbox();
        self.waits = self.engine.stays_open && matches!(ended, Err(DriveError::Waiting(_)));
        if self.waits {
            self.state(SessionState::RequiresAction)?;
            return Ok(None);
        }
        let ended = ended?;
        if begins {
            return Ok(None);
        }
        self.take_arrived()?;
        if let Some(end) = ended.as_ref().filter(|end| !end.is_error) {
            self.suggest(end, &interrupt).await?;
        }
        if !self.session.state.is_unfinished() {
            self.state(SessionState::Idle)?;
        }
        Ok(ended)
    }

    /// True when hooks listen for the start of the session and it has no prompt yet.
    fn begins_alone(&mut self) -> bool {
        !self.session.has_begun && !self.session.state.is_unfinished() && self.driver().wants_to_begin()
    }

    /// Calls hooks at the end, stops what still runs in the background and puts its end on record.
    pub(super) async fn end(&mut self) -> Result<(), DriveError> {
        self.driver().end_session().await
    }

    /// The first model call shall see the tools of all servers that come in time.
    async fn connected(&mut self) -> Result<(), DriveError> {
        while self.connecting.is_some() {
            let arrival = async {
                match &mut self.inbox {
                    Some(inbox) => inbox.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = connection(&mut self.connecting) => self.connecting = None,
                arrival = arrival => match arrival {
                    Some(arrival) => self.driver().take(arrival)?,
                    None => self.inbox = None,
                },
            }
        }
        Ok(())
    }

    fn take_arrived(&mut self) -> Result<(), DriveError> {
        while let Some(Ok(arrival)) = self.inbox.as_mut().map(Inbox::try_recv) {
            self.driver().take(arrival)?;
        }
        Ok(())
    }

    pub(super) fn driver(&mut self) -> Driver<'_> {
        Driver::new(&self.engine, &mut self.session, Interrupt::default())
    }

    fn state(&self, state: SessionState) -> Result<(), DriveError> {
        emit_state(&*self.engine.outlet, &self.session.id, state)
    }
}

/// Reports servers whose status changed to the host.
fn status_listener(
    outlet: &Arc<dyn Outlet>,
    session_id: &str,
    (signing_in, session): (SigningIn, DriverLink),
) -> StatusListener {
    let (outlet, session_id) = (Arc::downgrade(outlet), session_id.to_owned());
    Arc::new(move |rows| {
        sign_ins::follow(&signing_in, &session, &rows);
        let Some(outlet) = outlet.upgrade() else { return };
        let message = StreamMessage::System(SystemMessage::McpStatusChange {
            servers: rows,
            uuid: new_id(),
            session_id: session_id.clone(),
        });
        // A host that is gone is met again by the next message of the turn.
        let _ = outlet.emit(Event::Message(&message));
    })
}

async fn connection(connecting: &mut Option<BoxFuture<'static, ()>>) {
    match connecting {
        Some(connecting) => connecting.await,
        None => std::future::pending().await,
    }
}
