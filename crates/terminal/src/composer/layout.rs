//! A draft as rows of a given width, and where the caret is among them. Rows break behind blanks where they can.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::draft::Draft;
use crate::text::columns;

/// The rows of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The bytes of each row; a newline belongs to none.
    pub(crate) rows: Vec<Range<usize>>,
    /// Row and column of the caret.
    pub(crate) caret: (usize, usize),
}

impl Layout {
    /// Breaks a draft into rows of at most `width` columns.
    pub(crate) fn of(draft: &Draft, width: usize) -> Self {
        let width = width.max(1);
        let text = draft.text();
        let mut rows = Vec::new();
        let mut start = 0;
        for line in text.split('\n') {
            break_line(line, start, width, &mut rows);
            start += line.len() + 1;
        }
        let caret = caret(text, &rows, draft.cursor(), width);
        // A caret behind a full row is on the next one, which may not exist yet.
        if caret.0 == rows.len() {
            rows.push(draft.cursor()..draft.cursor());
        }
        Self { rows, caret }
    }

    /// The place at a column of a row.
    pub(crate) fn place(&self, text: &str, row: usize, column: usize) -> usize {
        let Some(range) = self.rows.get(row) else { return text.len() };
        let mut used = 0;
        for (at, grapheme) in text[range.clone()].grapheme_indices(true) {
            if used + columns(grapheme) > column {
                return range.start + at;
            }
            used += columns(grapheme);
        }
        range.end
    }
}

fn break_line(line: &str, offset: usize, width: usize, rows: &mut Vec<Range<usize>>) {
    let (mut start, mut used, mut blank) = (0, 0, None);
    for (at, grapheme) in line.grapheme_indices(true) {
        let wide = shown_columns(grapheme);
        if used + wide > width && at > start {
            // Behind the last blank of the row, if it has one.
            let end = blank.filter(|end| *end > start).unwrap_or(at);
            rows.push(offset + start..offset + end);
            used = line[end..at].graphemes(true).map(shown_columns).sum();
            (start, blank) = (end, None);
        }
        used += wide;
        if grapheme == " " {
            blank = Some(at + 1);
        }
    }
    rows.push(offset + start..offset + line.len());
}

/// A tab is shown as blanks, a control character as one sign.
pub(crate) fn shown_columns(grapheme: &str) -> usize {
    match grapheme {
        "\t" => 4,
        _ if grapheme.chars().any(char::is_control) => 1,
        _ => columns(grapheme),
    }
}

fn caret(text: &str, rows: &[Range<usize>], cursor: usize, width: usize) -> (usize, usize) {
    // At the border of two rows of one line the caret is at the start of the second.
    let row = rows.iter().rposition(|range| range.start <= cursor).unwrap_or(0);
    let start = rows.get(row).map_or(0, |range| range.start);
    let column: usize = text[start..cursor].graphemes(true).map(shown_columns).sum();
    if column >= width { (row + 1, 0) } else { (row, column) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str, cursor: usize, width: usize) -> (Vec<String>, (usize, usize)) {
        let mut draft = Draft::of(text);
        draft.move_to(cursor);
        let layout = Layout::of(&draft, width);
        (layout.rows.iter().map(|range| text[range.clone()].to_owned()).collect(), layout.caret)
    }

    #[test]
    fn rows_break_behind_blanks() {
        let (rows, caret) = layout("hello brave new world", 21, 12);
        assert_eq!((rows, caret), (vec!["hello brave ".into(), "new world".into()], (1, 9)));
        let (rows, _) = layout("abcdefgh", 0, 3);
        assert_eq!(rows, ["abc", "def", "gh"]);
    }

    #[test]
    fn the_caret_counts_columns_not_letters() {
        assert_eq!(layout("世界x", 6, 10).1, (0, 4));
        assert_eq!(layout("e\u{301}👩\u{200d}💻", 14, 10).1, (0, 3));
        assert_eq!(layout("a\nb\n", 4, 10).1, (2, 0));
    }

    #[test]
    fn behind_a_full_row_the_caret_is_on_the_next() {
        let (rows, caret) = layout("abcd", 4, 4);
        assert_eq!((rows.len(), caret), (2, (1, 0)));
        assert_eq!(layout("abcdef", 4, 4).1, (1, 0));
    }
}
