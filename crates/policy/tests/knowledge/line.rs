//! Words from a line, for tests: blanks separate, single and double quotes hold text together, and outside of single
//! quotes `*`, `?` and `[` are patterns, `$NAME` a variable, `$(…)` a substitution and a leading `~` the home folder.

use qoder_policy::shell::{Piece, Word};

/// Reads a line.
pub fn words(line: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if matches!(c, ' ' | '\n') {
            words.extend(word.take());
            continue;
        }
        let fresh = word.is_none();
        let pieces = &mut word.get_or_insert_default().pieces;
        match c {
            '\'' => {
                let (text, after) = rest.split_once('\'').unwrap();
                pieces.push(Piece::Literal(text.to_owned()));
                rest = after;
            }
            '*' | '?' => pieces.push(Piece::Glob(c.to_string())),
            '[' if rest.split(' ').next().unwrap().contains(']') => {
                let (class, after) = rest.split_once(']').unwrap();
                pieces.push(Piece::Glob(format!("[{class}]")));
                rest = after;
            }
            '~' if fresh => pieces.push(Piece::Home),
            '$' if rest.starts_with('(') => {
                let end = rest.rfind(')').unwrap() + 1;
                pieces.push(Piece::Unknown(format!("${}", &rest[..end])));
                rest = &rest[end..];
            }
            '$' if rest.starts_with('{') => {
                let end = rest.find('}').unwrap() + 1;
                pieces.push(Piece::Unknown(format!("${}", &rest[..end])));
                rest = &rest[end..];
            }
            '$' if rest.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                let after = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
                pieces.push(Piece::Variable(rest[..rest.len() - after.len()].to_owned()));
                rest = after;
            }
            c => match pieces.last_mut() {
                Some(Piece::Literal(text)) => text.push(c),
                _ => pieces.push(Piece::Literal(c.to_string())),
            },
        }
    }
    words.extend(word);
    words
}

/// A word as it was written, roughly.
pub fn text(word: &Word) -> String {
    let show = |piece: &Piece| match piece {
        Piece::Literal(text) | Piece::Glob(text) | Piece::Unknown(text) => text.clone(),
        Piece::Home => "~".to_owned(),
        Piece::Variable(name) => format!("${name}"),
    };
    word.pieces.iter().map(show).collect()
}
