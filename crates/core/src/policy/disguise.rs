//! Commands inside words of other programs: an editor, a pager or a hook named by an option or a variable, code of an
//! interpreter, a script on its input. Such words are not read as commands, since most of them are none; but a line is
//! not run unasked when one of them names what a rule stops.

use super::found::Known;
use super::words::{CommandPattern, may_be_code};
use crate::shell::knowledge::takes_code;
use crate::shell::{Redirection, RedirectionKind, SimpleCommand, Word};

/// What a command may hold inside its words, found out once and not once per rule.
pub(super) struct Hiding<'a> {
    /// Texts that may be commands.
    commands: Vec<&'a str>,
    /// Texts that may be code.
    code: Vec<&'a str>,
}

impl<'a> Hiding<'a> {
    /// `None` for a command that holds nothing, whatever the rule: most of them.
    pub(super) fn of(command: &'a SimpleCommand, known: &Known) -> Option<Self> {
        let mut hiding = Self { commands: Vec::new(), code: Vec::new() };
        if command.words.is_empty() {
            return None;
        }
        let values = command.assignments.iter().filter_map(|assignment| assignment.value.as_literal());
        hiding.commands.extend(values);
        if !known.effects.complete {
            let base = command.base_name().unwrap_or_default();
            let words = command.words.iter().skip(1).filter_map(Word::as_literal);
            if takes_code(base) {
                hiding.code.extend(words);
            } else if base != "git" {
                // Messages of commits are words, too, and what git runs is looked for elsewhere.
                for word in words {
                    hiding.commands.extend(word.split_once('=').map(|(_, value)| value));
                    hiding.commands.extend(word.contains(char::is_whitespace).then_some(word));
                }
            }
            hiding.code.extend(input(command));
            hiding.code.retain(|text| may_be_code(text));
        }
        (!hiding.commands.is_empty() || !hiding.code.is_empty()).then_some(hiding)
    }

    /// True when a word of the command, a variable in front of it or the text on its input may be what the rule names.
    pub(super) fn may_be(&self, pattern: &CommandPattern) -> bool {
        self.commands.iter().any(|text| starts_it(pattern, text))
            || self.code.iter().any(|text| pattern.is_named_in(text))
    }
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
