//! The alternate screen, for overlays: a page that is drawn whole, row by row, and only where it differs from before.

use ratatui_core::text::Line;

use super::pen::Pen;

/// What the alternate screen shows.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    rows: Vec<Line<'static>>,
    width: usize,
}

impl Sheet {
    /// The bytes that bring the screen to these rows.
    pub(crate) fn draw(&mut self, rows: &[Line<'static>], width: usize) -> Vec<u8> {
        let mut pen = Pen::at(0, 0);
        pen.raw("\u{1b}[?2026h\u{1b}[?25l");
        let whole = self.rows.is_empty() || self.width != width || self.rows.len() != rows.len();
        for (at, row) in rows.iter().enumerate() {
            if whole || self.rows.get(at) != Some(row) {
                pen.begin_row(at);
                pen.line(row, width);
                pen.clear_row();
            }
        }
        pen.raw("\u{1b}[?2026l");
        (self.rows, self.width) = (rows.to_vec(), width);
        pen.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_their_row() {
        // A bullet is measured differently by terminals: the column is set behind it.
        let rows = ["one", "• two", "  • three"].map(Line::from);
        let drawn = Sheet::default().draw(&rows, 80);
        let mut parser = vt100::Parser::new(5.try_into().unwrap(), 80.try_into().unwrap(), 0);
        parser.process(&drawn);
        let shown: Vec<String> = parser.screen().rows(0, 80).take(3).collect();
        assert_eq!(shown, ["one", "• two", "  • three"]);
    }

    #[test]
    fn only_rows_that_differ_are_drawn() {
        let mut sheet = Sheet::default();
        let rows = |last: &str| vec![Line::from("one"), Line::from(last.to_owned())];
        let all = String::from_utf8(sheet.draw(&rows("two"), 80)).unwrap();
        assert!(all.contains("one") && all.contains("two"));
        let changed = String::from_utf8(sheet.draw(&rows("three"), 80)).unwrap();
        assert!(!changed.contains("one") && changed.contains("\u{1b}[2;1Hthree"));
    }
}
