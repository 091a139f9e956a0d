//! Colours for code, line by line with the state carried from one to the next. The syntaxes are loaded on a thread of their own
//! at the first code block; until they are there, and for what is too long, code is plain.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui_core::text::Span;
use syntect::easy::ScopeRegionIterator;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use crate::text::{expand_tabs, prose};
use crate::theme::{Ink, Theme};

/// A block beyond one of these is plain: bytes, lines, and time spent on it.
const MOST_BYTES: usize = 512 * 1024;
const MOST_LINES: usize = 10_000;
const MOST_TIME: Duration = Duration::from_millis(150);
/// A longer line is plain.
const LONGEST_LINE: usize = 1_000;

static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
static IS_LOADING: AtomicBool = AtomicBool::new(false);

/// The syntaxes, if they are loaded; begins to load them otherwise.
fn syntaxes() -> Option<&'static SyntaxSet> {
    if let Some(loaded) = SYNTAXES.get() {
        return Some(loaded);
    }
    if !IS_LOADING.swap(true, Ordering::SeqCst) {
        let load = || {
            // Only this thread sets it.
            let _ = SYNTAXES.set(two_face::syntax::extra_newlines());
        };
        // Without the thread code stays plain.
        drop(std::thread::Builder::new().name("syntaxes".to_owned()).spawn(load));
    }
    None
}

/// Colours one block of code.
#[derive(Debug, Clone)]
pub(crate) struct Highlighter {
    language: String,
    state: Option<(ParseState, ScopeStack)>,
    bytes: usize,
    lines: usize,
    spent: Duration,
}

impl Highlighter {
    /// For code in a language.
    pub(crate) fn new(language: &str) -> Self {
        let mut this =
            Self { language: language.to_owned(), state: None, bytes: 0, lines: 0, spent: Duration::ZERO };
        if !language.is_empty() {
            this.state = this.start();
        }
        this
    }

    fn start(&self) -> Option<(ParseState, ScopeStack)> {
        let syntax = syntaxes()?.find_syntax_by_token(&self.language)?;
        Some((ParseState::new(syntax), ScopeStack::new()))
    }

    /// The spans of the next line.
    pub(crate) fn line(&mut self, line: &str, theme: &Theme) -> Vec<Span<'static>> {
        let plain = || vec![theme.span(Ink::Text, expand_tabs(&prose(line)))];
        self.bytes += line.len();
        self.lines += 1;
        let is_too_much = self.bytes > MOST_BYTES
            || self.lines > MOST_LINES
            || self.spent > MOST_TIME
            || line.len() > LONGEST_LINE;
        if is_too_much || !theme.has_colors() {
            self.state = None;
            return plain();
        }
        let (Some((state, stack)), Some(set)) = (&mut self.state, SYNTAXES.get()) else { return plain() };
        let begun = Instant::now();
        let ended = format!("{line}\n");
        let Ok(changes) = state.parse_line(&ended, set) else {
            self.state = None;
            return plain();
        };
        let mut spans: Vec<Span<'static>> = Vec::new();
        for (text, change) in ScopeRegionIterator::new(&changes, &ended) {
            // A stack that does not fit its changes only costs colours.
            let _ = stack.apply(change);
            let text = text.trim_end_matches('\n');
            if text.is_empty() {
                continue;
            }
            let style = theme.style(ink(stack));
            let shown = prose(text);
            match spans.last_mut().filter(|last| last.style == style) {
                Some(last) => last.content.to_mut().push_str(&shown),
                None => spans.push(Span::styled(shown, style)),
            }
        }
        self.spent += begun.elapsed();
        with_tabs(spans)
    }
}

/// Tabs are blanks up to the next stop of the line, not of the span.
fn with_tabs(spans: Vec<Span<'static>>) -> Vec<Span<'static>> {
    if !spans.iter().any(|span| span.content.contains('\t')) {
        return spans;
    }
    let mut column = 0;
    spans
        .into_iter()
        .map(|span| {
            let mut text = String::new();
            for sign in span.content.chars() {
                if sign == '\t' {
                    let blanks = 4 - column % 4;
                    text.extend(std::iter::repeat_n(' ', blanks));
                    column += blanks;
                } else {
                    text.push(sign);
                    column += crate::text::columns(sign.encode_utf8(&mut [0; 4]));
                }
            }
            Span::styled(text, span.style)
        })
        .collect()
}

/// What the innermost scope that means something means.
fn ink(stack: &ScopeStack) -> Ink {
    static MEANINGS: OnceLock<Vec<(Scope, Ink)>> = OnceLock::new();
    let meanings = MEANINGS.get_or_init(|| {
        let pairs = [
            ("comment", Ink::Comment),
            ("string", Ink::Literal),
            ("constant.numeric", Ink::Number),
            ("constant.language", Ink::Number),
            ("constant.character", Ink::Number),
            ("keyword.operator", Ink::Text),
            ("keyword", Ink::Keyword),
            ("storage", Ink::Keyword),
            ("entity.name", Ink::Name),
            ("support.function", Ink::Name),
            ("support.type", Ink::Name),
            ("variable.function", Ink::Name),
            ("markup.heading", Ink::Heading),
            ("markup.inserted", Ink::Added),
            ("markup.deleted", Ink::Removed),
        ];
        pairs.iter().filter_map(|(name, ink)| Some((Scope::new(name).ok()?, *ink))).collect()
    });
    let found = stack.as_slice().iter().rev().find_map(|scope| {
        meanings.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)).map(|(_, ink)| *ink)
    });
    found.unwrap_or(Ink::Text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::ColorSupport;

    fn theme(colors: ColorSupport) -> Theme {
        Theme::new(None, &serde_json::Map::new(), colors)
    }

    #[test]
    fn code_is_coloured_once_the_syntaxes_are_there_and_says_the_same() {
        // Loaded here, so that the test does not wait for the thread.
        let _ = SYNTAXES.set(two_face::syntax::extra_newlines());
        let mut highlighter = Highlighter::new("rust");
        let spans = highlighter.line("let a = \"x\"; // note", &theme(ColorSupport::Named));
        assert!(spans.len() > 3, "{spans:?}");
        let text: String = spans.iter().map(|span| &*span.content).collect();
        assert_eq!(text, "let a = \"x\"; // note");
        let plain = Highlighter::new("rust").line("let\ta", &theme(ColorSupport::None));
        assert_eq!((plain.len(), &*plain[0].content), (1, "let a"));
    }

    #[test]
    fn hostile_code_is_escaped() {
        let spans = Highlighter::new("").line("a\u{1b}]0;t\u{7}", &theme(ColorSupport::Named));
        let text: String = spans.iter().map(|span| &*span.content).collect();
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
}
