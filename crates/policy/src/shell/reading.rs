//! What reading a command line gives: its simple commands in textual order and the doubts about them. A reading
//! without doubts says that every command, word and redirection the shell would act on is in the list; with a doubt
//! the list is only what could be found. The policy judges each command by itself.

use super::{Piece, Word};

/// Everything that can execute in one command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Every simple command in the order of the text, with two rules: a command inside a word (as in a substitution)
    /// stands before the command the word belongs to, and a command run by another follows that one.
    pub commands: Vec<SimpleCommand>,
    /// Why the line is not proven; empty when every command, word and redirection of it is in `commands`.
    pub doubts: Vec<Doubt>,
}

impl Reading {
    /// True when nothing about the line is in doubt.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.doubts.is_empty()
    }
}

/// One reason why a line is not proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The kind of reason.
    pub kind: DoubtKind,
    /// The part of the line it is about, shortened.
    pub text: String,
}

/// Why a line is not proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DoubtKind {
    /// The shell would not accept the text, or one of the two grammars does not.
    SyntaxError,
    /// The two grammars read the line as different commands.
    ReadersDisagree,
    /// A control character other than newline and tab.
    ControlCharacter,
    /// A character that shows as nothing, as a blank, or changes the direction of text.
    InvisibleCharacter,
    /// Longer than is read.
    TooLong,
    /// Nested deeper than is read.
    TooDeep,
    /// More commands than are collected.
    TooMany,
    /// A command word whose value is not known.
    DynamicCommand,
    /// A function or an alias, which changes what later words mean.
    DefinesName,
    /// Code is loaded into the shell itself.
    LoadsCode,
    /// Options, traps or variables that change how the shell resolves or runs later commands.
    ChangesShell,
    /// Text that is not known is evaluated as a command or as arithmetic.
    EvaluatesText,
    /// A construct that this reader does not model.
    UnknownConstruct,
}

impl DoubtKind {
    /// The text for a person.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::SyntaxError => "the command is not valid shell text",
            Self::ReadersDisagree => "the command can be read in more than one way",
            Self::ControlCharacter => "the command contains control characters",
            Self::InvisibleCharacter => "the command contains invisible or direction-changing characters",
            Self::TooLong => "the command is too long to be checked",
            Self::TooDeep => "the command is nested too deeply to be checked",
            Self::TooMany => "the command line has too many commands to be checked",
            Self::DynamicCommand => "the program to run is only known when the command runs",
            Self::DefinesName => "the command defines a function or an alias",
            Self::LoadsCode => "the command loads code into the shell",
            Self::ChangesShell => "the command changes how the shell runs later commands",
            Self::EvaluatesText => "the command evaluates text that is only known when it runs",
            Self::UnknownConstruct => "the command uses shell syntax that is not checked",
        }
    }
}

/// One simple command: what the shell would start or do itself. A `for` variable and the redirections of a group are
/// reported as commands without words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Assignments in front of the command, alone, or as arguments of `export`, `declare` and the like.
    pub assignments: Vec<Assignment>,
    /// The command word and its arguments; empty for bare assignments and bare redirections.
    pub words: Vec<Word>,
    /// The redirections, in order.
    pub redirections: Vec<Redirection>,
    /// The command that runs this one, when it was found inside another.
    pub wrapped: Option<Wrapped>,
    /// The directories it may run in; never empty.
    pub directories: Vec<Directory>,
    /// True when it reads from a pipe.
    pub piped_input: bool,
    /// Its spelling in the line; for a wrapped command its words as far as they are known.
    pub text: String,
}

impl SimpleCommand {
    /// The command word as written, when it is known.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.words.first().and_then(Word::as_literal)
    }

    /// The last component of the command word, when it is known.
    #[must_use]
    pub fn base_name(&self) -> Option<&str> {
        self.name().map(|name| name.rsplit('/').next().unwrap_or(name))
    }

    /// True when there is a command word and its value is not known.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        !self.words.is_empty() && self.name().is_none()
    }
}

/// A variable that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The name of the variable.
    pub name: String,
    /// The value; unknown for arrays.
    pub value: Word,
    /// True when one element of an array is set.
    pub subscript: bool,
}

/// Where a stream of a command comes from or goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// The direction.
    pub kind: RedirectionKind,
    /// The file, or the text of a here-document or here-string. Nothing for descriptors.
    pub target: Option<Word>,
}

/// The direction of a redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RedirectionKind {
    /// The file is read.
    Input,
    /// The file is replaced.
    Output,
    /// The file is extended.
    Append,
    /// The file is opened for both.
    ReadWrite,
    /// A descriptor is copied, moved or closed.
    Duplicate,
    /// Text from the line itself.
    HereDocument,
    /// One word as text.
    HereString,
}

impl RedirectionKind {
    /// True when the command gets its input from there.
    pub(super) fn feeds(self) -> bool {
        match self {
            Self::Input | Self::ReadWrite | Self::HereDocument | Self::HereString => true,
            Self::Output | Self::Append | Self::Duplicate => false,
        }
    }
}

/// The command that runs another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrapped {
    /// The place of the outer command in the list.
    pub outer: usize,
    /// True when the outer command changes nothing about what the inner one does, so that allow rules may look through.
    pub transparent: bool,
}

/// A place in which a command may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Directory {
    /// The start directory followed by these `cd` targets in order. Each is literal, or starts with the home directory.
    Known(Vec<Word>),
    /// A place that is not known.
    Unknown,
}

impl Directory {
    /// The directory in which the line starts.
    #[must_use]
    pub fn start() -> Self {
        Self::Known(Vec::new())
    }
}

impl Word {
    /// The word as it can be shown: known text as it is, the rest by its spelling.
    #[must_use]
    pub fn to_display(&self) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(known) => text.push_str(known),
                Piece::Home => text.push('~'),
                Piece::Variable(name) => {
                    text.push('$');
                    text.push_str(name);
                }
                Piece::Glob(spelling) | Piece::Unknown(spelling) => text.push_str(spelling),
            }
        }
        text
    }
}
