//! Cells as lines: what the scrollback gets when one is finished, and what the live area shows of one that is not.

use ratatui_core::text::{Line, Span};

use super::call::{call_lines, live_call_lines};
use super::summary::{duration, elapsed_seconds, plural};
use crate::markdown::Renderer;
use crate::state::{Cell, CellBody, Level, TodoItem, TodoProgress, TurnEnd};
use crate::text::{LongWords, ansi, one_line, plain_lines, prose_lines, wrap};
use crate::theme::Ink;
use crate::theme::{Extent, Look};

/// What a cell is, for the blank lines between cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A call.
    Call,
    /// A line of little weight.
    Small,
    /// Anything else.
    Other,
}

/// What a cell is.
pub(crate) fn kind(cell: &Cell) -> Kind {
    match &cell.body {
        CellBody::Calls(_) => Kind::Call,
        CellBody::Thinking { .. } | CellBody::Notice(_) | CellBody::End(_) => Kind::Small,
        CellBody::Prompt(_)
        | CellBody::Reply { .. }
        | CellBody::CommandOutput(_)
        | CellBody::Todo(_)
        | CellBody::Rule(_) => Kind::Other,
    }
}

/// True when a blank line is between two cells.
pub(crate) fn is_apart(before: Kind, after: Kind) -> bool {
    !matches!((before, after), (Kind::Call | Kind::Small, Kind::Call | Kind::Small))
}

/// A finished cell. A reply is drawn by its own renderer, which may have drawn parts of it before.
pub(crate) fn lines(cell: &Cell, look: &Look<'_>) -> Vec<Line<'static>> {
    match &cell.body {
        CellBody::Prompt(prompt) => {
            let mut lines = prompt_lines(&prompt.text, look);
            if prompt.images > 0 {
                lines.push(Line::from(
                    look.span(Ink::Dim, format!("  {}", plural(prompt.images as u64, "image"))),
                ));
            }
            lines
        }
        CellBody::Reply { text } => Renderer::whole(text, look),
        CellBody::Thinking { text, .. } => {
            let shown = look.full_thinking || look.extent == Extent::Whole;
            if shown { thinking_lines(text, look) } else { Vec::new() }
        }
        CellBody::Calls(calls) => calls.iter().flat_map(|call| call_lines(call, look)).collect(),
        CellBody::CommandOutput(text) => ansi::lines(text, look.theme.has_colors()),
        CellBody::Notice(notice) => {
            let (sign, ink) = match notice.level {
                Level::Info => (look.signs.info, Ink::Dim),
                Level::Warning => (look.signs.warning, Ink::Warning),
                Level::Error => (look.signs.bad, Ink::Bad),
            };
            marked(sign, ink, &notice.text, look)
        }
        CellBody::End(end) => end_lines(end, look),
        CellBody::Todo(items) => items.iter().flat_map(|item| todo_lines(item, look)).collect(),
        CellBody::Rule(text) => {
            let rule = look.signs.rule;
            vec![Line::from(look.span(Ink::Dim, format!("{rule} {} {rule}", one_line(text))))]
        }
    }
}

/// A cell that is not finished, in rows that fit. A reply is drawn by its own renderer.
pub(crate) fn live_lines(cell: &Cell, look: &Look<'_>) -> Vec<Line<'static>> {
    match &cell.body {
        CellBody::Calls(calls) => calls.iter().flat_map(|call| live_call_lines(call, look)).collect(),
        CellBody::Thinking { since, text, .. } => {
            let mut head = vec![look.span(Ink::Dim, format!("thinking{}", look.signs.more))];
            if let Some(since) = since.filter(|_| !look.still) {
                let time = elapsed_seconds(look.now.saturating_duration_since(since));
                head.push(look.span(Ink::Dim, format!(" {time}")));
            }
            let mut lines = vec![Line::from(head)];
            if look.full_thinking {
                lines.extend(thinking_lines(text, look));
            }
            lines
        }
        CellBody::Prompt(_)
        | CellBody::Reply { .. }
        | CellBody::CommandOutput(_)
        | CellBody::Notice(_)
        | CellBody::End(_)
        | CellBody::Todo(_)
        | CellBody::Rule(_) => lines(cell, look),
    }
}

/// What the person wrote, behind its sign.
pub(crate) fn prompt_lines(text: &str, look: &Look<'_>) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (at, text) in prose_lines(text).into_iter().enumerate() {
        let sign = if at == 0 { "> " } else { "  " };
        let line = Line::from(vec![look.span(Ink::Prompt, sign), look.span(Ink::Strong, text)]);
        lines.extend(wrap(&line, look.width, &Span::raw("  "), LongWords::Keep));
    }
    lines
}

/// A text behind a sign.
fn marked(sign: &str, ink: Ink, text: &str, look: &Look<'_>) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (at, text) in plain_lines(text).into_iter().enumerate() {
        let sign = if at == 0 { format!("{sign} ") } else { "  ".to_owned() };
        let line = Line::from(vec![look.span(ink, sign), look.span(ink, text)]);
        lines.extend(wrap(&line, look.width, &Span::raw("  "), LongWords::Keep));
    }
    lines
}

fn thinking_lines(text: &str, look: &Look<'_>) -> Vec<Line<'static>> {
    let lines = prose_lines(text.trim()).into_iter();
    lines
        .flat_map(|line| {
            let line = Line::from(look.span(Ink::Quote, format!("  {line}")));
            wrap(&line, look.width, &Span::raw("  "), LongWords::Split)
        })
        .collect()
}

fn end_lines(end: &TurnEnd, look: &Look<'_>) -> Vec<Line<'static>> {
    match end {
        TurnEnd::Interrupted => {
            vec![Line::from(look.span(Ink::Warning, format!("{} interrupted", look.signs.info)))]
        }
        TurnEnd::Failed(errors) if errors.is_empty() => {
            marked(look.signs.bad, Ink::Bad, "the turn failed", look)
        }
        TurnEnd::Failed(errors) => {
            errors.iter().flat_map(|error| marked(look.signs.bad, Ink::Bad, error, look)).collect()
        }
        TurnEnd::Limit(text) => marked(look.signs.warning, Ink::Warning, text, look),
        TurnEnd::Done { took, cost } => {
            let money = if *cost > 0.0 { format!(" {} ${cost:.2}", look.signs.dot) } else { String::new() };
            vec![Line::from(look.span(Ink::Dim, format!("{} {}{money}", look.signs.info, duration(*took))))]
        }
    }
}

/// A step of the model's list.
pub(crate) fn todo_lines(item: &TodoItem, look: &Look<'_>) -> Vec<Line<'static>> {
    let (sign, ink) = match item.progress {
        TodoProgress::Open => ("[ ] ", Ink::Text),
        TodoProgress::Active => ("[>] ", Ink::Strong),
        TodoProgress::Done => ("[x] ", Ink::Dim),
    };
    let line = Line::from(vec![look.span(ink, sign), look.span(ink, one_line(&item.text))]);
    wrap(&line, look.width, &Span::raw("    "), LongWords::Split)
}
