//! Blocks of Markdown, found line by line. Each line is looked at once; a code block is shown while it is written, a table
//! when it is complete. Lists are items, each by itself: a long list does not wait for its end.

use super::lines::{
    Align, cells, delimiters, fence, heading, is_balanced, is_closing, is_rule, item, leading, task_box,
    unquoted, without_indent,
};

/// A part of a text that can be shown by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// A blank line between parts.
    Blank,
    /// A heading.
    Heading {
        /// 1 to 6.
        level: usize,
        /// Its text.
        text: String,
    },
    /// Lines of prose.
    Paragraph {
        /// The lines.
        text: String,
        /// Columns in front of each.
        indent: usize,
        /// How deep it is quoted.
        quote: usize,
    },
    /// An item of a list.
    Item {
        /// Its text.
        text: String,
        /// What is in front of it: `-`, `1.`, or the box of a task.
        marker: String,
        /// Columns in front of the marker.
        indent: usize,
        /// How deep it is quoted.
        quote: usize,
    },
    /// A line across the page.
    Rule,
    /// A code block begins.
    CodeStart {
        /// Its language, if one is given.
        language: String,
        /// Columns in front of each line.
        indent: usize,
    },
    /// A line of code.
    CodeLine(String),
    /// A code block ends.
    CodeEnd,
    /// A table.
    Table {
        /// Its rows, the head first.
        rows: Vec<Vec<String>>,
        /// How columns are aligned.
        align: Vec<Align>,
    },
}

/// Complete lines of an open paragraph beyond this many are shown before it ends.
const LONGEST_OPEN: usize = 6;

/// Finds the parts of a text that comes in pieces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Splitter {
    /// The line that is not complete.
    line: String,
    open: Open,
    ready: std::collections::VecDeque<Part>,
    /// True inside a list: indented lines belong to it.
    in_list: bool,
    /// True when the last part was a blank line, or nothing has come.
    blank: bool,
    begun: bool,
}

/// What is being read.
#[derive(Debug, Clone, Default)]
enum Open {
    #[default]
    Nothing,
    Code {
        fence: char,
        length: usize,
        indent: usize,
    },
    /// A paragraph or an item: the part so far.
    Text(Part),
    Table {
        rows: Vec<Vec<String>>,
        align: Vec<Align>,
    },
}

impl Splitter {
    /// Takes a piece of the text.
    pub(crate) fn push(&mut self, piece: &str) {
        let mut rest = piece;
        while let Some(end) = rest.find('\n') {
            self.line.push_str(&rest[..end]);
            let line = std::mem::take(&mut self.line);
            self.take_line(line.strip_suffix('\r').unwrap_or(&line));
            rest = &rest[end + 1..];
        }
        self.line.push_str(rest);
    }

    /// The next part that is complete.
    pub(crate) fn next_part(&mut self) -> Option<Part> {
        self.ready.pop_front()
    }

