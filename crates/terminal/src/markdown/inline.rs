//! What is inside a line of Markdown: emphasis, code, links. Everything is escaped for a terminal before it becomes a span.

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};
use ratatui_core::style::Modifier;
use ratatui_core::text::{Line, Span};

use crate::text::prose;
use crate::theme::{Ink, Theme};

/// The lines of a paragraph, with their styles.
pub(crate) fn spans(text: &str, theme: &Theme, base: Ink) -> Vec<Line<'static>> {
    let mut lines = Lines { done: Vec::new(), line: Vec::new(), theme, base, marks: Vec::new() };
    // What begins like a block inside a line is text.
    let guarded = protected(text);
    let parser = Parser::new_ext(&guarded, Options::ENABLE_STRIKETHROUGH);
    for event in parser {
        lines.take(event);
    }
    lines.finish()
}

/// The same without styles; the address of a link follows its text.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::new();
    let mut links: Vec<(String, usize)> = Vec::new();
    for event in Parser::new_ext(&protected(text), Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) | Event::Html(text) => {
                shown.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak => shown.push('\n'),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push((dest_url.to_string(), shown.len()));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                if let Some((address, start)) = links.pop()
                    && shown[start..] != address
                    && !address.is_empty()
                {
                    shown.push_str(&format!(" ({address})"));
                }
            }
            _ => {}
        }
    }
    prose(&shown)
}

/// Only inline markup is meant: a backslash keeps the start of each line from being a block.
fn protected(text: &str) -> String {
    let guard = |line: &str| {
        let line = line.trim_start();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        match line.as_bytes().get(digits) {
            Some(b'.' | b')') if digits > 0 => format!("{}\\{}", &line[..digits], &line[digits..]),
            Some(b'#' | b'>' | b'+' | b'-' | b'=' | b'|' | b'~')
                if digits == 0 && !line.starts_with("~~") =>
            {
                format!("\\{line}")
            }
            Some(b'*' | b'_') if digits == 0 && line.as_bytes().get(1).is_none_or(|next| *next == b' ') => {
                format!("\\{line}")
            }
            Some(_) | None => line.to_owned(),
        }
    };
    text.lines().map(guard).collect::<Vec<_>>().join("\n")
}

struct Lines<'t> {
    done: Vec<Line<'static>>,
    line: Vec<Span<'static>>,
    theme: &'t Theme,
    base: Ink,
    marks: Vec<Mark>,
}

enum Mark {
    Strong,
    Emphasis,
    Struck,
    /// The address, and whether it is the text itself.
    Link(String, bool),
}

impl Lines<'_> {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) | Event::InlineHtml(text) | Event::Html(text) => self.push(self.base, &text),
            Event::Code(text) => self.push(Ink::Code, &text),
            Event::SoftBreak | Event::HardBreak => self.end_line(),
            Event::Start(Tag::Strong) => self.marks.push(Mark::Strong),
            Event::Start(Tag::Emphasis) => self.marks.push(Mark::Emphasis),
            Event::Start(Tag::Strikethrough) => self.marks.push(Mark::Struck),
            Event::Start(Tag::Link { link_type, dest_url, .. }) => {
                let is_text = matches!(link_type, LinkType::Autolink | LinkType::Email);
                self.marks.push(Mark::Link(dest_url.to_string(), is_text));
            }
            Event::Start(Tag::Image { dest_url, .. }) => {
                self.marks.push(Mark::Link(dest_url.to_string(), false));
            }
            Event::End(TagEnd::Strong | TagEnd::Emphasis | TagEnd::Strikethrough) => {
                self.marks.pop();
            }
            Event::End(TagEnd::Link | TagEnd::Image) => self.end_link(),
            _ => {}
        }
    }

    /// The address of a link is shown: what is approved or copied is what is read.
    fn end_link(&mut self) {
        let Some(Mark::Link(address, is_text)) = self.marks.pop() else { return };
        let shown = self.line.last().is_some_and(|span| span.content == address);
        if !is_text && !shown && !address.is_empty() {
            self.push(Ink::Dim, " (");
            self.push(Ink::Link, &address);
            self.push(Ink::Dim, ")");
        }
    }

    fn push(&mut self, ink: Ink, text: &str) {
        let mut style = self.theme.style(ink);
        for mark in &self.marks {
            style = style.add_modifier(match mark {
                Mark::Strong => Modifier::BOLD,
                Mark::Emphasis => Modifier::ITALIC,
                Mark::Struck => Modifier::CROSSED_OUT,
                Mark::Link(..) => Modifier::UNDERLINED,
            });
        }
        self.line.push(Span::styled(prose(text), style));
    }

    fn end_line(&mut self) {
        self.done.push(Line::from(std::mem::take(&mut self.line)));
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.end_line();
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::ColorSupport;

    fn theme() -> Theme {
        Theme::new(None, &serde_json::Map::new(), ColorSupport::Named)
    }

    fn text(line: &Line<'_>) -> String {
        line.spans.iter().map(|span| &*span.content).collect()
    }

    #[test]
    fn emphasis_code_and_links_have_styles() {
        let lines = spans("a **b** `c` [d](https://e.f)\ng", &theme(), Ink::Text);
        assert_eq!(lines.iter().map(text).collect::<Vec<_>>(), ["a b c d (https://e.f)", "g"]);
        let bold = lines[0].spans.iter().find(|span| span.content == "b").unwrap();
        assert!(bold.style.add_modifier.contains(Modifier::BOLD));
    }

    #[test]
    fn lines_that_look_like_blocks_are_text() {
        for line in ["1. one", "# no", "- no", "> no", "* no", "| a |", "= b"] {
            assert_eq!(text(&spans(line, &theme(), Ink::Text)[0]), line);
            assert_eq!(plain(line), line);
        }
    }

    #[test]
    fn hostile_text_is_escaped_everywhere() {
        let hostile = "\u{1b}]0;t\u{7} [x](javascript:\u{202e}y) `\u{1b}[2J`";
        let shown = spans(hostile, &theme(), Ink::Text).iter().map(text).collect::<String>();
        assert!(!shown.chars().any(char::is_control) && !shown.contains('\u{202e}'), "{shown:?}");
        let shown = plain(hostile);
        assert!(!shown.chars().any(char::is_control) && !shown.contains('\u{202e}'), "{shown:?}");
    }

    #[test]
    fn an_address_is_shown_once() {
        assert_eq!(
            plain("see <https://e.f> and [site](https://g.h)"),
            "see https://e.f and site (https://g.h)"
        );
    }
}
