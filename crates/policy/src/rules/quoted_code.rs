//! Code in the words of other programs, as a denial reads it: text that some shell may be given, whatever the quotes
//! around it. What that shell would expand is not known and stands for any text; what is inside an expansion is code
//! again.

use super::words::{STAR, matches};

/// How deep expansions inside expansions are followed.
const DEEPEST: usize = 16;

/// True for text that is more than a plain word, which is an operand and no code.
pub(crate) fn may_be_code(text: &str) -> bool {
    text.contains(is_between)
}

/// True for characters that stand between words of code.
pub(super) fn is_between(c: char) -> bool {
    !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | ':' | '+' | STAR))
}

/// True for what a shell takes out of its words.
pub(super) fn is_quote(c: char) -> bool {
    matches!(c, '\'' | '"' | '\\')
}

/// True when a word of code is `wanted`, or may become it where parts of the word are not known. A word of which nothing
/// is known is not taken for every program.
pub(super) fn may_become(word: &str, wanted: &str) -> bool {
    if !word.contains(STAR) {
        return word == wanted;
    }
    word.chars().any(|c| c != STAR) && matches(word, wanted)
}

/// The text as a shell may expand it: quotes and escapes taken out, a mark for each expansion, and behind the text, on
/// lines of their own, what the expansions hold. `None` when there is nothing to expand.
pub(crate) fn expanded(text: &str) -> Option<String> {
    text.contains(['$', '`']).then(|| {
        let mut kept = String::with_capacity(text.len());
        expand(text, DEEPEST, &mut kept);
        kept
    })
}

fn expand(text: &str, depth: usize, kept: &mut String) {
    let mut inner: Vec<&str> = Vec::new();
    let mut rest = text;
    // True between `$'` and `'`, where escapes stand for other characters.
    let mut is_encoded = false;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '$' => match rest.chars().next() {
                Some(open @ ('(' | '{')) => {
                    let (held, behind) = enclosed(&rest[1..], open);
                    inner.push(if open == '{' { behind_operator(held) } else { held });
                    rest = behind;
                    kept.push(STAR);
                }
                Some('\'') => {
                    rest = &rest[1..];
                    is_encoded = true;
                }
                Some(first) if is_name(first) => {
                    rest = rest.trim_start_matches(is_name);
                    kept.push(STAR);
                }
                Some('@' | '*' | '#' | '?' | '-' | '$' | '!') => {
                    rest = &rest[1..];
                    kept.push(STAR);
                }
                _ => kept.push('$'),
            },
            '`' => {
                let (held, behind) = rest.split_once('`').unwrap_or((rest, ""));
                inner.push(held);
                rest = behind;
                kept.push(STAR);
            }
            '\\' if is_encoded => {
                if let Some(behind) = behind_escape(rest) {
                    rest = behind;
                    kept.push(STAR);
                }
            }
            _ if is_quote(character) => is_encoded &= character != '\'',
            _ => kept.push(character),
        }
    }
    for held in inner {
        kept.push('\n');
        match depth.checked_sub(1) {
            Some(depth) => expand(held, depth, kept),
            None => kept.push_str(held),
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// What stands before the bracket that closes an open one, and what stands behind it.
fn enclosed(text: &str, open: char) -> (&str, &str) {
    let close = if open == '{' { '}' } else { ')' };
    let mut depth = 1_usize;
    for (at, character) in text.char_indices() {
        depth = match character {
            _ if character == open => depth + 1,
            _ if character == close => depth - 1,
            _ => depth,
        };
        if depth == 0 {
            return (&text[..at], &text[at + 1..]);
        }
    }
    (text, "")
}

/// The text that `${name…}` may stand for instead of the value: what follows the name and the operator.
fn behind_operator(held: &str) -> &str {
    held.trim_start_matches(is_name).trim_start_matches([':', '-', '=', '+', '?'])
}

/// What stands behind an escape that names a character by its number; `None` for any other escape.
fn behind_escape(rest: &str) -> Option<&str> {
    let first = rest.chars().next()?;
    match first {
        'x' | 'u' | 'U' => Some(rest[1..].trim_start_matches(|c: char| c.is_ascii_hexdigit())),
        '0'..='7' => Some(rest.trim_start_matches(|c: char| c.is_digit(8))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        expanded(text).map_or_else(|| text.to_owned(), |text| text.replace(STAR, "*"))
    }

    #[test]
    fn an_expansion_stands_for_any_text_and_holds_code() {
        assert_eq!(shown("can${x}ary"), "can*ary\n");
        assert_eq!(shown("x[$(can${x}ary)]=1"), "x[*]=1\ncan*ary\n");
        assert_eq!(shown("a$(b $(c) d)e"), "a*e\nb * d\nc");
        assert_eq!(shown("can`true`ary"), "can*ary\ntrue");
        assert_eq!(shown("${x:-canary}"), "*\ncanary");
        assert_eq!(shown("$1x $@ $"), "* * $");
        assert_eq!(shown(r"$'can\x61ry' $'a\b' a\b"), "can*ry ab ab");
        assert_eq!(shown("$(open"), "*\nopen");
    }

    #[test]
    fn a_word_of_which_a_part_is_known_may_become_what_fits_it() {
        let word = |text: &str| text.replace('*', &STAR.to_string());
        assert!(may_become(&word("can*ary"), "canary"));
        assert!(may_become(&word("c*y"), "canary"));
        assert!(may_become("canary", "canary"));
        assert!(!may_become(&word("*"), "canary"));
        assert!(!may_become(&word("x*"), "canary"));
    }

    #[test]
    fn expansions_without_end_are_read_to_a_bounded_depth() {
        assert!(expanded(&"$(".repeat(100_000)).is_some());
    }
}
