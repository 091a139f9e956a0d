//! Cells as labelled lines. A reply is printed part by part while it is written; a call when it starts and when it ends.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;

use crate::cells::{call_about, call_outcome, call_output, duration, tool_name};
use crate::front::TerminalTraits;
use crate::markdown::{Part, Splitter, plain};
use crate::state::{Call, CallProgress, Cell, CellBody, Conversation, Level, TodoProgress, TurnEnd};
use crate::text::{ansi, one_line, plain_lines};

/// The most lines of output that a finished call prints, and of an error.
const OUTPUT_LINES: (usize, usize) = (5, 20);

/// Prints lines.
pub(super) struct Printer {
    traits: TerminalTraits,
    /// What is in front of the cursor, when a line is waited for.
    prompt: Option<&'static str>,
    /// The reply that is being printed: its cell, what was read of it, and whether its label was printed.
    reply: Option<(u64, usize, Splitter, bool)>,
    /// Prompts that were typed here: the terminal has shown them.
    typed: HashSet<String>,
    /// Calls whose start was printed.
    started: HashSet<String>,
}

impl Printer {
    pub(super) fn new(environment: &BTreeMap<String, String>) -> Self {
        Self {
            traits: TerminalTraits::of(environment),
            prompt: None,
            reply: None,
            typed: HashSet::new(),
            started: HashSet::new(),
        }
    }

    /// Prints a line.
    pub(super) fn line(&mut self, text: &str) {
        let newline = if self.prompt.take().is_some() { "\n" } else { "" };
        // Foreign text was escaped where it became part of the line; a terminal that is gone is met by its reader.
        let _ = writeln!(std::io::stdout(), "{newline}{}", self.shown(text));
    }

    /// Waits for a line behind this label.
    pub(super) fn prompt(&mut self, label: &'static str) {
        if self.prompt == Some(label) {
            return;
        }
        let newline = if self.prompt.is_some() { "\n" } else { "" };
        let mut out = std::io::stdout();
        let _ = write!(out, "{newline}{label}");
        let _ = out.flush();
        self.prompt = Some(label);
    }

    /// The person ended the line with Enter: the cursor is on the next one.
    pub(super) fn line_was_typed(&mut self) {
        self.prompt = None;
    }

    /// A prompt was typed here and need not be printed.
    pub(super) fn was_typed(&mut self, uuid: &str) {
        self.typed.insert(uuid.to_owned());
    }

    /// Asks for attention.
    pub(super) fn bell(&mut self) {
        let _ = write!(std::io::stdout(), "\u{7}");
    }

    fn shown(&self, text: &str) -> String {
        if self.traits.unicode {
            return text.to_owned();
        }
        text.chars()
            .map(|sign| ascii(sign).unwrap_or("?").to_owned())
            .zip(text.chars())
            .map(|(plain, sign)| if sign.is_ascii() { sign.to_string() } else { plain })
            .collect()
    }

    /// Prints the cells that are finished, and of an open reply what is complete.
    pub(super) fn print_cells(&mut self, conversation: &mut Conversation) {
        if conversation.is_caught_up && conversation.dropped > 0 {
            let dropped = std::mem::take(&mut conversation.dropped);
            self.line(&format!(
                "notice: {dropped} earlier entries are not repeated; /export writes all of them."
            ));
        }
        if !conversation.is_caught_up {
            return;
        }
        loop {
            if let Some(cell) = conversation.front()
                && let CellBody::Reply { text } = &cell.body
            {
                let (id, text, is_finished) = (cell.id, text.clone(), cell.is_finished);
                self.print_reply(id, &text, is_finished);
            }
            let cwd = conversation.facts.cwd.clone();
            let Some(cell) = conversation.take_finished() else { return };
            self.print_cell(&cell, &cwd);
        }
    }

    /// Prints that calls were made, once.
    pub(super) fn announce_calls(&mut self, conversation: &Conversation) {
        let cwd = &conversation.facts.cwd;
        let mut lines = Vec::new();
        for cell in conversation.cells().filter(|_| conversation.is_caught_up) {
            let CellBody::Calls(calls) = &cell.body else { continue };
            for call in calls.iter().filter(|call| matches!(call.progress, CallProgress::Pending)) {
                if !call.only_looks() && self.started.insert(call.id.clone()) {
                    lines.push(format!("tool: {}", title(call, cwd)));
                }
            }
        }
        lines.iter().for_each(|line| self.line(line));
    }

    fn print_reply(&mut self, id: u64, text: &str, is_finished: bool) {
        let known = self.reply.take().filter(|(known, ..)| *known == id);
        let (_, read, mut splitter, mut labelled) = known.unwrap_or((id, 0, Splitter::default(), false));
        splitter.push(text.get(read..).unwrap_or_default());
        if is_finished {
            splitter.finish();
        }
        while let Some(part) = splitter.next_part() {
            for line in part_lines(&part) {
                let label = if labelled { "" } else { "qoder: " };
                labelled = true;
                self.line(&format!("{label}{line}"));
            }
        }
        self.reply = Some((id, text.len().max(read), splitter, labelled));
    }

