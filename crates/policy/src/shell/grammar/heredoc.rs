//! Here-documents: the delimiter decides whether the body expands, the bodies stand after the next newline in the order of
//! their operators. A body that expands is read like a double-quoted string, and one given to a shell is read as a script.

use super::lexer::Builder;
use super::nested;
use super::reader::{Reader, is_meta};
use crate::shell::reading::{DoubtKind, RedirectionKind};

/// A here-document whose body has not been reached yet.
pub(crate) struct Pending {
    delimiter: String,
    quoted: bool,
    tabs_removed: bool,
    /// The command and the place among its redirections, once the command is known.
    pub owner: Option<usize>,
    /// The position of the operator.
    start: usize,
}

impl Reader<'_, '_> {
    /// Reads the delimiter after `<<` or `<<-`.
    pub fn here_document(&mut self, tabs_removed: bool, start: usize) {
        self.here_documents += 1;
        self.skip_blanks();
        let from = self.at;
        let mut delimiter = String::new();
        let mut quoted = false;
        while let Some(byte) = self.peek(0) {
            match byte {
                byte if is_meta(byte) => break,
                b'\'' | b'"' => {
                    quoted = true;
                    self.at += 1;
                    let Some(length) = self.rest().find(char::from(byte)) else {
                        self.doubt(DoubtKind::SyntaxError, start);
                        self.at = self.end;
                        return;
                    };
                    let inside = self.slice(self.at, self.at + length);
                    if inside.contains(['\\', '$', '`', '\n']) {
                        self.doubt(DoubtKind::UnknownConstruct, start);
                    }
                    delimiter.push_str(inside);
                    self.at += length + 1;
                }
                b'\\' => {
                    quoted = true;
                    self.at += 1;
                    let from = self.at;
                    self.skip_character();
                    delimiter.push_str(self.slice(from, self.at));
                }
                b'$' | b'`' => {
                    self.doubt(DoubtKind::UnknownConstruct, start);
                    self.at += 1;
                    delimiter.push(char::from(byte));
                }
                _ => {
                    let from = self.at;
                    self.skip_character();
                    delimiter.push_str(self.slice(from, self.at));
                }
            }
        }
        if self.at == from || delimiter.contains('\n') {
            self.doubt(DoubtKind::SyntaxError, start);
        }
        self.pending.push(Pending { delimiter, quoted, tabs_removed, owner: None, start });
    }

    /// Reads the bodies of all here-documents announced so far; the position is at the start of a line.
    pub fn read_here_documents(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            let from = self.at;
            let body_end = self.body_end(&pending);
            let after = self.at;
            let word = if pending.quoted {
                let mut builder = Builder::default();
                builder.text(self.slice(from, body_end));
                builder.finish("")
            } else {
                self.expanding_body(from, body_end)
            };
            self.at = after;
            let Some(owner) = pending.owner else { continue };
            if let Some(command) = self.out.reading.commands.get_mut(owner) {
                let waiting = command
                    .redirections
                    .iter_mut()
                    .find(|it| it.kind == RedirectionKind::HereDocument && it.target.is_none());
                if let Some(redirection) = waiting {
                    redirection.target = Some(word.clone());
                }
            }
            nested::input_of_shells(self.out, owner, &word);
        }
    }

    /// Moves behind the delimiter line and says where the body ends.
    fn body_end(&mut self, pending: &Pending) -> usize {
        loop {
            let line_start = self.at;
            let rest = self.rest();
            let length = rest.find('\n').unwrap_or(rest.len());
            let mut line = rest.get(..length).unwrap_or_default();
            if pending.tabs_removed {
                line = line.trim_start_matches('\t');
            }
            self.at = (line_start + length + 1).min(self.end);
            if line == pending.delimiter && !rest.is_empty() {
                return line_start;
            }
            if length == rest.len() {
                self.at = self.end;
                self.doubt(DoubtKind::SyntaxError, pending.start);
                return self.end;
            }
            // The shell joins such lines before it compares them with the delimiter.
            if !pending.quoted && line.ends_with('\\') {
                self.doubt(DoubtKind::UnknownConstruct, line_start);
            }
        }
    }

    /// Reads a body that expands.
    fn expanding_body(&mut self, from: usize, to: usize) -> crate::shell::Word {
        let end = std::mem::replace(&mut self.end, to);
        self.at = from;
        let mut builder = Builder::default();
        if self.enter() {
            self.quoted(&mut builder, true);
            self.leave();
        }
        self.end = end;
        builder.finish("")
    }
}
