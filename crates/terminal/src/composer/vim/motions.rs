//! Where motions lead.

use crate::composer::Draft;

/// Where a motion leads, and what an operator takes of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Motion {
    pub(super) to: usize,
    /// True when the character there belongs to the range.
    pub(super) inclusive: bool,
    /// True when whole lines are meant.
    pub(super) linewise: bool,
}

impl Motion {
    fn to(to: usize) -> Self {
        Self { to, inclusive: false, linewise: false }
    }

    pub(super) fn lines(to: usize) -> Self {
        Self { to, inclusive: false, linewise: true }
    }
}

/// How a character is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Find {
    forward: bool,
    /// True to stop before it.
    before: bool,
}

impl Find {
    pub(super) fn of(sign: char) -> Option<Self> {
        match sign {
            'f' => Some(Self { forward: true, before: false }),
            't' => Some(Self { forward: true, before: true }),
            'F' => Some(Self { forward: false, before: false }),
            'T' => Some(Self { forward: false, before: true }),
            _ => None,
        }
    }

    pub(super) fn reversed(self) -> Self {
        Self { forward: !self.forward, ..self }
    }
}

/// The motion of a key.
pub(super) fn motion(sign: char, draft: &Draft, times: usize, counted: bool) -> Option<Motion> {
    let cursor = draft.cursor();
    let repeated = |step: &dyn Fn(usize) -> usize| (0..times).fold(cursor, |place, _| step(place));
    let end = |place: usize| draft.line_end(place);
    Some(match sign {
        'h' => Motion::to(repeated(&|place| draft.left_of(place).max(draft.line_start(cursor)))),
        'l' | ' ' => Motion::to(repeated(&|place| draft.right_of(place).min(end(cursor)))),
        'j' => Motion::lines(vertical(draft, times, true)?),
        'k' => Motion::lines(vertical(draft, times, false)?),
        'w' | 'W' => Motion::to(repeated(&|place| next_word(draft, place, sign == 'W'))),
        'b' | 'B' => Motion::to(repeated(&|place| word_before(draft, place, sign == 'B'))),
        'e' | 'E' => {
            let to = repeated(&|place| word_end(draft, place, sign == 'E'));
            Motion { to, inclusive: true, linewise: false }
        }
        '0' => Motion::to(draft.line_start(cursor)),
        '^' => Motion::to(first_of_line(draft, cursor)),
        '$' => Motion::to(end(cursor)),
        'G' if counted => {
            let lines = draft.text().match_indices('\n').map(|(at, _)| at + 1);
            Motion::lines(std::iter::once(0).chain(lines).take(times).last().unwrap_or(0))
        }
        'G' => Motion::lines(draft.line_start(draft.text().len())),
        _ => return None,
    })
}

/// True when the cursor is on a character that is not blank.
pub(super) fn is_on_word(draft: &Draft) -> bool {
    kind(draft, draft.cursor(), true) != 0
}

/// The first character of a line that is not blank.
pub(super) fn first_of_line(draft: &Draft, place: usize) -> usize {
    let start = draft.line_start(place);
    let line = &draft.text()[start..draft.line_end(place)];
    start + line.len() - line.trim_start().len()
}

/// The same column some lines below or above.
fn vertical(draft: &Draft, times: usize, down: bool) -> Option<usize> {
    let cursor = draft.cursor();
    let column = draft.text()[draft.line_start(cursor)..cursor].chars().count();
    let mut line = draft.line_start(cursor);
    for _ in 0..times {
        line = if down {
            let end = draft.line_end(line);
            (end < draft.text().len()).then_some(end + 1)?
        } else {
            line.checked_sub(1).map(|before| draft.line_start(before))?
        };
    }
    let text = &draft.text()[line..draft.line_end(line)];
    Some(line + text.char_indices().nth(column).map_or(text.len(), |(at, _)| at))
}

/// 0 for a blank, 1 for a letter, 2 for any other sign; with `big` all that is not blank is the same.
fn kind(draft: &Draft, place: usize, big: bool) -> u8 {
    match draft.text()[place..].chars().next() {
        None => 0,
        Some(sign) if sign.is_whitespace() => 0,
        Some(sign) if big || sign.is_alphanumeric() || sign == '_' => 1,
        Some(_) => 2,
    }
}

fn next_word(draft: &Draft, place: usize, big: bool) -> usize {
    let end = draft.text().len();
    let first = kind(draft, place, big);
    let mut at = place;
    while at < end && first != 0 && kind(draft, at, big) == first {
        at = draft.right_of(at);
    }
    while at < end && kind(draft, at, big) == 0 {
        at = draft.right_of(at);
    }
    at
}

fn word_before(draft: &Draft, place: usize, big: bool) -> usize {
    let mut at = draft.left_of(place);
    while at > 0 && kind(draft, at, big) == 0 {
        at = draft.left_of(at);
    }
    let own = kind(draft, at, big);
    while at > 0 && kind(draft, draft.left_of(at), big) == own {
        at = draft.left_of(at);
    }
    at
}

/// The motion to the end of the word at the cursor, which may be here already.
pub(super) fn rest_of_word(draft: &Draft, times: usize, big: bool) -> Motion {
    let cursor = draft.cursor();
    let mut to = last_of_kind(draft, cursor, big);
    for _ in 1..times.min(draft.text().len() + 1) {
        to = word_end(draft, to, big);
    }
    Motion { to, inclusive: true, linewise: false }
}

/// The last of the characters from a place on that are of its kind.
fn last_of_kind(draft: &Draft, place: usize, big: bool) -> usize {
    let (end, own, mut at) = (draft.text().len(), kind(draft, place, big), place);
    while draft.right_of(at) < end && kind(draft, draft.right_of(at), big) == own {
        at = draft.right_of(at);
    }
    at
}

fn word_end(draft: &Draft, place: usize, big: bool) -> usize {
    let end = draft.text().len();
    let mut at = draft.right_of(place);
    while at < end && kind(draft, at, big) == 0 {
        at = draft.right_of(at);
    }
    last_of_kind(draft, at.min(end), big)
}

/// The motion to a character of the line.
pub(super) fn find(draft: &Draft, find: Find, sign: char, times: usize) -> Option<Motion> {
    let cursor = draft.cursor();
    let (start, end) = (draft.line_start(cursor), draft.line_end(cursor));
    let text = draft.text();
    if find.forward {
        let from = draft.right_of(cursor).min(end);
        let (at, _) = text[from..end].char_indices().filter(|(_, found)| *found == sign).nth(times - 1)?;
        let at = from + at;
        let to = if find.before { draft.left_of(at) } else { at };
        Some(Motion { to, inclusive: true, linewise: false })
    } else {
        let (at, _) =
            text[start..cursor].char_indices().rev().filter(|(_, found)| *found == sign).nth(times - 1)?;
        let at = start + at;
        Some(Motion::to(if find.before { draft.right_of(at) } else { at }))
    }
}
