//! Messages as JSON lines on stdin: prompts, and the control protocol of programs that start us. stdin is read while
//! turns run and while stdout blocks; every request is served by a task of its own.

mod asking;
mod channel;
mod error;
mod gone;
mod initialize;
mod serve;
mod servers;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use qoder_core::State;
use qoder_protocol::control::Initialize;
use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::events::Sink;
use qoder_runtime::session::Mirror;
use qoder_runtime::sessions::SessionChoice;
use qoder_runtime::sessions::{
    Finished, Finishing, FirstPrompt, OpenError, OpenRequest, OpenedSession, SessionHandle, Sessions,
    Stopped, Stopper, requests,
};
use qoder_runtime::setup::Setup;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::AbortHandle;

use crate::command_line::arguments::{Arguments, OutputFormat};
use crate::exit::{Exit, Fault, of_turn};
use crate::run::agents_flag;
use crate::run::announce::{announce_failure, tell_offline};
use crate::run::host::{self, JsonLines, StateFor, View, Wanted};
use crate::run::input::{self, Line};
use crate::run::signals::{self, Signal, Signals};
use crate::screen;
use asking::{AskingSink, Asks};
use channel::Channel;
use error::HandshakeError;
use gone::ReaderGone;
use initialize::Handshake;

pub use servers::flags;

/// Reads messages from stdin until its end; each becomes a turn.
pub fn run(
    arguments: &Arguments,
    setup: Setup,
    choice: &SessionChoice,
    format: OutputFormat,
) -> Result<Exit, Fault> {
    let asks = asks(arguments.protocol.permission_prompt_tool.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault { exit: Exit::General, message: error.to_string(), hint: String::new() })?;
    let connection = Connection { arguments, format, choice, asks };
    let exit = runtime.block_on(connection.serve(setup));
    // A blocking read of stdin or a walk of a tree must not hold the exit up.
    runtime.shutdown_background();
    exit
}

fn asks(tool: Option<&str>) -> Result<Asks, Fault> {
    match tool {
        None => Ok(Asks::Nobody),
        Some("stdio") => Ok(Asks::Program),
        Some(tool) if tool.starts_with("mcp__") => Ok(Asks::Tool(tool.to_owned())),
        Some(other) => Err(Fault::input(
            format!("--permission-prompt-tool: `{other}` cannot be asked"),
            "accepted are stdio, which asks the program that started qodercli, and a tool such as mcp__server__tool",
        )),
    }
}

/// Everything that is known before the first line.
struct Connection<'a> {
    arguments: &'a Arguments,
    format: OutputFormat,
    choice: &'a SessionChoice,
    asks: Asks,
}

