//! Print mode: opens or resumes a session, takes the prompt into its log, and drives it to the end of the turn.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use qoder_core::State;
use qoder_core::ports::Model;
use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::catalog;
use qoder_runtime::driver::{Driver, emit_result};
use qoder_runtime::engine::Engine;
use qoder_runtime::error::SessionError;
use qoder_runtime::hooks::HookEvent;
use qoder_runtime::interrupt::Interrupt;
use qoder_runtime::layout::{SessionPaths, project_folder};
use qoder_runtime::live::Arrival;
use qoder_runtime::session::{Keep, Session, new_id};
use qoder_runtime::setup::Setup;
use qoder_types::Message;
use qoder_types::record::{InputAdmitted, RecordBody};
use tokio::sync::mpsc;

use crate::arguments::{Arguments, InputFormat, OutputFormat};
use crate::exit::{Exit, Fault, of_turn};
use crate::host::{self, View};
use crate::{input, options, signals};

/// Runs print mode to its exit.
pub fn run(arguments: &Arguments, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    check_session_flags(arguments)?;
    qoder_tools::own_process_tree();
    let setup = Setup::prepare(options::from_arguments(arguments, environment)?)?;
    let format = options::output_format(arguments, &setup)?;
    for warning in &setup.warnings {
        host::tell(&format!("warning: {warning}"));
    }
    let streaming = arguments.input_format == InputFormat::StreamJson;
    let resumes = arguments.resume.is_some() || arguments.r#continue;
    let prompt = if streaming {
        None
    } else {
        let prompt = input::prompt(arguments.prompt.as_deref(), resumes)?;
        if prompt.is_none() && !resumes {
            return Err(Fault::input("there is no prompt", "give one: qodercli -p \"…\", or pipe one in"));
        }
        prompt
    };
    let host = host::make(View {
        format,
        partial: arguments.include_partial_messages,
        verbose: arguments.verbose || arguments.debug,
    });
    let engine = setup.engine(Arc::clone(&host), Callbacks::default())?;
    let opened = open_session(arguments, &setup);
    let mut session = match opened {
        Ok(session) => session,
        Err(fault) => return Err(announce_failure(fault, format, "", &State::default())),
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
        let driven = if streaming {
            stream_turns(&engine, &mut session, format).await
        } else {
            one_turn(&engine, &mut session, prompt).await
        };
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
        Err(fault) if matches!(fault.exit, Exit::Session | Exit::Waiting) => {
            Err(announce_failure(fault, format, &session.id, &session.state))
        }
        other => other,
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
        host::tell(&format!("debug: {line}"));
    }
}

fn check_session_flags(arguments: &Arguments) -> Result<(), Fault> {
    if arguments.resume.as_deref() == Some("") {
        return Err(Fault::input(
            "--resume needs a session ID here",
            "`qodercli sessions list` shows them; --continue takes the newest",
        ));
    }
    let resumes = arguments.resume.is_some() || arguments.r#continue;
    if arguments.fork_session && !resumes {
        return Err(Fault::input("--fork-session needs --resume or --continue", "name the session to copy"));
    }
    if arguments.session_id.is_some() && resumes && !arguments.fork_session {
        return Err(Fault::input(
            "--session-id cannot be combined with --resume or --continue",
            "add --fork-session to work on a copy under that ID",
        ));
    }
    if arguments.no_session_persistence && resumes {
        return Err(Fault::input(
            "--no-session-persistence cannot be combined with --resume or --continue",
            "leave one of them out",
        ));
    }
    match &arguments.session_id {
        Some(id) if !catalog::is_session_id(id) => Err(SessionError::BadId { id: id.clone() }.into()),
        _ => Ok(()),
    }
}

fn open_session(arguments: &Arguments, setup: &Setup) -> Result<Session, Fault> {
    let redactor = setup.redactor();
    if arguments.no_session_persistence {
        let outputs = std::env::temp_dir().join(format!("qodercli-{}", new_id()));
        let id = arguments.session_id.clone().unwrap_or_else(new_id);
        return Ok(Session::open(&id, Keep::Nowhere { outputs }, redactor, &setup.cwd)?);
    }
    let folder = project_folder(&setup.config_root, &setup.cwd);
    let files = |paths: SessionPaths| Keep::Files { paths, durability: setup.durability };
    let Some(source) = session_to_resume(arguments, setup)? else {
        let id = arguments.session_id.clone().unwrap_or_else(new_id);
        let session = Session::open(&id, files(SessionPaths::new(&folder, &id)), redactor, &setup.cwd)?;
        // A session whose prompt never reached the log is started now; any other is taken.
        if session.state.prompts > 0 || !session.state.inputs.is_empty() {
            return Err(SessionError::Exists { id }.into());
        }
        return Ok(session);
    };
    let paths = catalog::find_session(&setup.config_root, &setup.cwd, &source)?;
    if !arguments.fork_session {
        return Ok(Session::open(&source, files(paths), redactor, &setup.cwd)?);
    }
    let id = arguments.session_id.clone().unwrap_or_else(new_id);
    let copy = SessionPaths::new(&folder, &id);
    catalog::fork(&paths, &source, &copy, &id)?;
    Ok(Session::open(&id, files(copy), redactor, &setup.cwd)?)
}

