//! Everything that starts with a dollar sign or a backtick. Commands inside are read and collected where they stand;
//! arithmetic over anything but numbers and indirect names are doubts, because the shell evaluates text there, and text
//! can carry commands in its subscripts.

use super::lexer::Builder;
use super::nested;
use super::reader::{Reader, is_name, is_name_start};
use crate::shell::Piece;
use crate::shell::reading::DoubtKind;

impl Reader<'_, '_> {
    /// A dollar sign and what follows it.
    pub fn dollar(&mut self, builder: &mut Builder, quoted: bool) {
        let start = self.at;
        match self.peek(1) {
            Some(b'(') => {
                if self.peek(2) == Some(b'(')
                    && let Some(close) = self.arithmetic_end(start + 3)
                {
                    self.at += 3;
                    self.arithmetic(close, start);
                    self.at = (close + 2).min(self.end);
                } else {
                    if self.peek(2) == Some(b'(') {
                        self.doubt(DoubtKind::UnknownConstruct, start);
                    }
                    self.at += 2;
                    self.substitution(start);
                }
                builder.unknown(self.slice(start, self.at));
            }
            Some(b'{') => self.braced(builder, quoted),
            Some(b'[') => {
                self.at += 2;
                let close = self.rest().find(']').map_or(self.end, |length| self.at + length);
                self.arithmetic(close, start);
                self.at = (close + 1).min(self.end);
                self.doubt(DoubtKind::UnknownConstruct, start);
                builder.unknown(self.slice(start, self.at));
            }
            Some(b'\'') if !quoted => self.ansi_quotes(builder),
            Some(b'"') if !quoted => {
                self.at += 2;
                self.quoted(&mut Builder::default(), false);
                builder.unknown(self.slice(start, self.at));
            }
            Some(byte) if is_name_start(byte) => {
                let rest = self.slice(start + 1, self.end);
                let length = rest.bytes().position(|byte| !is_name(byte)).unwrap_or(rest.len());
                self.at += 1 + length;
                builder.piece(Piece::Variable(self.slice(start + 1, self.at).to_owned()));
            }
            Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                self.at += 2;
                builder.unknown(self.slice(start, self.at));
            }
            next => {
                self.at += 1;
                builder.text("$");
                if next == Some(b'\\') && self.peek(1) == Some(b'\n') {
                    self.doubt(DoubtKind::UnknownConstruct, start);
                }
            }
        }
    }

    /// The commands of a substitution up to its closing parenthesis.
    pub fn substitution(&mut self, start: usize) {
        if !self.enter() {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        let here = self.here.clone();
        self.list(&[")"]);
        self.expect(b')', start);
        if !self.pending.is_empty() {
            self.doubt(DoubtKind::SyntaxError, start);
        }
        self.pending = pending;
        self.here = here;
        self.leave();
    }

    /// `<(…)` or `>(…)`.
    pub fn process_substitution(&mut self, builder: &mut Builder) {
        let start = self.at;
        self.at += 2;
        self.substitution(start);
        builder.unknown(self.slice(start, self.at));
    }

    /// A backtick substitution: its text ends at the next backtick without a backslash, whatever else it holds.
    pub fn backticks(&mut self, builder: &mut Builder, quoted: bool) {
        let start = self.at;
        let from = start + 1;
        let mut close = from;
        let mut escapes = false;
        let bytes = self.text.as_bytes();
        while close < self.end && bytes.get(close) != Some(&b'`') {
            if bytes.get(close) == Some(&b'\\') {
                escapes = true;
                close += 1;
            }
            close += 1;
        }
        if close >= self.end {
            self.at = self.end;
            self.doubt(DoubtKind::SyntaxError, start);
            builder.unknown(self.slice(start, self.end));
            return;
        }
        let content = self.slice(from, close);
        if escapes {
            if quoted {
                self.doubt(DoubtKind::UnknownConstruct, start);
            }
            let script = without_backtick_escapes(content);
            nested::script(self.out, &script, None, self.here.clone());
        } else if self.enter() {
            if quoted && content.contains('"') {
                self.doubt(DoubtKind::UnknownConstruct, start);
            }
            let (end, here) = (self.end, self.here.clone());
            let pending = std::mem::take(&mut self.pending);
            (self.at, self.end) = (from, close);
            self.list(&[]);
            if !self.pending.is_empty() {
                self.doubt(DoubtKind::SyntaxError, start);
            }
            (self.end, self.here, self.pending) = (end, here, pending);
            self.leave();
        }
        self.at = (close + 1).min(self.end);
        builder.unknown(self.slice(start, self.at));
    }

    /// Where the arithmetic that starts here closes with `))`; `None` when its parentheses close apart.
    pub fn arithmetic_end(&self, from: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut open = 0_usize;
        for at in from..self.end {
            match bytes.get(at) {
                Some(b'(') => open += 1,
                Some(b')') if open > 0 => open -= 1,
                Some(b')') => return (at + 1 < self.end && bytes.get(at + 1) == Some(&b')')).then_some(at),
                _ => {}
            }
        }
        None
    }

    /// Arithmetic up to its end: numbers and operators are proven, anything else evaluates text.
    pub fn arithmetic(&mut self, close: usize, start: usize) {
        if !self.enter() {
            return;
        }
        let end = std::mem::replace(&mut self.end, close);
        let mut evaluates = false;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'$' => {
                    evaluates = true;
                    self.dollar(&mut Builder::default(), true);
                }
                b'`' => {
                    evaluates = true;
                    self.backticks(&mut Builder::default(), true);
                }
                b'0'..=b'9' => self.at += 1,
                b' ' | b'\t' | b'\n' | b'+' | b'-' | b'*' | b'/' | b'%' | b'(' | b')' | b'<' | b'>'
                | b'=' => self.at += 1,
                b'!' | b'&' | b'|' | b'^' | b'~' | b'?' | b':' | b',' => self.at += 1,
                _ => {
                    evaluates = true;
                    self.skip_character();
                }
            }
        }
        self.end = end;
        if evaluates {
            self.at = close.max(start + 1).min(self.end);
            self.doubt(DoubtKind::EvaluatesText, start);
        }
        self.leave();
    }
}

/// The text of a backtick substitution as the shell reads it: a backslash guards only `$`, backtick and backslash.
fn without_backtick_escapes(content: &str) -> String {
    let mut script = String::with_capacity(content.len());
    let mut characters = content.chars().peekable();
    while let Some(character) = characters.next() {
        let guarded =
            characters.peek().copied().filter(|next| character == '\\' && matches!(next, '$' | '`' | '\\'));
        match guarded {
            Some(next) => {
                characters.next();
                script.push(next);
            }
            None => script.push(character),
        }
    }
    script
}
