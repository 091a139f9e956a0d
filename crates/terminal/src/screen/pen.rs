//! Bytes for a terminal: text in styles and relative moves. The one place where escape sequences are made; a control
//! character in a text never gets through, whatever the text passed before.

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Line;
use unicode_segmentation::UnicodeSegmentation;

use crate::text::{columns, is_uncertain};

/// Collects bytes, and knows where the cursor is relative to a first row.
#[derive(Debug, Default)]
pub(crate) struct Pen {
    out: Vec<u8>,
    row: usize,
    /// Unknown behind the last column, where terminals disagree.
    column: Option<usize>,
    style: Style,
}

/// Clears a row at whose start the cursor is, and all below it.
pub(crate) const CLEAR_BELOW: &str = "\u{1b}[K\u{1b}[2G\u{1b}[J\r";

impl Pen {
    /// A pen at this place.
    pub(crate) fn at(row: usize, column: usize) -> Self {
        Self { row, column: Some(column), ..Self::default() }
    }

    /// The bytes.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.set_style(Style::default());
        self.out
    }

    /// Adds a sequence of ours.
    pub(crate) fn raw(&mut self, sequence: &str) {
        self.out.extend_from_slice(sequence.as_bytes());
    }

    /// Moves to a row and column that exist.
    pub(crate) fn move_to(&mut self, row: usize, column: usize) {
        if row < self.row {
            self.sequence(self.row - row, 'A');
        } else if row > self.row {
            self.sequence(row - self.row, 'B');
        }
        self.row = row;
        if self.column != Some(column) {
            if column == 0 {
                self.raw("\r");
            } else {
                self.sequence(column + 1, 'G');
            }
            self.column = Some(column);
        }
    }

    /// Begins the next row; at the bottom of the screen the terminal scrolls.
    pub(crate) fn next_row(&mut self) {
        // The background of a style must not fill the new row.
        self.set_style(Style::default());
        self.raw("\r\n");
        self.row += 1;
        self.column = Some(0);
    }

    /// Begins this row of the alternate screen, whatever was written before.
    pub(crate) fn begin_row(&mut self, row: usize) {
        self.set_style(Style::default());
        self.raw(&format!("\u{1b}[{};1H", row + 1));
        (self.row, self.column) = (row, Some(0));
    }

    /// Clears the rest of the row.
    pub(crate) fn clear_row(&mut self) {
        self.set_style(Style::default());
        self.raw("\u{1b}[K");
    }

    /// Clears from the start of this row to the end of the screen. Clearing begins in the second column: tmux would copy a
    /// screen that is cleared from its first cell into the history.
    pub(crate) fn clear_below(&mut self, room: usize) {
        self.set_style(Style::default());
        self.raw(if room > 1 { CLEAR_BELOW } else { "\u{1b}[J" });
    }

    /// Writes one grapheme in a style. `room` is where the row ends.
    pub(crate) fn glyph(&mut self, text: &str, style: Style, room: usize) {
        self.set_style(style);
        let shown = if text.chars().any(char::is_control) { "\u{fffd}" } else { text };
        self.out.extend_from_slice(shown.as_bytes());
        let column = self.column.map(|column| column + columns(shown));
        self.column = column.filter(|column| *column < room);
        if let Some(column) = self.column.filter(|_| is_uncertain(shown)) {
            self.sequence(column + 1, 'G');
        }
    }

    /// Writes a whole line. One that is longer than `room` is left to the terminal to wrap.
    pub(crate) fn line(&mut self, line: &Line<'_>, room: usize) {
        let fits = line.spans.iter().map(|span| columns(&span.content)).sum::<usize>() <= room;
        for span in &line.spans {
            let style = line.style.patch(span.style);
            if span.content.is_ascii() || !fits {
                self.set_style(style);
                let clean =
                    span.content.chars().map(|sign| if sign.is_control() { '\u{fffd}' } else { sign });
                let text: String = clean.collect();
                self.out.extend_from_slice(text.as_bytes());
                let column = self.column.map(|column| column + columns(&text));
                self.column = column.filter(|column| *column < room);
            } else {
                span.content.graphemes(true).for_each(|grapheme| self.glyph(grapheme, style, room));
            }
        }
    }

    fn sequence(&mut self, number: usize, end: char) {
        if number == 1 && end != 'G' {
            self.raw(&format!("\u{1b}[{end}"));
        } else {
            self.raw(&format!("\u{1b}[{number}{end}"));
        }
    }

    fn set_style(&mut self, style: Style) {
        if style == self.style {
            return;
        }
        self.style = style;
        let mut codes = String::from("\u{1b}[");
        let mut first = true;
        let mut add = |code: &str| {
            if !std::mem::take(&mut first) {
                codes.push(';');
            }
            codes.push_str(code);
        };
        if style != Style::default() {
            add("0");
        }
        for (modifier, code) in MODIFIERS {
            if style.add_modifier.contains(modifier) {
                add(code);
            }
        }
        if let Some(code) = style.fg.and_then(|color| color_code(color, 30)) {
            add(&code);
        }
        if let Some(code) = style.bg.and_then(|color| color_code(color, 40)) {
            add(&code);
        }
        codes.push('m');
        self.out.extend_from_slice(codes.as_bytes());
    }
}

