//! A session that is being driven and can be spoken to meanwhile: inputs and commands come through a [`Handle`], turns
//! follow one another until nobody holds a handle any more. Every front that stays connected drives its session here.

mod context_usage;
mod desk;
mod handle;
mod plugins;
mod sign_ins;
mod suggestion;
mod title;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_types::Message;
use qoder_types::record::{InputAdmitted, TurnEnded};
use qoder_types::wire::{StreamMessage, SystemMessage};
use tokio::sync::{mpsc, oneshot};

use crate::driver::Driver;
use crate::engine::Engine;
use crate::error::DriveError;
use crate::events::{Event, Host};
use crate::interrupt::{Ending, Interrupt};
use crate::mcp::StatusListener;
use crate::session::{Session, new_id};

pub use context_usage::ContextUsage;
pub use desk::{Desk, PROTOCOL_VERSION};
pub(crate) use handle::InnerHandle;
pub use handle::{ControlError, Handle, InterruptReceipt};
pub(crate) use sign_ins::SigningIn;

/// Something that is done with the session between two steps of its driver. It answers its sender by itself; an error
/// ends the drive.
pub type Command = Box<dyn for<'a> FnOnce(&mut Driver<'a>) -> Result<(), DriveError> + Send>;

/// What arrives while a session is driven.
pub enum Arrival {
    /// A user's message.
    Input(InputAdmitted),
    /// Something to do at once.
    Command(Command),
}

/// What arrives, in order.
pub type Inbox = mpsc::UnboundedReceiver<Arrival>;

/// What the session is doing, as hosts are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// A turn runs.
    Running,
    /// Nothing is owed.
    Idle,
    /// Somebody has to answer before the turn goes on.
    RequiresAction,
}

impl SessionState {
    /// The documented word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Idle => "idle",
            Self::RequiresAction => "requires_action",
        }
    }
}

/// Tells a host what the session is doing, if it wants to know.
pub(crate) fn tell_state(host: &dyn Host, session_id: &str, state: SessionState) -> Result<(), DriveError> {
    if !host.wants_session_state() {
        return Ok(());
    }
    let uuid = new_id();
    let message = StreamMessage::System(SystemMessage::SessionStateChanged {
        state: state.as_str(),
        uuid: &uuid,
        session_id,
    });
    host.emit(Event::Message(&message)).map_err(DriveError::Output)
}

/// What arrives for a session that runs without a host that could speak to it: questions of its servers.
#[must_use]
pub fn inner_inbox(engine: &Engine) -> Inbox {
    let (inner, inbox) = InnerHandle::alone();
    engine.hooks.belong_to(inner.clone());
    if let Some(questions) = &engine.questions {
        questions.belong_to(inner);
    }
    inbox
}

/// A session with its engine and what arrives for it.
pub struct Live {
    engine: Arc<Engine>,
    session: Session,
    inbox: Option<Inbox>,
    /// Completes when nobody outside can send anything any more.
    released: oneshot::Receiver<()>,
    connecting: Option<BoxFuture<'static, ()>>,
}

impl Live {
    /// Takes a session over. It goes on until every clone of the handle is gone.
    #[must_use]
    pub fn new(engine: Arc<Engine>, session: Session) -> (Self, Handle) {
        let (sender, inbox) = mpsc::unbounded_channel();
        let (handle, released) = Handle::new(sender, Arc::clone(&engine), session.id.clone());
        let servers = Arc::clone(engine.toolbox.servers());
        let signing_in = engine.questions.as_ref().map(|questions| questions.signing_in());
        servers.listen(status_listener(
            &engine.host,
            &session.id,
            (signing_in.unwrap_or_default(), handle.inner()),
        ));
        if let Some(questions) = &engine.questions {
            questions.belong_to(handle.inner());
        }
        engine.hooks.belong_to(handle.inner());
        let connecting = async move {
            servers.start();
            servers.ready().await;
        }
        .boxed();
        (Self { engine, session, inbox: Some(inbox), released, connecting: Some(connecting) }, handle)
    }

    /// Begins a session that nothing was asked in with this prompt, as the main agent wants it.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn begin_with(&mut self, prompt: &str) -> Result<(), DriveError> {
        if self.session.state.prompts > 0 || !self.session.state.inputs.is_empty() {
            return Ok(());
        }
        self.driver().admit(InputAdmitted { input_id: new_id(), message: Message::user(prompt) })
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// That the process is about to end.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.engine.ending.clone()
    }

    /// Waits until there is something to drive; commands are obeyed meanwhile. False when nothing can come any more.
    /// Nothing is lost when the wait is given up.
    pub async fn ready(&mut self) -> Result<bool, DriveError> {
        let patience = self.engine.hooks.services().map(|services| services.idle_after);
        let mut idle = Box::pin(tokio::time::sleep(patience.unwrap_or(Duration::MAX)));
        let mut told = !self.session.has_begun || patience.is_none();
        loop {
            if self.session.state.is_unfinished() {
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
                    Some(arrival) => self.driver().take(arrival)?,
                    None => self.inbox = None,
                },
                () = self.session.task_events.arrival() => self.driver().forward_task_events()?,
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
    pub async fn turn(&mut self, interrupt: Interrupt) -> Result<Option<TurnEnded>, DriveError> {
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

    /// True when hooks want to hear of the session and nobody has asked anything yet.
    fn begins_alone(&mut self) -> bool {
        !self.session.has_begun && !self.session.state.is_unfinished() && self.driver().wants_to_begin()
    }

    /// Tells hooks that it is over, stops what still runs in the background and puts its end on record.
    pub async fn end(&mut self) -> Result<(), DriveError> {
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

    fn driver(&mut self) -> Driver<'_> {
        Driver::new(&self.engine, &mut self.session, Interrupt::default())
    }

    fn state(&self, state: SessionState) -> Result<(), DriveError> {
        tell_state(&*self.engine.host, &self.session.id, state)
    }
}

/// Tells the host of servers that are doing otherwise than before.
fn status_listener(
    host: &Arc<dyn Host>,
    session_id: &str,
    (signing_in, session): (SigningIn, InnerHandle),
) -> StatusListener {
    let (host, session_id) = (Arc::downgrade(host), session_id.to_owned());
    Arc::new(move |rows| {
        sign_ins::follow(&signing_in, &session, &rows);
        let Some(host) = host.upgrade() else { return };
        let uuid = new_id();
        let message = StreamMessage::System(SystemMessage::McpStatusChange {
            servers: &rows,
            uuid: &uuid,
            session_id: &session_id,
        });
        // A host that is gone is met again by the next message of the turn.
        let _ = host.emit(Event::Message(&message));
    })
}

async fn connection(connecting: &mut Option<BoxFuture<'static, ()>>) {
    match connecting {
        Some(connecting) => connecting.await,
        None => std::future::pending().await,
    }
}
