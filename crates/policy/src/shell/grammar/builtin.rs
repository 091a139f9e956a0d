//! What the shell's own commands do to the shell: define names, load code, change options, evaluate text. Each is a
//! doubt, because later words of the same line may then mean something else than they say. Text in a place that bash
//! expands or evaluates a second time is a doubt unless it is plain.

use super::condition::is_plain_name;
use crate::shell::reading::{DoubtKind, SimpleCommand};
use crate::shell::variables::{steers_in_front, steers_the_shell};
use crate::shell::{Piece, Word};

/// The doubts about one command by itself.
pub(crate) fn doubts(command: &SimpleCommand) -> Vec<DoubtKind> {
    let mut doubts = Vec::new();
    if command.is_dynamic() {
        doubts.push(DoubtKind::DynamicCommand);
    }
    // Alone, an assignment lasts for the rest of the line.
    let steers = if command.words.is_empty() { steers_the_shell } else { steers_in_front };
    if command.assignments.iter().any(|it| steers(&it.name)) {
        doubts.push(DoubtKind::ChangesShell);
    }
    if command.words.is_empty() && command.assignments.iter().any(|it| keeps_an_expansion(&it.value)) {
        doubts.push(DoubtKind::EvaluatesText);
    }
    let Some(name) = command.name() else { return doubts };
    let arguments = command.words.get(1..).unwrap_or_default();
    doubts.extend(of_builtin(name, arguments, command));
    doubts
}

/// The doubt about a builtin with these arguments.
fn of_builtin(name: &str, arguments: &[Word], command: &SimpleCommand) -> Option<DoubtKind> {
    let any = !arguments.is_empty();
    match name {
        "source" | "." => Some(DoubtKind::LoadsCode),
        "enable" => {
            Some(if has_flag(arguments, 'f') { DoubtKind::LoadsCode } else { DoubtKind::ChangesShell })
        }
        "alias" if any => Some(DoubtKind::DefinesName),
        "unalias" | "trap" | "bind" | "complete" | "compopt" if any => Some(DoubtKind::ChangesShell),
        "compgen" | "fc" | "history" if any => Some(DoubtKind::EvaluatesText),
        "jobs" if has_flag(arguments, 'x') => Some(DoubtKind::UnknownConstruct),
        "set" => (!only_stops_or_prints(arguments)).then_some(DoubtKind::ChangesShell),
        "shopt" if has_flag(arguments, 's') || has_flag(arguments, 'u') => Some(DoubtKind::ChangesShell),
        "hash" if has_flag(arguments, 'p') || has_flag(arguments, 'd') => Some(DoubtKind::ChangesShell),
        "exec" if arguments.iter().all(|word| word.known_start().starts_with('-')) => {
            Some(DoubtKind::ChangesShell)
        }
        "let" => arguments.iter().any(|word| !is_number(word)).then_some(DoubtKind::EvaluatesText),
        "unset" => unset(arguments),
        "test" | "[" => asks_for_computed_name(arguments).then_some(DoubtKind::EvaluatesText),
        "printf" if has_flag(arguments, 'v') => sets_names(arguments),
        "wait" if has_flag(arguments, 'p') => sets_names(arguments),
        "mapfile" | "readarray" if has_flag(arguments, 'C') => Some(DoubtKind::EvaluatesText),
        "read" | "mapfile" | "readarray" | "getopts" => sets_names(arguments),
        "declare" | "typeset" | "local" | "export" | "readonly" => declaration(arguments, command),
        _ => None,
    }
}

/// True when quoted text that bash would expand, were it read again, is kept in a variable. A later word may do that.
fn keeps_an_expansion(value: &Word) -> bool {
    value.pieces.iter().any(|piece| match piece {
        Piece::Literal(text) => {
            text.contains('`') || text.contains("$(") || text.contains("${") || text.ends_with('$')
        }
        Piece::Home | Piece::Variable(_) | Piece::Glob(_) | Piece::Unknown(_) => false,
    })
}

/// True when bash may find something to expand or evaluate in known text that it reads a second time.
pub(crate) fn is_evaluable(text: &str) -> bool {
    text.contains(['$', '`', '[', '(', '!'])
}

