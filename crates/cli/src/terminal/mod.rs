//! `qodercli` without `-p`: the interactive terminal. This folder wires it: the session runs on a thread of its own, so that
//! nothing it does holds a key up, and the front sees it through the protocol.

mod attached;
mod driven;
mod folder_trust;
mod local_files;
mod machine;
mod opening;
mod programs;
mod remote;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use qoder_config::home;
use qoder_runtime::setup::Setup;
use qoder_store::catalog;
use qoder_terminal::{Ended, Front, LineModeReason, Open, Outcome, UiSettings};

use crate::command_line::arguments::{Arguments, InputFormat};
use crate::exit::{Exit, Fault};
use crate::run::after::AfterRun;
use crate::run::options;
use crate::run::session_choice;
use crate::screen;
use crate::sessions::locate;
use machine::LocalMachine;

/// True when the command line asks for the interactive terminal: neither print mode nor anything that only it can do.
pub fn is_wanted(arguments: &Arguments) -> bool {
    let prints = arguments.print
        || arguments.input_format == InputFormat::StreamJson
        || arguments.output_format.is_some()
        || arguments.json_schema.is_some();
    !prints && screen::stdin_is_terminal() && screen::stdout_is_terminal()
}

/// Runs the terminal to its exit.
pub fn run(mut arguments: Arguments, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    // `--resume` without an id: the person chooses.
    let open = match arguments.resume.as_deref() {
        Some("") => {
            arguments.resume = None;
            Open::Choose
        }
        Some(_) | None => Open::Given,
    };
    start(arguments, environment, open)
}

/// `qodercli attach`: shows a session that another process drives, or a server.
pub fn attach(
    session: &str,
    screen_reader: bool,
    environment: BTreeMap<String, String>,
) -> Result<Exit, Fault> {
    if !(screen::stdin_is_terminal() && screen::stdout_is_terminal()) {
        return Err(Fault::input(
            "`attach` needs a terminal",
            "`qodercli sessions watch` prints what a session does",
        ));
    }
    let arguments = Arguments::try_parse_from(["qodercli"])
        .map_err(|error| Fault::input(error.to_string(), "this is a bug; please report it"))?;
    if remote::is_address(session) {
        // A wrong address is reported before anything is prepared.
        remote::Address::read(session, &environment)?;
        let open = Open::Attach(session.to_owned());
        return start(Arguments { screen_reader, ..arguments }, environment, open);
    }
    let (id, _) = locate(&environment, session)?;
    // Rules and settings are those of the session's own folder.
    let info = catalog::info(&home::config_root(&environment), None, &id);
    let folder = info.and_then(|info| info.cwd).map(PathBuf::from).filter(|folder| folder.is_dir());
    start(Arguments { cwd: folder, screen_reader, ..arguments }, environment, Open::Attach(id))
}

fn start(arguments: Arguments, environment: BTreeMap<String, String>, open: Open) -> Result<Exit, Fault> {
    let choice = session_choice(&arguments)?;
    qoder_process::own_process_tree();
    let mut options = options::from_arguments(&arguments, environment.clone())?;
    // The front shows prompts of every sender.
    options.replay_user_messages = true;
    // A person at a terminal expects that `/rewind` brings files back.
    options.checkpoints_by_default = true;
    let setup = Setup::prepare(options)?;
    screen::hide_secrets(&setup);
    let after = AfterRun::of(&setup, &choice);
    let settings = UiSettings::read(|key| setup.config.settings.get(key).cloned());
    let reader = setup.config.settings.flag("ui.accessibility.screenReader", false);
    let line_mode = LineModeReason::find(arguments.screen_reader, reader, &environment);
    let first_prompt = arguments.prompt.clone();
    let machine = Arc::new(LocalMachine::start(arguments, choice, setup)?);
    let front = Front { machine, settings, environment, open, first_prompt, line_mode };
    let outcome = qoder_terminal::run(front);
    after.finish();
    let Outcome { ended, .. } = outcome.map_err(|error| Fault {
        exit: Exit::General,
        message: error.to_string(),
        hint: String::new(),
    })?;
    Ok(match ended {
        Ended::Quit => Exit::Success,
        Ended::Failed(_) => Exit::Session,
        Ended::Signal(name) => qoder_process::end_by_signal(name),
    })
}
