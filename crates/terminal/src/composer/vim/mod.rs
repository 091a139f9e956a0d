//! Vim keys: motions, operators with counts and text objects, registers of one, and `.`. In insert mode every key but Escape
//! is an ordinary one.

mod changes;
mod motions;
mod objects;

use std::ops::Range;

use super::Composer;
use crate::input::{Key, KeyCode};
use motions::{Find, Motion};

/// The mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum VimMode {
    /// Keys write.
    #[default]
    Insert,
    /// Keys are commands.
    Normal,
    /// Keys are commands for what is marked.
    Visual,
}

impl VimMode {
    /// The word for a status line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Normal => "NORMAL",
            Self::Visual => "VISUAL",
        }
    }
}

/// What is done with a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Delete,
    Change,
    Yank,
}

/// What the next key belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Awaits {
    #[default]
    Command,
    /// A character to find.
    Find(Find),
    /// A character to put in place.
    Replace,
    /// The second key of `g`.
    Go,
    /// The kind of a text object; true for the one with its surroundings.
    Object(bool),
}

/// The state of vim keys.
#[derive(Debug, Default)]
pub(super) struct Vim {
    mode: VimMode,
    count: usize,
    operator: Option<(Operator, usize)>,
    awaits: Awaits,
    register: (String, bool),
    found: Option<(Find, char)>,
    mark: usize,
    /// The keys of the command that is being given, and of the last one that changed something.
    keys: Vec<Key>,
    last_change: Vec<Key>,
    /// True when the command that is being given changes something.
    changes: bool,
    repeating: bool,
}

impl Vim {
    pub(super) fn mode(&self) -> VimMode {
        self.mode
    }

    pub(super) fn begin_insert(&mut self) {
        *self = Self {
            register: std::mem::take(&mut self.register),
            last_change: std::mem::take(&mut self.last_change),
            found: self.found,
            ..Self::default()
        };
    }

    /// Takes a key. `None` leaves it to the ordinary keys; false means that it does nothing.
    pub(super) fn key(&mut self, key: Key, composer: &mut Composer) -> Option<bool> {
        match self.mode {
            VimMode::Insert => self.insert_key(key, composer),
            VimMode::Normal | VimMode::Visual => {
                if key.alt || (key.ctrl && key.code != KeyCode::Char('r')) {
                    return None;
                }
                let KeyCode::Char(sign) = key.code else {
                    return self.special_key(key);
                };
                if !self.repeating {
                    self.keys.push(key);
                }
                let done = if key.ctrl {
                    composer.restore();
                    true
                } else {
                    self.command(sign, composer)
                };
                self.settle(done, composer);
                Some(true)
            }
        }
    }

    fn insert_key(&mut self, key: Key, composer: &mut Composer) -> Option<bool> {
        if !self.repeating {
            self.keys.push(key);
        }
        if key.code != KeyCode::Esc {
            return None;
        }
        self.mode = VimMode::Normal;
        let cursor = composer.draft.cursor();
        if cursor > composer.draft.line_start(cursor) {
            composer.go(super::draft::Draft::left_of);
        }
        self.settle(true, composer);
        Some(true)
    }

    /// Escape gives up what was begun; other keys that are not characters are ordinary.
    fn special_key(&mut self, key: Key) -> Option<bool> {
        if key.code != KeyCode::Esc {
            return None;
        }
        let was_idle = self.count == 0 && self.operator.is_none() && self.awaits == Awaits::Command;
        let was_visual = self.mode == VimMode::Visual;
        self.mode = VimMode::Normal;
        self.reset();
        // Escape in normal mode with nothing begun is for others.
        (!was_idle || was_visual).then_some(true)
    }

    fn reset(&mut self) {
        (self.count, self.operator, self.awaits, self.changes) = (0, None, Awaits::Command, false);
        self.keys.clear();
    }

    /// A command is complete: what it was is remembered if it changed something.
    fn settle(&mut self, done: bool, composer: &mut Composer) {
        if !done {
            return;
        }
        if self.mode == VimMode::Insert {
            // What is typed belongs to the change.
            (self.count, self.operator, self.awaits) = (0, None, Awaits::Command);
            return;
        }
        if self.changes && !self.repeating {
            self.last_change = std::mem::take(&mut self.keys);
        }
        self.reset();
        if self.mode == VimMode::Normal {
            // The cursor is on a character, not behind the line.
            let cursor = composer.draft.cursor();
            if cursor > composer.draft.line_start(cursor) && cursor == composer.draft.line_end(cursor) {
                composer.go(super::draft::Draft::left_of);
            }
        }
    }

