//! What can be said of a word before the shell has expanded it: whether it may become several words, whether it may
//! begin with a dash, and what is left of it behind a known start. A variable or a substitution may always split into
//! several words, because a word does not say whether it stood in quotes.

use std::borrow::Cow;

use crate::shell::{Piece, Word};

/// True for a word that [`joined`] leaves as it is, as most are.
pub(super) fn is_joined(word: &Word) -> bool {
    match word.pieces.as_slice() {
        [] => true,
        [Piece::Literal(text)] => !text.is_empty(),
        [Piece::Home | Piece::Variable(_) | Piece::Glob(_) | Piece::Unknown(_)] => true,
        [_, _, ..] => false,
    }
}

/// The words with every one of them joined.
pub(super) fn all_joined(words: &[Word]) -> Cow<'_, [Word]> {
    if words.iter().all(is_joined) { words.into() } else { words.iter().map(joined).collect() }
}

/// Joins neighbouring literal pieces and drops empty ones, so that a word written with several quotes is one text.
pub(super) fn joined(word: &Word) -> Word {
    let mut pieces: Vec<Piece> = Vec::with_capacity(word.pieces.len());
    for piece in &word.pieces {
        match (pieces.last_mut(), piece) {
            (_, Piece::Literal(text)) if text.is_empty() => {}
            (Some(Piece::Literal(before)), Piece::Literal(text)) => before.push_str(text),
            (
                _,
                Piece::Literal(_) | Piece::Home | Piece::Variable(_) | Piece::Glob(_) | Piece::Unknown(_),
            ) => pieces.push(piece.clone()),
        }
    }
    Word { pieces }
}

/// True when the word may become any number of words with any text.
pub(super) fn may_split(word: &Word) -> bool {
    word.pieces.iter().enumerate().any(|(at, piece)| match piece {
        Piece::Literal(_) | Piece::Glob(_) => false,
        Piece::Home => at != 0,
        Piece::Variable(_) | Piece::Unknown(_) => true,
    })
}

/// True when the word may become more than one word.
pub(super) fn is_many(word: &Word) -> bool {
    may_split(word) || has_pattern(word)
}

/// True when the word has a pattern of file names.
pub(super) fn has_pattern(word: &Word) -> bool {
    word.pieces.iter().any(|piece| matches!(piece, Piece::Glob(_)))
}

/// True when the word, or a word that it becomes, may begin with a dash.
pub(super) fn may_begin_with_dash(word: &Word) -> bool {
    if may_split(word) {
        return true;
    }
    match word.pieces.first() {
        Some(Piece::Literal(text)) => text.starts_with('-'),
        Some(Piece::Glob(_)) => true,
        Some(Piece::Home) | None => false,
        Some(Piece::Variable(_) | Piece::Unknown(_)) => true,
    }
}

/// The word behind a known start of so many bytes. The start must be known text.
pub(super) fn behind(word: &Word, bytes: usize) -> Word {
    let mut pieces = word.pieces.clone();
    if let Some(Piece::Literal(text)) = pieces.first_mut() {
        *text = text.get(bytes..).unwrap_or_default().to_owned();
    }
    joined(&Word { pieces })
}

/// The word behind a known start, when it has that start.
pub(super) fn strip(word: &Word, start: &str) -> Option<Word> {
    word.known_start().starts_with(start).then(|| behind(word, start.len()))
}

/// How a word is shown in an explanation.
pub(super) fn shown(word: &Word) -> String {
    let mut text = String::new();
    for piece in &word.pieces {
        match piece {
            Piece::Literal(part) | Piece::Glob(part) | Piece::Unknown(part) => text.push_str(part),
            Piece::Home => text.push('~'),
            Piece::Variable(name) => {
                text.push('$');
                text.push_str(name);
            }
        }
    }
    text
}

/// The last part of a path: the program's own name.
pub(super) fn base_name(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}
