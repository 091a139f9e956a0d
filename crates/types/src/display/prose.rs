//! Prose for a terminal, piece by piece: what a model writes. Control characters, direction changes and invisible
//! characters are escaped; the joiners and selectors that emoji and some scripts need stay where they have a meaning.

use super::suspicion;

/// Picks the form of the character before it: as a picture.
const AS_PICTURE: char = '\u{fe0f}';
/// Makes a keycap of what is before it.
const KEYCAP: char = '\u{20e3}';

/// Escapes prose that comes in pieces. What a character means can depend on its neighbours, so it remembers the last one
/// and holds back at most one.
#[derive(Debug, Default)]
pub struct Prose {
    last: Option<char>,
    held: bool,
}

impl Prose {
    /// The piece as a terminal may show it.
    #[must_use]
    pub fn escaped(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len());
        for character in piece.chars() {
            self.push(character, &mut shown);
        }
        shown
    }

    /// What was held back, when the text is at its end.
    #[must_use]
    pub fn finish(&mut self) -> String {
        self.last = None;
        let held = std::mem::take(&mut self.held);
        if held { AS_PICTURE.escape_unicode().collect() } else { String::new() }
    }

    fn push(&mut self, character: char, shown: &mut String) {
        if std::mem::take(&mut self.held) {
            if character == KEYCAP {
                shown.push(AS_PICTURE);
            } else {
                shown.extend(AS_PICTURE.escape_unicode());
            }
        }
        let last = self.last.replace(character);
        if character == AS_PICTURE && last.is_some_and(|last| matches!(last, '0'..='9' | '#' | '*')) {
            self.held = true;
        } else if suspicion(character).is_none() || is_visible(character) || has_meaning(character, last) {
            shown.push(character);
        } else {
            shown.extend(character.escape_unicode());
        }
    }
}

/// Blanks that take room, letters, and the sign for what could not be decoded: strange in a name, ordinary in prose.
fn is_visible(character: char) -> bool {
    matches!(
        character,
        '\u{a0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200a}'
            | '\u{202f}'
            | '\u{205f}'
            | '\u{2800}'
            | '\u{3000}'
            | '\u{d7b0}'..='\u{d7fb}'
            | '\u{fffd}'
    )
}

/// Joiners between letters of scripts that need them, joiners and selectors of pictures.
fn has_meaning(character: char, last: Option<char>) -> bool {
    let Some(last) = last else { return false };
    let letter = matches!(last, '\u{620}'..='\u{109f}' | '\u{1780}'..='\u{18aa}') && last.is_alphanumeric();
    // Vowel signs and viramas are no letters by themselves.
    let sign = matches!(last, '\u{900}'..='\u{dff}');
    let picture = matches!(last, '\u{a9}' | '\u{ae}' | '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}')
        && suspicion(last).is_none();
    match character {
        '\u{200c}' => letter || sign,
        '\u{200d}' => letter || sign || picture || last == AS_PICTURE,
        '\u{fe0e}' | AS_PICTURE => picture,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> String {
        let mut prose = Prose::default();
        prose.escaped(text) + &prose.finish()
    }

    #[test]
    fn prose_of_any_language_and_pictures_stay() {
        for text in [
            "grüße, 世界\u{3000}— “ok”\n\ttab",
            "👩\u{200d}💻 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3} ©\u{fe0f}",
            "می\u{200c}خواهم क्\u{200d}ष 12\u{a0}km",
        ] {
            assert_eq!(whole(text), text);
        }
    }

    #[test]
    fn what_steers_or_hides_is_escaped_wherever_the_text_is_cut() {
        let text = "a\u{1b}]52;c;x\u{7}\u{9b}31m\u{202e}b\u{200b}\u{200d}c\u{fe0f}1\u{fe0f}d\u{e0041}\u{2028}\r\u{61c}2\u{fe0f}";
        let shown = whole(text);
        assert!(!shown.chars().any(|character| suspicion(character).is_some()), "{shown:?}");
        for (at, _) in text.char_indices() {
            let mut prose = Prose::default();
            let pieces = [prose.escaped(&text[..at]), prose.escaped(&text[at..]), prose.finish()];
            assert_eq!(pieces.concat(), shown, "cut at {at}");
        }
    }
}
