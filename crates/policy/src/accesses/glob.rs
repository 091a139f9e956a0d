//! Patterns of file names as bash expands them. What a pattern finds is compared with rules before it runs, so matching
//! errs to one side only: whatever bash may find, this finds. Where the two might differ (ranges, character classes,
//! brackets with quotes inside, other encodings) the pattern takes more names and says that it is not exact.

use crate::shell::{Piece, Word};
use std::path::Path;

/// A word of patterns, split at its slashes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    /// It starts at the root.
    pub(crate) is_absolute: bool,
    /// The names between slashes.
    pub(crate) parts: Vec<Part>,
    /// Bash finds exactly what this finds.
    pub(crate) is_exact: bool,
}

/// A name between slashes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Nothing in it is a pattern.
    Name(String),
    /// A pattern of names in the folder.
    Pattern(NamePattern),
}

/// A pattern of names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NamePattern {
    signs: Vec<Sign>,
}

/// One element of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Sign {
    Byte(u8),
    /// One character, any but these or any of these.
    One {
        any_but: bool,
        of: Vec<u8>,
    },
    /// Any text.
    Any,
}

const ANYTHING: Sign = Sign::One { any_but: true, of: Vec::new() };

impl Glob {
    /// The pattern that a word is; `None` when more than patterns is unknown in it.
    pub(crate) fn of(word: &Word, home: &Path) -> Option<Self> {
        let unknown = |piece: &Piece| matches!(piece, Piece::Variable(_) | Piece::Unknown(_));
        (!word.pieces.iter().any(unknown)).then(|| Self::loosely(word, home))
    }

    /// The pattern that a word is when whatever is unknown in it is any text without a slash.
    pub(crate) fn loosely(word: &Word, home: &Path) -> Self {
        let mut builder = Builder { parts: Vec::new(), signs: Vec::new(), open: false, is_exact: true };
        for piece in &word.pieces {
            match piece {
                Piece::Literal(text) => builder.literal(text),
                Piece::Home => builder.literal(&home.to_string_lossy()),
                Piece::Glob(sign) => builder.sign(sign),
                Piece::Variable(_) | Piece::Unknown(_) => {
                    builder.is_exact = false;
                    builder.sign("*");
                }
            }
        }
        builder.end_part();
        let is_absolute = match word.pieces.first() {
            Some(Piece::Literal(text)) => text.starts_with('/'),
            Some(Piece::Home) => true,
            Some(Piece::Glob(_) | Piece::Variable(_) | Piece::Unknown(_)) | None => false,
        };
        Self { is_absolute, parts: builder.parts, is_exact: builder.is_exact }
    }
}

struct Builder {
    parts: Vec<Part>,
    signs: Vec<Sign>,
    /// A bracket whose end is not known has opened: the rest of the name is anything.
    open: bool,
    is_exact: bool,
}

impl Builder {
    fn literal(&mut self, text: &str) {
        for (at, part) in text.split('/').enumerate() {
            if at > 0 {
                self.end_part();
            }
            if !self.open {
                self.signs.extend(part.bytes().map(Sign::Byte));
            }
        }
    }

    fn sign(&mut self, text: &str) {
        if self.open {
            return;
        }
        match text {
            "*" => self.signs.push(Sign::Any),
            "?" => self.signs.push(ANYTHING),
            _ => match bracket(text) {
                Some((sign, is_exact)) => {
                    self.signs.push(sign);
                    self.is_exact &= is_exact;
                }
                None => {
                    self.signs.push(Sign::Any);
                    self.open = true;
                    self.is_exact = false;
                }
            },
        }
    }

    fn end_part(&mut self) {
        self.open = false;
        let signs = std::mem::take(&mut self.signs);
        if signs.is_empty() {
            return;
        }
        let bytes: Option<Vec<u8>> = signs
            .iter()
            .map(|sign| match sign {
                Sign::Byte(byte) => Some(*byte),
                Sign::One { .. } | Sign::Any => None,
            })
            .collect();
        let name = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        self.parts.push(name.map_or_else(|| Part::Pattern(NamePattern { signs }), Part::Name));
    }
}

