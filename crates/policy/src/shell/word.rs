//! Words of a command: what the shell would make of them as far as that is known without running anything. A word is a
//! row of pieces; it is literal when every piece is. Rules compare literal words, never text.

/// One piece of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Known text, after quotes and escapes are removed.
    Literal(String),
    /// An unquoted `~` at the start of the word, alone or before `/`: the home directory.
    Home,
    /// A plain variable, `$NAME` or `${NAME}`, without operators.
    Variable(String),
    /// An unquoted pattern character or class: `*`, `?`, `[…]`.
    Glob(String),
    /// Anything else whose value is not known: substitutions, arithmetic, braces, operators in expansions, `~user`.
    Unknown(String),
}

/// A word as written in a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// The pieces in order. An empty row is the empty word, as in `''`.
    pub pieces: Vec<Piece>,
}

impl Word {
    /// A word of known text.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { pieces: vec![Piece::Literal(text.into())] }
    }

    /// A word of which nothing is known.
    pub fn unknown(text: impl Into<String>) -> Self {
        Self { pieces: vec![Piece::Unknown(text.into())] }
    }

    /// The text, when all of it is known. A leading `~` does not count as known: it depends on who runs it.
    #[must_use]
    pub fn as_literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// True when the word's value is not known, a leading home directory excepted.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        self.pieces.iter().enumerate().any(|(at, piece)| match piece {
            Piece::Literal(_) => false,
            Piece::Home => at != 0,
            Piece::Variable(_) | Piece::Glob(_) | Piece::Unknown(_) => true,
        })
    }

    /// The known text in front of the first piece that is not known.
    #[must_use]
    pub fn known_start(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Literal(text)) => text,
            _ => "",
        }
    }
}