impl Connection<'_> {
    async fn serve(self, mut setup: Setup) -> Result<Exit, Fault> {
        let mut lines = input::lines();
        let output = Arc::new(JsonLines::new(self.wanted(&setup)));
        let channel = Channel::new(Arc::clone(&output));
        let first = lines.recv().await;
        let (handshake, callbacks) = self.shake_hands(first.as_ref(), &channel, &mut setup)?;
        let refused = Arc::new(AtomicBool::new(false));
        let asking = Arc::new(AskingSink::new(
            Arc::clone(&output),
            Arc::clone(&channel),
            self.asks.clone(),
            Arc::clone(&refused),
        ));
        let opened = self.open(setup, callbacks, (&asking, &output), handshake.is_some());
        let OpenedSession { handle, attachment: _attached } = match opened {
            Ok(opened) => opened,
            Err(OpenError::Begin { session_id, error }) => {
                return Err(announce_failure(error.into(), self.format, &session_id, &State::default()));
            }
            Err(OpenError::Session(error)) => {
                return Err(announce_failure(error.into(), self.format, "", &State::default()));
            }
            Err(error) => {
                let fault = Fault::from(error);
                if let Some(id) = &handshake {
                    channel.respond(id, Err(format!("{}. {}", fault.message, fault.hint)));
                }
                return Err(fault);
            }
        };
        tell_offline(&handle);
        asking.know_session(&handle);
        let _moves = signals::watch_moves(handle.mover());
        if let Some(id) = &handshake {
            let greeting = handle.request(requests::Greeting {}).await;
            channel.respond(id, greeting.map_err(|error| error.to_string()));
        }
        let (finished, stop) = (handle.finished(), handle.stopper());
        let reader = Reader {
            handle,
            channel,
            format: self.format,
            refused: Arc::clone(&refused),
            tasks: HashMap::new(),
        };
        let first = first.filter(|_| handshake.is_none());
        let reading = tokio::spawn(reader.read(first, lines));
        let ended = attend(finished, &stop, &refused).await;
        reading.abort();
        let (finished, exit) = ended;
        match (finished.take_error().map(Fault::from), exit) {
            // A turn that was started ends with a result, also when its log can no longer be written.
            (Some(fault), _) if matches!(fault.exit, Exit::Session | Exit::Waiting | Exit::Interrupted) => {
                Err(announce_failure(fault, self.format, &finished.session_id, &finished.state))
            }
            (Some(fault), _) => Err(fault),
            (None, Some(exit)) => Ok(exit),
            (None, None) if refused.load(Ordering::Relaxed) => Ok(Exit::Input),
            (None, None) => Ok(finished.last.as_ref().map_or(Exit::Success, of_turn)),
        }
    }

    fn open(
        &self,
        setup: Setup,
        callbacks: Callbacks,
        (asking, output): (&Arc<AskingSink>, &Arc<JsonLines>),
        shook_hands: bool,
    ) -> Result<OpenedSession, OpenError> {
        Sessions::default().open(OpenRequest {
            setup,
            callbacks,
            agent: self.arguments.agent.clone(),
            servers: flags(&self.arguments.protocol),
            // Without a handshake no program answers for servers inside of it.
            answers_own_servers: shook_hands,
            choice: self.choice.clone(),
            kept: None,
            first: FirstPrompt::FromHost,
            sink: self.sink(asking),
            mirror: self.arguments.protocol.session_mirror.then(|| mirror(output)),
            report: Arc::new(screen::tell),
        })
    }

    /// The handshake's id when the first line is one, and what comes with it.
    fn shake_hands(
        &self,
        first: Option<&Line>,
        channel: &Arc<Channel>,
        setup: &mut Setup,
    ) -> Result<(Option<String>, Callbacks), Fault> {
        let (handshake, mut callbacks) = match first {
            Some(Line::Control { id, request }) if is_initialize(request) => {
                let declared = declared(request, channel, setup).map_err(|error| {
                    channel.respond(id, Err(error.to_string()));
                    Fault::input(error.to_string(), error.hint())
                })?;
                (Some(id.clone()), declared)
            }
            Some(_) | None => (None, Callbacks::default()),
        };
        agents_flag::bring(self.arguments, &mut callbacks).inspect_err(|fault| {
            if let Some(id) = &handshake {
                channel.respond(id, Err(format!("{}. {}", fault.message, fault.hint)));
            }
        })?;
        Ok((handshake, callbacks))
    }

    fn wanted(&self, setup: &Setup) -> Wanted {
        let set = |names: [&str; 2]| {
            names.iter().any(|name| {
                setup
                    .options
                    .environment
                    .get(*name)
                    .is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
            })
        };
        let session_state =
            if set(["QODER_EMIT_SESSION_STATE_EVENTS", "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"]) {
                Some(StateFor::Caller)
            } else if set(["QODER_SDK_READS_SESSION_STATE", "CLAUDE_CODE_SDK_READS_SESSION_STATE"]) {
                Some(StateFor::Sdk)
            } else {
                None
            };
        Wanted {
            partial: self.arguments.include_partial_messages,
            verbose: self.arguments.verbose || self.arguments.debug,
            hook_events: self.arguments.protocol.include_hook_events,
            first_retry: self.arguments.print,
            session_state,
        }
    }

    fn sink(&self, asking: &Arc<AskingSink>) -> Arc<dyn Sink> {
        match self.format {
            OutputFormat::StreamJson => Arc::clone(asking) as Arc<dyn Sink>,
            format @ (OutputFormat::Json | OutputFormat::Text) => host::make(View {
                format,
                partial: self.arguments.include_partial_messages,
                verbose: self.arguments.verbose || self.arguments.debug,
                hook_events: self.arguments.protocol.include_hook_events,
                // Every prompt of the stream has a result.
                last_result: false,
            }),
        }
    }
}

/// What the program declares.
fn declared(request: &Value, channel: &Arc<Channel>, setup: &mut Setup) -> Result<Callbacks, HandshakeError> {
    let initialize: Initialize = serde_json::from_value(request.clone())?;
    if initialize.sdk.is_some() {
        channel.output().want_early_status();
    }
    let handshake = Handshake(&initialize);
    if let Some(token) = handshake.access_token()? {
        setup.use_access_token(token);
    }
    let callbacks = handshake.callbacks(channel)?;
    handshake.apply_options(setup)?;
    Ok(callbacks)
}