/// True when an option word carries the letter, or might.
fn has_flag(arguments: &[Word], flag: char) -> bool {
    arguments.iter().any(|word| match word.as_literal() {
        Some(text) => text.starts_with('-') && text.contains(flag),
        None => true,
    })
}

/// True for a plain number.
fn is_number(word: &Word) -> bool {
    word.as_literal().is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// True for options of `set` that only stop earlier or print more, and for new positional parameters.
fn only_stops_or_prints(arguments: &[Word]) -> bool {
    const NAMES: [&str; 5] = ["pipefail", "errexit", "nounset", "xtrace", "verbose"];
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.as_literal() else { return false };
        if text == "--" {
            return true;
        }
        let Some(letters) = text.strip_prefix(['-', '+']) else { return false };
        if letters.is_empty()
            || !letters.bytes().all(|letter| matches!(letter, b'e' | b'u' | b'x' | b'v' | b'o'))
        {
            return false;
        }
        if letters.contains('o')
            && !words.next().and_then(Word::as_literal).is_some_and(|it| NAMES.contains(&it))
        {
            return false;
        }
    }
    true
}

/// What `unset` does.
fn unset(arguments: &[Word]) -> Option<DoubtKind> {
    let computed = arguments.iter().any(|word| word.as_literal().is_none_or(|text| text.contains('[')));
    if computed {
        return Some(DoubtKind::EvaluatesText);
    }
    let steering = arguments.iter().filter_map(Word::as_literal).any(steers_the_shell);
    (steering || has_flag(arguments, 'f') || has_flag(arguments, 'n')).then_some(DoubtKind::ChangesShell)
}

/// True when `test` asks for a variable by anything but a plain name.
fn asks_for_computed_name(arguments: &[Word]) -> bool {
    arguments.windows(2).any(|pair| match pair {
        [operator, operand] => {
            matches!(operator.as_literal(), Some("-v" | "-R"))
                && !operand.as_literal().is_some_and(is_plain_name)
        }
        _ => false,
    })
}

/// What builtins do that set the variables their arguments name.
fn sets_names(arguments: &[Word]) -> Option<DoubtKind> {
    for word in arguments {
        let Some(text) = word.as_literal() else { return Some(DoubtKind::ChangesShell) };
        if text.contains('[') {
            return Some(DoubtKind::EvaluatesText);
        }
        // The name may stand in the same word as its option.
        let attached = text.starts_with('-')
            && text.char_indices().take(16).any(|(at, _)| text.get(at..).is_some_and(steers_the_shell));
        if attached || steers_the_shell(text) {
            return Some(DoubtKind::ChangesShell);
        }
    }
    None
}

/// What a declaration does. Its arguments are expanded like words and then read as assignments: subscripts, values of
/// integers and lists given as text are evaluated then.
fn declaration(arguments: &[Word], command: &SimpleCommand) -> Option<DoubtKind> {
    let mut makes_lists = false;
    for word in arguments {
        let start = word.known_start();
        if start.starts_with(['-', '+']) {
            let Some(letters) = word.as_literal() else { return Some(DoubtKind::ChangesShell) };
            if letters.contains(['n', 'i']) && !letters.starts_with("--") {
                return Some(DoubtKind::EvaluatesText);
            }
            if letters.contains('f') {
                return Some(DoubtKind::ChangesShell);
            }
            makes_lists |= letters.contains(['a', 'A']);
            continue;
        }
        if evaluates(word, makes_lists) {
            return Some(DoubtKind::EvaluatesText);
        }
        let name = start.split(['=', '+']).next().unwrap_or(start);
        let computed = name.is_empty() || (word.is_dynamic() && !start.contains('='));
        if computed || (steers_the_shell(name) && start.contains('=')) {
            return Some(DoubtKind::ChangesShell);
        }
    }
    command.assignments.iter().any(|it| steers_the_shell(&it.name)).then_some(DoubtKind::ChangesShell)
}

/// True when an argument of a declaration holds text that is evaluated. A list between parentheses of the line itself
/// is not: its words are read where they stand.
fn evaluates(word: &Word, makes_lists: bool) -> bool {
    word.pieces.iter().any(|piece| match piece {
        Piece::Literal(text) => is_evaluable(text),
        Piece::Unknown(text) => makes_lists && !text.starts_with('('),
        Piece::Variable(_) => makes_lists,
        Piece::Home | Piece::Glob(_) => false,
    })
}
