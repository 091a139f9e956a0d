//! The live area on the main screen. Finished lines are printed above it once, with newlines, so that the terminal itself
//! scrolls them into its history; the area below is redrawn with relative moves. Nothing above the area is ever touched, and
//! no position is ever asked for.

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Line;

use super::pen::Pen;
use crate::text::columns;

/// Begin and end of an update that terminals show at once.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";

/// What the live area shows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    /// Its rows.
    pub(crate) lines: Vec<Line<'static>>,
    /// Row and column of the caret.
    pub(crate) caret: (usize, usize),
}

/// The live area as the terminal shows it.
#[derive(Debug)]
pub(crate) struct Surface {
    width: usize,
    height: usize,
    /// True when the terminal breaks rows anew when its width changes.
    reflows: bool,
    rows: Vec<Vec<Cell>>,
    cursor: (usize, usize),
}

impl Surface {
    /// An area that is not drawn yet, on a terminal of this size.
    pub(crate) fn new(width: usize, height: usize, reflows: bool) -> Self {
        Self { width: width.max(1), height: height.max(1), reflows, rows: Vec::new(), cursor: (0, 0) }
    }

    /// The bytes that print finished lines above the area and bring the area to this frame.
    pub(crate) fn draw(&mut self, commits: &[Line<'_>], frame: &Frame) -> Vec<u8> {
        let rows = self.rows_of(frame);
        let caret = self.caret_of(frame, rows.len());
        let mut pen = Pen::at(self.cursor.0, self.cursor.1);
        if commits.is_empty() && !self.rows.is_empty() {
            self.update(&mut pen, &rows);
        } else {
            pen.raw(BEGIN);
            pen.move_to(0, 0);
            pen.clear_below(self.width);
            for line in commits {
                pen.line(line, self.width);
                pen.next_row();
            }
            let first = commits.len();
            for (at, row) in rows.iter().enumerate() {
                if at > 0 {
                    pen.next_row();
                }
                write_cells(&mut pen, row, 0, row.len(), self.width);
            }
            pen.move_to(first + caret.0, caret.1);
            pen.raw(END);
            (self.rows, self.cursor) = (rows, caret);
            return pen.into_bytes();
        }
        pen.move_to(caret.0, caret.1);
        (self.rows, self.cursor) = (rows, caret);
        pen.into_bytes()
    }

    /// The bytes that take the area away; the next frame is drawn where it was.
    pub(crate) fn erase(&mut self) -> Vec<u8> {
        let mut pen = Pen::at(self.cursor.0, self.cursor.1);
        if !self.rows.is_empty() {
            pen.move_to(0, 0);
            pen.clear_below(self.width);
        }
        self.forget();
        pen.into_bytes()
    }

    /// What was drawn is no longer there: the next frame begins where the cursor is, at the start of a row.
    pub(crate) fn forget(&mut self) {
        self.rows.clear();
        self.cursor = (0, 0);
    }

    /// The bytes that take the area away after the terminal has another size. What a narrower terminal broke into several
    /// rows is found by its length; where that is not sure, a row too few is taken away rather than one too many.
    pub(crate) fn resize(&mut self, width: usize, height: usize) -> Vec<u8> {
        let width = width.max(1);
        let broken = |length: usize| if self.reflows { length.div_ceil(width).max(1) } else { 1 };
        let above: usize = self.rows.iter().take(self.cursor.0).map(|row| broken(row.len())).sum();
        let inside = if self.reflows { self.cursor.1.saturating_sub(1) / width } else { 0 };
        let mut pen = Pen::at(above + inside, 1);
        if !self.rows.is_empty() {
            pen.raw(BEGIN);
            pen.move_to(0, 0);
            pen.clear_below(width);
            pen.raw(END);
        }
        (self.width, self.height) = (width, height.max(1));
        self.forget();
        pen.into_bytes()
    }

    /// The terminal's width.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The terminal's height.
    pub(crate) fn height(&self) -> usize {
        self.height
    }

    /// The rows of a frame: as many as the screen has, the lowest of them.
    fn rows_of(&self, frame: &Frame) -> Vec<Vec<Cell>> {
        let hidden = frame.lines.len().saturating_sub(self.height);
        let mut rows: Vec<Vec<Cell>> =
            frame.lines.iter().skip(hidden).map(|line| cells(line, self.width)).collect();
        if rows.is_empty() {
            rows.push(Vec::new());
        }
        rows
    }

    fn caret_of(&self, frame: &Frame, rows: usize) -> (usize, usize) {
        let hidden = frame.lines.len().saturating_sub(self.height);
        let row = frame.caret.0.saturating_sub(hidden).min(rows.saturating_sub(1));
        (row, frame.caret.1.min(self.width - 1))
    }

    /// Writes what differs.
    fn update(&self, pen: &mut Pen, rows: &[Vec<Cell>]) {
        let differing = rows.iter().zip(&self.rows).filter(|(new, old)| new != old).count();
        let whole = differing > 1 || rows.len() != self.rows.len();
        if whole {
            pen.raw(BEGIN);
        }
        for (at, (new, old)) in rows.iter().zip(&self.rows).enumerate() {
            if new != old {
                update_row(pen, at, new, old, self.width);
            }
        }
        for (at, row) in rows.iter().enumerate().skip(self.rows.len()) {
            pen.move_to(at - 1, 0);
            pen.next_row();
            write_cells(pen, row, 0, row.len(), self.width);
        }
        if rows.len() < self.rows.len() {
            pen.move_to(rows.len(), 0);
            pen.clear_below(self.width);
        }
        if whole {
            pen.raw(END);
        }
    }
}

/// The cells of a line, without blanks at its end.
fn cells(line: &Line<'_>, width: usize) -> Vec<Cell> {
    let width = u16::try_from(width).unwrap_or(u16::MAX);
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, 1));
    buffer.set_line(0, 0, line, width);
    let mut cells = buffer.content;
    let visible = Modifier::UNDERLINED | Modifier::REVERSED | Modifier::CROSSED_OUT;
    let is_blank =
        |cell: &Cell| cell.symbol() == " " && cell.bg == Color::Reset && !cell.modifier.intersects(visible);
    while cells.last().is_some_and(is_blank) {
        // The cell behind a wide character is its second half.
        if cells.len() > 1 && columns(cells[cells.len() - 2].symbol()) > 1 {
            break;
        }
        cells.pop();
    }
    cells
}