fn session_to_resume(arguments: &Arguments, setup: &Setup) -> Result<Option<String>, Fault> {
    if let Some(id) = &arguments.resume {
        if catalog::is_session_id(id) {
            return Ok(Some(id.clone()));
        }
        // A title stands for its session.
        let sessions = catalog::list(&setup.config_root, Some(&setup.cwd));
        let titled = sessions.into_iter().find(|session| session.title.as_deref() == Some(id));
        return titled.map(|session| Some(session.id)).ok_or_else(|| {
            SessionError::NotFound { id: id.clone(), project: setup.cwd.clone(), elsewhere: None }.into()
        });
    }
    if !arguments.r#continue {
        return Ok(None);
    }
    let newest = catalog::list(&setup.config_root, Some(&setup.cwd)).into_iter().next();
    newest
        .map(|session| Some(session.id))
        .ok_or_else(|| SessionError::NoneToContinue { project: setup.cwd.clone() }.into())
}

/// Programs that read JSON learn of a session that cannot be opened, be written or go on by a result message, too. It has
/// what the unfinished turn came to so far.
fn announce_failure(fault: Fault, format: OutputFormat, session_id: &str, state: &State) -> Fault {
    if format != OutputFormat::Text {
        let turn = state.turn.clone().unwrap_or_default();
        let message = serde_json::json!({
            "type": "result", "subtype": "error_during_execution", "is_error": true, "duration_ms": 0,
            "duration_api_ms": turn.duration_api_ms, "num_turns": turn.model_calls, "session_id": session_id,
            "uuid": new_id(), "errors": [fault.message], "usage": turn.usage, "total_cost_usd": state.total_cost_usd,
            "modelUsage": state.totals, "permission_denials": turn.denials,
        });
        // The fault itself is told on stderr, whether or not anybody reads this.
        let _ = host::say(&message.to_string());
    }
    fault
}

/// Takes the prompt, if there is one, and goes on until the session is idle.
async fn one_turn(engine: &Engine, session: &mut Session, prompt: Option<String>) -> Result<Exit, Fault> {
    let interrupt = Interrupt::default();
    let _signals = signals::watch(interrupt.clone());
    if let Some(text) = prompt {
        take_prompt(engine, session, &interrupt, text)?;
    } else if !session.state.is_unfinished() {
        // The turn was finished by a process that could not say so any more.
        let Some(end) = &session.state.last_turn else {
            return Err(SessionError::NothingToResume { id: session.id.clone() }.into());
        };
        emit_result(&*engine.host, &session.id, end)?;
        return Ok(of_turn(end));
    }
    let ended = Driver::new(engine, session, interrupt).run().await?;
    Ok(ended.map_or(Exit::Success, |end| of_turn(&end)))
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
    let message = Message::user(text);
    // Behind waiting inputs it waits too; an echo needs the turn to be announced first, and hooks come before the log.
    let watched = engine.hooks.listens(HookEvent::UserPromptSubmit.as_str());
    let taken = if session.state.inputs.is_empty() && !engine.replay_user_messages && !watched {
        session.prompt(message)
    } else {
        session.append(RecordBody::InputAdmitted(InputAdmitted { input_id: new_id(), message }))
    };
    taken.map_err(SessionError::Store)?;
    Ok(())
}

/// Reads messages from stdin until its end; each becomes a turn.
async fn stream_turns(engine: &Engine, session: &mut Session, format: OutputFormat) -> Result<Exit, Fault> {
    let mut lines = input::lines();
    let (sender, inbox) = mpsc::unbounded_channel();
    let mut inbox = Some(inbox);
    let refused = Arc::new(AtomicBool::new(false));
    let (refusal, session_id) = (Arc::clone(&refused), session.id.clone());
    let reader = tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            match line {
                input::Line::User(input) => {
                    if sender.send(Arrival::Input(input)).is_err() {
                        return;
                    }
                }
                input::Line::Control(request_id) => refuse_control(&request_id, format),
                input::Line::Refused(problem) => {
                    refusal.store(true, Ordering::Relaxed);
                    announce_failure(Fault::input(problem, ""), format, &session_id, &State::default())
                        .report();
                }
                input::Line::Bad(problem) => {
                    refusal.store(true, Ordering::Relaxed);
                    host::tell(&format!("warning: {problem}"));
                }
            }
        }
    });
    let mut exit = Exit::Success;
    loop {
        let interrupt = Interrupt::default();
        let watching = signals::watch(interrupt.clone());
        if !session.state.is_unfinished() {
            let Some(receiver) = &mut inbox else { break };
            let input = tokio::select! {
                input = receiver.recv() => input,
                () = session.task_events.arrival() => {
                    Driver::new(engine, session, interrupt).forward_task_events()?;
                    continue;
                }
                () = watching.interrupted() => return Ok(Exit::Interrupted),
            };
            let Some(input) = input else { break };
            Driver::new(engine, session, interrupt.clone()).take(input)?;
        }
        let mut driver = Driver::new(engine, session, interrupt);
        if let Some(receiver) = inbox.take() {
            driver = driver.with_inbox(receiver);
        }
        let ended = driver.run().await?;
        inbox = driver.into_inbox();
        if let Some(end) = ended {
            exit = of_turn(&end);
        }
    }
    reader.abort();
    Ok(if exit == Exit::Success && refused.load(Ordering::Relaxed) { Exit::Input } else { exit })
}

fn refuse_control(request_id: &str, format: OutputFormat) {
    if format == OutputFormat::StreamJson {
        let answer = serde_json::json!({"type": "control_response", "response": {
            "subtype": "error", "request_id": request_id, "error": "control requests are not supported by this version"}});
        // A closed output is met again, and reported, by the turn.
        let _ = host::say(&answer.to_string());
    }
}

/// The folder of the current project's sessions, for commands.
pub fn current_directory(cwd: Option<&PathBuf>) -> Result<PathBuf, Fault> {
    let path = cwd.cloned().unwrap_or_else(|| PathBuf::from("."));
    path.canonicalize().map_err(|error| {
        Fault::input(format!("{} cannot be used as a directory: {error}", path.display()), "check the path")
    })
}
