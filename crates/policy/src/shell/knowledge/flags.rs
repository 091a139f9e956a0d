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
    operands: Vec<Given>,
    /// The operand from which on anything may follow.
    open_from: Option<usize>,
    may_have_more_flags: bool,
}

/// An operand.
#[derive(Debug)]
struct Given {
    /// Nothing when it is not known.
    text: Option<String>,
    /// It may be the value of an option in front of it that no table knows.
    may_be_value: bool,
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
            let tells = |known: &Known| !known.groups.is_empty() || known.style == Style::WholeWords;
            sorted.sort(rest, known.filter(tells));
        }
        sorted
    }

    fn sort(&mut self, words: &[Word], known: Option<Known>) {
        let mut at = 0;
        let mut ended = false;
        let mut may_be_value = false;
        while let Some(word) = words.get(at) {
            at += 1;
            match word.as_literal() {
                Some("--") if !ended => ended = true,
                Some(text) if !ended && text.len() > 1 && text.starts_with('-') => {
                    match self.option(text, known, words.get(at)) {
                        Next::IsValue => at += 1,
                        Next::IsOwn => {}
                        Next::MayBeValue => {
                            may_be_value = true;
                            continue;
                        }
                    }
                }
                Some(text) => self.operands.push(Given { text: Some(text.to_owned()), may_be_value }),
                None => self.dynamic(word, ended),
            }
            may_be_value = false;
        }
    }

    fn dynamic(&mut self, word: &Word, ended: bool) {
        self.may_have_more_flags |= !ended && may_begin_with_dash(word);
        if words::is_many(word) {
            self.open_from.get_or_insert(self.operands.len());
        }
        if may_split(word) || !may_begin_with_dash(word) {
            self.operands.push(Given { text: None, may_be_value: false });
        }
    }

    /// Takes one option word.
    fn option(&mut self, text: &str, known: Option<Known>, next: Option<&Word>) -> Next {
        let whole = known.is_some_and(|known| known.style == Style::WholeWords);
        if let Some(long) = text.strip_prefix("--").or_else(|| text.strip_prefix('-').filter(|_| whole)) {
            return self.long(long, known, next);
        }
        let letters = text.strip_prefix('-').unwrap_or(text);
        let Some(known) = known else { return self.unknown_letters(letters) };
        let mut after = Next::IsOwn;
        for (at, letter) in letters.char_indices() {
            let name = letter.to_string();
            let rest = &letters[at + letter.len_utf8()..];
            let Some(setting) = find(known.groups, &name) else {
                self.push(name, None, None);
                after = Next::MayBeValue;
                continue;
            };
            match setting.takes {
                Takes::Nothing => self.push(name, Some(setting), None),
                Takes::Value | Takes::CertainValue if rest.is_empty() => {
                    self.push(name, Some(setting), next.cloned());
                    return Next::IsValue;
                }
                Takes::Value | Takes::CertainValue | Takes::AttachedValue => {
                    let value = (!rest.is_empty()).then(|| Word::literal(rest));
                    self.push(name, Some(setting), value);
                    return Next::IsOwn;
                }
            }
        }
        after
    }

    /// Without a table it is not known whether letters are a bundle or one name; short ones are taken for both.
    fn unknown_letters(&mut self, letters: &str) -> Next {
        let name = letters.split('=').next().unwrap_or(letters);
        if name.chars().count() > 1 {
            self.push(format!("-{name}"), None, None);
        }
        if name == letters && name.chars().count() <= LONGEST_BUNDLE {
            for letter in name.chars() {
                self.push(letter.to_string(), None, None);
            }
        }
        if name == letters { Next::MayBeValue } else { Next::IsOwn }
    }

    fn long(&mut self, long: &str, known: Option<Known>, next: Option<&Word>) -> Next {
        let (name, attached) = match long.split_once('=') {
            Some((name, value)) => (name, Some(Word::literal(value))),
            None => (long, None),
        };
        let setting = known.and_then(|known| find_abbreviated(known.groups, name));
        let takes = setting.map(|setting| setting.takes);
        let after = match (takes, &attached) {
            (_, Some(_)) | (Some(Takes::Nothing | Takes::AttachedValue), None) => Next::IsOwn,
            (Some(Takes::Value | Takes::CertainValue), None) => Next::IsValue,
            (None, None) => Next::MayBeValue,
        };
        let value = if after == Next::IsValue { next.cloned() } else { attached };
        self.push(format!("--{name}"), setting, value);
        after
    }

    fn push(&mut self, name: String, setting: Option<Setting>, value: Option<Word>) {
        let name = setting.map_or(name, |setting| setting.canonical().to_owned());
        self.flags.push(Flag { name, value });
    }

    /// Other ways to say the same in git: letters that stand for two options, and marks in front of what is pushed.
    fn unfold_git(&mut self) {
        let subcommand = self.operands.first().and_then(|operand| operand.text.clone());
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
                let marked = |mark: char| {
                    let texts = self.operands.iter().skip(2).filter_map(|operand| operand.text.as_ref());
                    texts.into_iter().any(|text| text.starts_with(mark))
                };
                let (force, delete) = (marked('+'), marked(':'));
                for (name, _) in [("f", force), ("d", delete)].into_iter().filter(|(_, given)| *given) {
                    self.push(name.to_owned(), None, None);
                }
            }
            Some(_) | None => {}
        }
    }

    fn has(&self, wanted: &Flag) -> bool {
        let same_value =
            |flag: &Flag| wanted.value.is_none() || flag.value.is_none() || flag.value == wanted.value;
        let given = |name: &str| self.flags.iter().any(|flag| flag.name == name);
        // A short word that no table knows may be a bundle, and then its letters may stand apart.
        let bundle = wanted.name.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        self.flags.iter().any(|flag| flag.name == wanted.name && same_value(flag))
            || bundle.is_some_and(|letters| {
                letters.chars().count() <= LONGEST_BUNDLE && letters.chars().all(|c| given(&c.to_string()))
            })
    }

    /// True when the operands of this rule are those with which the command begins, values of unknown options aside.
    fn operands_fit(&self, command: &Self, prefix: bool, lenient: bool) -> bool {
        let end = self.operands.len();
        // How many operands of the rule may have been found so far; there can be several numbers.
        let mut found = vec![false; end + 1];
        found[0] = true;
        for (at, operand) in command.operands.iter().enumerate() {
            if prefix && found[end] {
                return true;
            }
            if lenient && command.open_from.is_some_and(|from| at >= from) {
                return found.contains(&true);
            }
            for count in (0..=end).rev() {
                let here = found[count];
                found[count] = here && operand.may_be_value;
                let fits = |wanted: &Given| match &operand.text {
                    Some(_) => operand.text == wanted.text,
                    None => lenient,
                };
                if here && self.operands.get(count).is_some_and(fits) {
                    found[count + 1] = true;
                }
            }
        }
        let open = lenient && command.open_from.is_some_and(|from| from >= command.operands.len());
        found[end] || (open && found.contains(&true))
    }
}

/// What the word behind an option is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    IsValue,
    IsOwn,
    MayBeValue,
}

/// More letters than this behind one dash are taken for a name, not for a bundle.
const LONGEST_BUNDLE: usize = 3;