/// Lines of the log as frames of the stream. One that is too long for a line is cut and named on stderr; the log has it.
fn mirror(output: &Arc<JsonLines>) -> Mirror {
    let output = Arc::clone(output);
    Arc::new(move |log, lines| {
        let path = log.to_string_lossy();
        let send = |line: &Value| {
            let entries = [line];
            output.control(&TranscriptMirror { kind: "transcript_mirror", file_path: &path, entries })
        };
        for line in lines {
            let Err(error) = send(line) else { continue };
            // Without an entry the ones before it would be lost to a reader that follows the chain.
            let (short, _) = output.bounded(line.clone());
            let outcome = if send(&short).is_ok() { "cut" } else { "not repeated" };
            screen::tell(&format!("warning: a line of the session's log was {outcome}: {error}"));
        }
    })
}

/// A frame for a store elsewhere.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TranscriptMirror<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    file_path: &'a str,
    entries: [&'a Value; 1],
}

fn is_initialize(request: &Value) -> bool {
    request.get("subtype").and_then(Value::as_str) == Some("initialize")
}

/// Waits for the end of the session, and passes on what stops it from outside. The exit code is given when that decides.
async fn attend(finished: Finishing, stop: &Stopper, refused: &AtomicBool) -> (Arc<Finished>, Option<Exit>) {
    let mut reader = ReaderGone::watch();
    let mut signals = Signals::new();
    let mut exit = None;
    loop {
        tokio::select! {
            finished = finished.clone() => return (finished, exit),
            signal = signals.next() => match signal {
                Signal::Interrupt => match stop.interrupt() {
                    Stopped::Turn => refused.store(false, Ordering::Relaxed),
                    Stopped::Idle => {
                        exit = Some(Exit::Interrupted);
                        stop.close();
                    }
                    Stopped::Again => std::process::exit(Exit::Interrupted as i32),
                },
                Signal::End(name) => {
                    exit = Some(Exit::Interrupted);
                    stop.end(name);
                }
            },
            () = reader.gone(), if exit.is_none() => {
                // Every running call gets its outcome on record before the end.
                exit = Some(Exit::OutputClosed);
                stop.close();
            }
        }
    }
}

/// Takes lines to where they belong.
struct Reader {
    handle: SessionHandle,
    channel: Arc<Channel>,
    format: OutputFormat,
    refused: Arc<AtomicBool>,
    /// Requests that are being served.
    tasks: HashMap<String, AbortHandle>,
}

impl Reader {
    async fn read(mut self, first: Option<Line>, mut lines: UnboundedReceiver<Line>) {
        if let Some(line) = first {
            self.take(line);
        }
        while let Some(line) = lines.recv().await {
            self.take(line);
        }
        // No further answer can come. The session ends when the last request is served and its turns are done.
        self.channel.close();
    }

    fn take(&mut self, line: Line) {
        match line {
            // A session that has ended takes nothing; its end is reported elsewhere.
            Line::User(input) => drop(self.handle.submit(input)),
            Line::Control { id, request } => self.serve(id, request),
            Line::Response { id, answer } => self.channel.resolve(&id, answer),
            Line::Cancel(id) => {
                if let Some(task) = self.tasks.remove(&id) {
                    task.abort();
                }
            }
            Line::Refused(problem) => {
                self.refused.store(true, Ordering::Relaxed);
                let id = self.handle.session_id();
                screen::report(&announce_failure(
                    Fault::input(problem, ""),
                    self.format,
                    id,
                    &State::default(),
                ));
            }
            Line::Bad(problem) => {
                self.refused.store(true, Ordering::Relaxed);
                screen::tell(&format!("warning: {problem}"));
            }
        }
    }

    fn serve(&mut self, id: String, request: Value) {
        if self.format != OutputFormat::StreamJson {
            return;
        }
        self.tasks.retain(|_, task| !task.is_finished());
        let (handle, channel, name) = (self.handle.clone(), Arc::clone(&self.channel), id.clone());
        let mut serving = Box::pin(async move {
            let answer = serve::answer(&handle, request).await;
            channel.respond(&name, answer.map_err(|error| error.to_string()));
        });
        // The first step at once, so that what goes to the session keeps the order in which it came.
        if (&mut serving).now_or_never().is_none() {
            self.tasks.insert(id, tokio::spawn(serving).abort_handle());
        }
    }
}
