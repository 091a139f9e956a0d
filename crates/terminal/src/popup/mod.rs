//! What may follow: paths behind `@` and commands behind `/`, found while one types. Matching runs beside the front; what it
//! finds is shown when it is there.

mod matching;

use std::ops::Range;

use crate::composer::Draft;
use crate::input::{Key, KeyCode};

pub(crate) use matching::{Candidate, CommandChoice, best_commands, best_paths};

/// Rows that are shown.
pub(crate) const SHOWN_ROWS: usize = 8;

/// What is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A path.
    Path,
    /// A command.
    Command,
}

/// The word that is being written, if something may follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trigger {
    /// What it is.
    pub(crate) kind: Kind,
    /// Where it is, with its sign.
    pub(crate) range: Range<usize>,
    /// What was written of it, without its sign.
    pub(crate) word: String,
}

/// Finds the word at the cursor that a popup is for.
pub(crate) fn trigger(draft: &Draft) -> Option<Trigger> {
    let (text, cursor) = (draft.text(), draft.cursor());
    let before = &text[..cursor];
    let start = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let word = &before[start..];
    if draft.tokens().iter().any(|token| token.range.start < cursor && token.range.end > start) {
        return None;
    }
    let found = |kind, rest: &str| Some(Trigger { kind, range: start..cursor, word: rest.to_owned() });
    if let Some(rest) = word.strip_prefix('@') {
        return found(Kind::Path, rest);
    }
    match word.strip_prefix('/') {
        Some(rest) if start == 0 && !rest.contains('/') => found(Kind::Command, rest),
        Some(_) | None => None,
    }
}

/// A popup.
#[derive(Debug, Clone)]
pub(crate) struct Popup {
    /// What it is for.
    pub(crate) trigger: Trigger,
    /// What was found, best first.
    pub(crate) candidates: Vec<Candidate>,
    /// The chosen one.
    pub(crate) selected: usize,
}

/// What a key came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PopupReply {
    /// It was taken.
    Taken,
    /// It is not for the popup.
    NotMine,
    /// The popup is closed until the word is another.
    Closed,
    /// This candidate; true when Enter chose it.
    Chosen(Candidate, bool),
}

impl Popup {
    /// Takes a key.
    pub(crate) fn key(&mut self, key: Key) -> PopupReply {
        let count = self.candidates.len();
        match (key.code, key.ctrl) {
            _ if count == 0 => PopupReply::NotMine,
            (KeyCode::Up, false) | (KeyCode::Char('p'), true) => {
                self.selected = if self.selected == 0 { count - 1 } else { self.selected - 1 };
                PopupReply::Taken
            }
            (KeyCode::Down, false) | (KeyCode::Char('n'), true) => {
                self.selected = (self.selected + 1) % count;
                PopupReply::Taken
            }
            (KeyCode::Esc, _) => PopupReply::Closed,
            (KeyCode::Tab, false) if !key.shift => self.choose(false),
            (KeyCode::Enter, false) if !key.shift && !key.alt => self.choose(true),
            _ => PopupReply::NotMine,
        }
    }

    fn choose(&self, by_enter: bool) -> PopupReply {
        match self.candidates.get(self.selected) {
            Some(candidate) => PopupReply::Chosen(candidate.clone(), by_enter),
            None => PopupReply::NotMine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::composer::TokenContent;

    fn found(text: &str) -> Option<(Kind, String)> {
        trigger(&Draft::of(text)).map(|trigger| (trigger.kind, trigger.word))
    }

    #[test]
    fn words_at_the_cursor_are_found() {
        assert_eq!(found("see @src/ma"), Some((Kind::Path, "src/ma".to_owned())));
        assert_eq!(found("/mod"), Some((Kind::Command, "mod".to_owned())));
        for text in ["a@b", "see /mod", "/etc/hosts", "/model x", "", "hello"] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn text_in_a_token_is_no_word() {
        let mut draft = Draft::default();
        draft.insert_token("@[Pasted]", TokenContent::Paste("@x".to_owned()));
        assert_eq!(trigger(&draft), None);
    }

    #[test]
    fn keys_choose() {
        let candidate =
            |text: &str| Candidate { text: text.to_owned(), label: text.to_owned(), about: String::new() };
        let trigger = trigger(&Draft::of("@a")).unwrap();
        let mut popup = Popup { trigger, candidates: vec![candidate("a"), candidate("ab")], selected: 0 };
        assert_eq!(popup.key(Key::plain(KeyCode::Up)), PopupReply::Taken);
        assert_eq!(popup.key(Key::plain(KeyCode::Tab)), PopupReply::Chosen(candidate("ab"), false));
        assert_eq!(popup.key(Key::char('x')), PopupReply::NotMine);
        popup.candidates.clear();
        assert_eq!(popup.key(Key::plain(KeyCode::Enter)), PopupReply::NotMine);
    }
}
