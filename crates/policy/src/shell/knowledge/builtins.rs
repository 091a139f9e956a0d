//! Commands of the shell itself: printing, conditions, changing folder, asking what a name means, loading a script.
//! Printing takes any word, because its options do no harm; conditions take known words only, because some of their
//! operators evaluate text.

use super::options::{Arguments, Style};
use super::program::Operands::{Nothing, Special, Text, Words};
use super::program::Program;
use super::words::{has_pattern, is_many, shown};
use super::{Effects, here};
use crate::shell::{Piece, Word, is_skippable_variable};

/// The entries.
pub(super) const TABLE: &[Program] = &[
    Program::reader(&["echo"], &[], Words(echo)),
    Program::reader(&["printf"], &[], Words(printf)),
    Program::reader(&["test", "["], &[], Words(condition)),
    Program::reader(&["[["], &[], Words(double_condition)),
    Program::reader(&["true", "false", ":", "exit", "return", "break", "continue"], &[], Words(echo)),
    Program::reader(&["set"], &[], Words(options)),
    Program::reader(&["pwd"], &["L logical, P physical"], Nothing),
    Program::reader(&["cd"], &["L, P, e"], Special(change_folder)).style(Style::Leading),
    Program::reader(&["type"], &["a, f, P, p, t"], Text).style(Style::Leading),
    Program::reader(&["command"], &["v, V, p!!"], Special(command)).style(Style::Leading),
    Program::changer(&["source", "."], &[], Words(load)),
];

/// A word that is only shown. A variable that holds no secret is a text; a substitution is too, since the commands in it are judged for
/// themselves; a pattern reads names. Arithmetic and operators in expansions may evaluate what a variable holds.
fn shown_only(word: &Word, effects: &mut Effects) {
    for piece in &word.pieces {
        match piece {
            Piece::Literal(_) | Piece::Home | Piece::Glob(_) => {}
            Piece::Variable(name) if may_be_shown(name) => {}
            Piece::Variable(name) => {
                effects.not_read_only(format!("the variable {name} may hold a secret, and it prints it"));
            }
            Piece::Unknown(text) => {
                let substitution =
                    (text.starts_with("$(") && !text.starts_with("$((")) || text.starts_with('`');
                if !substitution && !is_special_parameter(text) {
                    effects.incomplete(format!("`{}` is not known before it runs", shown(word)));
                }
            }
        }
    }
    if has_pattern(word) {
        effects.read(word, false);
    }
}

/// `$?` and the like: a number, or text that is only shown.
fn is_special_parameter(text: &str) -> bool {
    matches!(text.as_bytes(), [b'$', b'?' | b'#' | b'$' | b'!' | b'-' | b'@' | b'*' | b'0'..=b'9'])
}

/// Why a command that shows variables is not proven to only read.
pub(super) const PRINTS_ENVIRONMENT: &str = "the environment may hold secrets, and it prints them";

/// Variables whose values are no secret.
const SHOWN: [&str; 24] = [
    "BASH_VERSION",
    "EUID",
    "HOME",
    "HOSTNAME",
    "HOSTTYPE",
    "IFS",
    "LINENO",
    "LOGNAME",
    "MACHTYPE",
    "OLDPWD",
    "OSTYPE",
    "PATH",
    "PIPESTATUS",
    "PPID",
    "PWD",
    "RANDOM",
    "REPLY",
    "SECONDS",
    "SHELL",
    "SHLVL",
    "TERM",
    "TMPDIR",
    "UID",
    "USER",
];

/// Parts of names under which people keep secrets.
const SECRET_PARTS: [&str; 10] =
    ["auth", "config", "cookie", "cred", "key", "pass", "private", "proxy", "secret", "token"];

/// True for a variable that may be shown to the model without a question: one that is known to be no secret, and the
/// small names of a shell's own variables. What is handed on to programs is written in capitals.
#[must_use]
pub fn may_be_shown(name: &str) -> bool {
    let small = name.len() <= 2
        || (!name.bytes().any(|byte| byte.is_ascii_uppercase())
            && !SECRET_PARTS.iter().any(|part| name.contains(part)));
    small || SHOWN.binary_search(&name).is_ok() || is_skippable_variable(name)
}

/// `set` alone prints every variable. The reader doubts the options that change how words are read or commands found.
fn options(words: &[Word], effects: &mut Effects) {
    if words.is_empty() {
        effects.not_read_only(PRINTS_ENVIRONMENT);
    }
    echo(words, effects);
}

fn echo(words: &[Word], effects: &mut Effects) {
    for word in words {
        shown_only(word, effects);
    }
}