/// A bracket of letters, digits and dashes, and whether it is read exactly; `None` for one whose end is not known.
fn bracket(text: &str) -> Option<(Sign, bool)> {
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    let (any_but, listed) = match inside.strip_prefix(['!', '^']) {
        Some(rest) => (true, rest),
        None => (false, inside),
    };
    // A bracket that closes at once is a literal, and the next one closes it.
    if listed.is_empty() {
        return None;
    }
    // Which characters a range or a class holds depends on the language.
    if listed.contains(['-', ':', '[']) || !listed.is_ascii() {
        return Some((ANYTHING, false));
    }
    Some((Sign::One { any_but, of: listed.bytes().collect() }, true))
}

impl NamePattern {
    /// True when the pattern names the dot of a hidden name.
    pub(crate) fn begins_with_dot(&self) -> bool {
        self.signs.first() == Some(&Sign::Byte(b'.'))
    }

    /// True when bash may find the name by this pattern. Whether a star finds hidden names depends on an option of the
    /// shell, so it does here.
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        // The places in the name that the signs so far may have reached.
        let mut reached = vec![false; name.len() + 1];
        reached[0] = true;
        for sign in &self.signs {
            let mut next = vec![false; name.len() + 1];
            for at in (0..=name.len()).filter(|at| reached[*at]) {
                match sign {
                    Sign::Any => next[at..].fill(true),
                    Sign::Byte(byte) => {
                        if name.get(at) == Some(byte) {
                            next[at + 1] = true;
                        }
                    }
                    Sign::One { any_but, of } => {
                        let Some(byte) = name.get(at) else { continue };
                        if of.contains(byte) != *any_but {
                            // One character is one byte or one letter, depending on the language.
                            next[at + 1] = true;
                            next[(at + letter_length(&name[at..])).min(name.len())] = true;
                        }
                    }
                }
            }
            reached = next;
        }
        reached[name.len()]
    }
}

/// How many bytes the letter at the start of a name has.
fn letter_length(name: &[u8]) -> usize {
    1 + name.iter().skip(1).take(3).take_while(|byte| (0x80..0xC0).contains(*byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(pieces: &[Piece]) -> Glob {
        Glob::of(&Word { pieces: pieces.to_vec() }, Path::new("/h")).unwrap()
    }

    fn glob(text: &str) -> Piece {
        Piece::Glob(text.to_owned())
    }

    fn literal(text: &str) -> Piece {
        Piece::Literal(text.to_owned())
    }

    fn finds(pieces: &[Piece], name: &str) -> bool {
        match pattern(pieces).parts.as_slice() {
            [Part::Pattern(pattern)] => pattern.matches(name.as_bytes()),
            [Part::Name(own)] => own == name,
            _ => false,
        }
    }

    #[test]
    fn stars_signs_and_brackets_find_what_bash_finds() {
        let star = [glob("*"), literal(".md")];
        assert!(finds(&star, "a.md") && !finds(&star, "a.mdx") && finds(&star, ".md"));
        assert!(finds(&[literal("."), glob("*")], ".env"));
        assert!(finds(&[literal(".en"), glob("[uvw]")], ".env"));
        assert!(!finds(&[literal(".en"), glob("[!uvw]")], ".env"));
        assert!(finds(&[literal("a"), glob("?")], "aé") && !finds(&[literal("a"), glob("?")], "a"));
        assert!(finds(&[glob("?"), glob("?")], "é"), "in another language a letter is two characters");
    }

    #[test]
    fn what_is_read_less_than_exactly_finds_more_and_says_so() {
        for sign in ["[a-f]", "[!a-f]", "[:alpha:]", "[", "[]"] {
            let read = pattern(&[literal(".en"), glob(sign)]);
            assert!(!read.is_exact, "{sign}");
            assert!(finds(&[literal(".en"), glob(sign)], ".env"), "{sign}");
        }
        assert!(pattern(&[glob("*"), glob("?"), glob("[ab]")]).is_exact);
    }

    #[test]
    fn slashes_separate_names() {
        let read = pattern(&[Piece::Home, literal("/a/"), glob("*"), literal("/b")]);
        assert!(read.is_absolute);
        assert_eq!(read.parts.len(), 4);
        assert_eq!(read.parts[0], Part::Name("h".to_owned()));
        assert_eq!(read.parts[3], Part::Name("b".to_owned()));
    }
}
