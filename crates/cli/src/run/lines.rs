//! Messages as JSON lines on stdin, for programs that start us: the options of that front, and its end as an exit code.

use std::sync::{Arc, Mutex, PoisonError};

use qoder_core::State;
use qoder_runtime::sessions::{OpenError, SessionChoice, SessionHandle};
use qoder_runtime::setup::Setup;
use qoder_stdio::{
    Asks, Cause, Console, Conversation, Ended, Left, Program, Refusal, StateFor, StdioError, Wanted,
};

use crate::command_line::arguments::{Arguments, OutputFormat};
use crate::exit::{Exit, Fault, of_turn};
use crate::run::agents_flag;
use crate::run::announce::{announce_failure, tell_offline};
use crate::run::host::{self, View};
use crate::run::server_flags;
use crate::run::signals::{self, Moves, Signals};
use crate::screen::{self, Streams};

/// Reads messages from stdin until its end; each becomes a turn.
pub fn run(
    arguments: &Arguments,
    setup: Setup,
    choice: &SessionChoice,
    format: OutputFormat,
) -> Result<Exit, Fault> {
    let conversation = Conversation {
        choice: choice.clone(),
        agent: arguments.agent.clone(),
        agents: agents_flag::of_flag(arguments.agents.as_deref())
            .map_err(|Fault { message, hint, .. }| Refusal { message, hint }),
        servers: server_flags(&arguments.protocol),
        asks: asks(arguments.protocol.permission_prompt_tool.as_deref())?,
        wanted: wanted(arguments, &setup),
        mirrors: arguments.protocol.session_mirror,
        sink: match format {
            OutputFormat::StreamJson => None,
            OutputFormat::Json | OutputFormat::Text => Some(host::make(View {
                format,
                partial: arguments.include_partial_messages,
                verbose: arguments.verbose || arguments.debug,
                hook_events: arguments.protocol.include_hook_events,
                // Every prompt of the stream has a result.
                last_result: false,
            })),
        },
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault { exit: Exit::General, message: error.to_string(), hint: String::new() })?;
    let program = Arc::new(ThisProgram { format, moves: Mutex::new(None) });
    let left = runtime.block_on(async { conversation.run(setup, program, Signals::new()).await });
    let exit = match left {
        Ok(Left::Ended(ended)) => exit_of(&ended, format),
        Ok(Left::AtOnce) => std::process::exit(Exit::Interrupted as i32),
        Err(error) => Err(fault_of(error, format)),
    };
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

fn wanted(arguments: &Arguments, setup: &Setup) -> Wanted {
    let set = |names: [&str; 2]| {
        names.iter().any(|name| {
            let value = setup.options.environment.get(*name);
            value.is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
        })
    };
    let session_state = if set(["QODER_EMIT_SESSION_STATE_EVENTS", "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"]) {
        Some(StateFor::Caller)
    } else if set(["QODER_SDK_READS_SESSION_STATE", "CLAUDE_CODE_SDK_READS_SESSION_STATE"]) {
        Some(StateFor::Sdk)
    } else {
        None
    };
    Wanted {
        partial: arguments.include_partial_messages,
        verbose: arguments.verbose || arguments.debug,
        hook_events: arguments.protocol.include_hook_events,
        first_retry: arguments.print,
        session_state,
    }
}

fn exit_of(ended: &Ended, format: OutputFormat) -> Result<Exit, Fault> {
    let finished = &ended.finished;
    match finished.take_error().map(Fault::from) {
        // A turn that was started ends with a result, also when its log can no longer be written.
        Some(fault) if matches!(fault.exit, Exit::Session | Exit::Waiting | Exit::Interrupted) => {
            Err(announce_failure(fault, format, &finished.session_id, &finished.state))
        }
        Some(fault) => Err(fault),
        None => Ok(match (ended.cause, ended.refused) {
            (Cause::Interrupted, _) => Exit::Interrupted,
            (Cause::OutputClosed, _) => Exit::OutputClosed,
            (Cause::Session, true) => Exit::Input,
            (Cause::Session, false) => finished.last.as_ref().map_or(Exit::Success, of_turn),
        }),
    }
}

fn fault_of(error: StdioError, format: OutputFormat) -> Fault {
    match error {
        StdioError::Handshake(error) => Fault::input(error.to_string(), error.hint()),
        StdioError::Refused(Refusal { message, hint }) => Fault::input(message, hint),
        StdioError::Open(OpenError::Begin { session_id, error }) => {
            announce_failure(error.into(), format, &session_id, &State::default())
        }
        StdioError::Open(OpenError::Session(error)) => {
            announce_failure(error.into(), format, "", &State::default())
        }
        StdioError::Open(error) => error.into(),
    }
}

/// This program, as the front of programs sees it.
struct ThisProgram {
    format: OutputFormat,
    moves: Mutex<Option<Moves>>,
}

impl Console for ThisProgram {
    fn write_line(&self, line: &mut Vec<u8>) -> std::io::Result<()> {
        Streams.write_line(line)
    }

    fn print_note(&self, text: &str) {
        Streams.print_note(text);
    }
}

impl Program for ThisProgram {
    fn opened(&self, session: &SessionHandle) {
        tell_offline(session);
        let moves = signals::watch_moves(session.mover());
        *self.moves.lock().unwrap_or_else(PoisonError::into_inner) = Some(moves);
    }

    fn refused(&self, problem: String, session_id: &str) {
        let fault = announce_failure(Fault::input(problem, ""), self.format, session_id, &State::default());
        screen::report(&fault);
    }
}
