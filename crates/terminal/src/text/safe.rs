//! What a terminal may show of text that others wrote. Every text of a model, a tool, a file or a branch passes one of these
//! functions before it becomes part of a line.

use qoder_types::display::{Prose, escaped_for_display, escaped_line};
use unicode_segmentation::UnicodeSegmentation;

use super::width::columns;

/// How far apart tab stops are.
const TAB: usize = 4;

/// Prose of a model: escapes are shown, joiners of emoji and scripts stay.
pub(crate) fn prose(text: &str) -> String {
    let mut prose = Prose::default();
    let mut shown = prose.escaped(text);
    shown.push_str(&prose.finish());
    shown
}

/// Lines of prose of a person or a model.
pub(crate) fn prose_lines(text: &str) -> Vec<String> {
    prose(text).split('\n').map(expand_tabs).collect()
}

/// A name, command or title on one line: newlines and tabs are escaped too.
pub(crate) fn one_line(text: &str) -> String {
    escaped_line(text)
}

/// Lines of text that must be read as they are, such as a command to approve.
pub(crate) fn plain_lines(text: &str) -> Vec<String> {
    escaped_for_display(text).split('\n').map(expand_tabs).collect()
}

/// The line with blanks in place of tabs.
pub(crate) fn expand_tabs(line: &str) -> String {
    if !line.contains('\t') {
        return line.to_owned();
    }
    let mut shown = String::with_capacity(line.len() + 16);
    let mut column = 0;
    for piece in line.split_inclusive('\t') {
        let text = piece.strip_suffix('\t').unwrap_or(piece);
        shown.push_str(text);
        column += columns(text);
        if text.len() < piece.len() {
            let blanks = TAB - column % TAB;
            shown.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
        }
    }
    shown
}

/// The text in at most this many columns; what is cut off is marked.
pub(crate) fn clipped(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let Some(room) = most.checked_sub(1) else { return String::new() };
    let mut shown = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        let width = columns(grapheme);
        if used + width > room {
            break;
        }
        shown.push_str(grapheme);
        used += width;
    }
    shown.push('…');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_is_marked() {
        assert_eq!(clipped("hello", 5), "hello");
        assert_eq!(clipped("hello", 4), "hel…");
        assert_eq!(clipped("世界世界", 5), "世界…");
        assert_eq!(clipped("hello", 0), "");
    }

    #[test]
    fn tabs_reach_the_next_stop() {
        assert_eq!(expand_tabs("\ta\tbc"), "    a   bc");
        assert_eq!(expand_tabs("世\tx"), "世  x");
    }

    #[test]
    fn a_title_cannot_begin_another_row() {
        assert_eq!(one_line("a\nb\u{1b}[2J"), "a\\u{a}b\\u{1b}[2J");
    }
}
