//! A conversation with a program: the handshake, the session, and lines in both directions until one side ends.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::config::agents::AgentDefinition;
use qoder_runtime::config::servers::Flags;
use qoder_runtime::events::Sink;
use qoder_runtime::sessions::{
    Finished, Finishing, FirstPrompt, OpenError, OpenRequest, OpenedSession, SessionChoice, Sessions,
    Stopped, Stopper, requests,
};
use qoder_runtime::setup::Setup;
use serde_json::Value;

use crate::asking::{AskingSink, Asks};
use crate::console::Console;
use crate::control::{Channel, HandshakeError, declared};
use crate::input::{self, Line};
use crate::mirror::mirror;
use crate::output::{JsonLines, ReaderGone, Wanted};
use crate::program::{Program, Signal, Signals};
use crate::reader::Reader;

/// Everything that is known before the first line.
pub struct Conversation {
    /// Which session.
    pub choice: SessionChoice,
    /// The agent that is the main one.
    pub agent: Option<String>,
    /// Agents of the command line, or why they cannot be used. What the handshake declares is nearer.
    pub agents: Result<BTreeMap<String, AgentDefinition>, Refusal>,
    /// Servers of the command line.
    pub servers: Flags,
    /// Who answers what the gate leaves open.
    pub asks: Asks,
    /// What the program reads besides messages.
    pub wanted: Wanted,
    /// True when the lines of the session's log go out, too.
    pub mirrors: bool,
    /// What is written in place of lines. No request is served then: there is no way for its answer.
    pub sink: Option<Arc<dyn Sink>>,
}

/// Why something of the command line is refused, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// Why there is no conversation.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The handshake is refused. The program was told.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// Something of the command line is refused. The program was told.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The session cannot be opened.
    #[error(transparent)]
    Open(OpenError),
}

/// What a conversation came to.
pub struct Ended {
    /// The session at its end.
    pub finished: Arc<Finished>,
    /// Why it ended.
    pub cause: Cause,
    /// True when the last that happened was a line that cannot be used.
    pub refused: bool,
}

/// Why a conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The program closed its side, or the session failed.
    Session,
    /// A signal.
    Interrupted,
    /// No one reads the output.
    OutputClosed,
}

/// How a conversation was left.
pub enum Left {
    /// It ended.
    Ended(Ended),
    /// A second SIGINT: the process shall end at once.
    AtOnce,
}

impl Conversation {
    /// Reads lines from stdin until its end; each user message becomes a turn.
    ///
    /// # Errors
    /// When the handshake is refused or the session cannot be opened.
    pub async fn run(
        self,
        mut setup: Setup,
        program: Arc<dyn Program>,
        signals: impl Signals,
    ) -> Result<Left, StdioError> {
        let mut lines = input::lines();
        let console: Arc<dyn Console> = Arc::clone(&program) as Arc<dyn Console>;
        let output = Arc::new(JsonLines::new(self.wanted, Arc::clone(&console)));
        let channel = Channel::new(Arc::clone(&output));
        let first = lines.recv().await;
        let (handshake, callbacks) = self.shake_hands(first.as_ref(), &channel, &mut setup)?;
        let refused = Arc::new(AtomicBool::new(false));
        let asking = Arc::new(AskingSink::new(
            (Arc::clone(&output), Arc::clone(&console)),
            Arc::clone(&channel),
            self.asks.clone(),
            Arc::clone(&refused),
        ));
        let serves = self.sink.is_none();
        let names = setup.options.option_names;
        let opened = self.open(setup, callbacks, (&asking, &output, &console), handshake.is_some());
        let OpenedSession { handle, attachment: _attached } = opened.map_err(|error| {
            if let (Some(id), OpenError::Setup(error)) = (&handshake, &error) {
                channel.respond(id, Err(names.reword(&format!("{error}. {}", error.hint())).into_owned()));
            }
            StdioError::Open(error)
        })?;
        asking.know_session(&handle);
        program.opened(&handle);
        if let Some(id) = &handshake {
            let greeting = handle.request(requests::Greeting {}).await;
            channel.respond(id, greeting.map_err(|error| error.to_string()));
        }
        let (finished, stop) = (handle.finished(), handle.stopper());
        let (refusing, tasks) = (Arc::clone(&refused), HashMap::new());
        let reader = Reader { handle, channel, program, serves, refused: refusing, tasks };
        let first = first.filter(|_| handshake.is_none());
        let reading = tokio::spawn(reader.read(first, lines));
        let ended = attend(finished, &stop, &refused, signals).await;
        reading.abort();
        Ok(match ended {
            Some((finished, cause)) => {
                Left::Ended(Ended { finished, cause, refused: refused.load(Ordering::Relaxed) })
            }
            None => Left::AtOnce,
        })
    }

