//! The live area, from top to bottom: what is being written or runs, the sign of life, the list of steps in a line, queued
//! messages, the question, the composer and the status line. It is never higher than half of the screen, or eight rows.

use std::time::Instant;

use ratatui_core::text::{Line, Span};

use super::App;
use super::list_rows::{panel_rows, popup_rows, search_rows};
use super::question_rows::question_rows;
use super::status;
use crate::cells::elapsed_seconds;
use crate::composer::{Composer, Draft, Layout};
use crate::screen::Frame;
use crate::state::TodoProgress;
use crate::text::{LongWords, clipped, expand_tabs, one_line, wrap};
use crate::theme::{Extent, Ink, Look};

/// The composer's rows at most.
const COMPOSER_ROWS: usize = 10;
/// Queued messages that are shown.
const QUEUED_ROWS: usize = 3;

/// Rows with a caret among them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) lines: Vec<Line<'static>>,
    /// The caret, if it is among these rows.
    pub(super) caret: Option<(usize, usize)>,
}

impl Rows {
    /// Adds rows below.
    pub(super) fn append(&mut self, other: Self) {
        if let Some((row, column)) = other.caret {
            self.caret = Some((self.lines.len() + row, column));
        }
        self.lines.extend(other.lines);
    }
}

impl App {
    /// How things look now.
    pub(super) fn look(&self, extent: Extent, now: Instant) -> Look<'_> {
        Look {
            width: self.surface.width(),
            theme: &self.theme,
            signs: self.signs,
            still: self.front.settings.still,
            full_thinking: self.front.settings.full_thinking,
            output_lines: self.front.settings.output_lines,
            cwd: &self.conversation.facts.cwd,
            extent,
            now,
        }
    }

    /// The live area as it is to be drawn.
    pub(super) fn frame(&mut self, now: Instant) -> Frame {
        let height = self.surface.height();
        let limit = (height / 2).max(8).min(height);
        let mut printed = std::mem::take(&mut self.printed);
        let look = self.look(Extent::Short, now);
        // While a question waits nothing counts.
        let still = look.still || self.question.is_some();
        let tail = printed.live(&self.conversation, &Look { still, ..look });
        let mut below = self.rows_below(&look, limit, printed.has_lines() || !tail.is_empty());
        let above = self.rows_above(&look, now);
        let room = limit.saturating_sub(below.lines.len() + above.len());
        let from = tail.len().saturating_sub(room);
        let mut rows = Rows { lines: tail.into_iter().skip(from).collect(), caret: None };
        rows.append(Rows { lines: above, caret: None });
        rows.append(std::mem::take(&mut below));
        self.printed = printed;
        let caret = rows.caret.unwrap_or((rows.lines.len().saturating_sub(1), 0));
        Frame { lines: rows.lines, caret }
    }

    /// What is above the question and the composer: the sign of life, steps, queued messages.
    fn rows_above(&self, look: &Look<'_>, now: Instant) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        rows.extend(self.activity_row(look, now));
        rows.extend(self.todo_row(look));
        // Before the session is open everything waits.
        let waiting = self.waiting.iter().map(Draft::text);
        let queued: Vec<&str> =
            waiting.chain(self.conversation.queued.iter().map(|message| message.text.as_str())).collect();
        for text in queued.iter().take(QUEUED_ROWS) {
            let text = clipped(&format!("queued: {}", one_line(text)), look.width);
            rows.push(Line::from(look.span(Ink::Dim, text)));
        }
        if queued.len() > QUEUED_ROWS {
            let text = format!("{} {} more queued", look.signs.more, queued.len() - QUEUED_ROWS);
            rows.push(Line::from(look.span(Ink::Dim, text)));
        }
        rows
    }

    fn activity_row(&self, look: &Look<'_>, now: Instant) -> Option<Line<'static>> {
        if self.session.is_none() && self.is_opening {
            return Some(Line::from(look.span(Ink::Dim, format!("opening the session{}", look.signs.more))));
        }
        let turn = self.conversation.facts.turn.as_ref()?;
        if self.question.is_some() {
            return None;
        }
        let elapsed = now.saturating_duration_since(turn.since);
        let mut words = turn.activity.clone().unwrap_or_else(|| "working".to_owned());
        if !look.still && elapsed.as_secs() >= 1 {
            words = format!("{words} {} {}", look.signs.dot, elapsed_seconds(elapsed));
        }
        let stop = self.bindings.keys(super::bindings::KeyAction::Escape);
        let text = format!("{words} {} {stop} stops", look.signs.dot);
        let mut spans = Vec::new();
        if !look.still {
            let frames = look.signs.spinner;
            let at = self.spinner % frames.len();
            spans.push(look.span(Ink::Accent, format!("{} ", frames.get(at).copied().unwrap_or("*"))));
        }
        spans.push(look.span(Ink::Dim, clipped(&one_line(&text), look.width.saturating_sub(2))));
        Some(Line::from(spans))
    }

    fn todo_row(&self, look: &Look<'_>) -> Option<Line<'static>> {
        let items = &self.conversation.todo;
        if items.is_empty() || !self.conversation.facts.is_running() {
            return None;
        }
        let done = items.iter().filter(|item| item.progress == TodoProgress::Done).count();
        let active = items.iter().find(|item| item.progress == TodoProgress::Active);
        let words = active.map(|item| if item.active.is_empty() { &item.text } else { &item.active });
        let text = format!(
            "{done}/{} {} {}",
            items.len(),
            look.signs.dot,
            words.map(|text| one_line(text)).unwrap_or_default()
        );
        Some(Line::from(look.span(Ink::Dim, clipped(&text, look.width))))
    }

    /// The question, the composer and the status line.
    fn rows_below(&self, look: &Look<'_>, limit: usize, is_apart: bool) -> Rows {
        let mut composer =
            composer_rows(&self.composer, look, COMPOSER_ROWS.min(limit.saturating_sub(1).max(1)));
        let status = self.status_row(look);
        let mut rows = Rows::default();
        let room = self.surface.height().saturating_sub(composer.lines.len() + 1).max(1);
        if let Some((provider, secret)) = &self.secret {
            let signs = if look.signs.bullet == "•" { "•" } else { "*" };
            let label =
                format!("key for {}: {}", one_line(provider), signs.repeat(secret.chars().count().min(40)));
            let column = crate::text::columns(&label);
            rows.append(Rows {
                lines: vec![Line::from(look.span(Ink::Strong, label))],
                caret: Some((0, column)),
            });
            composer.caret = None;
        } else if let Some(search) = &self.search {
            let found = self.composer.earlier(&search.word);
            rows.append(search_rows(search, &found, look));
            composer.caret = None;
        } else if let Some(panel) = self.panels.last() {
            rows.append(panel_rows(panel, room.min(limit), look));
            composer.caret = None;
        }
        if let Some(question) = &self.question {
            let room = self.surface.height().saturating_sub(composer.lines.len() + 1).max(1);
            let count = self.conversation.questions.len() + self.conversation.elicitations.len();
            let drawn = question_rows(question, count, room, look, &self.bindings);
            if question.has_focus() {
                composer.caret = None;
            }
            rows.append(drawn);
        }
        if rows.lines.is_empty() && is_apart {
            rows.lines.push(Line::default());
        }
        rows.append(composer);
        if let Some(popup) = &self.popup {
            let room = self.surface.height().saturating_sub(rows.lines.len() + 1);
            rows.append(popup_rows(popup, room, look));
        }
        rows.append(Rows { lines: vec![status], caret: None });
        rows
    }

    fn status_row(&self, look: &Look<'_>) -> Line<'static> {
        if let Some(hint) = &self.hint {
            return Line::from(look.span(Ink::Warning, clipped(hint.text(), look.width)));
        }
        if let Some(text) = self.background.status.as_ref().filter(|_| self.front.settings.status_command) {
            let lines = crate::text::ansi::lines(text, look.theme.has_colors());
            return lines.into_iter().next().unwrap_or_default();
        }
        let more = status::StatusFacts {
            branch: self.branch.clone(),
            tasks: self.conversation.tasks.running().count(),
            vim: self.composer.vim_mode().map(crate::composer::VimMode::word),
            home: self.front.environment.get("HOME").cloned().unwrap_or_default(),
        };
        status::line(&self.conversation.facts, &more, look)
    }
}

/// The rows of the composer behind its sign, at most this many: those around the caret.
pub(super) fn composer_rows(composer: &Composer, look: &Look<'_>, most: usize) -> Rows {
    let draft = composer.draft();
    let layout = Layout::of(draft, look.width.saturating_sub(2));
    let (caret_row, caret_column) = layout.caret;
    let from = caret_row.saturating_sub(most.saturating_sub(1)).min(layout.rows.len().saturating_sub(most));
    let mut lines = Vec::new();
    for (at, range) in layout.rows.iter().enumerate().skip(from).take(most) {
        let sign = if at == 0 { "> " } else { "  " };
        let mut spans = vec![look.span(Ink::Prompt, sign)];
        spans.extend(draft_spans(draft, range, look));
        lines.push(Line::from(spans));
    }
    Rows { lines, caret: Some((caret_row - from, caret_column + 2)) }
}

/// A row of a draft: tokens stand out, and control characters are shown as signs.
fn draft_spans(draft: &Draft, range: &std::ops::Range<usize>, look: &Look<'_>) -> Vec<Span<'static>> {
    let shown = |text: &str| {
        let visible: String = text
            .chars()
            .map(|sign| if sign.is_control() && sign != '\t' { '\u{fffd}' } else { sign })
            .collect();
        expand_tabs(&visible)
    };
    let mut spans = Vec::new();
    let mut from = range.start;
    for token in draft.tokens() {
        let (start, end) = (token.range.start.max(range.start), token.range.end.min(range.end));
        if start < end {
            spans.push(look.span(Ink::Text, shown(&draft.text()[from..start])));
            spans.push(look.span(Ink::Accent, shown(&draft.text()[start..end])));
            from = end;
        }
    }
    spans.push(look.span(Ink::Text, shown(&draft.text()[from..range.end])));
    spans
}

/// Text in rows that fit.
pub(super) fn wrapped(line: &Line<'_>, look: &Look<'_>) -> Vec<Line<'static>> {
    wrap(line, look.width, &Span::raw("  "), LongWords::Split)
}
