//! The words that brace expansion makes of one, such as `.e{nv,x}`. The reader does not count on them, because not every
//! shell expands braces; but rules that deny must see each name that may come out. Sequences are taken as any text.

use super::{Piece, Word, read};

/// The most words that are made of one.
const MOST_WORDS: usize = 64;

/// The longest word whose braces are looked at; the cost grows with the square of the length.
const LONGEST: usize = 512;

/// Braces whose words are not known: there are too many of them, or what comes out is not words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unexpanded;

/// The words that the braces of a word make; `None` for a word without such braces.
#[must_use]
pub fn alternatives(word: &Word) -> Option<Result<Vec<Word>, Unexpanded>> {
    let [Piece::Unknown(spelling)] = word.pieces.as_slice() else { return None };
    if spelling.len() > LONGEST {
        return signs(spelling, 0).any(|(_, sign)| sign == b'{').then_some(Err(Unexpanded));
    }
    let texts = match expand(spelling, MOST_WORDS)? {
        Ok(texts) => texts,
        Err(error) => return Some(Err(error)),
    };
    // A command in front, since a first word may be a keyword or an assignment.
    let reading = read(&format!("true {}", texts.join(" ")));
    let command = reading.commands.into_iter().rfind(|command| command.name() == Some("true"));
    Some(command.map(|command| command.words.into_iter().skip(1).collect()).ok_or(Unexpanded))
}

/// The texts that the first group of braces makes, each expanded in turn; `None` without one.
fn expand(text: &str, most: usize) -> Option<Result<Vec<String>, Unexpanded>> {
    let group = Group::find(text)?;
    let (before, after) = (&text[..group.open], &text[group.close + 1..]);
    let parts: Vec<&str> = match group.commas.is_empty() {
        // A sequence.
        true => vec!["*"],
        false => {
            let mut from = group.open + 1;
            let mut parts = Vec::new();
            for comma in group.commas.iter().copied().chain([group.close]) {
                parts.push(&text[from..comma]);
                from = comma + 1;
            }
            parts
        }
    };
    let mut all = Vec::new();
    for part in parts {
        let joined = format!("{before}{part}{after}");
        match expand(&joined, most.saturating_sub(all.len())) {
            Some(Ok(texts)) => all.extend(texts),
            Some(Err(error)) => return Some(Err(error)),
            None => all.push(joined),
        }
        if all.len() > most {
            return Some(Err(Unexpanded));
        }
    }
    Some(Ok(all))
}

/// Where a group of braces opens, closes and is divided.
struct Group {
    open: usize,
    close: usize,
    commas: Vec<usize>,
}

impl Group {
    /// The first group that expands. Quotes, escapes and what starts with a dollar sign are passed over.
    fn find(text: &str) -> Option<Self> {
        let mut from = 0;
        while let Some(open) = signs(text, from).find(|(_, sign)| *sign == b'{').map(|(at, _)| at) {
            if let Some(group) = Self::opened(text, open) {
                return Some(group);
            }
            from = open + 1;
        }
        None
    }

    fn opened(text: &str, open: usize) -> Option<Self> {
        let mut depth = 0_usize;
        let mut commas = Vec::new();
        for (at, sign) in signs(text, open + 1) {
            match sign {
                b'{' => depth += 1,
                b'}' if depth > 0 => depth -= 1,
                b'}' => {
                    let is_sequence = text[open + 1..at].contains("..");
                    return (is_sequence || !commas.is_empty()).then_some(Self { open, close: at, commas });
                }
                b',' if depth == 0 => commas.push(at),
                _ => {}
            }
        }
        None
    }
}

/// The bytes that stand outside quotes and substitutions, with their places.
fn signs(text: &str, from: usize) -> impl Iterator<Item = (usize, u8)> {
    let bytes = text.as_bytes();
    let mut at = from;
    std::iter::from_fn(move || {
        loop {
            let here = at;
            match *bytes.get(at)? {
                b'\\' => at += 2,
                quote @ (b'\'' | b'"' | b'`') => {
                    at += 1;
                    while bytes.get(at).is_some_and(|byte| *byte != quote) {
                        at += if quote != b'\'' && bytes.get(at) == Some(&b'\\') { 2 } else { 1 };
                    }
                    at += 1;
                }
                b'$' if matches!(bytes.get(at + 1), Some(b'{' | b'(')) => {
                    at += 2;
                    let mut depth = 1_usize;
                    while depth > 0
                        && let Some(byte) = bytes.get(at)
                    {
                        match byte {
                            b'{' | b'(' => depth += 1,
                            b'}' | b')' => depth -= 1,
                            _ => {}
                        }
                        at += 1;
                    }
                }
                byte => {
                    at += 1;
                    return Some((here, byte));
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Vec<String> {
        expand(text, MOST_WORDS).map_or_else(Vec::new, Result::unwrap_or_default)
    }

    #[test]
    fn braces_become_the_words_that_bash_makes_of_them() {
        for (text, words) in [
            ("{.env,a.txt}", vec![".env", "a.txt"]),
            (".e{nv,x}", vec![".env", ".ex"]),
            ("{a,{b,c}d}e", vec!["ae", "bde", "cde"]),
            ("{a}{b,c}", vec!["{a}b", "{a}c"]),
            ("x{,y}", vec!["x", "xy"]),
            ("{a,b}{c,d}", vec!["ac", "ad", "bc", "bd"]),
            ("{'a,b',c}", vec!["'a,b'", "c"]),
            (r"{a\,b,c}", vec![r"a\,b", "c"]),
            ("{$(x,y),c}", vec!["$(x,y)", "c"]),
            ("f{1..9}", vec!["f*"]),
            ("{a,b", vec![]),
            ("${a,b}", vec![]),
        ] {
            assert_eq!(expanded(text), words, "{text}");
        }
        assert_eq!(expand("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", MOST_WORDS), Some(Err(Unexpanded)));
    }

    #[test]
    fn quotes_are_taken_off_the_words() {
        let word = Word::unknown("{.e'n'v,*.txt}");
        let words = alternatives(&word).and_then(Result::ok).unwrap_or_default();
        assert_eq!(words.first().and_then(Word::as_literal), Some(".env"));
        assert_eq!(words.len(), 2);
        assert_eq!(alternatives(&Word::literal("{a,b}")), None);
        assert_eq!(alternatives(&Word::unknown("$(x)")), None);
        assert_eq!(alternatives(&Word::unknown("({a,b}")), Some(Err(Unexpanded)));
    }
}
