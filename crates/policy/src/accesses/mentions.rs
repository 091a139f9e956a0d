//! The files that words of a command may name when the command itself is not understood. Rules that deny files apply to
//! them: nothing is known of what the command does with its words. A word of which nothing is known names nothing, since
//! it would name everything.

use std::path::{Path, PathBuf};

use super::expand::MOST_MATCHES;
use super::glob::Glob;
use crate::accesses::find::{Finder, Place};
use crate::places::normalise;
use crate::shell::knowledge::takes_code;
use crate::shell::{Directory, Piece, SimpleCommand, Unexpanded, Word, alternatives};

/// The most names that are looked for in one word.
const MOST_MENTIONS: usize = 256;

/// The most folders in which a command is thought to run.
const MOST_FOLDERS: usize = 16;

/// What the words of a command may name.
pub(crate) struct Mentions<'f, 'a> {
    finder: &'f Finder<'a>,
    folders: Vec<PathBuf>,
    pub(crate) places: Vec<Place>,
    /// There are more names than the gate looks at.
    pub(crate) is_unknown: bool,
}

impl<'f, 'a> Mentions<'f, 'a> {
    /// Looks at the words of a command, unless what it does with them is understood, and at the variables in front of it: a
    /// later word may be nothing but the variable.
    pub(crate) fn of(finder: &'f Finder<'a>, command: &SimpleCommand, is_understood: bool) -> Self {
        let mut mentions = Self { finder, folders: Vec::new(), places: Vec::new(), is_unknown: false };
        if is_understood && command.assignments.is_empty() {
            return mentions;
        }
        mentions.folders = possible_folders(finder, command);
        if !is_understood {
            let code = command.base_name().is_some_and(takes_code);
            command.words.iter().skip(1).for_each(|word| mentions.word(word, code));
        }
        command.assignments.iter().for_each(|assignment| mentions.word(&assignment.value, false));
        mentions
    }

    fn word(&mut self, word: &Word, code: bool) {
        let Some(text) = self.finder.spelled(word) else { return self.partly_known(word, code) };
        let between = |c: char| matches!(c, '=' | ':' | '@') || (code && ends_a_name(c));
        let parts = text.split(between).filter(|part| !part.is_empty()).take(MOST_MENTIONS);
        // A word without separators is its own only part.
        let whole = text.contains(between).then_some(&*text);
        for part in parts.chain(whole) {
            // An option may have its value glued on: -f/etc/x.
            let glued = part.strip_prefix('-').and_then(|rest| rest.find('/').map(|at| &rest[at..]));
            for candidate in [Some(part), glued].into_iter().flatten().filter(|part| !part.starts_with('-')) {
                self.name(candidate);
            }
        }
    }

    fn name(&mut self, text: &str) {
        for folder in &self.folders {
            self.places.extend(self.finder.absolute_place(&folder.join(text), false));
        }
    }

    fn partly_known(&mut self, word: &Word, code: bool) {
        match alternatives(word) {
            Some(Ok(words)) => return words.iter().for_each(|word| self.word(word, code)),
            Some(Err(Unexpanded)) => self.is_unknown = true,
            None => {}
        }
        let says_something = |piece: &Piece| match piece {
            Piece::Literal(text) => !text.is_empty(),
            Piece::Home | Piece::Glob(_) => true,
            Piece::Variable(_) | Piece::Unknown(_) => false,
        };
        if !word.pieces.iter().any(says_something) {
            return;
        }
        let glob = Glob::loosely(word, &self.finder.workspace.home);
        for folder in &self.folders {
            match self.finder.lister.matches(folder, &glob, &mut Vec::new()) {
                Some(matches) if matches.len() + self.places.len() <= MOST_MATCHES => {
                    let places =
                        matches.iter().filter_map(|path| self.finder.absolute_place(path, false).ok());
                    self.places.extend(places);
                }
                Some(_) | None => self.is_unknown = true,
            }
        }
    }
}

/// Every folder in which the command may well run. Where `cd` goes by the spelling and by the links to two places, both
/// count; where it goes to a place that is not known, it may also have stayed.
fn possible_folders(finder: &Finder<'_>, command: &SimpleCommand) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for directory in &command.directories {
        let folders = match directory {
            Directory::Unknown => vec![finder.cwd.to_path_buf()],
            Directory::Known(steps) => {
                steps.iter().fold(vec![finder.cwd.to_path_buf()], |from, step| entered(finder, &from, step))
            }
        };
        all.extend(folders);
    }
    all.sort_unstable();
    all.dedup();
    all.truncate(MOST_FOLDERS);
    all
}

fn entered(finder: &Finder<'_>, from: &[PathBuf], step: &Word) -> Vec<PathBuf> {
    let Some(step) = finder.spelled(step) else { return from.to_vec() };
    let mut folders = Vec::new();
    for folder in from {
        let joined = folder.join(&*step);
        let physical = finder.files.real(&joined).ok();
        folders.push(normalise(&joined));
        folders.extend(physical.filter(|physical| parts_from(finder, physical, &joined)));
    }
    folders.truncate(MOST_FOLDERS);
    folders
}

/// True when the spelling of a path leads elsewhere than its links.
fn parts_from(finder: &Finder<'_>, physical: &Path, joined: &Path) -> bool {
    finder.files.real(&normalise(joined)).is_ok_and(|logical| logical != physical)
}

/// True for characters that stand around names in code.
fn ends_a_name(c: char) -> bool {
    c.is_whitespace() || "\"'`()[]{}<>,;|&$!*+?".contains(c)
}