    /// Nothing follows: what is open is complete.
    pub(crate) fn finish(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line);
        }
        if matches!(self.open, Open::Code { .. }) {
            self.emit(Part::CodeEnd);
        }
        self.close();
        // Blank lines at the end say nothing.
        while self.ready.back() == Some(&Part::Blank) {
            self.ready.pop_back();
        }
    }

    /// What is open, as the parts that it would be if nothing followed.
    pub(crate) fn open_parts(&self) -> Vec<Part> {
        let mut copy = Self { ready: std::collections::VecDeque::new(), ..self.clone() };
        copy.finish();
        copy.ready.into_iter().collect()
    }

    /// Shows the first bytes of a line that is too long to be held, up to a blank.
    pub(crate) fn release(&mut self, most: usize) {
        if self.line.len() <= most || !matches!(self.open, Open::Nothing | Open::Text(Part::Paragraph { .. }))
        {
            return;
        }
        let mut cut = most;
        while !self.line.is_char_boundary(cut) {
            cut -= 1;
        }
        let cut = self.line[..cut].rfind(' ').map_or(cut, |blank| blank + 1);
        let rest = self.line.split_off(cut);
        let line = std::mem::replace(&mut self.line, rest);
        self.take_line(line.trim_end());
        self.close();
    }

    fn emit(&mut self, part: Part) {
        let is_blank = part == Part::Blank;
        // Several blank lines are one, and not one comes before the first part.
        if is_blank && (self.blank || !self.begun) {
            return;
        }
        (self.blank, self.begun) = (is_blank, true);
        self.ready.push_back(part);
    }

    fn close(&mut self) {
        match std::mem::take(&mut self.open) {
            Open::Nothing | Open::Code { .. } => {}
            Open::Text(part) => self.emit(part),
            Open::Table { rows, align } => self.emit(Part::Table { rows, align }),
        }
    }

    fn take_line(&mut self, line: &str) {
        if let Open::Code { fence, length, indent } = self.open {
            if is_closing(line, fence, length) {
                self.open = Open::Nothing;
                self.emit(Part::CodeEnd);
            } else {
                self.emit(Part::CodeLine(without_indent(line, indent).to_owned()));
            }
            return;
        }
        let (quote, inner) = unquoted(line);
        if inner.trim().is_empty() {
            self.close();
            if quote == 0 {
                self.emit(Part::Blank);
            }
            return;
        }
        if self.continues_table(inner) || self.becomes_heading(inner) {
            return;
        }
        let indent = leading(inner);
        let text = inner.trim_start();
        if let Some((fence, length)) = fence(text)
            && (indent < 4 || self.in_list)
        {
            self.close();
            self.open = Open::Code { fence, length, indent };
            let language = text[length..].trim().split([' ', ',', '{']).next().unwrap_or_default().to_owned();
            self.emit(Part::CodeStart { language, indent: if self.in_list { indent } else { 0 } });
            return;
        }
        self.take_text(text, indent, quote);
    }

    fn take_text(&mut self, text: &str, indent: usize, quote: usize) {
        if let Some((level, heading)) = heading(text).filter(|_| indent < 4) {
            self.close();
            self.in_list = false;
            return self.emit(Part::Heading { level, text: heading.to_owned() });
        }
        if is_rule(text) && indent < 4 {
            self.close();
            self.in_list = false;
            return self.emit(Part::Rule);
        }
        if let Some((marker, rest)) = item(text).filter(|_| indent < 4 || self.in_list) {
            self.close();
            self.in_list = true;
            let (marker, rest) = task_box(marker, rest);
            self.open = Open::Text(Part::Item { text: rest.to_owned(), marker, indent, quote });
            return;
        }
        match &mut self.open {
            Open::Text(Part::Paragraph { text: lines, quote: depth, .. }) if *depth == quote => {
                lines.push('\n');
                lines.push_str(text);
            }
            Open::Text(Part::Item { text: lines, .. }) => {
                lines.push('\n');
                lines.push_str(text);
            }
            Open::Text(_) | Open::Nothing | Open::Code { .. } | Open::Table { .. } => {
                self.close();
                // After a blank line, text that is not indented ends the list.
                self.in_list = self.in_list && indent > 0;
                let indent = if self.in_list { indent } else { 0 };
                self.open = Open::Text(Part::Paragraph { text: text.to_owned(), indent, quote });
            }
        }
        self.release_lines();
    }

    /// Shows the first lines of a long paragraph, as soon as no emphasis reaches over them.
    fn release_lines(&mut self) {
        let Open::Text(Part::Paragraph { text, indent, quote }) = &mut self.open else { return };
        let count = text.matches('\n').count();
        if count < LONGEST_OPEN {
            return;
        }
        let Some(end) = text.rfind('\n') else { return };
        if !is_balanced(&text[..end]) && count < 8 * LONGEST_OPEN {
            return;
        }
        let rest = text.split_off(end + 1);
        text.pop();
        let (shown, indent, quote) = (std::mem::replace(text, rest), *indent, *quote);
        self.emit(Part::Paragraph { text: shown, indent, quote });
    }

    /// Takes a row of a table, or finds that the last line was the head of one.
    fn continues_table(&mut self, line: &str) -> bool {
        match &mut self.open {
            Open::Table { rows, align } => {
                if !line.contains('|') {
                    return false;
                }
                let mut row = cells(line);
                row.resize(align.len(), String::new());
                rows.push(row);
                true
            }
            Open::Text(Part::Paragraph { text, quote: 0, .. }) => {
                let Some(align) = delimiters(line) else { return false };
                let (before, head) =
                    text.rsplit_once('\n').map_or(("", text.as_str()), |(before, head)| (before, head));
                let mut row = cells(head);
                if !head.contains('|') || row.len() != align.len() {
                    return false;
                }
                row.truncate(align.len());
                let before = before.to_owned();
                if before.is_empty() {
                    self.open = Open::Nothing;
                } else {
                    *text = before;
                    self.close();
                }
                self.open = Open::Table { rows: vec![row], align };
                true
            }
            Open::Nothing | Open::Code { .. } | Open::Text(_) => false,
        }
    }

    /// A line of `=` or `-` below a paragraph makes a heading of it.
    fn becomes_heading(&mut self, line: &str) -> bool {
        let line = line.trim();
        let level = match line.chars().next() {
            Some('=') if line.chars().all(|sign| sign == '=') => 1,
            Some('-') if line.len() > 1 && line.chars().all(|sign| sign == '-') => 2,
            Some(_) | None => return false,
        };
        let Open::Text(Part::Paragraph { text, quote: 0, .. }) = &self.open else { return false };
        if text.contains('\n') {
            return false;
        }
        let text = text.clone();
        self.open = Open::Nothing;
        self.emit(Part::Heading { level, text });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<Part> {
        let mut splitter = Splitter::default();
        splitter.push(text);
        splitter.finish();
        std::iter::from_fn(|| splitter.next_part()).collect()
    }

    fn paragraph(text: &str) -> Part {
        Part::Paragraph { text: text.to_owned(), indent: 0, quote: 0 }
    }

    fn item(marker: &str, text: &str, indent: usize) -> Part {
        Part::Item { text: text.to_owned(), marker: marker.to_owned(), indent, quote: 0 }
    }

    #[test]
    fn blocks_are_found() {
        assert_eq!(
            parts("# Title\n\none\ntwo\n\n\n---\n> said\n"),
            [
                Part::Heading { level: 1, text: "Title".to_owned() },
                Part::Blank,
                paragraph("one\ntwo"),
                Part::Blank,
                Part::Rule,
                Part::Paragraph { text: "said".to_owned(), indent: 0, quote: 1 },
            ]
        );
    }

    #[test]
    fn items_are_parts_of_their_own_and_nest() {
        assert_eq!(
            parts("- one\n  more\n  1. inner\n- [x] done\n\n  still in it\n\nafter"),
            [
                item("-", "one\nmore", 0),
                item("1.", "inner", 2),
                item("[x]", "done", 0),
                Part::Blank,
                Part::Paragraph { text: "still in it".to_owned(), indent: 2, quote: 0 },
                Part::Blank,
                paragraph("after"),
            ]
        );
    }

    #[test]
    fn code_is_shown_line_by_line_and_not_interpreted() {
        let mut splitter = Splitter::default();
        splitter.push("```rust\nlet a = 1;\n# no heading\n");
        let shown: Vec<Part> = std::iter::from_fn(|| splitter.next_part()).collect();
        assert_eq!(
            shown,
            [
                Part::CodeStart { language: "rust".to_owned(), indent: 0 },
                Part::CodeLine("let a = 1;".to_owned()),
                Part::CodeLine("# no heading".to_owned()),
            ]
        );
        splitter.push("```\nafter\n");
        assert_eq!(splitter.next_part(), Some(Part::CodeEnd));
    }

    #[test]
    fn a_table_waits_for_its_end() {
        let mut splitter = Splitter::default();
        splitter.push("| a | b |\n|---|:-:|\n| 1 | `x|y` |\n");
        assert_eq!(splitter.next_part(), None);
        splitter.push("\n");
        let rows = [["a", "b"], ["1", "`x|y`"]].map(|row| row.map(str::to_owned).to_vec()).to_vec();
        assert_eq!(splitter.next_part(), Some(Part::Table { rows, align: vec![Align::Left, Align::Middle] }));
    }

    #[test]
    fn a_long_paragraph_is_shown_before_it_ends() {
        let mut splitter = Splitter::default();
        for number in 1..=20 {
            splitter.push(&format!("line {number}\n"));
        }
        let shown: Vec<Part> = std::iter::from_fn(|| splitter.next_part()).collect();
        assert!(!shown.is_empty());
        splitter.finish();
        let all: Vec<Part> = shown.into_iter().chain(std::iter::from_fn(|| splitter.next_part())).collect();
        let lines: Vec<String> = all
            .iter()
            .flat_map(|part| match part {
                Part::Paragraph { text, .. } => text.lines().map(str::to_owned).collect::<Vec<_>>(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(lines.len(), 20);
    }

    #[test]
    fn a_line_without_an_end_is_shown_in_parts() {
        let mut splitter = Splitter::default();
        splitter.push(&"word ".repeat(5_000));
        splitter.release(8_000);
        assert!(matches!(splitter.next_part(), Some(Part::Paragraph { text, .. }) if text.len() > 7_000));
    }

    proptest::proptest! {
        /// The parts do not depend on how the text was cut.
        #[test]
        fn pieces_make_no_difference(
            text in "([-#>`|*. a-c1]{0,6}\n){0,12}[a-c]{0,3}", cuts in proptest::collection::vec(0_usize..80, 0..8)
        ) {
            let whole = parts(&text);
            let mut splitter = Splitter::default();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= text.len()).collect();
            cuts.sort_unstable();
            let mut from = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                splitter.push(&text[from..cut]);
                from = cut;
            }
            splitter.finish();
            let pieces: Vec<Part> = std::iter::from_fn(|| splitter.next_part()).collect();
            proptest::prop_assert_eq!(pieces, whole);
        }
    }
}
