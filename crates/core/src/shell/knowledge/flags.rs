//! Rules that name options find them in every spelling: reordered, bundled, split, long or short, abbreviated, and
//! behind operands. Where a program's options are known its table says which are the same and which take a value;
//! elsewhere letters and long names are compared as they stand. This only serves rules that forbid or ask: it finds
//! too much rather than too little.

use super::options::{Groups, Setting, Style, Takes, find, find_abbreviated};
use super::program;
use super::words::{base_name, joined, may_begin_with_dash, may_split};
use super::{git, words};
use crate::shell::Word;

/// True when the command is what the words of a rule say, with options in any spelling. A prefix covers more operands
/// and options; otherwise the command must have exactly those of the rule.
#[must_use]
pub fn matches_with_flags(rule_words: &[String], prefix: bool, words: &[Word]) -> bool {
    compare(rule_words, prefix, words, false)
}

/// The same, but a word that is not known before the command runs may be whatever the rule needs.
#[must_use]
pub fn may_match_with_flags(rule_words: &[String], prefix: bool, words: &[Word]) -> bool {
    compare(rule_words, prefix, words, true)
}

fn compare(rule_words: &[String], prefix: bool, words: &[Word], lenient: bool) -> bool {
    let words: Vec<Word> = words.iter().map(joined).collect();
    let (Some(rule_name), Some(first)) = (rule_words.first(), words.first()) else { return false };
    let Some(name) = first.as_literal() else { return lenient };
    if name != rule_name && base_name(name) != rule_name {
        return false;
    }
    let rule: Vec<Word> = rule_words.iter().map(Word::literal).collect();
    let rule = Sorted::of(&rule);
    let command = Sorted::of(&words);
    let flags = rule.flags.iter().all(|flag| command.has(flag)) || (lenient && command.may_have_more_flags);
    let exact = prefix || command.flags.iter().all(|flag| rule.has(flag));
    flags && exact && rule.operands_fit(&command, prefix, lenient)
}

/// An option by its canonical name.
#[derive(Debug, PartialEq, Eq)]
struct Flag {
    name: String,
    value: Option<Word>,
}

/// A command with options and operands apart.
#[derive(Debug, Default)]
struct Sorted {
    flags: Vec<Flag>,
    /// The operands; nothing where one is not known.
    operands: Vec<Option<String>>,
    /// The operand from which on anything may follow.
    open_from: Option<usize>,
    may_have_more_flags: bool,
}

/// What is known about the options of a program.
#[derive(Clone, Copy)]
struct Known {
    groups: Groups,
    style: Style,
}

impl Sorted {
    fn of(words: &[Word]) -> Self {
        let mut sorted = Self::default();
        let Some((first, rest)) = words.split_first() else { return sorted };
        let name = first.as_literal().map_or("", base_name);
        if name == "git" {
            let (_, rest) = git::split(rest);
            let known = git::subcommand(rest)
                .map(|(entry, _)| Known { groups: entry.groups, style: Style::Permuting });
            sorted.sort(rest, known);
            sorted.unfold_git();
        } else {
            let known =
                program::find(name).map(|program| Known { groups: program.groups, style: program.style });
            sorted.sort(rest, known.filter(|known| !known.groups.is_empty()));
        }
        sorted
    }

    fn sort(&mut self, words: &[Word], known: Option<Known>) {
        let mut at = 0;
        let mut ended = false;
        while let Some(word) = words.get(at) {
            at += 1;
            match word.as_literal() {
                Some("--") if !ended => ended = true,
                Some(text) if !ended && text.len() > 1 && text.starts_with('-') => {
                    if self.option(text, known, words.get(at)) {
                        at += 1;
                    }
                }
                Some(text) => self.operands.push(Some(text.to_owned())),
                None => self.dynamic(word, ended),
            }
        }
    }

    fn dynamic(&mut self, word: &Word, ended: bool) {
        self.may_have_more_flags |= !ended && may_begin_with_dash(word);
        if words::is_many(word) {
            self.open_from.get_or_insert(self.operands.len());
        }
        if may_split(word) || !may_begin_with_dash(word) {
            self.operands.push(None);
        }
    }

