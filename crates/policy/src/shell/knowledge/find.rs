//! Expressions of find, read completely: starting points, tests with the right number of words, operators and actions.
//! Printing reads; deleting, writing to a file and running programs do not, and neither does following links.

use super::options::Style;
use super::program::Operands::Words;
use super::program::Program;
use super::words::{has_pattern, is_many, may_begin_with_dash, may_split, shown};
use super::{Effects, here};
use crate::shell::{Piece, Word};

/// The entry.
pub(super) const TABLE: &[Program] = &[Program::reader(&["find"], &[], Words(find)).style(Style::WholeWords)];

const ALONE: &[&str] = &[
    "-empty",
    "-executable",
    "-readable",
    "-writable",
    "-true",
    "-false",
    "-nouser",
    "-nogroup",
    "-daystart",
    "-depth",
    "-d",
    "-mount",
    "-xdev",
    "-noleaf",
    "-ignore_readdir_race",
    "-noignore_readdir_race",
    "-warn",
    "-nowarn",
    "-prune",
    "-print",
    "-print0",
    "-ls",
    "-quit",
    "-not",
    "-and",
    "-a",
    "-o",
    "-or",
    "!",
    "(",
    ")",
    ",",
    "-help",
    "--help",
    "-version",
    "--version",
];
const WITH_TEXT: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-atime",
    "-ctime",
    "-mmin",
    "-amin",
    "-cmin",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-links",
    "-inum",
    "-lname",
    "-ilname",
    "-fstype",
    "-maxdepth",
    "-mindepth",
    "-used",
    "-context",
    "-printf",
];
const WITH_FILE: &[&str] = &["-newer", "-anewer", "-cnewer", "-samefile"];
const RUNS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
const WRITES: &[&str] = &["-fprint", "-fprint0", "-fls", "-fprintf"];

fn find(words: &[Word], effects: &mut Effects) {
    let mut at = 0;
    while let Some(option) = words.get(at).and_then(Word::as_literal) {
        match option {
            "-P" | "-H" => at += 1,
            "-L" => {
                effects.not_read_only("`-L` follows links out of the folder");
                at += 1;
            }
            _ if option.starts_with("-O") => at += 1,
            _ => break,
        }
    }
    let points = words[at..].iter().take_while(|word| !begins_expression(word)).count();
    let (points, expression) = words[at..].split_at(points);
    for word in points {
        if may_split(word) || may_begin_with_dash(word) {
            effects.incomplete(format!("`{}` may become a part of the expression", shown(word)));
        }
        effects.read(word, true);
    }
    let mut reader = Expression { words: expression, at: 0, deletes: false };
    reader.read(effects);
    if points.is_empty() {
        effects.read(&here(), true);
    }
    if reader.deletes {
        let all: Vec<Word> = effects.reads.iter().filter(|o| o.recursive).map(|o| o.word.clone()).collect();
        for word in &all {
            effects.remove(word, true);
        }
    }
}

fn begins_expression(word: &Word) -> bool {
    let start = word.known_start();
    (start.starts_with('-') && start.len() > 1) || matches!(word.as_literal(), Some("(" | ")" | "!" | ","))
}

struct Expression<'a> {
    words: &'a [Word],
    at: usize,
    deletes: bool,
}

impl<'a> Expression<'a> {
    fn next(&mut self) -> Option<&'a Word> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    fn read(&mut self, effects: &mut Effects) {
        while let Some(word) = self.next() {
            let Some(name) = word.as_literal() else {
                effects.incomplete(format!("`{}` is not known before it runs", shown(word)));
                continue;
            };
            if ALONE.contains(&name) {
                continue;
            }
            if name == "-delete" {
                self.deletes = true;
            } else if name == "-follow" {
                effects.not_read_only("`-follow` follows links out of the folder");
            } else if WITH_TEXT.contains(&name) {
                match self.next() {
                    Some(value) => text(value, effects),
                    None => effects.incomplete(format!("`{name}` has no value")),
                }
            } else if WITH_FILE.contains(&name) || is_newer(name) {
                self.file(name, effects);
            } else if WRITES.contains(&name) {
                if let Some(file) = self.next() {
                    effects.edit(file, false);
                }
                if name == "-fprintf" {
                    self.next();
                }
            } else if RUNS.contains(&name) {
                effects.incomplete(format!("`{name}` runs a program"));
                self.skip_command();
            } else {
                effects.incomplete(format!("`{}` is not a known part of an expression", name.escape_debug()));
            }
        }
    }

    fn file(&mut self, name: &str, effects: &mut Effects) {
        let Some(value) = self.next() else {
            return effects.incomplete(format!("`{name}` has no value"));
        };
        // `-newerXt` compares with a time.
        if name.starts_with("-newer") && name.ends_with('t') {
            return text(value, effects);
        }
        if is_many(value) {
            effects.incomplete(format!("`{}` is not known before it runs", shown(value)));
        }
        effects.read(value, false);
    }

    /// Passes over the command of an action, up to its end.
    fn skip_command(&mut self) {
        while let Some(word) = self.next() {
            if matches!(word.as_literal(), Some(";" | "+")) {
                break;
            }
        }
    }
}

/// `-newerXY` with known letters.
fn is_newer(name: &str) -> bool {
    name.strip_prefix("-newer").is_some_and(|kind| {
        let mut letters = kind.chars();
        matches!(letters.next(), Some('a' | 'B' | 'c' | 'm'))
            && matches!(letters.next(), Some('a' | 'B' | 'c' | 'm' | 't'))
            && letters.next().is_none()
    })
}

/// A value that is a text. An unquoted pattern may become names, and the second of them would be a part of the
/// expression; when every name ends in known text with a dot, none of them can be an action.
fn text(value: &Word, effects: &mut Effects) {
    let ends_in_suffix = matches!(value.pieces.last(), Some(Piece::Literal(end)) if end.contains('.'));
    if may_split(value) || (has_pattern(value) && !ends_in_suffix) {
        effects.incomplete(format!("`{}` is not known before it runs", shown(value)));
    }
}
