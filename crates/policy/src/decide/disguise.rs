//! Commands inside words of other programs: an editor, a pager or a hook named by an option or a variable, code of an
//! interpreter, a script on its input. Such words are not read as commands, since most of them are none; but a line is
//! not run unasked when one of them names what a rule stops.

use std::borrow::Cow;

use crate::accesses::find::Known;
use crate::rules::quoted_code::{expanded, may_be_code};
use crate::rules::words::CommandPattern;
use crate::shell::knowledge::{runs_arbitrary_code, takes_code};
use crate::shell::{Redirection, RedirectionKind, SimpleCommand, Word, alternatives};

/// How many words of a command are looked at one by one.
const MOST_WORDS: usize = 64;

/// What a command may hold inside its words, found out once and not once per rule.
pub(crate) struct Hiding<'a> {
    /// Texts that may be commands.
    commands: Vec<Cow<'a, str>>,
    /// Texts that may be code.
    code: Vec<&'a str>,
    /// What the braces of words become, where that may be a command or code.
    made: Vec<String>,
    /// What a shell may make of the commands.
    expanded_commands: Vec<String>,
    /// What a shell may make of the code.
    expanded_code: Vec<String>,
    /// Words of which not all is known, in places where a program may be named.
    unknown: Vec<&'a Word>,
}

impl<'a> Hiding<'a> {
    /// `None` for a command that holds nothing, whatever the rule: most of them.
    pub(crate) fn of(command: &'a SimpleCommand, known: &Known) -> Option<Self> {
        let mut hiding = Self {
            commands: Vec::new(),
            code: Vec::new(),
            made: Vec::new(),
            expanded_commands: Vec::new(),
            expanded_code: Vec::new(),
            unknown: Vec::new(),
        };
        let values = command.assignments.iter().filter_map(|assignment| assignment.value.as_literal());
        hiding.commands.extend(values.clone().map(Cow::Borrowed));
        hiding.code.extend(values);
        if !command.words.is_empty() && !known.effects.complete {
            let base = command.base_name().unwrap_or_default();
            let words: Vec<&str> =
                command.words.iter().skip(1).map(|word| word.as_literal().unwrap_or_default()).collect();
            hiding.named_programs(base, &words, known.effects.known);
            hiding.unknown_programs(base, &command.words, known.effects.known);
            hiding.made_by_braces(&command.words);
            if takes_code(base) {
                hiding.code.extend(&words);
            } else if base != "git" {
                // Messages of commits are words, too, and what git runs is looked for elsewhere.
                for word in &words {
                    hiding.commands.extend(word.split_once('=').map(|(_, value)| Cow::Borrowed(value)));
                    hiding
                        .commands
                        .extend(word.contains(char::is_whitespace).then_some(Cow::Borrowed(*word)));
                }
            }
            hiding.code.extend(input(command));
        }
        hiding.code.retain(|text| may_be_code(text));
        hiding.expand();
        let is_empty = hiding.commands.is_empty()
            && hiding.code.is_empty()
            && hiding.made.is_empty()
            && hiding.unknown.is_empty();
        (!is_empty).then_some(hiding)
    }

    /// Adds what a shell may make of the texts.
    fn expand(&mut self) {
        let made = || self.made.iter().map(String::as_str);
        let commands = self.commands.iter().map(Cow::as_ref).chain(made());
        self.expanded_commands = commands.filter_map(expanded).collect();
        self.expanded_code = self.code.iter().copied().chain(made()).filter_map(expanded).collect();
    }

    /// Adds what braces become, each text alone and with those behind it.
    fn made_by_braces(&mut self, words: &[Word]) {
        for words in words.iter().skip(1).take(MOST_WORDS).filter_map(alternatives).flatten() {
            let texts: Vec<&str> = words.iter().map(|word| word.as_literal().unwrap_or_default()).collect();
            self.made.extend((0..texts.len()).map(|at| texts[at..].join(" ")));
        }
    }

    /// Adds options and values of options that are not known. Of a program with options that run others any of them may
    /// name one; of a program about which nothing is known, one that says at least how it begins.
    fn unknown_programs(&mut self, base: &str, words: &'a [Word], is_known: bool) {
        if is_known && runs_arbitrary_code(base) {
            return;
        }
        for pair in words.windows(2).take(MOST_WORDS) {
            let (before, word) = (pair[0].known_start(), &pair[1]);
            let is_option = |start: &str| start.starts_with('-') && start != "--";
            if word.is_dynamic()
                && (is_option(before) || is_option(word.known_start()))
                && (is_known || !word.known_start().is_empty())
            {
                self.unknown.push(word);
            }
        }
    }

    /// Adds words that may name a program by where they stand: behind an option, glued to one, or anywhere when nothing
    /// is known of the program that is given them.
    fn named_programs(&mut self, base: &str, words: &[&'a str], is_known: bool) {
        let mut before = "";
        for (at, word) in words.iter().copied().enumerate().take(MOST_WORDS) {
            let is_message = base == "git" && matches!(before, "-m" | "--message" | "-am" | "-F");
            if !word.is_empty() && !is_message && (!is_known || before.starts_with('-')) {
                let rest = words.get(at..).unwrap_or_default();
                self.commands.push(if rest.len() == 1 { Cow::Borrowed(word) } else { rest.join(" ").into() });
                // A program named there is often given to a shell.
                self.code.push(word);
            }
            if word.starts_with('-') && !word.starts_with("--") {
                let letters = word.char_indices().skip(2).map(|(at, _)| Cow::Borrowed(&word[at..]));
                self.commands.extend(letters.take(4));
            }
            match base {
                // A keyword and its value may stand in one word.
                "ssh" | "scp" | "sftp" | "autossh" | "mosh" | "rsync" => {
                    let value = word.split_once(char::is_whitespace).map(|(_, value)| value);
                    self.commands.extend(value.map(Cow::Borrowed));
                }
                // The command that runs a program needs no blank in front of it.
                "sed" | "gsed" => {
                    let behind = word.match_indices('e').map(|(at, _)| Cow::Borrowed(&word[at + 1..]));
                    self.commands.extend(behind.take(MOST_WORDS));
                }
                _ => {}
            }
            before = word;
        }
    }

    /// True when a word of the command, a variable in front of it or the text on its input may be what the rule names.
    pub(crate) fn may_be(&self, pattern: &CommandPattern) -> bool {
        self.commands.iter().any(|text| starts_it(pattern, text))
            || self.code.iter().any(|text| pattern.is_named_in(text))
            || self.made.iter().any(|text| starts_it(pattern, text) || pattern.is_named_in(text))
            || self.expanded_commands.iter().any(|text| starts_it(pattern, text))
            || self.expanded_code.iter().any(|text| pattern.has_words_in(text))
            || self.unknown.iter().any(|word| pattern.may_be_named_by(word))
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