const MODIFIERS: [(Modifier, &str); 6] = [
    (Modifier::BOLD, "1"),
    (Modifier::DIM, "2"),
    (Modifier::ITALIC, "3"),
    (Modifier::UNDERLINED, "4"),
    (Modifier::REVERSED, "7"),
    (Modifier::CROSSED_OUT, "9"),
];

fn color_code(color: Color, base: u8) -> Option<String> {
    let named = |number: u8| Some((base + number).to_string());
    let light = |number: u8| Some((base + 60 + number).to_string());
    match color {
        Color::Reset => None,
        Color::Black => named(0),
        Color::Red => named(1),
        Color::Green => named(2),
        Color::Yellow => named(3),
        Color::Blue => named(4),
        Color::Magenta => named(5),
        Color::Cyan => named(6),
        Color::Gray => named(7),
        Color::DarkGray => light(0),
        Color::LightRed => light(1),
        Color::LightGreen => light(2),
        Color::LightYellow => light(3),
        Color::LightBlue => light(4),
        Color::LightMagenta => light(5),
        Color::LightCyan => light(6),
        Color::White => light(7),
        Color::Indexed(number) => Some(format!("{};5;{number}", base + 8)),
        Color::Rgb(red, green, blue) => Some(format!("{};2;{red};{green};{blue}", base + 8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(draw: impl FnOnce(&mut Pen)) -> String {
        let mut pen = Pen::at(0, 0);
        draw(&mut pen);
        String::from_utf8(pen.into_bytes()).unwrap()
    }

    #[test]
    fn moves_are_relative_and_short() {
        assert_eq!(bytes(|pen| pen.move_to(0, 0)), "");
        assert_eq!(bytes(|pen| pen.move_to(3, 5)), "\u{1b}[3B\u{1b}[6G");
        assert_eq!(
            bytes(|pen| {
                pen.move_to(1, 4);
                pen.move_to(0, 0)
            }),
            "\u{1b}[B\u{1b}[5G\u{1b}[A\r"
        );
    }

    #[test]
    fn no_control_character_gets_through() {
        let shown = bytes(|pen| {
            pen.glyph("\u{1b}", Style::default(), 80);
            pen.line(&Line::from("a\u{7}b\u{9b}c\nd"), 80);
        });
        assert!(!shown.contains(['\u{7}', '\u{9b}', '\n']), "{shown:?}");
        // The only escapes are our own.
        assert!(
            shown.split('\u{1b}').skip(1).all(|rest| rest.starts_with('[') && rest.contains('G')),
            "{shown:?}"
        );
    }

    #[test]
    fn the_column_is_set_behind_what_terminals_measure_differently() {
        assert_eq!(bytes(|pen| pen.line(&Line::from("👩\u{200d}💻x"), 80)), "👩\u{200d}💻\u{1b}[3Gx");
    }

    #[test]
    fn styles_end() {
        let style = Style::default().fg(Color::Red).add_modifier(Modifier::BOLD);
        assert_eq!(bytes(|pen| pen.glyph("x", style, 80)), "\u{1b}[0;1;31mx\u{1b}[m");
    }
}
