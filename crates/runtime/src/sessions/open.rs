//! The only bring-up there is: from options and callbacks to a session that is driven. What a front has to print on the way
//! goes to its reporter, and what the message stream has to carry to the hub.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use qoder_core::state::Call;
use qoder_types::record::{InputAdmitted, RecordBody};
use qoder_types::{AskKind, Message};

use super::drive::drive;
use super::handle::{Finishing, SessionHandle, finishing};
use super::live::Live;
use super::requests::RequestContext;
use super::stop::Stopper;
use crate::callbacks::Callbacks;
use crate::driver::{Driver, is_command};
use crate::engine::Engine;
use crate::engine::interrupt::Interrupt;
use crate::error::{DriveError, SessionError};
use crate::events::Notice;
use crate::events::{AttachedSink, Sink};
use crate::session::{Mirror, OpenedLog, Session, new_id};
use crate::sessions::SessionChoice;
use crate::setup::{Setup, SetupError};
use crate::store::SessionLocation;
use qoder_config::hooks::HookEvent;
use qoder_config::servers::Flags;
use qoder_types::server::Transport;

/// The sessions of this process.
#[derive(Default)]
pub struct Sessions {
    open: Mutex<HashMap<String, Known>>,
}

/// A session that was opened here.
struct Known {
    stop: Stopper,
    finished: Finishing,
}

/// What a front says about the first prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstPrompt {
    /// This one. A main agent's own first prompt goes before it.
    Text(String),
    /// The host speaks next, when it likes.
    FromHost,
    /// None: the session continues where it is, or repeats the result of its last turn.
    Continue,
}

/// Everything that a session is opened with.
pub struct OpenRequest {
    /// What was prepared from the options.
    pub setup: Setup,
    /// Hooks, servers and callbacks of the front.
    pub callbacks: Callbacks,
    /// The agent that is the main one; the settings may name one otherwise.
    pub agent: Option<String>,
    /// What the front says about MCP servers.
    pub servers: Flags,
    /// True when tools in the front's own process can be called.
    pub answers_own_servers: bool,
    /// Which session.
    pub choice: SessionChoice,
    /// A session that is kept elsewhere, instead of one that the choice names.
    pub kept: Option<SessionLocation>,
    /// What is asked first.
    pub first: FirstPrompt,
    /// Takes events from the start.
    pub sink: Arc<dyn Sink>,
    /// Is shown every line that is written to the log.
    pub mirror: Option<Mirror>,
    /// Prints what a person should know.
    pub report: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The options make no session.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// There is nothing to ask.
    #[error("there is no prompt")]
    NoPrompt,
    /// The session does not exist, is in use or is damaged.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The session is open, and what an earlier process left or the first prompt could not be put on record.
    #[error("{error}")]
    Begin {
        /// The session.
        session_id: String,
        /// What went wrong.
        error: DriveError,
    },
}

/// A session that was opened: its handle, and its first sink while that is attached.
pub struct OpenedSession {
    /// The handle.
    pub handle: SessionHandle,
    /// Dropping it detaches the front's sink.
    pub attachment: AttachedSink,
}

impl Sessions {
    /// Opens a session and begins to drive it, as a task of the current runtime.
    ///
    /// # Errors
    /// When the options, the session's log or the first prompt cannot be used.
    pub fn open(&self, request: OpenRequest) -> Result<OpenedSession, OpenError> {
        let OpenRequest { mut setup, mut callbacks, agent, first, choice, report, .. } = request;
        let told = setup.warnings.len();
        let initial = setup.become_main(agent.as_deref(), &callbacks.agents)?;
        if first == FirstPrompt::Continue && initial.is_none() && !choice.resumes() && request.kept.is_none()
        {
            return Err(OpenError::NoPrompt);
        }
        let servers = setup.bring_servers(&request.servers, &mut callbacks)?;
        setup.warnings.extend(servers.into_iter().map(Notice::from));
        setup.reword_warnings(told);
        setup.warnings[told..].iter().for_each(|warning| report(&format!("warning: {warning}")));
        if !request.answers_own_servers {
            callbacks.servers.retain(|server| !matches!(server.config.transport, Transport::Sdk { .. }));
        }
        let engine = Arc::new(setup.engine(callbacks.clone())?);
        let attachment = engine.common.hub.attach(request.sink);
        engine.common.extensions.current().problems.iter().for_each(|one| report(&format!("warning: {one}")));
        let mut session = match request.kept {
            Some(location) => setup.adopted(Session::open(location, setup.redactor(), &setup.cwd)?),
            None => choice.open(&setup)?,
        };
        if let Some(mirror) = &request.mirror {
            session.mirror_to(Arc::clone(mirror));
        }
        // It is the first one.
        let _ =
            engine.common.log.set(OpenedLog { location: session.location().clone(), mirror: request.mirror });
        let initial = initial.filter(|_| !choice.resumes());
        let repeats = begin(&engine, &mut session, first, initial)
            .map_err(|error| OpenError::Begin { session_id: session.id.clone(), error })?;
        let handle = self.start(engine, session, (Arc::new(setup), callbacks), repeats);
        Ok(OpenedSession { handle, attachment })
    }

