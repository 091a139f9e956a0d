//! Completions for shells and a man page, made from the flags and subcommands themselves.

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::command_line::arguments::Arguments;
use crate::commands::CommandLine;
use crate::exit::{Exit, Fault};
use crate::screen;

/// The whole command line: the flags of a run with the subcommands.
fn whole() -> Command {
    let mut command = Arguments::command().version(env!("CARGO_PKG_VERSION"));
    for subcommand in CommandLine::command().get_subcommands() {
        command = command.subcommand(subcommand.clone());
    }
    command
}

/// Prints the completions of a shell.
pub fn print_completions(shell: Shell) -> Result<Exit, Fault> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut whole(), "qodercli", &mut text);
    screen::print_line(String::from_utf8_lossy(&text).trim_end())?;
    Ok(Exit::Success)
}

/// Prints the man page.
pub fn print_man_page() -> Result<Exit, Fault> {
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(whole());
    page.render(&mut text).map_err(|error| Fault::output(&error))?;
    screen::print_line(String::from_utf8_lossy(&text).trim_end())?;
    Ok(Exit::Success)
}
