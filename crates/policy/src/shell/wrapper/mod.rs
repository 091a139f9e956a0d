//! Programs that run other programs. Where the options of one are fully understood the inner command is exact; otherwise
//! every word that could start it is taken as one, for rules that stop things. Only a few wrappers are transparent, that
//! is, an allow rule may look through them.

mod git_subcommands;
mod options;
mod special;
mod table;

pub use table::is_privilege_wrapper;

use super::Word;
use super::reading::{Assignment, SimpleCommand};

/// What a command runs.
#[derive(Debug, Default)]
pub(super) struct InnerCommands {
    /// Commands given as words.
    pub commands: Vec<Inner>,
    /// Commands given as text.
    pub scripts: Vec<Script>,
    /// True when a word that is not known decides which program runs.
    pub dynamic: bool,
}

impl InnerCommands {
    /// True when there is nothing inside.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.scripts.is_empty() && !self.dynamic
    }
}

/// A command inside another.
#[derive(Debug)]
pub(super) struct Inner {
    /// Variables that are set for it.
    pub assignments: Vec<Assignment>,
    /// Its words.
    pub words: Vec<Word>,
    /// True when allow rules may look through the wrapper.
    pub transparent: bool,
    /// True when these words may be no command at all.
    pub guessed: bool,
}

/// A script inside a command.
#[derive(Debug)]
pub(super) enum Script {
    /// Its text is known.
    Known(String),
    /// Its text is known, but whether it is a script is not.
    Guessed(String),
    /// Its text is not known.
    Unknown,
}

/// What a command runs, as far as its words say.
pub(super) fn find(command: &SimpleCommand) -> InnerCommands {
    let Some(base) = command.base_name() else { return InnerCommands::default() };
    let arguments = command.words.get(1..).unwrap_or_default();
    if arguments.is_empty() {
        return InnerCommands::default();
    }
    if let Some(spec) = table::spec(base) {
        return options::inner_of(spec, arguments, command.name() == Some(base));
    }
    special::inner_of(base, arguments)
}

/// True for a shell that reads its script from its input.
pub(super) fn reads_script_from_input(command: &SimpleCommand) -> bool {
    let Some(base) = command.base_name() else { return false };
    // Without a command of their own they run what they read.
    if matches!(base, "at" | "batch" | "parallel") {
        return !command.words.iter().any(|word| word.as_literal() == Some(":::"));
    }
    table::is_shell(base) && special::shell_reads_input(command.words.get(1..).unwrap_or_default())
}
