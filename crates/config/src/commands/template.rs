//! The text of a command, taken apart before anything is put into it: words for the model, files to include (`@path`) and
//! command lines whose output is wanted (an exclamation mark before a code span). What an argument or a file says is never
//! taken apart, so it can ask for nothing. Code blocks and other code spans are words.

/// A part of a command's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Words.
    Text(String),
    /// A file to include.
    File(String),
    /// A command line to run.
    Shell(String),
}

/// Takes a text apart.
pub fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut words = String::new();
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => {
                fence = Some(mark);
                words.push_str(line);
            }
            (Some(open), mark) => {
                fence = (mark != Some(open)).then_some(open);
                words.push_str(line);
            }
            (None, None) => take_line(line, &mut words, &mut pieces),
        }
    }
    flush(&mut words, &mut pieces);
    pieces
}

fn flush(words: &mut String, pieces: &mut Vec<Piece>) {
    if !words.is_empty() {
        pieces.push(Piece::Text(std::mem::take(words)));
    }
}

fn take_line(line: &str, words: &mut String, pieces: &mut Vec<Piece>) {
    let mut rest = line;
    while let Some(at) = rest.find(['`', '@', '!']) {
        let (before, from) = rest.split_at(at);
        let begins = before.is_empty() && words.chars().last().is_none_or(opens)
            || before.chars().last().is_some_and(opens);
        words.push_str(before);
        let (piece, length) = match from.as_bytes()[0] {
            b'`' => (None, span(from).unwrap_or(1)),
            b'!' => match span(&from[1..]).filter(|_| begins) {
                Some(length) => {
                    let line = from[2..length].trim();
                    (Some(Piece::Shell(line.to_owned())).filter(|_| !line.is_empty()), length + 1)
                }
                None => (None, 1),
            },
            _ => match path(&from[1..]).filter(|_| begins) {
                Some(path) => (Some(Piece::File(path.to_owned())), path.len() + 1),
                None => (None, 1),
            },
        };
        match piece {
            Some(piece) => {
                flush(words, pieces);
                pieces.push(piece);
            }
            None => words.push_str(&from[..length]),
        }
        rest = &from[length..];
    }
    words.push_str(rest);
}

/// What may stand before something that is to be taken apart.
fn opens(c: char) -> bool {
    c.is_whitespace() || matches!(c, '(' | '[' | '"' | '\'' | '>' | ':')
}

/// The length of the code span that a text begins with.
fn span(text: &str) -> Option<usize> {
    let behind = text.strip_prefix('`')?;
    behind.find('`').map(|end| end + 2)
}

/// The path that a text begins with, without the punctuation that ends a sentence.
fn path(text: &str) -> Option<&str> {
    let end = text.find(|c: char| c.is_whitespace() || "`\"'<>|*?".contains(c)).unwrap_or(text.len());
    let path = text[..end].trim_end_matches(['.', ',', ';', ':', '!', ')', ']']);
    (!path.is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &str) -> Piece {
        Piece::Text(words.to_owned())
    }

    #[test]
    fn files_and_command_lines_come_apart_from_words() {
        let parts = pieces("Look at @src/a.rs, and (@$1).\nStatus: !`git status --short`\nEnd");
        let expected = [
            text("Look at "),
            Piece::File("src/a.rs".to_owned()),
            text(", and ("),
            Piece::File("$1".to_owned()),
            text(").\nStatus: "),
            Piece::Shell("git status --short".to_owned()),
            text("\nEnd"),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn code_and_addresses_are_words() {
        for words in [
            "mail me@example.com",
            "`@a` and `!`x",
            "```\n@a\n!`rm x`\n```\n",
            "~~~\n```\n@a\n~~~\n",
            "wow!`x`",
            "@ alone, ! alone, ` alone",
            "!``",
        ] {
            let joined: Vec<Piece> = pieces(words);
            assert!(joined.iter().all(|piece| matches!(piece, Piece::Text(_))), "{words:?}: {joined:?}");
        }
    }

    #[test]
    fn nothing_is_lost() {
        for words in ["a `b` @c !`d` e", "`", "!", "@", "x@y `z", "```\nopen"] {
            let whole: String = pieces(words)
                .into_iter()
                .map(|piece| match piece {
                    Piece::Text(words) => words,
                    Piece::File(path) => format!("@{path}"),
                    Piece::Shell(line) => format!("!`{line}`"),
                })
                .collect();
            assert_eq!(whole, words);
        }
    }
}
