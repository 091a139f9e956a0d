//! Overlays on the alternate screen: the whole transcript, an agent's, the changes of the session, a long text. Search and
//! scrolling as in a pager; a transcript follows the running turn.

use std::time::Instant;

use qoder_protocol::{EventStream, SessionEvent};
use ratatui_core::text::{Line, Span};

use crate::cells;
use crate::input::{Key, KeyCode};
use crate::state::Conversation;
use crate::text::{LongWords, clipped, line_columns, one_line, wrap};
use crate::theme::{Ink, Look};

/// What an overlay shows.
pub(super) enum Content {
    /// A conversation, read from its record and followed.
    Conversation(Box<Conversation>, Box<dyn EventStream>),
    /// Lines that do not change.
    Text,
}

/// An overlay.
pub(super) struct Overlay {
    title: String,
    content: Content,
    /// Lines of what is finished, at the width they were made for.
    lines: Vec<Line<'static>>,
    last: Option<cells::Kind>,
    scroll: usize,
    /// True while the end is shown and followed.
    follows: bool,
    word: String,
    /// True while a word to search for is typed.
    is_typing: bool,
}

/// What a key came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OverlayReply {
    /// It was taken.
    Taken,
    /// The overlay is closed.
    Closed,
}

impl Overlay {
    /// A conversation from its start.
    pub(super) fn of_conversation(title: &str, session_id: &str, events: Box<dyn EventStream>) -> Self {
        let conversation = Box::new(Conversation::holding_all(session_id));
        Self::new(title, Content::Conversation(conversation, events), Vec::new(), true)
    }

    /// A text.
    pub(super) fn of_lines(title: &str, lines: Vec<Line<'static>>) -> Self {
        Self::new(title, Content::Text, lines, false)
    }

    fn new(title: &str, content: Content, lines: Vec<Line<'static>>, follows: bool) -> Self {
        Self {
            title: title.to_owned(),
            content,
            lines,
            last: None,
            scroll: 0,
            follows,
            word: String::new(),
            is_typing: false,
        }
    }

    /// The next event of what it shows; never completes for a text.
    pub(super) async fn next(&mut self) -> SessionEvent {
        match &mut self.content {
            Content::Conversation(_, events) => events.next().await,
            Content::Text => std::future::pending().await,
        }
    }

    /// Takes an event and all others that are there.
    pub(super) fn take(&mut self, event: &SessionEvent, now: Instant) {
        let Content::Conversation(conversation, events) = &mut self.content else { return };
        conversation.fold(event, now);
        while let Some(event) = events.try_next() {
            conversation.fold(&event, now);
        }
    }