/// Writes the part of a row that differs.
fn update_row(pen: &mut Pen, at: usize, new: &[Cell], old: &[Cell], width: usize) {
    let same = new.iter().zip(old).take_while(|(new, old)| new == old).count();
    let start = glyph_start(new, same).min(glyph_start(old, same));
    let end = if new.len() == old.len() {
        let tail = new.iter().rev().zip(old.iter().rev()).take_while(|(new, old)| new == old).count();
        // Up to the end of a glyph in both rows.
        let end = (new.len() - tail).max(start);
        glyph_end(new, end).max(glyph_end(old, end)).min(new.len())
    } else {
        new.len()
    };
    pen.move_to(at, start);
    write_cells(pen, new, start, end, width);
    if new.len() < old.len() {
        pen.move_to(at, new.len());
        pen.clear_row();
    }
}

/// The place at which the glyph begins that covers a place.
fn glyph_start(row: &[Cell], place: usize) -> usize {
    let before =
        place.checked_sub(1).filter(|before| row.get(*before).is_some_and(|cell| columns(cell.symbol()) > 1));
    before.unwrap_or(place)
}

fn glyph_end(row: &[Cell], place: usize) -> usize {
    let last = place.checked_sub(1).and_then(|last| row.get(last));
    if last.is_some_and(|cell| columns(cell.symbol()) > 1) { place + 1 } else { place }
}

fn write_cells(pen: &mut Pen, row: &[Cell], from: usize, to: usize, width: usize) {
    let mut at = from;
    while at < to {
        let Some(cell) = row.get(at) else { break };
        let symbol = cell.symbol();
        pen.glyph(symbol, plain_style(cell), width);
        at += columns(symbol).max(1);
    }
}