/// The format must be known and be no option: `-v` assigns to a variable.
fn printf(words: &[Word], effects: &mut Effects) {
    let (format, rest) = match words {
        [dashes, format, rest @ ..] if dashes.as_literal() == Some("--") => (format, rest),
        [format, rest @ ..] if !format.known_start().starts_with('-') => (format, rest),
        _ => return effects.incomplete("an option of `printf` assigns to a variable"),
    };
    if !format.as_literal().is_some_and(only_shows) {
        effects.incomplete("the format is not one that only shows its values");
    }
    echo(rest, effects);
}

/// True when every conversion of the format shows a value; `%n` would assign to a variable.
fn only_shows(format: &str) -> bool {
    let mut parts = format.split('%');
    parts.next();
    while let Some(part) = parts.next() {
        if part.is_empty() {
            // A sign that stands for itself; what follows is text.
            parts.next();
            continue;
        }
        let conversion = part.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #'.*hlLjzt".contains(c));
        if !conversion.starts_with(|c| "diouxXeEfFgGaAcsbqQ".contains(c)) {
            return false;
        }
    }
    true
}

const FILE_TESTS: &[&str] = &[
    "-a", "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-p", "-r", "-s", "-u", "-w", "-x", "-G", "-L",
    "-N", "-O", "-S",
];
const FILE_COMPARISONS: &[&str] = &["-nt", "-ot", "-ef"];
const TEXT_OPERATORS: &[&str] = &[
    "-n", "-z", "-t", "-o", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "=", "==", "!=", "<", ">", "!", "(",
    ")", "]", "-",
];

/// Conditions of known words. Operators that look at a variable evaluate subscripts, so they are not on the list.
fn condition(words: &[Word], effects: &mut Effects) {
    for (at, word) in words.iter().enumerate() {
        let Some(text) = word.as_literal() else {
            if is_many(word) {
                return effects.incomplete(format!("`{}` is not known before it runs", shown(word)));
            }
            continue;
        };
        let before = at.checked_sub(1).and_then(|before| words[before].as_literal());
        let number = text.strip_prefix('-').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
        if text.starts_with('-')
            && !number
            && !FILE_TESTS.contains(&text)
            && !FILE_COMPARISONS.contains(&text)
            && !TEXT_OPERATORS.contains(&text)
        {
            effects.incomplete(format!("`{}` is not a known condition", text.escape_debug()));
        }
        if before.is_some_and(|before| FILE_TESTS.contains(&before)) {
            effects.read(word, false);
        }
        if FILE_COMPARISONS.contains(&text) {
            for side in [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| words.get(at))
            {
                effects.read(side, false);
            }
        }
    }
    for pair in words.windows(2) {
        // A word with a leading tilde behind a file test is a file as well.
        if pair[0].as_literal().is_some_and(|test| FILE_TESTS.contains(&test))
            && pair[1].as_literal().is_none()
        {
            effects.read(&pair[1], false);
        }
    }
}

/// Between double brackets nothing is split and no pattern becomes names; what would be evaluated is doubted by the
/// reader. Only the files that are asked about are left.
fn double_condition(words: &[Word], effects: &mut Effects) {
    let text = |at: usize| words.get(at).and_then(Word::as_literal);
    for at in 0..words.len() {
        let unary = text(at).is_some_and(|test| FILE_TESTS.contains(&test));
        let binary = text(at).is_some_and(|test| FILE_COMPARISONS.contains(&test));
        if let Some(file) = words.get(at + 1).filter(|_| unary || binary) {
            effects.read(file, false);
        }
        if let Some(file) = at.checked_sub(1).and_then(|before| words.get(before)).filter(|_| binary) {
            effects.read(file, false);
        }
    }
}

fn change_folder(arguments: &Arguments<'_>, effects: &mut Effects) {
    match arguments.operands.as_slice() {
        [] => effects.read(&Word { pieces: vec![Piece::Home] }, false),
        [folder] if folder.as_literal() == Some("-") || is_many(folder) => {
            effects.incomplete("the folder is not known before it runs");
        }
        [folder] if folder.as_literal() == Some("") => effects.read(&here(), false),
        [folder] => effects.read(folder, false),
        _ => effects.incomplete("`cd` takes one folder"),
    }
}

/// Only asking what a name means; without that it runs what it is given.
fn command(arguments: &Arguments<'_>, effects: &mut Effects) {
    if !arguments.has(&["v", "V"]) {
        effects.incomplete("`command` runs another program");
    }
}

fn load(words: &[Word], effects: &mut Effects) {
    if let Some(script) = words.first() {
        effects.read(script, false);
    }
    effects.incomplete("it runs a script in this shell");
}