    fn times(&self) -> usize {
        let outer = self.operator.map_or(1, |(_, count)| count);
        self.count.max(1).saturating_mul(outer).min(10_000)
    }

    /// Takes a character of a command. True when the command is complete.
    fn command(&mut self, sign: char, composer: &mut Composer) -> bool {
        match self.awaits {
            Awaits::Command => {}
            Awaits::Find(find) => {
                self.found = Some((find, sign));
                return self.move_by_find(find, sign, composer);
            }
            Awaits::Replace => return self.replace(sign, composer),
            Awaits::Go => {
                let motion = (sign == 'g').then(|| Motion::lines(composer.draft.line_start(0)));
                return self.apply(motion, composer);
            }
            Awaits::Object(around) => {
                let cursor = composer.draft.cursor();
                let range = objects::find(composer.draft.text(), cursor, sign, around);
                return self.apply_range(range, composer);
            }
        }
        if sign.is_ascii_digit() && (sign != '0' || self.count > 0) {
            let digit = sign.to_digit(10).unwrap_or(0) as usize;
            self.count = (self.count.saturating_mul(10) + digit).min(10_000);
            return false;
        }
        if let Some(find) = Find::of(sign) {
            self.awaits = Awaits::Find(find);
            return false;
        }
        match sign {
            'g' => {
                self.awaits = Awaits::Go;
                return false;
            }
            'i' | 'a' if self.operator.is_some() || self.mode == VimMode::Visual => {
                self.awaits = Awaits::Object(sign == 'a');
                return false;
            }
            ';' | ',' => {
                let Some((find, sign_of)) = self.found else { return true };
                let find = if sign == ',' { find.reversed() } else { find };
                return self.move_by_find(find, sign_of, composer);
            }
            _ => {}
        }
        // To change to the next word means to change this one to its end.
        if matches!(self.operator, Some((Operator::Change, _)))
            && matches!(sign, 'w' | 'W')
            && motions::is_on_word(&composer.draft)
        {
            let motion = motions::rest_of_word(&composer.draft, self.times(), sign == 'W');
            return self.apply(Some(motion), composer);
        }
        if let Some(motion) = motions::motion(sign, &composer.draft, self.times(), self.count > 0) {
            return self.apply(Some(motion), composer);
        }
        self.other_command(sign, composer)
    }

    fn move_by_find(&mut self, find: Find, sign: char, composer: &mut Composer) -> bool {
        let motion = motions::find(&composer.draft, find, sign, self.times());
        self.apply(motion, composer)
    }

    /// Moves, or does with the range to there what the operator says.
    fn apply(&mut self, motion: Option<Motion>, composer: &mut Composer) -> bool {
        let Some(motion) = motion else { return true };
        let cursor = composer.draft.cursor();
        let Some((operator, _)) = self.operator else {
            composer.go(|_, _| motion.to);
            return true;
        };
        let (mut from, mut to) = (cursor.min(motion.to), cursor.max(motion.to));
        if motion.inclusive && to < composer.draft.text().len() {
            to = composer.draft.right_of(to);
        }
        if motion.linewise {
            (from, to) = (composer.draft.line_start(from), composer.draft.line_end(to));
        }
        self.operate(operator, from..to, motion.linewise, composer)
    }

    fn apply_range(&mut self, range: Option<Range<usize>>, composer: &mut Composer) -> bool {
        let Some(range) = range else { return true };
        match self.operator {
            Some((operator, _)) => self.operate(operator, range, false, composer),
            None => {
                self.mark = range.start;
                let last = composer.draft.left_of(range.end);
                composer.go(|_, _| last.max(range.start));
                self.awaits = Awaits::Command;
                self.count = 0;
                false
            }
        }
    }

    fn operate(
        &mut self,
        operator: Operator,
        range: Range<usize>,
        linewise: bool,
        composer: &mut Composer,
    ) -> bool {
        self.register = (composer.draft.text()[range.clone()].to_owned(), linewise);
        match operator {
            Operator::Yank => {
                composer.go(|_, _| range.start);
                return true;
            }
            Operator::Delete if linewise => {
                // The line goes with its end, the last one with the end of the line before it.
                let text = composer.draft.text();
                let (from, to) = if range.end < text.len() {
                    (range.start, range.end + 1)
                } else {
                    (range.start.saturating_sub(1), range.end)
                };
                composer.cut_range(from..to);
                composer.go(super::draft::Draft::line_start);
            }
            Operator::Delete | Operator::Change => {
                let start = range.start;
                composer.cut_range(range);
                composer.go(|_, _| start);
            }
        }
        self.changes = true;
        if operator == Operator::Change {
            self.mode = VimMode::Insert;
            // What is typed now is part of this change.
            composer.typing = true;
        }
        true
    }

