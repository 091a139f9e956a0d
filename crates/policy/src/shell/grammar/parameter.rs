//! `${…}`: a plain name is a variable, lengths and simple operators are unknown values without danger, and everything
//! that evaluates text (indirection, `@P`, computed offsets and subscripts) or that quotes may end elsewhere is a doubt.

use super::lexer::Builder;
use super::reader::{Reader, is_name, is_name_start};
use crate::shell::Piece;
use crate::shell::reading::DoubtKind;

impl Reader<'_, '_> {
    /// A braced expansion.
    pub fn braced(&mut self, builder: &mut Builder, quoted: bool) {
        let start = self.at;
        self.at += 2;
        if !self.enter() {
            return;
        }
        let prefix = self.prefix();
        if matches!(self.peek(0), Some(b' ' | b'\t' | b'\n' | b'|')) {
            self.doubt(DoubtKind::UnknownConstruct, start);
            self.list(&["}"]);
            self.expect(b'}', start);
        } else {
            let name_start = self.at;
            let named = self.parameter_name(prefix);
            let name = self.slice(name_start, self.at);
            if self.peek(0) == Some(b'}') && named && prefix.is_none() {
                self.at += 1;
                self.leave();
                builder.piece(Piece::Variable(name.to_owned()));
                return;
            }
            if prefix == Some(b'!') {
                self.doubt(DoubtKind::EvaluatesText, start);
            }
            if self.peek(0) == Some(b'[') {
                self.subscript(start);
            }
            if self.peek(0) == Some(b'}') {
                self.at += 1;
            } else {
                self.parameter_operator(quoted, start);
            }
        }
        self.leave();
        builder.unknown(self.slice(start, self.at));
    }

    /// The length or indirection sign, when it is one and not the parameter itself.
    fn prefix(&mut self) -> Option<u8> {
        let prefix = self.peek(0).filter(|byte| matches!(byte, b'#' | b'!'))?;
        let next = self.peek(1)?;
        let counts = is_name(next) || matches!(next, b'@' | b'*' | b'?' | b'$' | b'!' | b'#');
        if !counts {
            return None;
        }
        self.at += 1;
        Some(prefix)
    }

    /// Moves over the name; true when it is a variable's, false for positional and special parameters.
    fn parameter_name(&mut self, prefix: Option<u8>) -> bool {
        let start = self.at;
        let first = self.peek(0);
        if first.is_some_and(|byte| is_name_start(byte) || byte.is_ascii_digit()) {
            while self.peek(0).is_some_and(is_name) {
                self.at += 1;
            }
            return first.is_some_and(is_name_start);
        }
        let special = matches!(first, Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!'));
        if special {
            self.at += 1;
        } else if prefix.is_none() {
            self.doubt(DoubtKind::SyntaxError, start);
        }
        false
    }

    /// A subscript: a number or all elements are known, anything else is evaluated.
    fn subscript(&mut self, start: usize) {
        self.at += 1;
        let from = self.at;
        loop {
            match self.peek(0) {
                None | Some(b'}') => {
                    self.doubt(DoubtKind::SyntaxError, start);
                    return;
                }
                Some(b']') => break,
                Some(b'$') => self.dollar(&mut Builder::default(), true),
                Some(b'`') => self.backticks(&mut Builder::default(), true),
                Some(_) => self.skip_character(),
            }
        }
        let index = self.slice(from, self.at);
        let known =
            matches!(index, "@" | "*") || (!index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()));
        self.at += 1;
        if !known {
            self.doubt(DoubtKind::EvaluatesText, start);
        }
    }

    /// The operator and its operand up to the closing brace.
    fn parameter_operator(&mut self, quoted: bool, start: usize) {
        let kind = match (self.peek(0), self.peek(1)) {
            (Some(b'='), _) | (Some(b':'), Some(b'=')) => Some(DoubtKind::ChangesShell),
            (Some(b'-' | b'+' | b'?' | b'#' | b'%' | b'/' | b'^' | b','), _)
            | (Some(b':'), Some(b'-' | b'+' | b'?'))
            | (Some(b'@'), Some(b'Q' | b'U' | b'u' | b'L' | b'E' | b'A' | b'K' | b'a' | b'k')) => None,
            (Some(b':'), _) => self.offset_doubt(),
            (Some(b'@'), Some(b'P')) => Some(DoubtKind::EvaluatesText),
            // `${!prefix*}` was already a doubt for its indirection.
            (Some(b'@' | b'*'), Some(b'}')) => None,
            _ => Some(DoubtKind::SyntaxError),
        };
        self.operand(quoted, start);
        if let Some(kind) = kind {
            self.doubt(kind, start);
        }
    }

    /// A doubt unless an offset and a length are plain numbers.
    fn offset_doubt(&self) -> Option<DoubtKind> {
        let rest = self.rest();
        let length = rest.find('}').unwrap_or(rest.len());
        let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b':' | b' ' | b'-');
        let numbers = rest.bytes().take(length).all(plain);
        if numbers { None } else { Some(DoubtKind::EvaluatesText) }
    }

    /// Everything up to the closing brace. Quotes and braces inside may end where another reader would not end them.
    fn operand(&mut self, quoted: bool, start: usize) {
        loop {
            match self.peek(0) {
                None => {
                    self.doubt(DoubtKind::SyntaxError, start);
                    return;
                }
                Some(b'}') => {
                    self.at += 1;
                    return;
                }
                Some(b'$') => self.dollar(&mut Builder::default(), quoted),
                Some(b'`') => self.backticks(&mut Builder::default(), quoted),
                Some(b'<' | b'>') if self.peek(1) == Some(b'(') => {
                    self.process_substitution(&mut Builder::default());
                }
                Some(b'\\') => {
                    self.doubt(DoubtKind::UnknownConstruct, start);
                    self.at += 1;
                    self.skip_character();
                }
                Some(b'\'' | b'"') if quoted => {
                    self.doubt(DoubtKind::UnknownConstruct, start);
                    self.at += 1;
                }
                Some(b'\'') => self.single_quotes(&mut Builder::default()),
                Some(b'"') => {
                    self.at += 1;
                    self.quoted(&mut Builder::default(), false);
                }
                Some(b'{') => {
                    self.doubt(DoubtKind::UnknownConstruct, start);
                    self.at += 1;
                }
                Some(_) => self.skip_character(),
            }
        }
    }
}