    /// All rows at this width.
    fn rows(&mut self, look: &Look<'_>) -> Vec<Line<'static>> {
        let mut open = Vec::new();
        if let Content::Conversation(conversation, _) = &mut self.content {
            while let Some(cell) = conversation.take_finished() {
                let kind = cells::kind(&cell);
                let new = cells::lines(&cell, look);
                if new.is_empty() {
                    continue;
                }
                if self.last.is_some_and(|last| cells::is_apart(last, kind)) {
                    self.lines.push(Line::default());
                }
                self.lines.extend(new);
                self.last = Some(kind);
            }
            open.extend(conversation.cells().flat_map(|cell| cells::live_lines(cell, look)));
        }
        let rows = self.lines.iter().chain(&open);
        rows.flat_map(|line| {
            if line_columns(line) <= look.width {
                vec![line.clone()]
            } else {
                wrap(line, look.width, &Span::raw("  "), LongWords::Split)
            }
        })
        .collect()
    }

    /// The screen: a title, rows, and a line with keys.
    pub(super) fn screen(&mut self, look: &Look<'_>, height: usize) -> Vec<Line<'static>> {
        let rows = self.rows(look);
        let room = height.saturating_sub(2).max(1);
        let most = rows.len().saturating_sub(room);
        self.scroll = if self.follows { most } else { self.scroll.min(most) };
        self.follows =
            self.follows || (self.scroll == most && matches!(self.content, Content::Conversation(..)));
        let mut screen =
            vec![Line::from(look.span(Ink::Strong, clipped(&one_line(&self.title), look.width)))];
        let shown = rows.iter().skip(self.scroll).take(room).map(|row| self.marked(row, look));
        screen.extend(shown);
        screen.resize(room + 1, Line::default());
        let foot = if self.is_typing {
            format!("/{}", self.word)
        } else {
            let place =
                format!("{}-{} of {}", self.scroll + 1, (self.scroll + room).min(rows.len()), rows.len());
            format!("{place} {0} Space b g G {0} / search, n N {0} Esc", look.signs.dot)
        };
        screen.push(Line::from(look.span(Ink::Dim, clipped(&one_line(&foot), look.width))));
        screen.truncate(height);
        screen
    }

    /// A row with what was searched for standing out.
    fn marked(&self, row: &Line<'static>, look: &Look<'_>) -> Line<'static> {
        let text: String = row.spans.iter().map(|span| &*span.content).collect();
        if self.word.is_empty() || !text.to_lowercase().contains(&self.word.to_lowercase()) {
            return row.clone();
        }
        let style = look.theme.style(Ink::Selected).add_modifier(ratatui_core::style::Modifier::REVERSED);
        let mut spans = Vec::new();
        let (lower, word) = (text.to_lowercase(), self.word.to_lowercase());
        // Lower case may have other lengths; then the whole row stands out.
        if lower.len() != text.len() {
            return Line::from(Span::styled(text, style));
        }
        let mut from = 0;
        for (at, _) in lower.match_indices(&word) {
            if !text.is_char_boundary(at) || !text.is_char_boundary(at + word.len()) {
                return Line::from(Span::styled(text, style));
            }
            spans.push(Span::raw(text[from..at].to_owned()));
            spans.push(Span::styled(text[at..at + word.len()].to_owned(), style));
            from = at + word.len();
        }
        spans.push(Span::raw(text[from..].to_owned()));
        Line::from(spans)
    }

    /// Takes a key.
    pub(super) fn key(&mut self, key: Key, look: &Look<'_>, height: usize) -> OverlayReply {
        let page = height.saturating_sub(3).max(1);
        if self.is_typing {
            match key.code {
                KeyCode::Enter => {
                    self.is_typing = false;
                    self.find(look, true, true);
                }
                KeyCode::Esc => {
                    self.is_typing = false;
                    self.word.clear();
                }
                KeyCode::Backspace => {
                    self.word.pop();
                }
                KeyCode::Char(sign) if !key.ctrl && !key.alt => self.word.push(sign),
                _ => {}
            }
            return OverlayReply::Taken;
        }
        match (key.code, key.ctrl) {
            (KeyCode::Esc | KeyCode::Char('q'), _) | (KeyCode::Char('o' | 'c'), true) => {
                return OverlayReply::Closed;
            }
            (KeyCode::Up | KeyCode::Char('k'), _) => self.scroll_by(-1),
            (KeyCode::Down | KeyCode::Char('j') | KeyCode::Enter, _) => self.scroll_by(1),
            (KeyCode::PageUp | KeyCode::Char('b'), _) => self.scroll_by(-isize::try_from(page).unwrap_or(1)),
            (KeyCode::PageDown | KeyCode::Char(' '), _) => self.scroll_by(isize::try_from(page).unwrap_or(1)),
            (KeyCode::Home | KeyCode::Char('g'), _) => {
                self.scroll = 0;
                self.follows = false;
            }
            (KeyCode::End | KeyCode::Char('G'), _) => {
                self.scroll = usize::MAX;
                self.follows = matches!(self.content, Content::Conversation(..));
            }
            (KeyCode::Char('/'), _) => {
                self.is_typing = true;
                self.word.clear();
            }
            (KeyCode::Char('n'), _) => self.find(look, true, false),
            (KeyCode::Char('N'), _) => self.find(look, false, false),
            _ => {}
        }
        OverlayReply::Taken
    }

    fn scroll_by(&mut self, rows: isize) {
        self.scroll = self.scroll.saturating_add_signed(rows);
        if rows < 0 {
            self.follows = false;
        }
    }

    /// Goes to the next row with the word, or the one before; `from_here` counts the first row that is shown.
    fn find(&mut self, look: &Look<'_>, forward: bool, from_here: bool) {
        if self.word.is_empty() {
            return;
        }
        let rows = self.rows(look);
        let word = self.word.to_lowercase();
        let has = |row: &Line<'_>| {
            let text: String = row.spans.iter().map(|span| &*span.content).collect();
            text.to_lowercase().contains(&word)
        };
        let here = self.scroll.min(rows.len());
        let start = if from_here { here } else { here + 1 };
        let found = if forward {
            rows.iter().enumerate().skip(start).find(|(_, row)| has(row)).map(|(at, _)| at)
        } else {
            rows.iter().enumerate().take(here).rev().find(|(_, row)| has(row)).map(|(at, _)| at)
        };
        if let Some(at) = found {
            self.scroll = at;
            self.follows = false;
        }
    }
}
