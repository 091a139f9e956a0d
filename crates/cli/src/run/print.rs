//! Print mode: opens or resumes a session, takes the prompt into its log, and drives it to the end of the turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use qoder_config::trust::Trust;
use qoder_core::State;
use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::sessions::SessionChoice;
use qoder_runtime::sessions::{
    Finished, Finishing, FirstPrompt, OpenError, OpenRequest, OpenedSession, SessionHandle, Sessions,
    Stopped, Stopper,
};
use qoder_runtime::setup::Setup;
use qoder_types::record::TurnEnded;

use crate::command_line::arguments::{Arguments, InputFormat, OutputFormat};
use crate::exit::{Exit, Fault, is_denied, of_turn};
use crate::run::after::AfterRun;
use crate::run::agents_flag;
use crate::run::announce::{announce_failure, tell_offline};
use crate::run::choice::session_choice;
use crate::run::host::{self, View};
use crate::run::input;
use crate::run::lines;
use crate::run::options;
use crate::run::server_flags;
use crate::run::signals::{self, Signal, Signals};
use crate::screen;

/// Runs print mode to its exit.
pub fn run(arguments: &Arguments, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    let choice = session_choice(arguments)?;
    qoder_process::own_process_tree();
    let setup = Setup::prepare(options::from_arguments(arguments, environment)?)?;
    screen::hide_secrets(&setup);
    let format = options::output_format(arguments, &setup)?;
    for warning in &setup.warnings {
        screen::print_note(&format!("warning: {warning}"));
    }
    let after = AfterRun::of(&setup, &choice);
    let exit = if arguments.input_format == InputFormat::StreamJson {
        lines::run(arguments, setup, &choice, format)
    } else {
        one_prompt(arguments, setup, &choice, format)
    };
    after.finish();
    exit
}

fn one_prompt(
    arguments: &Arguments,
    setup: Setup,
    choice: &SessionChoice,
    format: OutputFormat,
) -> Result<Exit, Fault> {
    let mut callbacks = Callbacks::default();
    agents_flag::bring(arguments, &mut callbacks)?;
    let optional = choice.resumes() || setup.has_main(arguments.agent.as_deref());
    let first = match input::prompt(arguments.prompt.as_deref(), optional)? {
        Some(text) => FirstPrompt::Text(text),
        None => FirstPrompt::Continue,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault { exit: Exit::General, message: error.to_string(), hint: String::new() })?;
    let exit = runtime.block_on(one_turn(arguments, setup, callbacks, (choice, first), format));
    // A blocking read of stdin or a walk of a tree must not hold the exit up.
    runtime.shutdown_background();
    exit
}

async fn one_turn(
    arguments: &Arguments,
    setup: Setup,
    callbacks: Callbacks,
    (choice, first): (&SessionChoice, FirstPrompt),
    format: OutputFormat,
) -> Result<Exit, Fault> {
    let view = View {
        format,
        partial: arguments.include_partial_messages,
        verbose: arguments.verbose || arguments.debug,
        hook_events: arguments.protocol.include_hook_events,
        last_result: true,
    };
    let sink = host::attended(view, setup.config.trust != Trust::No);
    let about = arguments.debug.then(|| debug_setup(&setup));
    let opened = Sessions::default().open(OpenRequest {
        setup,
        callbacks,
        agent: arguments.agent.clone(),
        servers: server_flags(&arguments.protocol),
        // No program shook hands that could answer for servers inside of it.
        answers_own_servers: false,
        choice: choice.clone(),
        kept: None,
        first,
        sink,
        mirror: None,
        report: Arc::new(screen::print_note),
    });
    let OpenedSession { handle, attachment: _attached } = match opened {
        Ok(opened) => opened,
        Err(OpenError::Begin { session_id, error }) => {
            return Err(announce_failure(error.into(), format, &session_id, &State::default()));
        }
        Err(OpenError::Session(error)) => {
            return Err(announce_failure(error.into(), format, "", &State::default()));
        }
        Err(error) => return Err(error.into()),
    };
    tell_offline(&handle);
    about
        .into_iter()
        .flatten()
        .chain(arguments.debug.then(|| debug_session(&handle)).into_iter().flatten())
        .for_each(|line| screen::print_note(&format!("debug: {line}")));
    let _moves = signals::watch_moves(handle.mover());
    let (finished, stop) = (handle.finished(), handle.stopper());
    // Nothing else is asked: the session ends when it is idle.
    drop(handle);
    let finished = attend(finished, &stop).await;
    match finished.take_error().map(Fault::from) {
        // A turn that was started ends with a result, also when its log can no longer be written.
        Some(fault) if matches!(fault.exit, Exit::Session | Exit::Waiting | Exit::Interrupted) => {
            Err(announce_failure(fault, format, &finished.session_id, &finished.state))
        }
        Some(fault) => Err(fault),
        None => {
            if format == OutputFormat::Text && !arguments.no_session_persistence {
                print_id(&finished.session_id);
            }
            Ok(finished.last.as_ref().map_or(Exit::Success, |end| exit_of(end, format)))
        }
    }
}

/// Waits for the end of the session, and passes signals on.
async fn attend(finished: Finishing, stop: &Stopper) -> Arc<Finished> {
    let mut signals = Signals::new();
    loop {
        tokio::select! {
            finished = finished.clone() => return finished,
            signal = signals.next() => match signal {
                Signal::Interrupt => match stop.interrupt() {
                    Stopped::Turn | Stopped::Idle => {}
                    Stopped::Again => std::process::exit(Exit::Interrupted as i32),
                },
                Signal::End(name) => stop.end(name),
            },
        }
    }
}

/// Prints the ID of the session on a terminal, for `sessions show`, `permissions explain` and `--resume`.
fn print_id(id: &str) {
    if screen::stdout_is_terminal() && screen::stderr_is_terminal() {
        let line = screen::Paint::of_stderr(&crate::command_line::environment::environment()).line();
        screen::print_painted_note(&line.ink(screen::Ink::Faint, &format!("session {id}")));
    }
}

/// What was decided before the session was opened.
fn debug_setup(setup: &Setup) -> Vec<String> {
    let layers: Vec<String> =
        setup.config.settings.layers.iter().map(qoder_config::settings::Layer::name).collect();
    vec![
        format!("config root {}, settings [{}]", setup.config.config_root.display(), layers.join(", ")),
        format!(
            "folder {}, project {}, trust {:?}",
            setup.cwd.display(),
            setup.config.project_root.display(),
            setup.config.trust
        ),
        format!("mode {}, durability {:?}", setup.mode().as_str(), setup.durability),
    ]
}

/// What the session begins with.
fn debug_session(session: &SessionHandle) -> Vec<String> {
    let facts = session.model();
    vec![
        format!("session {}", session.session_id()),
        format!("model {}, window {}, key from {}", facts.name, facts.context_window, facts.key_source),
        format!("tools [{}]", session.tools().join(", ")),
    ]
}

/// The exit code of a run with one prompt. A script that asked for a change and got none has to notice.
fn exit_of(end: &TurnEnded, format: OutputFormat) -> Exit {
    if !is_denied(end) || format == OutputFormat::StreamJson {
        return of_turn(end);
    }
    let (count, were) = match end.permission_denials.len() {
        1 => ("the call".to_owned(), "was"),
        count => (format!("all {count} calls"), "were"),
    };
    screen::print_note(&format!("error: nothing ran: {count} of the model {were} denied"));
    screen::print_note("  hint: `qodercli permissions explain` prints why");
    Exit::General
}