    /// Takes one option word; true when the next word is its value.
    fn option(&mut self, text: &str, known: Option<Known>, next: Option<&Word>) -> bool {
        let whole = known.is_some_and(|known| known.style == Style::WholeWords);
        if let Some(long) = text.strip_prefix("--").or_else(|| text.strip_prefix('-').filter(|_| whole)) {
            return self.long(long, known, next);
        }
        let letters = text.strip_prefix('-').unwrap_or(text);
        for (at, letter) in letters.char_indices() {
            let name = letter.to_string();
            let setting = known.and_then(|known| find(known.groups, &name));
            let rest = &letters[at + letter.len_utf8()..];
            match setting.map(|setting| (setting, setting.takes)) {
                None | Some((_, Takes::Nothing)) => self.push(name, setting, None),
                Some((_, Takes::Value)) if rest.is_empty() => {
                    self.push(name, setting, next.cloned());
                    return true;
                }
                Some((_, Takes::Value | Takes::AttachedValue)) => {
                    let value = (!rest.is_empty()).then(|| Word::literal(rest));
                    self.push(name, setting, value);
                    return false;
                }
            }
        }
        false
    }

    fn long(&mut self, long: &str, known: Option<Known>, next: Option<&Word>) -> bool {
        let (name, attached) = match long.split_once('=') {
            Some((name, value)) => (name, Some(Word::literal(value))),
            None => (long, None),
        };
        let setting = known.and_then(|known| find_abbreviated(known.groups, name));
        let takes_next = attached.is_none() && setting.is_some_and(|setting| setting.takes == Takes::Value);
        let value = if takes_next { next.cloned() } else { attached };
        self.push(format!("--{name}"), setting, value);
        takes_next
    }

    fn push(&mut self, name: String, setting: Option<Setting>, value: Option<Word>) {
        let name = setting.map_or(name, |setting| setting.canonical().to_owned());
        self.flags.push(Flag { name, value });
    }

    /// Other ways to say the same in git: letters that stand for two options, and marks in front of what is pushed.
    fn unfold_git(&mut self) {
        let subcommand = self.operands.first().cloned().flatten();
        match subcommand.as_deref() {
            Some("branch") => {
                let doubled = |flag: &Flag| matches!(flag.name.as_str(), "D" | "M" | "C");
                if self.flags.iter().any(doubled) {
                    self.push("f".to_owned(), None, None);
                }
                for flag in self.flags.iter_mut().filter(|flag| doubled(flag)) {
                    flag.name.make_ascii_lowercase();
                }
            }
            Some("push") => {
                let marked = |mark: char| self.operands.iter().skip(2).flatten().any(|o| o.starts_with(mark));
                let (force, delete) = (marked('+'), marked(':'));
                for (name, _) in [("f", force), ("d", delete)].into_iter().filter(|(_, given)| *given) {
                    self.push(name.to_owned(), None, None);
                }
            }
            Some(_) | None => {}
        }
    }

    fn has(&self, wanted: &Flag) -> bool {
        self.flags.iter().any(|flag| {
            flag.name == wanted.name
                && (wanted.value.is_none() || flag.value.is_none() || flag.value == wanted.value)
        })
    }

    /// True when the operands of this rule are those with which the command begins.
    fn operands_fit(&self, command: &Self, prefix: bool, lenient: bool) -> bool {
        for (at, wanted) in self.operands.iter().enumerate() {
            if lenient && command.open_from.is_some_and(|from| at >= from) {
                return true;
            }
            match command.operands.get(at) {
                Some(Some(text)) if Some(text) == wanted.as_ref() => {}
                Some(None) if lenient => {}
                Some(_) | None => return false,
            }
        }
        prefix
            || self.operands.len() == command.operands.len()
            || (lenient && command.open_from.is_some_and(|from| from <= self.operands.len()))
    }
}
