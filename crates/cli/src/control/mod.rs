//! Messages as JSON lines on stdin: prompts, and the control protocol of programs that start us. stdin is read while
//! turns run and while stdout blocks; every request is served by a task of its own.

mod asking;
mod channel;
mod gone;
mod initialize;
mod servers;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use qoder_core::State;
use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::driver::Driver;
use qoder_runtime::engine::Engine;
use qoder_runtime::events::Host;
use qoder_runtime::interrupt::Interrupt;
use qoder_runtime::live::{Desk, Live};
use qoder_runtime::mcp::config::Transport;
use qoder_runtime::opening::SessionChoice;
use qoder_runtime::session::{Mirror, Session};
use qoder_runtime::setup::{Setup, SetupError};
use qoder_types::control::Initialize;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::AbortHandle;

use crate::agents;
use crate::arguments::{Arguments, OutputFormat};
use crate::exit::{Exit, Fault, of_turn};
use crate::host::{self, JsonLines, StateFor, View, Wanted};
use crate::input::{self, Line};
use crate::options;
use crate::print::{announce_failure, tell_offline};
use crate::screen;
use crate::signals;
use asking::{AskingHost, Asks};
use channel::Channel;
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
        let (handshake, callbacks, initial) = self.shake_hands(first.as_ref(), &channel, &mut setup)?;
        let asking = Arc::new(AskingHost::new(Arc::clone(&output), Arc::clone(&channel), self.asks.clone()));
        let host = self.host(&asking);
        let made = self.with_servers(callbacks, &mut setup, handshake.is_some());
        let made =
            made.and_then(|all| setup.engine(Arc::clone(&host), all.clone()).map(|engine| (all, engine)));
        let (callbacks, engine) = match made {
            Ok((callbacks, engine)) => (callbacks, Arc::new(engine)),
            Err(error) => {
                if let Some(id) = &handshake {
                    channel.respond(id, Err(format!("{error}. {}", error.hint())));
                }
                return Err(error.into());
            }
        };
        agents::tell_problems(&engine);
        tell_offline(&engine);
        asking.know_servers(engine.toolbox.servers());
        let mut session = match self.choice.open(&setup) {
            Ok(session) => session,
            Err(error) => return Err(announce_failure(error.into(), self.format, "", &State::default())),
        };
        self.mirror(&engine, &mut session, &output);
        if handshake.is_some() {
            close_old_turn(&engine, &mut session)?;
        }
        let outputs = self.choice.forget.then(|| session.outputs().to_path_buf());
        let _moves = signals::watch_moves(Arc::clone(&engine.shared));
        let (mut live, handle) = Live::new(engine, session);
        if let Some(prompt) = initial {
            live.begin_with(&prompt)?;
        }
        let desk = Arc::new(Desk::new(handle, Arc::new(setup), callbacks));
        if let Some(id) = &handshake {
            channel.respond(id, Ok(desk.greeting()));
        }
        let refused = Arc::new(AtomicBool::new(false));
        let reader = Reader {
            desk,
            channel,
            format: self.format,
            refused: Arc::clone(&refused),
            tasks: HashMap::new(),
        };
        let first = first.filter(|_| handshake.is_none());
        let reading = tokio::spawn(reader.read(first, lines));
        let driven = drive(live, self.format, &refused).await;
        reading.abort();
        if let Some(outputs) = outputs {
            // Often there is none; one that cannot be removed is in the system's temporary folder.
            let _ = std::fs::remove_dir_all(outputs);
        }
        let exit = driven?;
        Ok(if exit == Exit::Success && refused.load(Ordering::Relaxed) { Exit::Input } else { exit })
    }

    /// The handshake's id when the first line is one, what comes with it, and the prompt that the main agent begins with.
    fn shake_hands(
        &self,
        first: Option<&Line>,
        channel: &Arc<Channel>,
        setup: &mut Setup,
    ) -> Result<(Option<String>, Callbacks, Option<String>), Fault> {
        let (handshake, callbacks) = match first {
            Some(Line::Control { id, request }) if is_initialize(request) => {
                let declared = declared(request, channel, setup).map_err(|problem| {
                    channel.respond(id, Err(problem.clone()));
                    Fault::input(problem, "the program that started qodercli sent it")
                })?;
                (Some(id.clone()), declared)
            }
            Some(_) | None => (None, Callbacks::default()),
        };
        let (callbacks, initial) = agents::bring(self.arguments, setup, callbacks).inspect_err(|fault| {
            if let Some(id) = &handshake {
                channel.respond(id, Err(format!("{}. {}", fault.message, fault.hint)));
            }
        })?;
        Ok((handshake, callbacks, initial))
    }

    /// Repeats the session's log and those of its agents, when the program keeps sessions elsewhere.
    fn mirror(&self, engine: &Engine, session: &mut Session, output: &Arc<JsonLines>) {
        if self.arguments.protocol.session_mirror {
            let mirror = mirror(output);
            session.mirror_to(Arc::clone(&mirror));
            // It is the first one.
            let _ = engine.mirror.set(mirror);
        }
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

    /// The servers of the session. Without a handshake nobody answers for those inside the program.
    fn with_servers(
        &self,
        mut callbacks: Callbacks,
        setup: &mut Setup,
        shook_hands: bool,
    ) -> Result<Callbacks, SetupError> {
        let flags = flags(&self.arguments.protocol);
        let warnings = setup.bring_servers(&flags, &mut callbacks)?;
        options::tell_warnings(setup, warnings);
        if !shook_hands {
            callbacks.servers.retain(|server| !matches!(server.config.transport, Transport::Sdk { .. }));
        }
        Ok(callbacks)
    }

    fn host(&self, asking: &Arc<AskingHost>) -> Arc<dyn Host> {
        match self.format {
            OutputFormat::StreamJson => Arc::clone(asking) as Arc<dyn Host>,
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
fn declared(request: &Value, channel: &Arc<Channel>, setup: &mut Setup) -> Result<Callbacks, String> {
    let initialize: Initialize =
        serde_json::from_value(request.clone()).map_err(|error| format!("initialize: {error}"))?;
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

/// A host that resumes a session speaks next: a turn that an earlier process left open is closed, so that the next result
/// is the answer to the host's own prompt. A question that waits stays: the host may be the one to answer it.
fn close_old_turn(engine: &Engine, session: &mut Session) -> Result<(), Fault> {
    let waits = session.state.open_calls().any(|call| call.asked.is_some() && call.answer.is_none());
    if session.state.turn.is_some() && !waits {
        Driver::new(engine, session, Interrupt::default()).close_unfinished_turn()?;
    }
    Ok(())
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

/// Turns until nothing can come any more.
async fn drive(mut live: Live, format: OutputFormat, refused: &AtomicBool) -> Result<Exit, Fault> {
    let driven = turns(&mut live, refused).await;
    let ended = live.end().await;
    match driven.and_then(|exit| ended.map(|()| exit).map_err(Fault::from)) {
        // A turn that was started ends with a result, also when its log cannot be written any more.
        Err(fault) if matches!(fault.exit, Exit::Session | Exit::Waiting | Exit::Interrupted) => {
            Err(announce_failure(fault, format, &live.session().id, &live.session().state))
        }
        other => other,
    }
}

async fn turns(live: &mut Live, refused: &AtomicBool) -> Result<Exit, Fault> {
    let mut exit = Exit::Success;
    let mut reader = ReaderGone::watch();
    loop {
        let interrupt = Interrupt::default();
        let watching = signals::watch(interrupt.clone(), live.ending());
        let ready = tokio::select! {
            ready = live.ready() => ready?,
            () = watching.interrupted() => return Ok(Exit::Interrupted),
            () = reader.gone() => return Ok(Exit::OutputClosed),
        };
        if !ready {
            return Ok(exit);
        }
        let mut turn = Box::pin(live.turn(interrupt.clone()));
        let ended = tokio::select! {
            ended = &mut turn => ended?,
            () = reader.gone() => {
                // Every running call gets its outcome on record before the end.
                interrupt.trigger();
                turn.await?
            }
        };
        if let Some(end) = ended {
            exit = of_turn(&end);
            // The last result decides, and a turn that ends has a newer one than lines that were refused before.
            refused.store(false, Ordering::Relaxed);
        }
    }
}

/// Takes lines to where they belong.
struct Reader {
    desk: Arc<Desk>,
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
        // Nobody can answer any more. The session ends when the last request is served and its turns are done.
        self.channel.close();
    }

    fn take(&mut self, line: Line) {
        match line {
            // A session that has ended takes nothing; its end is told elsewhere.
            Line::User(input) => drop(self.desk.handle().submit(input)),
            Line::Control { id, request } => self.serve(id, request),
            Line::Response { id, answer } => self.channel.resolve(&id, answer),
            Line::Cancel(id) => {
                if let Some(task) = self.tasks.remove(&id) {
                    task.abort();
                }
            }
            Line::Refused(problem) => {
                self.refused.store(true, Ordering::Relaxed);
                let id = self.desk.handle().session_id();
                announce_failure(Fault::input(problem, ""), self.format, id, &State::default()).report();
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
        let (desk, channel, name) = (Arc::clone(&self.desk), Arc::clone(&self.channel), id.clone());
        let mut serving = Box::pin(async move {
            let answer = desk.answer(request).await;
            channel.respond(&name, answer);
        });
        // The first step at once, so that what goes to the session keeps the order in which it came.
        if (&mut serving).now_or_never().is_none() {
            self.tasks.insert(id, tokio::spawn(serving).abort_handle());
        }
    }
}
