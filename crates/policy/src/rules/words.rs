//! What a rule says about commands, compared with the words of one simple command: `words` exactly, `words:*` and
//! `words *` as a prefix of whole words, and any other `*` for any text inside that command. A denial looks wide (base
//! names, global options, other spellings of flags, words that may become what it names); an allowance looks narrow.

use std::borrow::Cow;

use super::quoted_code::{is_between, is_quote, may_be_code, may_become};
use crate::shell::{DoubtKind, Piece, Word, knowledge, read};

/// Stands between words, so that a blank inside a word is not one between words.
const BETWEEN: char = '\u{1f}';
/// Stands for the home directory at the start of a word.
const HOME: char = '\u{1e}';
/// Stands for a star of a rule; a star of a command is an ordinary character.
pub(super) const STAR: char = '\u{1d}';

/// The command part of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    words: Vec<String>,
    prefix: bool,
    starred: bool,
}

impl CommandPattern {
    /// Reads a rule's content; `None` when it is not one simple command of literal words and stars.
    pub(crate) fn parse(content: &str) -> Option<Self> {
        let (body, prefix) = match content.strip_suffix(":*").or_else(|| content.strip_suffix(" *")) {
            Some(body) => (body.trim_end(), true),
            None => (content, false),
        };
        let words = plain_words(body).or_else(|| grammar_words(body))?;
        if words.is_empty() {
            return None;
        }
        let starred = words.iter().any(|word| word.contains(STAR));
        Some(Self { words, prefix, starred })
    }

    /// The program that the rule names, when it names one.
    pub(crate) fn program(&self) -> Option<&str> {
        let first = self.words[0].as_str();
        (!first.contains([STAR, HOME])).then_some(first)
    }

    /// True when the rule names this very command and nothing more.
    pub(crate) fn is_exact(&self) -> bool {
        !self.prefix && !self.starred
    }

    /// For allow: the words as written, and no word whose value is not known in the part that the rule names.
    pub(crate) fn allows(&self, words: &[Word]) -> bool {
        if !self.starred {
            // Rules about one program mostly differ in their last word.
            return words.len() >= self.words.len()
                && (self.prefix || words.len() == self.words.len())
                && self.words.iter().zip(words).rev().all(|(wanted, word)| is(word, wanted))
                && self.may_start(words);
        }
        if !self.may_start(words) {
            return false;
        }
        let known: Vec<Cow<'_, str>> = words.iter().map_while(comparable).collect();
        let all_known = known.len() == words.len();
        let pattern = join(&self.words);
        if all_known && matches(&pattern, &join(&known)) {
            return true;
        }
        let open = self.prefix || pattern.ends_with(STAR);
        open && (1..=known.len()).any(|count| matches(&pattern, &join(&known[..count])))
    }

    /// For deny and ask: also by base name, past global options, with flags spelled otherwise.
    pub(crate) fn speaks_of(&self, words: &[Word]) -> bool {
        if words.is_empty() || self.is_about_another_program(words) {
            return false;
        }
        let based = with_base_name(words);
        let short = past_global_options(based.as_deref().unwrap_or(words));
        [Some(words), based.as_deref(), short.as_deref()].into_iter().flatten().any(|words| {
            self.allows(words)
                || (!self.starred
                    && (self.speaks_past_options(words)
                        || knowledge::matches_with_flags(&self.words, self.prefix, words)))
        })
    }

    /// For deny and ask: true when words that are not known may turn the command into what the rule names.
    pub(crate) fn may_speak_of(&self, words: &[Word]) -> bool {
        if self.is_about_another_program(words) {
            return false;
        }
        let Some(unknown) = words.iter().position(|word| comparable(word).is_none()) else { return false };
        let based = with_base_name(words).unwrap_or_else(|| words.to_vec());
        let words = past_global_options(&based).unwrap_or(based);
        if unknown == 0 {
            return could_be(&words[0], &self.words[0]);
        }
        let first = comparable(&words[0]).unwrap_or_default();
        if self.starred {
            return self.words[0].contains(STAR) || self.words[0] == first;
        }
        if knowledge::may_match_with_flags(&self.words, self.prefix, &words) {
            return true;
        }
        // A word that is not known may become several, or none: behind it anything may stand.
        for (wanted, word) in self.words.iter().zip(&words) {
            match comparable(word) {
                Some(text) if text == *wanted => {}
                Some(text) if text.starts_with('-') && !wanted.starts_with('-') => return true,
                Some(_) => return false,
                None => return could_be(word, wanted),
            }
        }
        // All named words are there; without a prefix something unknown may still expand to nothing.
        true
    }