    fn print_cell(&mut self, cell: &Cell, cwd: &str) {
        match &cell.body {
            CellBody::Prompt(prompt) => {
                if self.typed.remove(&prompt.uuid) {
                    return;
                }
                for (at, line) in plain_lines(&prompt.text).iter().enumerate() {
                    self.line(&if at == 0 { format!("you: {line}") } else { line.clone() });
                }
                if prompt.images > 0 {
                    self.line(&format!("you: {} images", prompt.images));
                }
            }
            CellBody::Reply { .. } => self.reply = None,
            CellBody::Thinking { took, .. } => {
                if let Some(took) = took {
                    self.line(&format!("qoder: thought for {}", duration(*took)));
                }
            }
            CellBody::Calls(calls) => calls.iter().for_each(|call| self.print_call(call, cwd)),
            CellBody::CommandOutput(text) => plain_lines(text).iter().for_each(|line| self.line(line)),
            CellBody::Notice(notice) => {
                let label = match notice.level {
                    Level::Info => "notice",
                    Level::Warning => "warning",
                    Level::Error => "error",
                };
                for (at, line) in plain_lines(&notice.text).iter().enumerate() {
                    self.line(&if at == 0 { format!("{label}: {line}") } else { line.clone() });
                }
            }
            CellBody::End(end) => self.print_end(end),
            CellBody::Todo(items) => {
                for item in items {
                    let word = match item.progress {
                        TodoProgress::Open => "open",
                        TodoProgress::Active => "in progress",
                        TodoProgress::Done => "done",
                    };
                    self.line(&format!("todo, {word}: {}", one_line(&item.text)));
                }
            }
            CellBody::Rule(text) => self.line(&format!("notice: {text}")),
        }
    }

    fn print_call(&mut self, call: &Call, cwd: &str) {
        let outcome = match (call_outcome(call), call.is_done()) {
            (outcome, true) if outcome.is_empty() => "done".to_owned(),
            (outcome, false) if outcome.is_empty() => "no result".to_owned(),
            (outcome, _) => outcome,
        };
        self.started.remove(&call.id);
        self.line(&format!("tool: {}: {outcome}", title(call, cwd)));
        let most =
            if call.result().is_some_and(|result| result.is_error) { OUTPUT_LINES.1 } else { OUTPUT_LINES.0 };
        let output = call_output(call);
        if output.is_empty() {
            return;
        }
        let lines = ansi::lines(&output, false);
        for line in lines.iter().take(most) {
            let text: String = line.spans.iter().map(|span| &*span.content).collect();
            self.line(&format!("  {text}"));
        }
        if lines.len() > most {
            self.line(&format!("  {} more lines", lines.len() - most));
        }
    }

    fn print_end(&mut self, end: &TurnEnd) {
        match end {
            TurnEnd::Interrupted => self.line("notice: interrupted"),
            TurnEnd::Failed(errors) if errors.is_empty() => self.line("error: the turn failed"),
            TurnEnd::Failed(errors) => errors.iter().for_each(|error| {
                for line in plain_lines(error) {
                    self.line(&format!("error: {line}"));
                }
            }),
            TurnEnd::Limit(text) => self.line(&format!("error: {}", one_line(text))),
            TurnEnd::Done { took, .. } => self.line(&format!("notice: done in {}", duration(*took))),
        }
    }
}

fn title(call: &Call, cwd: &str) -> String {
    let about = one_line(&call_about(call, cwd));
    let name = tool_name(&call.tool);
    if about.is_empty() { name } else { format!("{name} {about}") }
}

/// A part as lines that can be read aloud: a table is "header: value".
fn part_lines(part: &Part) -> Vec<String> {
    let lines = |text: &str| plain(text).split('\n').map(str::to_owned).collect::<Vec<_>>();
    match part {
        Part::Blank | Part::CodeEnd => Vec::new(),
        Part::Heading { text, .. } => lines(text),
        Part::Paragraph { text, quote, .. } => {
            let sign = if *quote > 0 { "> " } else { "" };
            lines(text).into_iter().map(|line| format!("{sign}{line}")).collect()
        }
        Part::Item { text, marker, .. } => lines(&format!("{marker} {text}").replacen("- ", "\\- ", 1)),
        Part::Rule => vec!["---".to_owned()],
        Part::CodeStart { language, .. } if language.is_empty() => vec!["code:".to_owned()],
        Part::CodeStart { language, .. } => vec![format!("code, {}:", one_line(language))],
        Part::CodeLine(line) => plain_lines(line),
        Part::Table { rows, .. } => {
            let Some((head, body)) = rows.split_first() else { return Vec::new() };
            let row = |row: &Vec<String>| {
                let cells =
                    head.iter().zip(row).map(|(name, value)| format!("{}: {}", plain(name), plain(value)));
                cells.collect::<Vec<_>>().join(", ")
            };
            body.iter().map(row).collect()
        }
    }
}

/// What stands for a sign of ours where only ASCII can be shown.
fn ascii(sign: char) -> Option<&'static str> {
    Some(match sign {
        '→' => "->",
        '−' => "-",
        '·' => "-",
        '…' => "...",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_as_header_and_value() {
        let mut splitter = Splitter::default();
        splitter.push("| Name | Size |\n|---|---|\n| a.rs | 12 |\n");
        splitter.finish();
        assert_eq!(part_lines(&splitter.next_part().unwrap()), ["Name: a.rs, Size: 12"]);
    }

    #[test]
    fn items_keep_their_marker() {
        let item = |marker: &str| Part::Item {
            text: "do **it**".into(),
            marker: marker.into(),
            indent: 2,
            quote: 0,
        };
        assert_eq!(part_lines(&item("-")), ["- do it"]);
        assert_eq!(part_lines(&item("3.")), ["3. do it"]);
    }
}