/// A cell's style with the terminal's own colours left out.
fn plain_style(cell: &Cell) -> Style {
    let own = |color: Color| (color != Color::Reset).then_some(color);
    Style { fg: own(cell.fg), bg: own(cell.bg), add_modifier: cell.modifier, ..Style::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: (usize, usize) = (24, 10);

    /// A terminal that remembers everything that scrolled off.
    struct Emulator(vt100::Parser);

    impl Emulator {
        fn new() -> Self {
            let size = |number: usize| u16::try_from(number).unwrap().try_into().unwrap();
            Self(vt100::Parser::new(size(SIZE.1), size(SIZE.0), 10_000))
        }

        fn take(&mut self, bytes: &[u8]) {
            self.0.process(bytes);
        }

        /// All rows, those in the history first, without blank ones at the end.
        fn rows(&mut self) -> Vec<String> {
            let mut rows = Vec::new();
            let screen = self.0.screen_mut();
            screen.set_scrollback(usize::MAX);
            let history = screen.scrollback();
            for back in (1..=history).rev() {
                screen.set_scrollback(back);
                rows.push(screen.rows(0, 200).next().unwrap_or_default());
            }
            screen.set_scrollback(0);
            rows.extend(screen.rows(0, 200));
            let mut rows: Vec<String> = rows.iter().map(|row| row.trim_end().to_owned()).collect();
            while rows.last().is_some_and(String::is_empty) {
                rows.pop();
            }
            rows
        }

        fn cursor(&self) -> (u16, u16) {
            self.0.screen().cursor_position()
        }
    }

    fn frame(lines: &[String], caret: (usize, usize)) -> Frame {
        Frame { lines: lines.iter().cloned().map(Line::from).collect(), caret }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Commit(u8),
        Frame(Vec<String>, (usize, usize)),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let row = "[a-z世é ]{0,12}";
        let frame = (proptest::collection::vec(row, 1..6), (0_usize..6, 0_usize..24));
        let step = prop_oneof![
            (1_u8..5).prop_map(Step::Commit),
            frame.prop_map(|(rows, caret)| Step::Frame(rows, caret)),
        ];
        proptest::collection::vec(step, 1..30)
    }

    proptest! {
        /// Any mix of finished lines and frames shows what drawing everything at once would show, and every finished line is
        /// there once.
        #[test]
        fn the_screen_is_that_of_a_full_redraw(steps in steps()) {
            let mut emulator = Emulator::new();
            let mut surface = Surface::new(SIZE.0, SIZE.1, true);
            let (mut committed, mut number) = (Vec::new(), 0);
            let mut last = frame(&["> ".to_owned()], (0, 2));
            for step in steps {
                let mut commits = Vec::new();
                match step {
                    Step::Commit(count) => {
                        for _ in 0..count {
                            number += 1;
                            commits.push(format!("#{number}"));
                        }
                    }
                    Step::Frame(rows, caret) => last = frame(&rows, caret),
                }
                let lines: Vec<Line<'_>> = commits.iter().cloned().map(Line::from).collect();
                committed.extend(commits);
                emulator.take(&surface.draw(&lines, &last));

                let mut expected = Emulator::new();
                let whole: Vec<Line<'_>> = committed.iter().cloned().map(Line::from).collect();
                expected.take(&Surface::new(SIZE.0, SIZE.1, true).draw(&whole, &last));
                prop_assert_eq!(emulator.rows(), expected.rows());
                let rows = emulator.rows();
                for line in &committed {
                    prop_assert_eq!(rows.iter().filter(|row| *row == line).count(), 1, "{} in {:?}", line, rows);
                }
            }
        }
    }

    #[test]
    fn a_keystroke_costs_a_few_bytes() {
        let mut surface = Surface::new(80, 24, true);
        let rows = |text: &str| vec![format!("> {text}"), "model · default".to_owned()];
        surface.draw(&[], &frame(&rows("hell"), (0, 6)));
        let bytes = surface.draw(&[], &frame(&rows("hello"), (0, 7)));
        assert_eq!(String::from_utf8(bytes).unwrap(), "o");
        let bytes = surface.draw(&[], &frame(&rows("hell"), (0, 6)));
        assert!(bytes.len() < 20, "{bytes:?}");
        assert_eq!(surface.draw(&[], &frame(&rows("hell"), (0, 6))), b"");
    }

    #[test]
    fn the_history_is_never_cleared_and_nothing_is_asked() {
        let mut surface = Surface::new(40, 10, true);
        let mut all = Vec::new();
        for number in 0..50 {
            let line = Line::from(format!("line {number}"));
            all.extend(surface.draw(&[line], &frame(&["> x".to_owned(), "status".to_owned()], (0, 3))));
            all.extend(surface.resize(40 - number % 7, 10));
        }
        let text = String::from_utf8(all).unwrap();
        for forbidden in ["\u{1b}[2J", "\u{1b}[3J", "\u{1b}[6n", "\u{1b}[?1049", "\u{1b}[H", "\u{1b}[s"] {
            assert!(!text.contains(forbidden), "{forbidden:?}");
        }
    }

    #[test]
    fn the_caret_is_where_the_frame_says() {
        let mut emulator = Emulator::new();
        let mut surface = Surface::new(SIZE.0, SIZE.1, true);
        emulator.take(
            &surface.draw(&[Line::from("done")], &frame(&["> 世界".to_owned(), "s".to_owned()], (0, 6))),
        );
        assert_eq!(emulator.cursor(), (1, 6));
        emulator
            .take(&surface.draw(&[], &frame(&["a".to_owned(), "> 世".to_owned(), "s".to_owned()], (1, 4))));
        assert_eq!(emulator.cursor(), (2, 4));
    }

    #[test]
    fn an_area_higher_than_the_screen_shows_its_end() {
        let mut emulator = Emulator::new();
        let mut surface = Surface::new(SIZE.0, SIZE.1, true);
        let rows: Vec<String> = (0..30).map(|number| format!("row {number}")).collect();
        emulator.take(&surface.draw(&[], &frame(&rows, (29, 0))));
        let shown = emulator.rows();
        assert_eq!((shown.first().map(String::as_str), shown.len()), (Some("row 20"), 10));
    }

    #[test]
    fn a_window_of_one_cell_is_drawn_into() {
        let mut surface = Surface::new(1, 1, true);
        surface.draw(&[], &frame(&["> hello".to_owned(), "status".to_owned()], (0, 7)));
        surface.resize(0, 0);
        surface.draw(&[Line::from("x")], &frame(&["世".to_owned()], (0, 1)));
    }
}