    /// True when the words of the rule stand in the command in their order, with nothing before the last of them but
    /// options and what may be their values.
    fn speaks_past_options(&self, words: &[Word]) -> bool {
        if self.words.len() < 2 || !words.first().is_some_and(|word| is(word, &self.words[0])) {
            return false;
        }
        let is_option = |text: &str| text.starts_with(['-', '+']);
        let mut next = 1;
        let mut may_be_value = false;
        for (at, word) in words.iter().enumerate().skip(1) {
            let Some(text) = comparable(word) else { return false };
            if text == self.words[next] {
                next += 1;
                may_be_value = false;
                if next == self.words.len() {
                    return self.prefix || words[at + 1..].is_empty();
                }
            } else if is_option(&text) {
                may_be_value = !text.contains('=');
            } else if !std::mem::take(&mut may_be_value) {
                return false;
            }
        }
        false
    }

    /// For deny and ask: true when the text is the command that the rule names, or may become it.
    pub(crate) fn begins(&self, text: &str) -> bool {
        let mut parts = text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
        // A word of which nothing is known may be no word.
        let Some(first) = parts.find(|part| part.chars().any(|c| c != STAR)) else { return false };
        if !may_become(base_name(first), &self.words[0]) {
            return false;
        }
        let parts: Vec<&str> = parts.collect();
        self.words[1..].iter().all(|word| parts.iter().any(|part| may_become(part, word)))
    }

    /// For deny and ask: true when code, in whatever language, has all words of the rule as words of its own.
    pub(crate) fn is_named_in(&self, code: &str) -> bool {
        may_be_code(code)
            && (self.has_words_in(code)
                // A shell takes quotes and escapes out of its words.
                || (code.contains(is_quote) && self.has_words_in(&code.replace(is_quote, ""))))
    }

    /// True when all words of the rule are words of the text, or may become it.
    pub(crate) fn has_words_in(&self, code: &str) -> bool {
        self.words.iter().all(|word| {
            word.contains(STAR)
                || code
                    .split(is_between)
                    .any(|part| may_become(part, word) || part.split('/').any(|name| may_become(name, word)))
        })
    }

    /// For deny and ask: true when a word that is not known may name the program of the rule, alone or behind an option.
    pub(crate) fn may_be_named_by(&self, word: &Word) -> bool {
        word.known_start().starts_with('-') || could_be(word, &self.words[0])
    }

    /// True when the program is known and the rule names another one: most rules are done with after this.
    fn is_about_another_program(&self, words: &[Word]) -> bool {
        let wanted = self.words[0].as_str();
        let named = words.first().and_then(Word::as_literal);
        named.is_some_and(|name| name != wanted && base_name(name) != wanted && !wanted.contains(STAR))
    }

    fn may_start(&self, words: &[Word]) -> bool {
        let Some(first) = words.first() else { return false };
        if self.words[0].contains(STAR) {
            return true;
        }
        match first.pieces.as_slice() {
            [Piece::Literal(text)] => *text == self.words[0],
            [Piece::Home, ..] => self.words[0].starts_with(HOME),
            _ => false,
        }
    }
}

/// Words that need no grammar: letters, digits and signs that mean nothing to a shell, and stars.
fn plain_words(body: &str) -> Option<Vec<String>> {
    let plain = |byte: u8| is_plain(byte) || matches!(byte, b' ' | b'*' | b'\t');
    if !body.bytes().all(plain) {
        return None;
    }
    let words: Vec<String> = body.split([' ', '\t']).filter(|word| !word.is_empty()).map(starred).collect();
    // An assignment in front is not a word.
    let assigns = words.first().is_some_and(|word| word.contains('='));
    (!assigns).then_some(words)
}

/// True for letters, digits and signs that mean nothing to a shell.
pub(crate) fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'.' | b'/' | b':' | b'@' | b'%' | b'+' | b',' | b'^' | b'=')
}

