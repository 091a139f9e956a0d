//! Print mode: opens or resumes a session, takes the prompt into its log, and drives it to the end of the turn.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use qoder_core::State;
use qoder_core::ports::Model;
use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::driver::{Driver, emit_result, is_command};
use qoder_runtime::engine::Engine;
use qoder_runtime::error::{DriveError, SessionError};
use qoder_runtime::hooks::HookEvent;
use qoder_runtime::interrupt::Interrupt;
use qoder_runtime::live::inner_inbox;
use qoder_runtime::mcp::config::Transport;
use qoder_runtime::opening::SessionChoice;
use qoder_runtime::retention::Retention;
use qoder_runtime::session::{Session, new_id};
use qoder_runtime::setup::Setup;
use qoder_runtime::telemetry::Telemetry;
use qoder_types::Message;
use qoder_types::record::{InputAdmitted, RecordBody, TurnEnded};

use crate::arguments::{Arguments, InputFormat, OutputFormat};
use crate::exit::{Exit, Fault, is_denied, of_turn};
use crate::host::{self, View};
use crate::{agents, control, input, options, screen, signals};

/// Runs print mode to its exit.
pub fn run(arguments: &Arguments, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    let choice = session_choice(arguments)?;
    qoder_tools::own_process_tree();
    let setup = Setup::prepare(options::from_arguments(arguments, environment)?)?;
    screen::hide_secrets(&setup);
    let format = options::output_format(arguments, &setup)?;
    for warning in &setup.warnings {
        screen::tell(&format!("warning: {warning}"));
    }
    let after = AfterRun::of(&setup, &choice);
    let exit = if arguments.input_format == InputFormat::StreamJson {
        control::run(arguments, setup, &choice, format)
    } else {
        one_prompt(arguments, setup, &choice, format)
    };
    after.finish();
    exit
}

/// What is done once everybody has their answer.
struct AfterRun {
    retention: Option<Retention>,
    config_root: PathBuf,
    telemetry: Option<Telemetry>,
}

impl AfterRun {
    fn of(setup: &Setup, choice: &SessionChoice) -> Self {
        // A run that keeps nothing leaves everything else alone as well.
        let retention = (!choice.forget).then(|| Retention::of(&setup.settings));
        Self { retention, config_root: setup.config_root.clone(), telemetry: setup.telemetry().cloned() }
    }

    fn finish(self) {
        if let Some(problem) = self.telemetry.and_then(|telemetry| telemetry.flush()) {
            screen::tell(&format!("warning: telemetry: {problem}"));
        }
        // Only what was deleted is told; what could not be is tried again.
        if let Some(text) = self.retention.and_then(|retention| retention.after_run(&self.config_root)) {
            screen::tell(&text);
        }
    }
}

fn one_prompt(
    arguments: &Arguments,
    mut setup: Setup,
    choice: &SessionChoice,
    format: OutputFormat,
) -> Result<Exit, Fault> {
    let (mut callbacks, initial) = agents::bring(arguments, &mut setup, Callbacks::default())?;
    let prompt = input::prompt(arguments.prompt.as_deref(), choice.resumes() || initial.is_some())?;
    let prompt = agents::begun(initial.filter(|_| !choice.resumes()), prompt);
    if prompt.is_none() && !choice.resumes() {
        return Err(Fault::input("there is no prompt", "give one: qodercli -p \"…\", or pipe one in"));
    }
    let host = host::make(View {
        format,
        partial: arguments.include_partial_messages,
        verbose: arguments.verbose || arguments.debug,
        hook_events: arguments.protocol.include_hook_events,
        last_result: true,
    });
    let warnings = setup.bring_servers(&control::flags(&arguments.protocol), &mut callbacks)?;
    options::tell_warnings(&mut setup, warnings);
    // Nobody answers for servers inside a program that did not shake hands.
    callbacks.servers.retain(|server| !matches!(server.config.transport, Transport::Sdk { .. }));
    let engine = setup.engine(Arc::clone(&host), callbacks)?;
    agents::tell_problems(&engine);
    tell_offline(&engine);
    let mut session = match choice.open(&setup) {
        Ok(session) => session,
        Err(error) => return Err(announce_failure(error.into(), format, "", &State::default())),
    };
    if arguments.debug {
        debug(&setup, &engine, &session);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault { exit: Exit::General, message: error.to_string(), hint: String::new() })?;
    let exit = runtime.block_on(async {
        let _moves = signals::watch_moves(Arc::clone(&engine.shared));
        engine.toolbox.servers().start();
        let driven = one_turn(&engine, &mut session, prompt, format).await;
        let told = Driver::new(&engine, &mut session, Interrupt::default()).end_session().await;
        driven.and_then(|exit| told.map(|()| exit).map_err(Fault::from))
    });
    // A blocking read of stdin or a walk of a tree must not hold the exit up.
    runtime.shutdown_background();
    if arguments.no_session_persistence {
        // Often there is none; one that cannot be removed is in the system's temporary folder.
        let _ = std::fs::remove_dir_all(session.outputs());
    }
    match exit {
        // A turn that was started ends with a result, also when its log cannot be written any more.
        Err(fault) if matches!(fault.exit, Exit::Session | Exit::Waiting | Exit::Interrupted) => {
            Err(announce_failure(fault, format, &session.id, &session.state))
        }
        other => {
            engine.host.end().map_err(DriveError::Output)?;
            if format == OutputFormat::Text && !arguments.no_session_persistence {
                print_id(&session.id);
            }
            other
        }
    }
}

/// Says on stderr that no language model answers.
pub fn tell_offline(engine: &Engine) {
    if engine.model.facts().provider == "offline" {
        screen::tell(
            "note: the built-in offline model answers, which is not a language model. Set ANTHROPIC_API_KEY or \
             OPENAI_API_KEY, or add `providers` to the settings, to use one.",
        );
    }
}

