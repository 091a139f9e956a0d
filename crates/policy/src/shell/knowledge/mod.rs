//! What known programs do with their words: which files they read, change and remove, and whether a command is proven
//! to only read. The proof needs every option on the program's list, every operand in a known role and no word that
//! may turn into something else. Nothing here decides: paths are listed as they stand, and the policy judges them.
//! A program without an entry is not known, and what is not known is neither read-only nor complete.

mod archives;
mod builtins;
mod changers;
mod find;
mod flags;
mod git;
mod interpreters;
mod languages;
mod network;
mod options;
mod program;
mod readers;
mod search;
mod suggest;
mod words;

pub use builtins::may_be_shown;
pub use flags::{matches_with_flags, may_match_with_flags};
pub use git::safety::{
    SAFE_GIT_CONFIGURATION, SAFE_GIT_ENVIRONMENT, git_needs_safe_configuration, safe_git_override,
};
pub use interpreters::{asks_for_version, runs_arbitrary_code, takes_code};
pub use suggest::suggestable_prefix;

use super::{Piece, Word};

/// A file or folder that a command touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// The word as it stands; it may hold a pattern or something that is not known.
    pub word: Word,
    /// Whether everything below it is touched too.
    pub recursive: bool,
    /// Whether links in it, if it is a folder, are followed.
    pub follows_links: bool,
}

/// What a command would do, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effects {
    /// Proven to only read: every option is on the program's list, the role of every operand is known, and no word
    /// that matters may become something else. Whether the operands may be read is for the policy to say.
    pub read_only: bool,
    /// Why it is not proven to only read, when it is not.
    pub why_not: Option<String>,
    /// Files and folders whose content or names it reads.
    pub reads: Vec<Operand>,
    /// Files and folders that it creates, changes, moves or removes.
    pub edits: Vec<Operand>,
    /// Those of the edits that are gone or overwritten afterwards.
    pub removals: Vec<Operand>,
    /// Whether every file it touches is listed; false for an unknown program or option and where code of others runs.
    pub complete: bool,
    /// Whether it reaches the network.
    pub network: bool,
    /// Whether the program has an entry.
    pub known: bool,
}

impl Effects {
    fn unknown(why: String) -> Self {
        Self {
            read_only: false,
            why_not: Some(why),
            reads: Vec::new(),
            edits: Vec::new(),
            removals: Vec::new(),
            complete: false,
            network: false,
            known: false,
        }
    }

    /// The effects of a known program that are still to be found out.
    fn of_known_program() -> Self {
        Self { read_only: true, why_not: None, complete: true, known: true, ..Self::unknown(String::new()) }
    }

    fn read(&mut self, word: &Word, recursive: bool) {
        self.read_operand(Operand { word: word.clone(), recursive, follows_links: false });
    }

    /// Reads a word which, if it is a folder, is read with everything that links in it lead to.
    fn read_following(&mut self, word: &Word, recursive: bool) {
        self.read_operand(Operand { word: word.clone(), recursive, follows_links: true });
    }

    fn read_operand(&mut self, operand: Operand) {
        if !self.reads.contains(&operand) {
            self.reads.push(operand);
        }
    }

    /// Reads a word unless it stands for the standard input.
    fn read_file(&mut self, word: &Word, recursive: bool) {
        if word.as_literal() != Some("-") {
            self.read(word, recursive);
        }
    }

    fn edit(&mut self, word: &Word, recursive: bool) {
        self.not_read_only("it changes files");
        self.edits.push(Operand { word: word.clone(), recursive, follows_links: false });
    }

    fn remove(&mut self, word: &Word, recursive: bool) {
        self.edit(word, recursive);
        self.removals.push(Operand { word: word.clone(), recursive, follows_links: false });
    }

    fn not_read_only(&mut self, why: impl Into<String>) {
        self.read_only = false;
        self.why_not.get_or_insert_with(|| why.into());
    }

    /// There may be more files than are listed.
    fn incomplete(&mut self, why: impl Into<String>) {
        self.not_read_only(why);
        self.complete = false;
    }
}

/// True when a command would be proven to only read if no name that a pattern becomes began with a dash, as in
/// `grep word *.md`. The caller has to make sure of that by looking at the names in the folder.
#[must_use]
pub fn read_only_without_dash_names(words: &[Word]) -> bool {
    let below_here = |word: &Word| match word.pieces.first() {
        Some(Piece::Glob(_)) => {
            let mut pieces = vec![Piece::Literal("./".to_owned())];
            pieces.extend(word.pieces.iter().cloned());
            Word { pieces }
        }
        Some(Piece::Literal(_) | Piece::Home | Piece::Variable(_) | Piece::Unknown(_)) | None => word.clone(),
    };
    let words: Vec<Word> = words.iter().map(|word| below_here(&words::joined(word))).collect();
    effects(&words).read_only
}

/// The folder in which a command runs, as an operand.
fn here() -> Word {
    Word::literal(".")
}

/// Says what a simple command would do. The words begin with the program's name, without assignments and redirections.
#[must_use]
pub fn effects(words: &[Word]) -> Effects {
    let words = words::all_joined(words);
    let Some((first, rest)) = words.split_first() else {
        return Effects::unknown("there is no command".to_owned());
    };
    let Some(name) = first.as_literal() else {
        return Effects::unknown("the program is not known before it runs".to_owned());
    };
    let base = words::base_name(name);
    let mut effects = if interpreters::is_version_query(base, rest) {
        Effects::of_known_program()
    } else if base == "git" {
        git::effects(rest)
    } else if let Some(program) = program::find(base) {
        program.effects(rest)
    } else if let Some(effects) = interpreters::effects(base, rest) {
        effects
    } else {
        return Effects::unknown(format!("`{}` is not a program that is known", name.escape_debug()));
    };
    // A path may name another program with the same name.
    if base != name {
        effects.incomplete(format!("`{}` may be another program", name.escape_debug()));
    }
    effects
}
