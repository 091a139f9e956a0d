//! How a page of text is laid out: its width, its colours, texts cut to it, bars and lengths of time.

use std::collections::BTreeMap;

use qoder_types::display::escaped_line;

use crate::screen::{self, Ink, Paint, Painted};

/// The width without a terminal.
const PLAIN_WIDTH: usize = 110;
/// Narrower than this nothing can be shown.
const LEAST_WIDTH: usize = 60;
/// Wider than this a line is not read at one glance.
const MOST_WIDTH: usize = 160;

/// A page.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Characters a line.
    pub width: usize,
    /// Its colours.
    paint: Paint,
    /// True for whole texts.
    pub full: bool,
}

impl Page {
    /// The page that stdout is.
    pub fn of_stdout(environment: &BTreeMap<String, String>, full: bool) -> Self {
        Self {
            width: screen::columns().unwrap_or(PLAIN_WIDTH).clamp(LEAST_WIDTH, MOST_WIDTH),
            paint: Paint::of_stdout(environment),
            full,
        }
    }

    /// A line that begins with text in a colour.
    pub fn ink(&self, ink: Ink, text: &str) -> Painted {
        self.paint.line().ink(ink, text)
    }

    /// A text on one line, cut to `most` columns; whole texts keep their lines, indented like the first.
    pub fn text(&self, text: &str, indent: usize, most: usize) -> String {
        if !self.full {
            return cut(&one_line(text), most);
        }
        let lines: Vec<String> = text.trim().lines().map(clean).collect();
        lines.join(&format!("\n{}", " ".repeat(indent)))
    }
}

/// A text without line breaks and without anything that a terminal would obey.
pub fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&clean(word));
    }
    line
}

/// A text in which whatever steers a terminal or cannot be seen is shown and not obeyed.
fn clean(text: &str) -> String {
    escaped_line(&text.replace('\t', " "))
}

/// The text, or its beginning with a mark that there is more.
pub fn cut(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let mut taken = 0;
    let mut kept = String::new();
    for c in text.chars() {
        taken += wide(c);
        if taken >= most {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// The text with spaces up to `width`.
pub fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(columns(text));
    format!("{text}{}", " ".repeat(missing))
}

/// Columns that a text takes.
pub fn columns(text: &str) -> usize {
    text.chars().map(wide).sum()
}

/// East Asian letters and pictures take two columns.
fn wide(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// A stretch of time that bars are drawn in.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Where it begins, in milliseconds.
    pub from: i64,
    /// Where it ends.
    pub to: i64,
    /// Cells.
    pub cells: usize,
}

impl Scale {
    /// A bar that shows when something ran; at least one cell, however short it was.
    pub fn bar(&self, from: i64, to: i64) -> String {
        let whole = self.to.saturating_sub(self.from).max(1);
        let cells = i64::try_from(self.cells).unwrap_or(1).max(1);
        let place = |time: i64| -> i64 {
            let part = time.saturating_sub(self.from).clamp(0, whole);
            // Times are far below the limit; a log with invalid times must not overflow.
            (i128::from(part) * i128::from(cells) / i128::from(whole)).try_into().unwrap_or(cells)
        };
        let start = place(from).min(cells - 1);
        let end = place(to).max(start + 1);
        (0..cells).map(|cell| if cell >= start && cell < end { '█' } else { '·' }).collect()
    }
}

/// A length of time for people.
pub fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        60_000..3_600_000 => format!("{}m {:02}s", milliseconds / 60_000, milliseconds / 1_000 % 60),
        _ => format!("{}h {:02}m", milliseconds / 3_600_000, milliseconds / 60_000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_obeyed_by_a_terminal() {
        assert_eq!(
            one_line("a\u{1b}[31mred\n\n b\u{202e}c\u{9b}d\u{7}"),
            "a\\u{1b}[31mred b\\u{202e}c\\u{9b}d\\u{7}"
        );
    }

    #[test]
    fn texts_are_cut_and_padded_by_columns() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("日本語日本語", 6), "日本…");
        assert_eq!((cut("abcd", 4).as_str(), pad("日", 4).as_str()), ("abcd", "日  "));
    }

    #[test]
    fn a_bar_lies_where_its_time_lies_and_has_at_least_one_cell() {
        let scale = Scale { from: 1_000, to: 2_000, cells: 10 };
        for (from, to, bar) in [
            (1_000, 2_000, "██████████"),
            (1_000, 1_001, "█·········"),
            (1_500, 1_700, "·····██···"),
            (2_000, 2_000, "·········█"),
            (0, i64::MAX, "██████████"),
            (i64::MAX, i64::MIN, "·········█"),
        ] {
            assert_eq!(scale.bar(from, to), bar, "{from} {to}");
        }
        assert_eq!(Scale { from: 5, to: 5, cells: 3 }.bar(5, 5), "█··");
    }

    #[test]
    fn lengths_of_time_have_a_fitting_unit() {
        let told = [0, 999, 1_250, 61_000, 3_720_000].map(duration);
        assert_eq!(told, ["0 ms", "999 ms", "1.2 s", "1m 01s", "1h 02m"]);
    }
}