    fn start(
        &self,
        engine: Arc<Engine>,
        session: Session,
        (setup, callbacks): (Arc<Setup>, Callbacks),
        repeats: bool,
    ) -> SessionHandle {
        let (session_id, location) = (session.id.clone(), session.location().clone());
        let served_at = Arc::new(OnceLock::new());
        let (live, inner, held) = Live::new(Arc::clone(&engine), session, Arc::clone(&served_at));
        let stop = Stopper::new(engine.common.ending.clone());
        let task = tokio::spawn(drive(live, stop.clone(), Arc::clone(&engine.common.hub), repeats));
        let finished = finishing(task, session_id.clone());
        let known = Known { stop: stop.clone(), finished: finished.clone() };
        self.lock().insert(session_id.clone(), known);
        let context = Arc::new(RequestContext::new(
            Arc::clone(&engine),
            inner.clone(),
            (session_id.clone(), location),
            setup,
            callbacks,
        ));
        // The first one stays.
        let _ = served_at.set(Arc::downgrade(&context));
        SessionHandle {
            driver: inner.clone(),
            engine,
            session_id,
            context,
            stop,
            finished,
            _held: Arc::new(held),
        }
    }

    /// The sessions that were opened here and have not ended.
    #[must_use]
    pub fn list(&self) -> Vec<String> {
        let mut known = self.lock();
        known.retain(|_, session| session.finished.peek().is_none());
        known.keys().cloned().collect()
    }

    /// Ends every session and waits for their ends.
    pub async fn shutdown(&self) {
        let known: Vec<Known> = self.lock().drain().map(|(_, known)| known).collect();
        known.iter().for_each(|session| session.stop.close());
        futures::future::join_all(known.into_iter().map(|session| session.finished)).await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Known>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Settles a turn that an earlier process left unfinished, and takes the first prompt. True when there is nothing to do but
/// to repeat the result of the last turn.
///
/// One rule for every front: where a prompt is about to come, an unfinished turn is closed, so that the next result is the
/// answer to that prompt; but a question that waits stays as long as it can be answered here. Without a prompt the turn
/// continues. A call that runs outside the runtime can always be answered, so a host that is about to speak does not close it.
fn begin(
    engine: &Engine,
    session: &mut Session,
    first: FirstPrompt,
    initial: Option<String>,
) -> Result<bool, DriveError> {
    if session.state.turn.is_some() && first != FirstPrompt::Continue {
        let waits = |external: bool| {
            let asked = session.state.open_calls().filter_map(Call::waiting_ask);
            asked.into_iter().any(|asked| !external || asked.kind == AskKind::External)
        };
        let waits_here = waits(false) && engine.outlet.has_answerer();
        if !(waits_here || first == FirstPrompt::FromHost && waits(true)) {
            Driver::new(engine, session, Interrupt::default()).close_unfinished_turn()?;
        }
    }
    let is_new = session.state.prompts == 0 && session.state.inputs.is_empty();
    match (first, initial.filter(|_| is_new)) {
        (FirstPrompt::Text(text), Some(initial)) => prompt(engine, session, format!("{initial}\n\n{text}"))?,
        (FirstPrompt::Text(text), None) | (FirstPrompt::Continue, Some(text)) => {
            prompt(engine, session, text)?
        }
        (FirstPrompt::FromHost, Some(initial)) => {
            let input = InputAdmitted::user(new_id(), Message::user(initial));
            Driver::new(engine, session, Interrupt::default()).admit(input)?;
        }
        (FirstPrompt::FromHost, None) => {}
        (FirstPrompt::Continue, None)
            if session.state.is_unfinished() || session.agents_to_resume().next().is_some() => {}
        (FirstPrompt::Continue, None) if session.state.last_turn.is_some() => return Ok(true),
        (FirstPrompt::Continue, None) => {
            return Err(SessionError::NothingToResume { id: session.id.clone() }.into());
        }
    }
    Ok(false)
}

/// Takes a prompt into the log. Behind waiting inputs it waits too; an echo needs the turn to be announced first, hooks come
/// before the log, and so does what a command stands for.
fn prompt(engine: &Engine, session: &mut Session, text: String) -> Result<(), SessionError> {
    let listens = |event: HookEvent| engine.hooks.listens(event.as_str());
    let watched = listens(HookEvent::UserPromptSubmit)
        || listens(HookEvent::SessionStart)
        || (!engine.no_commands && is_command(&text));
    let message = Message::user(text);
    let waits = !session.state.inputs.is_empty() || !session.state.system_inputs.is_empty();
    let taken = if !waits && !engine.front.replay_user_messages && !watched {
        session.prompt(message)
    } else {
        session.append(RecordBody::InputAdmitted(InputAdmitted::user(new_id(), message)))
    };
    taken.map(drop).map_err(SessionError::Store)
}
