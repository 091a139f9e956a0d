//! Words: quotes and escapes removed, what is known kept as text, the rest as pieces that say what they are. A word ends
//! at the first unquoted blank or operator character, exactly as in the shell.

use super::reader::{Reader, is_meta};
use crate::shell::reading::DoubtKind;
use crate::shell::{Piece, Word};

/// Builds a word piece by piece.
#[derive(Default)]
pub(crate) struct Builder {
    pieces: Vec<Piece>,
    literal: String,
    braces: Braces,
}

/// How far an unquoted brace expansion has been seen.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Braces {
    #[default]
    None,
    Open,
    Separated,
    Expands,
}

impl Builder {
    /// Adds known text.
    pub fn text(&mut self, text: &str) {
        self.literal.push_str(text);
    }

    /// Adds a piece.
    pub fn piece(&mut self, piece: Piece) {
        if !self.literal.is_empty() {
            self.pieces.push(Piece::Literal(std::mem::take(&mut self.literal)));
        }
        self.pieces.push(piece);
    }

    /// Adds something whose value is not known.
    pub fn unknown(&mut self, spelling: &str) {
        self.piece(Piece::Unknown(spelling.to_owned()));
    }

    /// Notes an unquoted brace, comma or double dot.
    fn brace(&mut self, byte: u8) {
        self.braces = match (self.braces, byte) {
            (Braces::None, b'{') => Braces::Open,
            (Braces::Open, b',' | b'.') => Braces::Separated,
            (Braces::Separated, b'}') => Braces::Expands,
            (now, _) => now,
        };
    }

    /// The word. One that brace expansion would make into several is not known at all.
    pub fn finish(mut self, spelling: &str) -> Word {
        if self.braces == Braces::Expands {
            return Word::unknown(spelling);
        }
        if !self.literal.is_empty() {
            self.pieces.push(Piece::Literal(self.literal));
        }
        Word { pieces: self.pieces }
    }
}

/// True for bytes that mean themselves in an unquoted word.
fn is_plain(byte: u8) -> bool {
    !is_meta(byte)
        && !matches!(
            byte,
            b'\'' | b'"' | b'\\' | b'$' | b'`' | b'*' | b'?' | b'[' | b'~' | b'{' | b'}' | b',' | b'.'
        )
}

impl Reader<'_, '_> {
    /// Reads the word that starts here; `None` when none does.
    pub fn word(&mut self) -> Option<Word> {
        let start = self.at;
        let mut builder = Builder::default();
        self.word_into(&mut builder);
        (self.at > start).then(|| builder.finish(self.slice(start, self.at)))
    }

    /// Reads the rest of a word into a builder.
    pub fn word_into(&mut self, builder: &mut Builder) {
        let start = self.at;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'<' | b'>' if self.peek(1) == Some(b'(') => self.process_substitution(builder),
                byte if is_meta(byte) => return,
                b'\'' => self.single_quotes(builder),
                b'"' => {
                    self.at += 1;
                    self.quoted(builder, false);
                }
                b'\\' => self.escaped(builder),
                b'$' => self.dollar(builder, false),
                b'`' => self.backticks(builder, false),
                b'*' | b'?' | b'[' => self.pattern(builder, start),
                b'~' => self.tilde(builder, start),
                b'{' | b'}' | b',' | b'.' => {
                    // One dot is no separator, two are.
                    if byte != b'.' || self.peek(1) == Some(b'.') {
                        builder.brace(byte);
                    }
                    builder.text(self.slice(self.at, self.at + 1));
                    self.at += 1;
                }
                _ => {
                    let rest = self.rest();
                    let length = rest.bytes().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
                    builder.text(rest.get(..length).unwrap_or_default());
                    self.at += length.max(1);
                }
            }
        }
    }

    /// A single-quoted string.
    pub fn single_quotes(&mut self, builder: &mut Builder) {
        let start = self.at;
        self.at += 1;
        match self.rest().find('\'') {
            Some(length) => {
                builder.text(self.slice(self.at, self.at + length));
                self.at += length + 1;
            }
            None => {
                self.at = self.end;
                self.doubt(DoubtKind::SyntaxError, start);
            }
        }
    }

    /// The inside of double quotes up to their end, or the body of a here-document up to the end of the reader's part.
    pub fn quoted(&mut self, builder: &mut Builder, here_document: bool) {
        let start = self.at;
        loop {
            match self.peek(0) {
                None => {
                    if !here_document {
                        self.doubt(DoubtKind::SyntaxError, start);
                    }
                    return;
                }
                Some(b'"') if !here_document => {
                    self.at += 1;
                    return;
                }
                Some(b'\\') => {
                    match self.peek(1) {
                        Some(b'\n') => {}
                        Some(next @ (b'$' | b'`' | b'\\' | b'"')) if next != b'"' || !here_document => {
                            builder.text(self.slice(self.at + 1, self.at + 2));
                        }
                        Some(_) | None => {
                            builder.text("\\");
                            self.at += 1;
                            continue;
                        }
                    }
                    self.at += 2;
                }
                Some(b'$') => self.dollar(builder, true),
                Some(b'`') => self.backticks(builder, true),
                Some(_) => {
                    let rest = self.rest();
                    let special =
                        |byte| matches!(byte, b'\\' | b'$' | b'`') || (byte == b'"' && !here_document);
                    let length = rest.bytes().position(special).unwrap_or(rest.len());
                    builder.text(rest.get(..length).unwrap_or_default());
                    self.at += length.max(1);
                }
            }
        }
    }

    /// A backslash outside quotes.
    fn escaped(&mut self, builder: &mut Builder) {
        let start = self.at;
        self.at += 1;
        match self.peek(0) {
            // Joined lines can hide a keyword, an assignment or an operator from the reader of the text.
            Some(b'\n') => {
                self.at += 1;
                self.doubt(DoubtKind::UnknownConstruct, start);
            }
            Some(_) => {
                let from = self.at;
                self.skip_character();
                builder.text(self.slice(from, self.at));
            }
            None => {
                builder.text("\\");
                self.doubt(DoubtKind::SyntaxError, start);
            }
        }
    }

    /// A pattern character outside quotes. `[` alone and `[[` are command words.
    fn pattern(&mut self, builder: &mut Builder, start: usize) {
        let from = self.at;
        self.at += 1;
        if self.text.as_bytes().get(from) == Some(&b'[') {
            let doubled = self.peek(0) == Some(b'[');
            let length = usize::from(doubled);
            if from == start && self.peek(length).is_none_or(is_meta) {
                self.at += length;
                builder.text(self.slice(from, self.at));
                return;
            }
            let inside =
                |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'^' | b'!' | b':');
            let length = self.rest().bytes().position(|byte| !inside(byte));
            if let Some(length) = length
                && self.peek(length) == Some(b']')
            {
                self.at += length + 1;
            }
        }
        builder.piece(Piece::Glob(self.slice(from, self.at).to_owned()));
    }

    /// A tilde outside quotes: home at the start of a word, unknown where the shell might expand it, else itself.
    fn tilde(&mut self, builder: &mut Builder, start: usize) {
        let before = self.at.checked_sub(1).and_then(|at| self.text.as_bytes().get(at).copied());
        let leading = self.at == start;
        self.at += 1;
        if leading {
            let home = self.peek(0).is_none_or(|byte| is_meta(byte) || byte == b'/');
            builder.piece(if home { Piece::Home } else { Piece::Unknown("~".to_owned()) });
        } else if matches!(before, Some(b'=' | b':')) {
            builder.unknown("~");
        } else {
            builder.text("~");
        }
    }
}
