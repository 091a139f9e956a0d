//! Splits `<think>…</think>` at the start of a reply's text from the rest, however the tags are cut into pieces. Only the
//! start counts: a reply that writes about such tags further on is text.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A piece of the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Thinking(String),
    Text(String),
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// Nothing but blanks and perhaps a part of the opening tag came so far.
    Start,
    /// Between the tags.
    Inside,
    /// Behind the closing tag, where blank lines are no part of the answer yet.
    Behind,
    /// In the answer.
    Answer,
}

/// The state between two pieces.
pub(super) struct ThinkTags {
    place: Place,
    held: String,
}

impl ThinkTags {
    /// A splitter; one that is switched off takes everything as text.
    pub(super) fn new(is_on: bool) -> Self {
        Self { place: if is_on { Place::Start } else { Place::Answer }, held: String::new() }
    }

    /// Takes a piece.
    pub(super) fn push(&mut self, piece: &str) -> Vec<Piece> {
        if self.place == Place::Answer {
            return vec![Piece::Text(piece.to_owned())];
        }
        self.held.push_str(piece);
        let mut pieces = Vec::new();
        loop {
            match self.place {
                Place::Start => {
                    let start = self.held.trim_start();
                    if let Some(rest) = start.strip_prefix(OPEN) {
                        self.held = rest.to_owned();
                        self.place = Place::Inside;
                    } else if OPEN.starts_with(start) {
                        return pieces;
                    } else {
                        self.place = Place::Answer;
                    }
                }
                Place::Inside => {
                    if let Some(at) = self.held.find(CLOSE) {
                        let rest = self.held.split_off(at + CLOSE.len());
                        self.held.truncate(at);
                        push_thinking(&mut pieces, std::mem::replace(&mut self.held, rest));
                        self.place = Place::Behind;
                    } else {
                        let kept = open_end(&self.held);
                        let rest = self.held.split_off(self.held.len() - kept);
                        push_thinking(&mut pieces, std::mem::replace(&mut self.held, rest));
                        return pieces;
                    }
                }
                Place::Behind => {
                    let start = self.held.trim_start();
                    if start.is_empty() {
                        return pieces;
                    }
                    self.held = start.to_owned();
                    self.place = Place::Answer;
                }
                Place::Answer => {
                    let text = std::mem::take(&mut self.held);
                    if !text.is_empty() {
                        pieces.push(Piece::Text(text));
                    }
                    return pieces;
                }
            }
        }
    }

    /// What was held back when the stream ends.
    pub(super) fn finish(&mut self) -> Option<Piece> {
        let held = std::mem::take(&mut self.held);
        match self.place {
            Place::Inside if !held.is_empty() => Some(Piece::Thinking(held)),
            Place::Start | Place::Answer if !held.is_empty() => Some(Piece::Text(held)),
            Place::Start | Place::Inside | Place::Behind | Place::Answer => None,
        }
    }
}

fn push_thinking(pieces: &mut Vec<Piece>, text: String) {
    if !text.is_empty() {
        pieces.push(Piece::Thinking(text));
    }
}

/// How many bytes at the end may be the start of the closing tag.
fn open_end(text: &str) -> usize {
    (1..CLOSE.len())
        .rev()
        .find(|length| CLOSE.get(..*length).is_some_and(|tag| text.ends_with(tag)))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&str]) -> (String, String) {
        let mut tags = ThinkTags::new(true);
        let (mut thinking, mut text) = (String::new(), String::new());
        let mut all: Vec<Piece> = pieces.iter().flat_map(|piece| tags.push(piece)).collect();
        all.extend(tags.finish());
        for piece in all {
            match piece {
                Piece::Thinking(piece) => thinking.push_str(&piece),
                Piece::Text(piece) => text.push_str(&piece),
            }
        }
        (thinking, text)
    }

    #[test]
    fn tags_are_found_wherever_they_are_cut() {
        let whole = "\n<think>a < b, é</thin k></think>\n\nDone: <think>x</think>";
        for first in 0..=whole.len() {
            for second in first..=whole.len() {
                let (Some(a), Some(b), Some(c)) =
                    (whole.get(..first), whole.get(first..second), whole.get(second..))
                else {
                    continue;
                };
                let (thinking, text) = split(&[a, b, c]);
                assert_eq!(thinking, "a < b, é</thin k>", "{first} {second}");
                assert_eq!(text, "Done: <think>x</think>", "{first} {second}");
            }
        }
    }

    #[test]
    fn what_is_not_closed_or_no_tag_is_kept() {
        assert_eq!(split(&["<thi"]), (String::new(), "<thi".into()));
        assert_eq!(split(&["<think>on and", " on</th"]), ("on and on</th".into(), String::new()));
        assert_eq!(split(&["see <think>"]), (String::new(), "see <think>".into()));
        assert_eq!(split(&["<think></think>ok"]), (String::new(), "ok".into()));
        assert_eq!(ThinkTags::new(false).push("<think>a"), [Piece::Text("<think>a".into())]);
    }
}
