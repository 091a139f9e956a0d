//! The reader's position in a text and its smallest steps: bytes, blanks, comments, nesting, doubts. Everything above it
//! (words, expansions, commands, scripts) moves this position forward and never back further than its own start, which
//! keeps reading linear.

use super::collector::{Collector, DEEPEST};
use super::heredoc::Pending;
use super::places::Places;
use crate::shell::reading::DoubtKind;

/// Reads one text into a collector.
pub(crate) struct Reader<'t, 'c> {
    /// The whole text.
    pub text: &'t str,
    /// The position of the reader.
    pub at: usize,
    /// Where this part of the text ends.
    pub end: usize,
    /// Where the shell may be.
    pub here: Places,
    /// Here-documents whose bodies start after the next newline.
    pub pending: Vec<Pending>,
    /// True once `CDPATH` was set on this line.
    pub search_path: bool,
    /// How many commands the longest pipeline has.
    pub longest_pipeline: usize,
    /// How many here-documents were announced.
    pub here_documents: usize,
    /// Where the command words of this text start, to compare with the other grammar.
    pub starts: Vec<usize>,
    /// Where results go.
    pub out: &'c mut Collector,
}

/// True for bytes that end an unquoted word.
pub(crate) fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// True for bytes that may start a name.
pub(crate) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// True for bytes that may continue a name.
pub(crate) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl<'t, 'c> Reader<'t, 'c> {
    /// A reader at the start of a text.
    pub fn new(text: &'t str, here: Places, out: &'c mut Collector) -> Self {
        Self {
            text,
            at: 0,
            end: text.len(),
            here,
            pending: Vec::new(),
            search_path: false,
            longest_pipeline: 0,
            here_documents: 0,
            starts: Vec::new(),
            out,
        }
    }

    /// The byte at a distance from the position.
    pub fn peek(&self, distance: usize) -> Option<u8> {
        let at = self.at + distance;
        if at < self.end { self.text.as_bytes().get(at).copied() } else { None }
    }

    /// True when the text continues with this.
    pub fn looking_at(&self, expected: &str) -> bool {
        self.rest().starts_with(expected)
    }

    /// The text from the position on.
    pub fn rest(&self) -> &'t str {
        self.text.get(self.at..self.end).unwrap_or_default()
    }

    /// The text between two places.
    pub fn slice(&self, from: usize, to: usize) -> &'t str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// Records a doubt about the text from a place to here.
    pub fn doubt(&mut self, kind: DoubtKind, from: usize) {
        let upto = if self.at > from { self.at } else { self.end };
        let text = self.slice(from, upto);
        self.out.doubt(kind, text);
    }

    /// Moves over one character, whatever it is.
    pub fn skip_character(&mut self) {
        let length = self.rest().chars().next().map_or(1, char::len_utf8);
        self.at = (self.at + length).min(self.end);
    }

    /// Moves over blanks and continued lines.
    pub fn skip_blanks(&mut self) {
        loop {
            match self.peek(0) {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek(1) == Some(b'\n') => self.at += 2,
                _ => return,
            }
        }
    }

    /// Moves over blanks, and over a comment if one starts there.
    pub fn skip_to_token(&mut self) {
        self.skip_blanks();
        if self.peek(0) == Some(b'#') {
            self.at = self.rest().find('\n').map_or(self.end, |length| self.at + length);
        }
    }

    /// Moves over blanks, comments and newlines; here-documents are read where their bodies stand.
    pub fn skip_lines(&mut self) {
        loop {
            self.skip_to_token();
            if self.peek(0) != Some(b'\n') {
                return;
            }
            self.newline();
        }
    }

    /// Moves over a newline and the here-documents after it.
    pub fn newline(&mut self) {
        self.at += 1;
        if !self.pending.is_empty() {
            self.read_here_documents();
        }
    }

    /// Moves over an operator. A continued line between two operator characters would join them to another operator.
    pub fn operator(&mut self, length: usize) {
        let from = self.at;
        self.at += length;
        if self.peek(0) == Some(b'\\')
            && self.peek(1) == Some(b'\n')
            && matches!(self.peek(2), Some(b'&' | b'|' | b'<' | b'>' | b'(' | b';' | b'\\'))
        {
            self.doubt(DoubtKind::UnknownConstruct, from);
        }
    }

    /// The characters up to the next one that ends a word, quotes included: enough to recognise a reserved word.
    pub fn raw_word(&self) -> &'t str {
        let rest = self.rest();
        let length = rest.bytes().take(12).position(is_meta).unwrap_or(rest.len());
        rest.get(..length).unwrap_or_default()
    }

    /// Enters a nested construct. When it is too deep nothing more is read.
    pub fn enter(&mut self) -> bool {
        if self.out.depth >= DEEPEST {
            self.doubt(DoubtKind::TooDeep, self.at);
            self.at = self.end;
            return false;
        }
        self.out.depth += 1;
        true
    }

    /// Leaves a nested construct.
    pub fn leave(&mut self) {
        self.out.depth -= 1;
    }

    /// Moves over an expected byte, or doubts.
    pub fn expect(&mut self, byte: u8, from: usize) {
        if self.peek(0) == Some(byte) {
            self.at += 1;
        } else {
            self.doubt(DoubtKind::SyntaxError, from);
        }
    }
}