    fn open(
        self,
        setup: Setup,
        callbacks: Callbacks,
        (asking, output, console): (&Arc<AskingSink>, &Arc<JsonLines>, &Arc<dyn Console>),
        shook_hands: bool,
    ) -> Result<OpenedSession, OpenError> {
        let report = Arc::clone(console);
        Sessions::default().open(OpenRequest {
            setup,
            callbacks,
            agent: self.agent,
            servers: self.servers,
            // Without a handshake no program answers for servers inside of it.
            answers_own_servers: shook_hands,
            choice: self.choice,
            kept: None,
            first: FirstPrompt::FromHost,
            sink: self.sink.unwrap_or_else(|| Arc::clone(asking) as Arc<dyn Sink>),
            mirror: self.mirrors.then(|| mirror(output, console)),
            report: Arc::new(move |text| report.print_note(text)),
        })
    }

    /// The handshake's id when the first line is one, and what comes with it.
    fn shake_hands(
        &self,
        first: Option<&Line>,
        channel: &Arc<Channel>,
        setup: &mut Setup,
    ) -> Result<(Option<String>, Callbacks), StdioError> {
        let (handshake, mut callbacks) = match first {
            Some(Line::Control { id, request }) if is_initialize(request) => {
                let declared = declared(request, channel, setup)
                    .inspect_err(|error| channel.respond(id, Err(error.to_string())))?;
                (Some(id.clone()), declared)
            }
            Some(_) | None => (None, Callbacks::default()),
        };
        let names = setup.options.option_names;
        let agents = self.agents.clone().inspect_err(|refusal| {
            if let Some(id) = &handshake {
                let text = format!("{}. {}", refusal.message, refusal.hint);
                channel.respond(id, Err(names.reword(&text).into_owned()));
            }
        })?;
        for (name, definition) in agents {
            callbacks.agents.entry(name).or_insert(definition);
        }
        Ok((handshake, callbacks))
    }
}

fn is_initialize(request: &Value) -> bool {
    request.get("subtype").and_then(Value::as_str) == Some("initialize")
}

/// Waits for the end of the session, and passes on what stops it from outside. `None` when the process shall end at once.
async fn attend(
    finished: Finishing,
    stop: &Stopper,
    refused: &AtomicBool,
    mut signals: impl Signals,
) -> Option<(Arc<Finished>, Cause)> {
    let mut reader = ReaderGone::watch();
    let mut cause = Cause::Session;
    loop {
        tokio::select! {
            finished = finished.clone() => return Some((finished, cause)),
            signal = signals.next() => match signal {
                Signal::Interrupt => match stop.interrupt() {
                    Stopped::Turn => refused.store(false, Ordering::Relaxed),
                    Stopped::Idle => {
                        cause = Cause::Interrupted;
                        stop.close();
                    }
                    Stopped::Again => return None,
                },
                Signal::End(name) => {
                    cause = Cause::Interrupted;
                    stop.end(name);
                }
            },
            () = reader.gone(), if cause == Cause::Session => {
                // Every running call gets its outcome on record before the end.
                cause = Cause::OutputClosed;
                stop.close();
            }
        }
    }
}