fn starred(word: &str) -> String {
    word.replace('*', &STAR.to_string())
}

fn grammar_words(body: &str) -> Option<Vec<String>> {
    let reading = read(body);
    let mut direct = reading.commands.iter().filter(|command| command.wrapped.is_none());
    let command = direct.next()?;
    let plain = direct.next().is_none()
        && command.assignments.is_empty()
        && command.redirections.is_empty()
        && !reading.doubts.iter().any(|doubt| spoils(doubt.kind));
    if !plain {
        return None;
    }
    command.words.iter().map(pattern_word).collect()
}

/// True for doubts about the text itself; a rule may well name a command that is doubtful by what it does.
fn spoils(kind: DoubtKind) -> bool {
    match kind {
        DoubtKind::SyntaxError
        | DoubtKind::ReadersDisagree
        | DoubtKind::ControlCharacter
        | DoubtKind::InvisibleCharacter
        | DoubtKind::TooLong
        | DoubtKind::TooDeep
        | DoubtKind::TooMany
        | DoubtKind::UnknownConstruct => true,
        DoubtKind::DynamicCommand
        | DoubtKind::DefinesName
        | DoubtKind::LoadsCode
        | DoubtKind::ChangesShell
        | DoubtKind::EvaluatesText => false,
    }
}

fn pattern_word(word: &Word) -> Option<String> {
    let mut text = String::new();
    for (at, piece) in word.pieces.iter().enumerate() {
        match piece {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Home if at == 0 => text.push(HOME),
            Piece::Glob(glob) => text.push_str(&starred(glob)),
            Piece::Home | Piece::Variable(_) | Piece::Unknown(_) => return None,
        }
    }
    Some(text)
}

/// A word's text when it is known.
pub(crate) fn comparable(word: &Word) -> Option<Cow<'_, str>> {
    if let Some(text) = word.as_literal() {
        return Some(Cow::Borrowed(text));
    }
    if word.is_dynamic() {
        return None;
    }
    let mut text = String::new();
    for piece in &word.pieces {
        match piece {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Home => text.push(HOME),
            Piece::Variable(_) | Piece::Glob(_) | Piece::Unknown(_) => return None,
        }
    }
    Some(Cow::Owned(text))
}

/// True when the word is known and is this text.
fn is(word: &Word, text: &str) -> bool {
    comparable(word).is_some_and(|word| word == text)
}

/// True when a word that is not known may become `wanted`.
fn could_be(word: &Word, wanted: &str) -> bool {
    let start = word.known_start();
    let base = base_name(start);
    let wanted = wanted.split(STAR).next().unwrap_or_default();
    wanted.starts_with(start) || start.starts_with(wanted) || wanted.starts_with(base)
}

/// The last part of a path.
pub(crate) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn with_base_name(words: &[Word]) -> Option<Vec<Word>> {
    let text = comparable(words.first()?)?;
    let base = base_name(&text);
    (base.len() != text.len()).then(|| {
        let mut based = words.to_vec();
        based[0] = Word::literal(base);
        based
    })
}

/// Options of git that stand before its subcommand and take a value.
const GIT_VALUES: [&str; 9] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--super-prefix",
    "--config-env",
    "--attr-source",
];

/// The command without the options in front of its subcommand.
fn past_global_options(words: &[Word]) -> Option<Vec<Word>> {
    if words.first().and_then(Word::as_literal) != Some("git") {
        return None;
    }
    let mut at = 1;
    while let Some(option) = words.get(at).and_then(Word::as_literal).filter(|word| word.starts_with('-')) {
        at += if GIT_VALUES.contains(&option) { 2 } else { 1 };
    }
    (at > 1 && at <= words.len()).then(|| {
        let mut short = vec![words[0].clone()];
        short.extend_from_slice(&words[at..]);
        short
    })
}

fn join<T: AsRef<str>>(words: &[T]) -> String {
    let mut joined = String::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            joined.push(BETWEEN);
        }
        joined.push_str(word.as_ref());
    }
    joined
}

/// Matches with stars for any text. Only the last star is ever tried again, so the cost is the product at worst.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == STAR {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && pattern[p] == text[t] {
            p += 1;
            t += 1;
        } else if let Some((at, from)) = star {
            p = at + 1;
            t = from + 1;
            star = Some((at, from + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == STAR)
}
