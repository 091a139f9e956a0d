//! The keys that edit, as readline has them. They cannot be changed.

use super::Composer;
use super::layout::Layout;
use crate::input::{Key, KeyCode};

impl Composer {
    /// Takes a key. False when it edits nothing.
    pub(super) fn edit_key(&mut self, key: Key, width: usize) -> bool {
        let Key { code, ctrl, alt, .. } = key;
        match (code, ctrl, alt) {
            (KeyCode::Char(sign), false, false) => self.type_text(sign.encode_utf8(&mut [0; 4])),
            (KeyCode::Char('a'), true, _) | (KeyCode::Home, false, _) => {
                self.go(super::draft::Draft::line_start);
            }
            (KeyCode::Char('e'), true, _) | (KeyCode::End, false, _) => {
                self.go(super::draft::Draft::line_end);
            }
            (KeyCode::Home, true, _) => self.go(|_, _| 0),
            (KeyCode::End, true, _) => self.go(|draft, _| draft.text().len()),
            (KeyCode::Char('b'), true, _) | (KeyCode::Left, false, false) => {
                self.go(super::draft::Draft::left_of);
            }
            (KeyCode::Char('f'), true, _) | (KeyCode::Right, false, false) => {
                self.go(super::draft::Draft::right_of);
            }
            (KeyCode::Char('b'), false, true) | (KeyCode::Left, _, _) => {
                self.go(super::draft::Draft::word_left);
            }
            (KeyCode::Char('f'), false, true) | (KeyCode::Right, _, _) => {
                self.go(super::draft::Draft::word_right);
            }
            (KeyCode::Up, false, false) => return self.go_row(width, false),
            (KeyCode::Down, false, false) => return self.go_row(width, true),
            (KeyCode::Backspace, false, false) | (KeyCode::Char('h'), true, _) => {
                let cursor = self.draft.cursor();
                self.delete(self.draft.left_of(cursor)..cursor);
            }
            (KeyCode::Delete, ..) | (KeyCode::Char('d'), true, _) => {
                let cursor = self.draft.cursor();
                self.delete(cursor..self.draft.right_of(cursor));
            }
            (KeyCode::Char('w'), true, _) | (KeyCode::Backspace, ..) => {
                let cursor = self.draft.cursor();
                self.cut_range(self.draft.word_left(cursor)..cursor);
            }
            (KeyCode::Char('d'), false, true) => {
                let cursor = self.draft.cursor();
                self.cut_range(cursor..self.draft.word_right(cursor));
            }
            (KeyCode::Char('u'), true, _) => {
                let cursor = self.draft.cursor();
                self.cut_range(self.draft.line_start(cursor)..cursor);
            }
            (KeyCode::Char('k'), true, _) => {
                let cursor = self.draft.cursor();
                let end = self.draft.line_end(cursor);
                // At the end of a line the newline goes.
                let end = if end == cursor { self.draft.right_of(cursor) } else { end };
                self.cut_range(cursor..end);
            }
            (KeyCode::Char('y'), true, _) => {
                let Some(text) = self.cut.last().cloned() else { return false };
                self.insert(&text);
            }
            (KeyCode::Char('_' | '/' | '7'), true, _) => self.revert(),
            (KeyCode::Char('_' | '/'), false, true) => self.restore(),
            _ => return false,
        }
        true
    }

    /// Inserts typed text.
    pub(super) fn type_text(&mut self, text: &str) {
        self.remember(true);
        self.draft.insert(text);
    }

    pub(super) fn go(&mut self, to: impl Fn(&super::Draft, usize) -> usize) {
        let place = to(&self.draft, self.draft.cursor());
        self.draft.move_to(place);
        (self.typing, self.column) = (false, None);
    }

    fn delete(&mut self, range: std::ops::Range<usize>) {
        if range.is_empty() {
            return;
        }
        self.remember(true);
        self.draft.delete(range);
    }

    /// Goes to the row above or below. False when there is no such row: the key means something else then.
    pub(super) fn go_row(&mut self, width: usize, down: bool) -> bool {
        let layout = Layout::of(&self.draft, width);
        let row = layout.caret.0;
        let next = if down { row + 1 } else { row.wrapping_sub(1) };
        if next >= layout.rows.len() {
            return false;
        }
        let column = self.column.unwrap_or(layout.caret.1);
        self.draft.move_to(layout.place(self.draft.text(), next, column));
        (self.typing, self.column) = (false, Some(column));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str, keys: &[Key]) -> (String, usize) {
        let mut composer = Composer::default();
        composer.insert(text);
        for key in keys {
            composer.key(*key, 10);
        }
        (composer.draft().text().to_owned(), composer.draft().cursor())
    }

    #[test]
    fn readline_keys_edit() {
        let alt = |sign: char| Key::alt(KeyCode::Char(sign));
        for (keys, text, cursor) in [
            (vec![Key::ctrl('a'), Key::char('x')], "xone two", 1),
            (vec![Key::ctrl('w')], "one ", 4),
            (vec![Key::ctrl('w'), Key::ctrl('a'), Key::ctrl('y')], "twoone ", 3),
            (vec![Key::ctrl('u')], "", 0),
            (vec![alt('b'), Key::ctrl('k')], "one ", 4),
            (vec![Key::ctrl('a'), alt('d')], " two", 0),
            (vec![Key::alt(KeyCode::Backspace)], "one ", 4),
            (vec![Key::plain(KeyCode::Left), Key::plain(KeyCode::Delete)], "one tw", 6),
            (vec![Key { ctrl: true, ..Key::plain(KeyCode::Left) }, Key::ctrl('d')], "one wo", 4),
        ] {
            assert_eq!(after("one two", &keys), (text.to_owned(), cursor), "{keys:?}");
        }
    }

    #[test]
    fn up_and_down_keep_the_column_and_end_at_the_edges() {
        let mut composer = Composer::default();
        composer.insert("long line\nab\nlong line");
        let (up, down) = (Key::plain(KeyCode::Up), Key::plain(KeyCode::Down));
        assert!(composer.key(up, 20) && composer.draft().cursor() == 12);
        assert!(composer.key(up, 20) && composer.draft().cursor() == 9);
        assert!(!composer.key(up, 20));
        assert!(composer.key(down, 20) && composer.key(down, 20));
        assert_eq!(composer.draft().cursor(), 22);
        assert!(!composer.key(down, 20));
    }
}
