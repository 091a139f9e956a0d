//! `qodercli`: wiring and nothing else. The first word may name a subcommand; everything else is a run.

mod command_line;
mod commands;
mod exit;
mod first_steps;
mod keys;
mod listings;
mod mcp;
mod permissions;
mod plugins;
mod run;
mod screen;
#[cfg(feature = "server")]
mod serve;
mod sessions;
#[cfg(feature = "tui")]
mod terminal;
#[cfg(feature = "server")]
mod work;

use std::process::ExitCode;

use clap::Parser;
use qoder_config::sources::Kind;
use qoder_runtime::setup::Setup;

use command_line::arguments::{self, Arguments};
use command_line::environment::environment;
use command_line::{nearest, repeated};
use commands::{Command, CommandLine};
use exit::{Exit, Fault};
use first_steps::{completions, init, login};
use listings::{agents, config, definitions, hooks, models, sandbox};
use mcp::conformance;
use run::{options, print, signals};

fn main() -> ExitCode {
    screen::escape_panics();
    signals::survive_file_limits();
    let words: Vec<_> = std::env::args_os().collect();
    let first = words.get(1).and_then(|word| word.to_str());
    let outcome = match first {
        Some("mcp") if conformance::is_meant(&words) => conformance::run(&words, &environment()),
        Some(word) if nearest::COMMANDS.contains(&word) => command(&words),
        _ => run(&words),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(fault) => {
            let fault = fault.reworded(options::option_names(&environment()));
            screen::report(&fault);
            fault.exit.into()
        }
    }
}

fn run(words: &[std::ffi::OsString]) -> Result<Exit, Fault> {
    if let Some(word) = words.iter().find(|word| word.to_str().is_none()) {
        return Err(Fault::input(
            format!("an argument is not valid UTF-8: {}", word.to_string_lossy()),
            "give such text through a file or stdin after converting it",
        ));
    }
    if let Some(mistake) = nearest::mistaken(words) {
        return Err(mistake);
    }
    let mut arguments = match repeated::parse(words) {
        Ok(arguments) => arguments,
        Err(error) => return Ok(usage(&error)),
    };
    let environment = environment();
    if arguments.session_id.is_none() && arguments.resume.is_none() && !arguments.r#continue {
        arguments.session_id = environment.get("QODER_SESSION_ID").filter(|id| !id.is_empty()).cloned();
    }
    if arguments.list_models {
        let setup = Setup::prepare(options::from_arguments(&arguments, environment)?)?;
        screen::hide_secrets(&setup);
        let as_json = options::output_format(&arguments, &setup)? != arguments::OutputFormat::Text;
        return models::list(&setup, as_json);
    }
    if arguments.list_sessions {
        return sessions::list(&environment, false, false);
    }
    #[cfg(feature = "tui")]
    if terminal::is_wanted(&arguments) {
        return terminal::run(arguments, environment);
    }
    let stream = arguments.input_format == arguments::InputFormat::StreamJson;
    if !(arguments.print || stream || !screen::stdin_is_terminal() || arguments.prompt.is_some()) {
        let why = if cfg!(feature = "tui") {
            "stdout is not a terminal"
        } else {
            "this build has no interactive terminal"
        };
        return Err(Fault::input(why, "use print mode: qodercli -p \"what does this repository do\""));
    }
    print::run(&arguments, environment)
}

fn command(words: &[std::ffi::OsString]) -> Result<Exit, Fault> {
    if words.get(1).is_some_and(|word| word == "help") {
        let _ =
            Arguments::try_parse_from(["qodercli", "--help"]).map_err(|error| screen::print_usage(&error));
        return Ok(Exit::Success);
    }
    let line = match CommandLine::try_parse_from(words) {
        Ok(line) => line,
        Err(error) => return Ok(usage(&error)),
    };
    let environment = environment();
    match line.command {
        Command::Sessions { action } => sessions::run(&action, &environment),
        Command::Config { key, place } => config::print(key.as_deref(), place, environment),
        Command::Sandbox { action } => sandbox::run(action, environment),
        Command::Permissions { action } => permissions::run(action, environment),
        Command::Hooks { action } => hooks::run(action, environment),
        Command::Agents { action } => agents::run(action, environment),
        Command::Models { action } => models::run(action, environment),
        Command::Mcp { action } => mcp::run(action, environment),
        Command::Plugins { action } => plugins::run(action, environment),
        #[cfg(feature = "server")]
        Command::Serve(arguments) => serve::run(*arguments, environment),
        #[cfg(feature = "server")]
        Command::Work(arguments) => work::run(*arguments, environment),
        Command::Skills { action } => definitions::list(Kind::Skills, action, environment),
        Command::Commands { action } => definitions::list(Kind::Commands, action, environment),
        #[cfg(feature = "tui")]
        Command::Attach { session, screen_reader } => terminal::attach(&session, screen_reader, environment),
        #[cfg(not(feature = "tui"))]
        Command::Attach { .. } => Err(Fault::input(
            "this build has no interactive terminal",
            "`qodercli sessions watch` prints what a session does",
        )),
        Command::Init { folder } => init::run(folder.as_ref()),
        Command::Login { provider } => login::store(&provider, environment),
        Command::Logout => login::remove(&environment),
        Command::Completions { shell } => completions::print_completions(shell),
        #[cfg(feature = "server")]
        Command::ToolHost => serve::tool_host::run(),
        Command::Man => completions::print_man_page(),
        Command::Trust { folder } => config::trust(folder.as_ref(), &environment),
    }
}

/// Help and version go to stdout and are a success; anything else is a usage error.
fn usage(error: &clap::Error) -> Exit {
    screen::print_usage(error);
    if error.use_stderr() { Exit::Input } else { Exit::Success }
}
