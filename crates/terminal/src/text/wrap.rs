//! Breaking styled lines into rows, at blanks where there are some. A row of the scrollback may be longer than the screen:
//! the terminal wraps it by itself, and selecting it copies the original word; a row of the live area never is.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use super::width::columns;

/// What becomes of a word that is longer than a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LongWords {
    /// It gets a row of its own that is too long.
    Keep,
    /// It is split.
    Split,
}

/// A grapheme with its style and width.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    style: Style,
    width: usize,
}

/// Breaks a line into rows of at most `width` columns. `indent` is in front of every row but the first.
pub(crate) fn wrap(
    line: &Line<'_>,
    width: usize,
    indent: &Span<'static>,
    long: LongWords,
) -> Vec<Line<'static>> {
    let width = width.max(1);
    let pieces: Vec<Piece<'_>> = line
        .spans
        .iter()
        .flat_map(|span| {
            let style = span.style;
            span.content.graphemes(true).map(move |text| Piece { text, style, width: columns(text) })
        })
        .collect();
    let mut rows = Rows { done: Vec::new(), row: Vec::new(), used: 0, width, indent, style: line.style };
    let mut at = 0;
    while at < pieces.len() {
        let (blanks, word) = next_word(&pieces[at..]);
        at += blanks + word;
        let start = at - word;
        rows.add(&pieces[start - blanks..start], &pieces[start..at], long);
    }
    rows.finish()
}

/// How many blanks come next, and how long the word behind them is.
fn next_word(pieces: &[Piece<'_>]) -> (usize, usize) {
    let blanks = pieces.iter().take_while(|piece| piece.text == " ").count();
    let rest = &pieces[blanks..];
    let mut word = 0;
    while let Some(piece) = rest.get(word) {
        if piece.text == " " {
            break;
        }
        // Between wide characters a row may end anywhere.
        if piece.width > 1 {
            return (blanks, word.max(1));
        }
        word += 1;
    }
    (blanks, word)
}

struct Rows<'a, 'i> {
    done: Vec<Line<'static>>,
    row: Vec<Piece<'a>>,
    used: usize,
    width: usize,
    indent: &'i Span<'static>,
    style: Style,
}

impl<'a> Rows<'a, '_> {
    fn add(&mut self, blanks: &[Piece<'a>], word: &[Piece<'a>], long: LongWords) {
        let size = |pieces: &[Piece<'_>]| pieces.iter().map(|piece| piece.width).sum::<usize>();
        let (before, length) = (size(blanks), size(word));
        if self.used + before + length <= self.width {
            self.push(blanks);
            self.push(word);
            return;
        }
        // Blanks at the end of a row are dropped; those at the start of the line are its indentation.
        let is_indentation = self.row.is_empty() && self.done.is_empty();
        if is_indentation && before < self.width {
            self.push(blanks);
        } else if !self.row.is_empty() {
            self.end_row();
        }
        if self.used + length <= self.width || long == LongWords::Keep {
            self.push(word);
            return;
        }
        for piece in word {
            if self.used + piece.width > self.width && self.has_text() {
                self.end_row();
            }
            self.push(std::slice::from_ref(piece));
        }
    }

    fn has_text(&self) -> bool {
        !self.row.is_empty()
    }

    fn push(&mut self, pieces: &[Piece<'a>]) {
        self.used += pieces.iter().map(|piece| piece.width).sum::<usize>();
        self.row.extend_from_slice(pieces);
    }

    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        self.done.push(joined(&row, (!self.done.is_empty()).then_some(self.indent), self.style));
        self.used = columns(&self.indent.content).min(self.width.saturating_sub(1));
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        if self.has_text() || self.done.is_empty() {
            self.end_row();
        }
        self.done
    }
}

/// A row, with neighbours of one style joined.
fn joined(pieces: &[Piece<'_>], indent: Option<&Span<'static>>, style: Style) -> Line<'static> {
    let mut spans: Vec<Span<'static>> =
        indent.filter(|span| !span.content.is_empty()).cloned().into_iter().collect();
    let mut open: Option<Span<'static>> = None;
    for piece in pieces {
        match &mut open {
            Some(span) if span.style == piece.style => span.content.to_mut().push_str(piece.text),
            Some(_) | None => {
                spans.extend(open.replace(Span::styled(piece.text.to_owned(), piece.style)));
            }
        }
    }
    spans.extend(open);
    Line { spans, style, ..Line::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::line_columns;

    fn rows(text: &str, width: usize, long: LongWords) -> Vec<String> {
        let wrapped = wrap(&Line::from(text.to_owned()), width, &Span::raw("  "), long);
        wrapped.iter().map(|line| line.spans.iter().map(|span| &*span.content).collect()).collect()
    }

    #[test]
    fn rows_end_at_blanks_and_continue_indented() {
        assert_eq!(rows("one two three four", 9, LongWords::Split), ["one two", "  three", "  four"]);
        assert_eq!(rows("", 9, LongWords::Split), [""]);
        assert_eq!(rows("  code here", 20, LongWords::Split), ["  code here"]);
    }

    #[test]
    fn a_long_word_is_split_or_kept_whole() {
        assert_eq!(
            rows("see https://example.com/x", 10, LongWords::Keep),
            ["see", "  https://example.com/x"]
        );
        assert_eq!(rows("abcdefghij", 4, LongWords::Split), ["abcd", "  ef", "  gh", "  ij"]);
    }

    #[test]
    fn wide_characters_break_anywhere() {
        assert_eq!(rows("世界世界", 4, LongWords::Split), ["世界", "  世", "  界"]);
    }

    proptest::proptest! {
        #[test]
        fn no_row_is_too_wide_and_no_letter_is_lost(text in "[a-z世é ]{0,60}", width in 3_usize..30) {
            let wrapped = wrap(&Line::from(text.clone()), width, &Span::raw(""), LongWords::Split);
            for row in &wrapped {
                proptest::prop_assert!(line_columns(row) <= width, "{row:?}");
            }
            let letters = |text: &str| text.chars().filter(|sign| *sign != ' ').collect::<String>();
            let shown: String = wrapped.iter().flat_map(|row| row.spans.iter().map(|span| letters(&span.content))).collect();
            proptest::prop_assert_eq!(shown, letters(&text));
        }
    }
}
