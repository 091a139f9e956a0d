//! Markdown as lines for the terminal, while it is written: what is complete is given once and never again. Prose is wrapped
//! here; code and addresses are left whole, so that selecting them copies what was written.

use ratatui_core::text::{Line, Span};

use super::blocks::{Part, Splitter};
use super::highlight::Highlighter;
use super::inline::spans;
use super::lines::Align;
use super::table::column_widths;
use crate::text::{LongWords, expand_tabs, line_columns, plain_lines, wrap};
use crate::theme::Ink;
use crate::theme::Look;

/// A line that is not complete beyond this many bytes is shown before it ends.
const LONGEST_LINE: usize = 8 * 1024;

/// Draws one text as it grows.
#[derive(Debug, Default)]
pub(crate) struct Renderer {
    splitter: Splitter,
    /// How much of the text was taken.
    taken: usize,
    code: Option<Code>,
}

/// The code block that is open.
#[derive(Debug)]
struct Code {
    highlighter: Highlighter,
    indent: usize,
}

impl Renderer {
    /// All lines of a text that is complete.
    pub(crate) fn whole(text: &str, look: &Look<'_>) -> Vec<Line<'static>> {
        let mut renderer = Self::default();
        renderer.grow(text);
        renderer.finish();
        renderer.take_lines(look)
    }

    /// The text has grown to this.
    pub(crate) fn grow(&mut self, text: &str) {
        if let Some(piece) = text.get(self.taken..) {
            self.splitter.push(piece);
            self.taken = text.len();
        }
        self.splitter.release(LONGEST_LINE);
    }

    /// The text is complete.
    pub(crate) fn finish(&mut self) {
        self.splitter.finish();
    }

    /// The lines that are complete and were not taken.
    pub(crate) fn take_lines(&mut self, look: &Look<'_>) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        while let Some(part) = self.splitter.next_part() {
            lines.extend(self.part(&part, look, LongWords::Keep));
        }
        lines
    }