    fn other_command(&mut self, sign: char, composer: &mut Composer) -> bool {
        let operator = match sign {
            'd' => Some(Operator::Delete),
            'c' => Some(Operator::Change),
            'y' => Some(Operator::Yank),
            _ => None,
        };
        if let Some(operator) = operator {
            return self.take_operator(operator, composer);
        }
        if self.mode == VimMode::Visual {
            return self.visual_command(sign, composer);
        }
        let cursor = composer.draft.cursor();
        let end = composer.draft.line_end(cursor);
        match sign {
            'i' => self.insert(composer, cursor),
            'a' => self.insert(composer, composer.draft.right_of(cursor).min(end)),
            'I' => self.insert(composer, motions::first_of_line(&composer.draft, cursor)),
            'A' => self.insert(composer, end),
            'o' | 'O' => {
                let place = if sign == 'o' { end } else { composer.draft.line_start(cursor) };
                composer.go(|_, _| place);
                composer.insert("\n");
                if sign == 'O' {
                    composer.go(|_, _| place);
                }
                self.insert(composer, composer.draft.cursor());
            }
            'x' | 's' => {
                let mut to = cursor;
                for _ in 0..self.times() {
                    to = composer.draft.right_of(to).min(end);
                }
                let operator = if sign == 'x' { Operator::Delete } else { Operator::Change };
                self.operate(operator, cursor..to, false, composer);
            }
            'X' => {
                let mut from = cursor;
                for _ in 0..self.times() {
                    from = composer.draft.left_of(from).max(composer.draft.line_start(cursor));
                }
                self.operate(Operator::Delete, from..cursor, false, composer);
            }
            'D' => drop(self.operate(Operator::Delete, cursor..end, false, composer)),
            'C' => drop(self.operate(Operator::Change, cursor..end, false, composer)),
            'Y' => drop(self.operate_lines(Operator::Yank, composer)),
            'S' => drop(self.operate_lines(Operator::Change, composer)),
            'r' => {
                self.awaits = Awaits::Replace;
                return false;
            }
            'v' => {
                (self.mode, self.mark) = (VimMode::Visual, cursor);
                self.keys.clear();
            }
            '~' => self.switch_case(composer),
            'J' => self.join(composer),
            'p' | 'P' => self.put(sign == 'p', composer),
            'u' => composer.revert(),
            '.' => self.repeat(composer),
            _ => {}
        }
        true
    }

    fn take_operator(&mut self, operator: Operator, composer: &mut Composer) -> bool {
        if self.mode == VimMode::Visual {
            self.mode = VimMode::Normal;
            let (from, to) = self.marked(composer);
            return self.operate(operator, from..to, false, composer);
        }
        match self.operator {
            Some((known, _)) if known == operator => self.operate_lines(operator, composer),
            Some(_) => true,
            None => {
                self.operator = Some((operator, self.count.max(1)));
                self.count = 0;
                false
            }
        }
    }

    /// Whole lines from the cursor on.
    fn operate_lines(&mut self, operator: Operator, composer: &mut Composer) -> bool {
        let cursor = composer.draft.cursor();
        let (from, mut to) = (composer.draft.line_start(cursor), composer.draft.line_end(cursor));
        for _ in 1..self.times() {
            if to < composer.draft.text().len() {
                to = composer.draft.line_end(to + 1);
            }
        }
        self.operate(operator, from..to, true, composer)
    }

    fn marked(&self, composer: &Composer) -> (usize, usize) {
        let cursor = composer.draft.cursor();
        let (from, last) = (self.mark.min(cursor), self.mark.max(cursor));
        (from, composer.draft.right_of(last.min(composer.draft.text().len())))
    }

    fn visual_command(&mut self, sign: char, composer: &mut Composer) -> bool {
        match sign {
            'x' => return self.take_operator(Operator::Delete, composer),
            's' => return self.take_operator(Operator::Change, composer),
            'v' => self.mode = VimMode::Normal,
            'o' => {
                let cursor = composer.draft.cursor();
                let mark = std::mem::replace(&mut self.mark, cursor);
                composer.go(|_, _| mark);
            }
            _ => {}
        }
        true
    }

    fn insert(&mut self, composer: &mut Composer, place: usize) {
        composer.go(|_, _| place);
        self.mode = VimMode::Insert;
        self.changes = true;
    }
}

#[cfg(test)]
mod tests;
