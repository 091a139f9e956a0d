//! Commands inside words of other programs: an editor, a pager or a hook named by an option or a variable, code of an
//! interpreter, a script on its input. Such words are not read as commands, since most of them are none; but a line is
//! not run unasked when one of them names what a rule stops.

use super::found::Known;
use super::words::CommandPattern;
use crate::shell::knowledge::takes_code;
use crate::shell::{Redirection, RedirectionKind, SimpleCommand, Word};

/// False for commands in which [`may_hide`] finds nothing, whatever the rule: most of them.
pub(super) fn may_hide_something(command: &SimpleCommand, known: &Known) -> bool {
    if !command.assignments.is_empty() {
        return true;
    }
    let telling = |word: &str| word.contains('=') || word.contains(char::is_whitespace);
    !known.effects.complete
        && (command.base_name().is_some_and(takes_code)
            || command.words.iter().skip(1).filter_map(Word::as_literal).any(telling)
            || input(command).next().is_some())
}

/// True when a word of the command, a variable in front of it or the text on its input may hide what the rule names.
pub(super) fn may_hide(pattern: &CommandPattern, command: &SimpleCommand, known: &Known) -> bool {
    let values = command.assignments.iter().filter_map(|assignment| assignment.value.as_literal());
    if !command.words.is_empty() && values.into_iter().any(|value| starts_it(pattern, value)) {
        return true;
    }
    if known.effects.complete || command.words.is_empty() {
        return false;
    }
    let base = command.base_name().unwrap_or_default();
    let mut words = command.words.iter().skip(1).filter_map(Word::as_literal);
    if takes_code(base) {
        return words.any(|word| pattern.is_named_in(word))
            || input(command).any(|it| pattern.is_named_in(it));
    }
    // Messages of commits are words, too, and what git runs is looked for elsewhere.
    let written = base != "git"
        && words.any(|word| {
            let value = word.split_once('=').map(|(_, value)| value);
            value.is_some_and(|value| starts_it(pattern, value))
                || (word.contains(char::is_whitespace) && starts_it(pattern, word))
        });
    written || input(command).any(|text| pattern.is_named_in(text))
}

/// The text that the command is given on its input.
fn input(command: &SimpleCommand) -> impl Iterator<Item = &str> {
    let is_text =
        |it: &&Redirection| matches!(it.kind, RedirectionKind::HereDocument | RedirectionKind::HereString);
    let texts = command.redirections.iter().filter(is_text).filter_map(|it| it.target.as_ref());
    texts.filter_map(Word::as_literal)
}

/// True when the text, or a part of it behind an operator, is the command that the rule names.
fn starts_it(pattern: &CommandPattern, text: &str) -> bool {
    text.split([';', '|', '&', '\n', '!', '(', ':', '=']).any(|part| pattern.begins(part))
}