    /// The lines of what is not complete, in rows that fit.
    pub(crate) fn open_lines(&mut self, look: &Look<'_>) -> Vec<Line<'static>> {
        let parts = self.splitter.open_parts();
        let code = self.code.take();
        // A copy is drawn: what is open is drawn again when it is complete.
        self.code =
            code.as_ref().map(|code| Code { highlighter: code.highlighter.clone(), indent: code.indent });
        let mut lines = Vec::new();
        for part in &parts {
            // The end of a code block that is not closed is not in the text.
            if *part != Part::CodeEnd || code.is_none() {
                lines.extend(self.part(part, look, LongWords::Split));
            }
        }
        self.code = code;
        lines
    }

    fn part(&mut self, part: &Part, look: &Look<'_>, long: LongWords) -> Vec<Line<'static>> {
        match part {
            Part::Blank => vec![Line::default()],
            Part::Heading { text, level } => {
                let mut lines = prose(text, Ink::Heading, look, (0, 0), long);
                if *level == 1 {
                    lines.iter_mut().for_each(|line| {
                        for span in &mut line.spans {
                            span.style = span.style.add_modifier(ratatui_core::style::Modifier::UNDERLINED);
                        }
                    });
                }
                lines
            }
            Part::Paragraph { text, indent, quote } => {
                let ink = if *quote > 0 { Ink::Quote } else { Ink::Text };
                prose(text, ink, look, (*indent, *quote), long)
            }
            Part::Item { text, marker, indent, quote } => item(text, marker, (*indent, *quote), look, long),
            Part::Rule => {
                vec![Line::from(look.span(Ink::Dim, look.signs.rule.repeat(4)))]
            }
            Part::CodeStart { language, indent } => {
                self.code = Some(Code { highlighter: Highlighter::new(language), indent: *indent });
                vec![Line::from(
                    look.span(Ink::Dim, format!("{}```{}", " ".repeat(*indent), plain_lines(language)[0])),
                )]
            }
            Part::CodeLine(line) => self.code_line(line, look, long),
            Part::CodeEnd => {
                let indent = self.code.take().map_or(0, |code| code.indent);
                vec![Line::from(look.span(Ink::Dim, format!("{}```", " ".repeat(indent))))]
            }
            Part::Table { rows, align } => table(rows, align, look),
        }
    }

    fn code_line(&mut self, line: &str, look: &Look<'_>, long: LongWords) -> Vec<Line<'static>> {
        let (mut spans, indent) = match &mut self.code {
            Some(code) => (code.highlighter.line(line, look.theme), code.indent),
            None => (vec![look.span(Ink::Text, expand_tabs(line))], 0),
        };
        if indent > 0 {
            spans.insert(0, Span::raw(" ".repeat(indent)));
        }
        let line = Line::from(spans);
        match long {
            LongWords::Keep => vec![line],
            LongWords::Split => wrap(&line, look.width, &Span::raw(""), long),
        }
    }
}

/// What is in front of every row of a part.
fn lead(indent: usize, quote: usize, look: &Look<'_>) -> Span<'static> {
    let bars = format!("{} ", look.signs.bar).repeat(quote);
    look.span(Ink::Dim, format!("{}{bars}", " ".repeat(indent)))
}

fn prose(
    text: &str,
    ink: Ink,
    look: &Look<'_>,
    (indent, quote): (usize, usize),
    long: LongWords,
) -> Vec<Line<'static>> {
    let lead = lead(indent, quote, look);
    let mut rows = Vec::new();
    for mut line in spans(text, look.theme, ink) {
        if !lead.content.is_empty() {
            line.spans.insert(0, lead.clone());
        }
        rows.extend(wrap(&line, look.width, &lead, long));
    }
    rows
}

fn item(
    text: &str,
    marker: &str,
    (indent, quote): (usize, usize),
    look: &Look<'_>,
    long: LongWords,
) -> Vec<Line<'static>> {
    let shown = if marker == "-" { look.signs.bullet } else { marker };
    let lead = lead(indent, quote, look);
    let hang = Span::raw(format!("{}{}", lead.content, " ".repeat(crate::text::columns(shown) + 1)));
    let mut rows = Vec::new();
    for (at, mut line) in spans(text, look.theme, Ink::Text).into_iter().enumerate() {
        if at == 0 {
            line.spans.insert(0, look.span(Ink::Accent, format!("{shown} ")));
            line.spans.insert(0, lead.clone());
        } else {
            line.spans.insert(0, hang.clone());
        }
        rows.extend(wrap(&line, look.width, &hang, long));
    }
    rows
}

/// A table with columns that fit; one that cannot fit is "header: value" lines.
fn table(rows: &[Vec<String>], align: &[Align], look: &Look<'_>) -> Vec<Line<'static>> {
    let cell = |text: &str, ink: Ink| {
        let mut spans: Vec<Span<'static>> = Vec::new();
        for line in spans_of(text, look, ink) {
            if !spans.is_empty() {
                spans.push(Span::raw(" "));
            }
            spans.extend(line.spans);
        }
        Line::from(spans)
    };
    let drawn: Vec<Vec<Line<'static>>> = rows
        .iter()
        .enumerate()
        .map(|(at, row)| {
            row.iter().map(|text| cell(text, if at == 0 { Ink::Strong } else { Ink::Text })).collect()
        })
        .collect();
    let count = align.len();
    let wanted: Vec<usize> = (0..count)
        .map(|column| drawn.iter().filter_map(|row| row.get(column)).map(line_columns).max().unwrap_or(0))
        .collect();
    let room = look.width.saturating_sub(3 * count.saturating_sub(1));
    let widths = column_widths(&wanted, room);
    if widths.iter().sum::<usize>() > room {
        return values(rows, look);
    }
    let mut lines = Vec::new();
    for (at, row) in drawn.iter().enumerate() {
        lines.extend(table_row(row, &widths, align, look));
        if at == 0 {
            let dash = if look.signs.rule == "──" { "─" } else { "-" };
            let rules: Vec<String> = widths.iter().map(|width| dash.repeat(*width)).collect();
            let joint = if dash == "─" { "─┼─" } else { "-+-" };
            lines.push(Line::from(look.span(Ink::Dim, rules.join(joint))));
        }
    }
    lines
}

fn spans_of(text: &str, look: &Look<'_>, ink: Ink) -> Vec<Line<'static>> {
    spans(text, look.theme, ink)
}

fn table_row(
    row: &[Line<'static>],
    widths: &[usize],
    align: &[Align],
    look: &Look<'_>,
) -> Vec<Line<'static>> {
    let cells: Vec<Vec<Line<'static>>> = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| wrap(cell, *width, &Span::raw(""), LongWords::Split))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(1);
    let mut lines = Vec::new();
    for at in 0..height {
        let mut spans: Vec<Span<'static>> = Vec::new();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            if column > 0 {
                spans.push(look.span(Ink::Dim, format!(" {} ", look.signs.bar)));
            }
            let line = cell.get(at).cloned().unwrap_or_default();
            let free = width.saturating_sub(line_columns(&line));
            let (before, behind) = match align.get(column) {
                Some(Align::Right) => (free, 0),
                Some(Align::Middle) => (free / 2, free - free / 2),
                Some(Align::Left) | None => (0, free),
            };
            spans.push(Span::raw(" ".repeat(before)));
            spans.extend(line.spans);
            if column + 1 < widths.len() {
                spans.push(Span::raw(" ".repeat(behind)));
            }
        }
        lines.push(Line::from(spans));
    }
    lines
}

fn values(rows: &[Vec<String>], look: &Look<'_>) -> Vec<Line<'static>> {
    let Some((head, body)) = rows.split_first() else { return Vec::new() };
    let mut lines = Vec::new();
    for row in body {
        for (name, value) in head.iter().zip(row) {
            let text = format!("**{name}**: {value}");
            lines.extend(prose(&text, Ink::Text, look, (0, 0), LongWords::Split));
        }
        lines.push(Line::default());
    }
    lines.pop();
    lines
}
