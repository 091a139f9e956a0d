//! What becomes of finished cells: their lines are given to the scrollback once, in order. A reply that is being written gives
//! its complete parts before its end.

use std::collections::VecDeque;

use ratatui_core::text::Line;

use crate::cells::{self, Kind};
use crate::markdown::Renderer;
use crate::state::{Cell, CellBody, Conversation};
use crate::theme::{Ink, Look};

/// How many rows of a session that is resumed are printed.
const REPLAYED_ROWS: usize = 200;
/// How many cells can be drawn again.
const MOST_RECENT: usize = 24;

/// What was printed so far.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    last: Option<Kind>,
    reply: Option<ReplyPrint>,
    recent: VecDeque<Cell>,
    /// True once what was on record at the start is printed.
    has_begun: bool,
}

/// The reply that is being printed.
#[derive(Debug)]
struct ReplyPrint {
    cell: u64,
    renderer: Renderer,
    has_lines: bool,
}

impl Printed {
    /// Another session is shown from now on.
    pub(crate) fn begin_anew(&mut self) {
        (self.reply, self.has_begun) = (None, false);
        self.recent.clear();
    }

    /// True when something was printed.
    pub(crate) fn has_lines(&self) -> bool {
        self.last.is_some()
    }

    /// The lines that are finished and not printed.
    pub(crate) fn take(&mut self, conversation: &mut Conversation, look: &Look<'_>) -> Vec<Line<'static>> {
        if !conversation.is_caught_up {
            return Vec::new();
        }
        let mut lines = Vec::new();
        let mut first_live = None;
        while let Some(cell) = conversation.front() {
            if cell.id >= conversation.first_live {
                first_live.get_or_insert(lines.len());
            }
            if let CellBody::Reply { text } = &cell.body {
                let (id, is_finished, text) = (cell.id, cell.is_finished, text.as_str());
                self.print_reply(id, text, is_finished, look, &mut lines);
            }
            let Some(cell) = conversation.take_finished() else { break };
            if !matches!(cell.body, CellBody::Reply { .. }) {
                self.add(cells::lines(&cell, look), cells::kind(&cell), &mut lines);
            }
            if self.recent.len() == MOST_RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(cell);
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            // Only what was on record is shortened, not what has come since.
            let live = lines.split_off(first_live.unwrap_or(lines.len()));
            lines = last_rows(lines, conversation.dropped, look);
            lines.extend(live);
        }
        lines
    }

    fn print_reply(
        &mut self,
        id: u64,
        text: &str,
        is_finished: bool,
        look: &Look<'_>,
        lines: &mut Vec<Line<'static>>,
    ) {
        let mut print = match self.reply.take() {
            Some(print) if print.cell == id => print,
            Some(_) | None => ReplyPrint { cell: id, renderer: Renderer::default(), has_lines: false },
        };
        print.renderer.grow(text);
        if is_finished {
            print.renderer.finish();
        }
        let new = print.renderer.take_lines(look);
        if print.has_lines {
            lines.extend(new);
        } else if !new.is_empty() {
            print.has_lines = true;
            self.add(new, Kind::Other, lines);
        }
        if !is_finished {
            self.reply = Some(print);
        }
    }

    /// Adds the lines of a cell, apart from the one before where that belongs.
    fn add(&mut self, new: Vec<Line<'static>>, kind: Kind, lines: &mut Vec<Line<'static>>) {
        if new.is_empty() {
            return;
        }
        if self.last.is_some_and(|last| cells::is_apart(last, kind)) {
            lines.push(Line::default());
        }
        lines.extend(new);
        self.last = Some(kind);
    }

    /// The rows of what is not finished, for the live area.
    pub(crate) fn live(&mut self, conversation: &Conversation, look: &Look<'_>) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        if !conversation.is_caught_up {
            return rows;
        }
        for cell in conversation.cells() {
            match (&cell.body, &mut self.reply) {
                (CellBody::Reply { .. }, Some(print)) if print.cell == cell.id => {
                    rows.extend(print.renderer.open_lines(look));
                }
                (CellBody::Reply { text }, _) => rows.extend(Renderer::whole(text, look)),
                _ => rows.extend(cells::live_lines(cell, look)),
            }
        }
        rows
    }

    /// The last rows once more, at the present width.
    pub(crate) fn again(&self, rows: usize, look: &Look<'_>) -> Vec<Line<'static>> {
        let mut lines: Vec<Line<'static>> = Vec::new();
        let mut last = None;
        for cell in &self.recent {
            let new = cells::lines(cell, look);
            if new.is_empty() {
                continue;
            }
            let kind = cells::kind(cell);
            if last.is_some_and(|last| cells::is_apart(last, kind)) {
                lines.push(Line::default());
            }
            lines.extend(new);
            last = Some(kind);
        }
        let from = lines.len().saturating_sub(rows);
        lines.split_off(from)
    }
}

/// The last rows of a session that is resumed, and how much came before them.
fn last_rows(mut lines: Vec<Line<'static>>, dropped: usize, look: &Look<'_>) -> Vec<Line<'static>> {
    if lines.len() <= REPLAYED_ROWS && dropped == 0 {
        return lines;
    }
    let from = lines.len().saturating_sub(REPLAYED_ROWS);
    let rest = lines.split_off(from);
    let words = format!("{} earlier entries are in the transcript (Ctrl+O)", look.signs.more);
    std::iter::once(Line::from(look.span(Ink::Dim, words))).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Prompt;
    use crate::theme::{ColorSupport, Extent, Signs, Theme};
    use qoder_protocol::SessionEvent;
    use std::time::Instant;

    #[test]
    fn only_what_was_on_record_is_shortened() {
        let theme = Theme::new(None, &serde_json::Map::new(), ColorSupport::None);
        let now = Instant::now();
        let look = Look {
            width: 80,
            theme: &theme,
            signs: Signs::of(true),
            still: true,
            full_thinking: false,
            output_lines: 5,
            cwd: "/",
            extent: Extent::Short,
            now,
        };
        let long = |word: &str| (0..300).map(|number| format!("{word} {number}\n")).collect::<String>();
        let mut conversation = Conversation::new("s");
        conversation.command_output(long("old"));
        conversation.fold(&SessionEvent::CaughtUp, now);
        // A reply may be there before anything was drawn.
        conversation.submitted(Prompt { uuid: "u".to_owned(), text: "go".to_owned(), images: 0 }, now);
        conversation.command_output(long("new"));
        let lines: Vec<String> = Printed::default()
            .take(&mut conversation, &look)
            .iter()
            .map(|line| line.spans.iter().map(|span| &*span.content).collect())
            .collect();
        let count = |word: &str| lines.iter().filter(|line| line.starts_with(word)).count();
        assert_eq!((count("old"), count("new")), (200, 300));
    }
}
