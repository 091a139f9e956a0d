//! Lists in the live area: a panel, the popup, the search in earlier prompts.

use ratatui_core::text::Line;

use super::frame::Rows;
use super::popups::Search;
use crate::panels::{self, Panel};
use crate::popup::{self, Popup};
use crate::text::{clipped, columns, one_line};
use crate::theme::{Ink, Look};

/// The first row of a window of a list that shows the chosen one.
fn window(selected: usize, count: usize, shown: usize) -> usize {
    selected.saturating_sub(shown.saturating_sub(1)).min(count.saturating_sub(shown))
}

/// One row of a list: a label, and words that fit behind it.
fn list_row(label: &str, about: &str, is_chosen: bool, wide: usize, look: &Look<'_>) -> Line<'static> {
    let (sign, ink) = if is_chosen { (look.signs.chosen, Ink::Selected) } else { (" ", Ink::Text) };
    // A long label leaves room for what is said about it.
    let kept = if about.is_empty() { 0 } else { columns(about).min(look.width / 3) + 2 };
    let label = clipped(label, look.width.saturating_sub(2 + kept).max(1));
    let gap = wide.saturating_sub(columns(&label));
    let mut spans = vec![look.span(ink, format!("{sign} {label}"))];
    let room = look.width.saturating_sub(2 + columns(&label) + gap + 2);
    if !about.is_empty() && room > 8 {
        spans.push(look.span(Ink::Dim, format!("{}  {}", " ".repeat(gap), clipped(about, room))));
    }
    Line::from(spans)
}

/// The label column: as wide as the widest label, up to a third of the screen.
fn label_width<'a>(labels: impl Iterator<Item = &'a str>, look: &Look<'_>) -> usize {
    labels.map(columns).max().unwrap_or(0).min(look.width / 3)
}

/// A panel.
pub(super) fn panel_rows(panel: &Panel, room: usize, look: &Look<'_>) -> Rows {
    let passing = panel.passing();
    let mut title = vec![look.span(Ink::Strong, clipped(&one_line(&panel.title), look.width))];
    if !panel.filter.is_empty() {
        title.push(look.span(Ink::Dim, format!("  filter: {}", one_line(&panel.filter))));
    }
    let mut rows = Rows { lines: vec![Line::from(title)], caret: None };
    if passing.is_empty() {
        let words = if panel.rows.is_empty() { panel.empty.clone() } else { "no row matches".to_owned() };
        rows.lines.push(Line::from(look.span(Ink::Dim, format!("  {words}"))));
    }
    let details: Vec<String> = panel.chosen().map(|row| row.details.clone()).unwrap_or_default();
    let details: Vec<&String> = details.iter().take(3).collect();
    let shown = panels::SHOWN_ROWS.min(room.saturating_sub(details.len() + 2).max(1));
    let from = window(panel.selected, passing.len(), shown);
    let wide = label_width(passing.iter().map(|row| row.label.as_str()), look);
    for (at, row) in passing.iter().enumerate().skip(from).take(shown) {
        let is_chosen = at == panel.selected;
        if is_chosen {
            rows.caret = Some((rows.lines.len(), 0));
        }
        rows.lines.push(list_row(&row.label, &row.about, is_chosen, wide, look));
    }
    for detail in details {
        rows.lines.push(Line::from(look.span(Ink::Dim, clipped(&format!("    {detail}"), look.width))));
    }
    let count = if passing.len() > shown {
        format!("{} of {} {} ", panel.selected + 1, passing.len(), look.signs.dot)
    } else {
        String::new()
    };
    let more = if panel.chosen().is_some_and(|row| row.session.is_some()) {
        format!(" {} Right shows it", look.signs.dot)
    } else {
        String::new()
    };
    let dot = look.signs.dot;
    let hint = if panel.rows.is_empty() {
        "Esc closes".to_owned()
    } else if panel.rows.iter().all(|row| row.offers.is_empty()) {
        format!("{count}type to filter {dot} Esc closes")
    } else {
        format!("{count}type to filter {dot} Enter chooses{more} {dot} Esc closes")
    };
    rows.lines.push(Line::from(look.span(Ink::Dim, clipped(&hint, look.width))));
    rows
}

/// The popup behind `@` or `/`.
pub(super) fn popup_rows(popup: &Popup, room: usize, look: &Look<'_>) -> Rows {
    let shown = popup::SHOWN_ROWS.min(room.max(1));
    let from = window(popup.selected, popup.candidates.len(), shown);
    let wide = label_width(popup.candidates.iter().map(|one| one.label.as_str()), look);
    let lines = popup.candidates.iter().enumerate().skip(from).take(shown).map(|(at, one)| {
        list_row(&one_line(&one.label), &one_line(&one.about), at == popup.selected, wide, look)
    });
    Rows { lines: lines.collect(), caret: None }
}

/// Earlier prompts that contain a word.
pub(super) fn search_rows(search: &Search, found: &[&str], look: &Look<'_>) -> Rows {
    let label = format!("search: {}", one_line(&search.word));
    let mut rows = Rows {
        caret: Some((0, columns(&label).min(look.width.saturating_sub(1)))),
        lines: vec![Line::from(look.span(Ink::Strong, label))],
    };
    let from = window(search.selected, found.len(), panels::SHOWN_ROWS);
    for (at, text) in found.iter().enumerate().skip(from).take(panels::SHOWN_ROWS) {
        rows.lines.push(list_row(&one_line(text), "", at == search.selected, 0, look));
    }
    if found.is_empty() {
        rows.lines.push(Line::from(look.span(Ink::Dim, "  no earlier prompt contains this")));
    }
    rows
}