/// Prints the ID of the session on a terminal, for `sessions show`, `permissions explain` and `--resume`.
fn print_id(id: &str) {
    if screen::stdout_is_terminal() && screen::stderr_is_terminal() {
        let line = screen::Paint::of_stderr(&crate::environment()).line();
        screen::tell_painted(&line.ink(screen::Ink::Faint, &format!("session {id}")));
    }
}

/// What was decided before the first step, for whoever wonders.
fn debug(setup: &Setup, engine: &Engine, session: &Session) {
    let facts = engine.model.facts();
    let layers: Vec<String> =
        setup.settings.layers.iter().map(qoder_runtime::settings::Layer::name).collect();
    let tools = engine.toolbox.names();
    for line in [
        format!("session {} at record {}", session.id, session.state.last_seq),
        format!("config root {}, settings [{}]", setup.config_root.display(), layers.join(", ")),
        format!(
            "folder {}, project {}, trust {:?}",
            setup.cwd.display(),
            setup.project_root.display(),
            setup.trust
        ),
        format!("model {}, window {}, key from {}", facts.name, facts.context_window, facts.key_source),
        format!("mode {}, tools [{}]", engine.gate.mode.as_str(), tools.join(", ")),
        format!("durability {:?}", setup.durability),
    ] {
        screen::tell(&format!("debug: {line}"));
    }
}

fn session_choice(arguments: &Arguments) -> Result<SessionChoice, Fault> {
    let choice = SessionChoice {
        session_id: arguments.session_id.clone(),
        resume: arguments.resume.clone(),
        continue_newest: arguments.r#continue,
        fork: arguments.fork_session,
        forget: arguments.no_session_persistence,
        resume_at: arguments.resume_session_at.clone(),
        drops_turn: arguments.resume_drops_turn.clone(),
    };
    match choice.complaint() {
        Some(bad) => Err(Fault::input(bad.message, bad.hint)),
        None => Ok(choice),
    }
}

/// Programs that read JSON learn of a session that cannot be opened, be written or go on by a result message, too. It has
/// what the unfinished turn came to so far.
pub fn announce_failure(fault: Fault, format: OutputFormat, session_id: &str, state: &State) -> Fault {
    let fault = fault.reworded(options::option_names(&crate::environment()));
    if format != OutputFormat::Text {
        let turn = state.turn.clone().unwrap_or_default();
        let message = serde_json::json!({
            "type": "result", "subtype": "error_during_execution", "is_error": true, "duration_ms": 0,
            "duration_api_ms": turn.duration_api_ms, "num_turns": turn.model_calls, "session_id": session_id,
            "uuid": new_id(), "errors": [fault.message], "usage": turn.usage, "total_cost_usd": state.total_cost_usd,
            "modelUsage": state.totals, "permission_denials": turn.denials,
        });
        // The fault itself is told on stderr, whether or not anybody reads this.
        let _ = screen::say_json_line(message.to_string());
    }
    fault
}

/// Takes the prompt, if there is one, and goes on until the session is idle.
async fn one_turn(
    engine: &Engine,
    session: &mut Session,
    prompt: Option<String>,
    format: OutputFormat,
) -> Result<Exit, Fault> {
    let interrupt = Interrupt::default();
    let _signals = signals::watch(interrupt.clone(), engine.ending.clone());
    if let Some(text) = prompt {
        take_prompt(engine, session, &interrupt, text)?;
    } else if !session.state.is_unfinished() {
        // The turn was finished by a process that could not say so any more.
        let Some(end) = &session.state.last_turn else {
            return Err(SessionError::NothingToResume { id: session.id.clone() }.into());
        };
        emit_result(&*engine.host, &session.id, end)?;
        return Ok(exit_of(end, format));
    }
    tokio::select! {
        () = engine.toolbox.servers().ready() => {}
        // The turn meets the interrupt at once and says so.
        () = interrupt.cancelled() => {}
    }
    let ended = Driver::new(engine, session, interrupt).with_inbox(inner_inbox(engine)).run().await?;
    Ok(ended.map_or(Exit::Success, |end| exit_of(&end, format)))
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
    screen::tell(&format!("error: nothing ran: {count} of the model {were} denied"));
    screen::tell("  hint: `qodercli permissions explain` prints why");
    Exit::General
}

fn take_prompt(
    engine: &Engine,
    session: &mut Session,
    interrupt: &Interrupt,
    text: String,
) -> Result<(), Fault> {
    if session.state.turn.is_some() {
        Driver::new(engine, session, interrupt.clone()).close_unfinished_turn()?;
    }
    // Behind waiting inputs it waits too; an echo needs the turn to be announced first, hooks come before the log, and so
    // does what a command stands for.
    let listens = |event: HookEvent| engine.hooks.listens(event.as_str());
    let watched =
        listens(HookEvent::UserPromptSubmit) || listens(HookEvent::SessionStart) || is_command(&text);
    let message = Message::user(text);
    let taken = if session.state.inputs.is_empty() && !engine.replay_user_messages && !watched {
        session.prompt(message)
    } else {
        session.append(RecordBody::InputAdmitted(InputAdmitted { input_id: new_id(), message }))
    };
    taken.map_err(SessionError::Store)?;
    Ok(())
}

/// The folder of the current project's sessions, for commands.
pub fn current_directory(cwd: Option<&PathBuf>) -> Result<PathBuf, Fault> {
    let path = cwd.cloned().unwrap_or_else(|| PathBuf::from("."));
    path.canonicalize().map_err(|error| {
        Fault::input(format!("{} cannot be used as a directory: {error}", path.display()), "check the path")
    })
}
