//! A text that is being written, with a cursor between graphemes and tokens that are one thing: a large paste, an image. A
//! token is deleted as a whole, the cursor never enters it, and what it stands for is sent whole.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// What a token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenContent {
    /// Text that was pasted.
    Paste(String),
    /// An image.
    Image(ImageContent),
}

/// An image that is sent with a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageContent {
    /// Such as `image/png`.
    pub media_type: String,
    /// The bytes in base64.
    pub data: String,
    /// Width and height in pixels, where they are known.
    pub size: Option<(u32, u32)>,
}

/// A token in a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// Where its label is.
    pub(crate) range: Range<usize>,
    /// What it stands for.
    pub(crate) content: TokenContent,
}

/// A text that is being written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    text: String,
    cursor: usize,
    tokens: Vec<Token>,
}

impl Draft {
    /// A draft with this text and the cursor at its end.
    pub(crate) fn of(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { cursor: text.len(), text, tokens: Vec::new() }
    }

    /// The text, with the labels of tokens.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Where the cursor is, in bytes.
    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    /// True when there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The tokens, in order.
    pub(crate) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The text that is sent: pastes are what they stand for, images are not in it.
    pub(crate) fn expanded(&self) -> String {
        let mut text = String::with_capacity(self.text.len());
        let mut from = 0;
        for token in &self.tokens {
            text.push_str(&self.text[from..token.range.start]);
            match &token.content {
                TokenContent::Paste(pasted) => text.push_str(pasted),
                TokenContent::Image(_) => text.push_str(&self.text[token.range.clone()]),
            }
            from = token.range.end;
        }
        text.push_str(&self.text[from..]);
        text
    }

    /// The images, in order.
    pub(crate) fn images(&self) -> Vec<ImageContent> {
        let images = self.tokens.iter().filter_map(|token| match &token.content {
            TokenContent::Image(image) => Some(image.clone()),
            TokenContent::Paste(_) => None,
        });
        images.collect()
    }

    /// Moves the cursor to a place, out of a token that covers it.
    pub(crate) fn move_to(&mut self, place: usize) {
        let mut place = place.min(self.text.len());
        while !self.text.is_char_boundary(place) {
            place -= 1;
        }
        self.cursor = match self.token_over(place) {
            Some(token) if place - token.start < token.end - place => token.start,
            Some(token) => token.end,
            None => place,
        };
    }

    /// The token that a place is inside of.
    fn token_over(&self, place: usize) -> Option<Range<usize>> {
        let inside = |token: &&Token| token.range.start < place && place < token.range.end;
        self.tokens.iter().find(inside).map(|token| token.range.clone())
    }

    /// The token that ends or begins at the cursor.
    pub(crate) fn token_at_cursor(&self) -> Option<&Token> {
        self.tokens.iter().find(|token| token.range.end == self.cursor || token.range.start == self.cursor)
    }

    /// Inserts text at the cursor.
    pub(crate) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.shift(self.cursor, text.len());
        self.cursor += text.len();
    }

    /// Inserts a token at the cursor.
    pub(crate) fn insert_token(&mut self, label: &str, content: TokenContent) {
        let start = self.cursor;
        self.insert(label);
        let token = Token { range: start..self.cursor, content };
        let place = self.tokens.partition_point(|other| other.range.start < start);
        self.tokens.insert(place, token);
    }

    /// Tokens at or behind a place move by this many bytes.
    fn shift(&mut self, place: usize, by: usize) {
        for token in self.tokens.iter_mut().filter(|token| token.range.start >= place) {
            token.range = token.range.start + by..token.range.end + by;
        }
    }

    /// Deletes a range, and all of every token that it touches. Answers with what was deleted.
    pub(crate) fn delete(&mut self, range: Range<usize>) -> String {
        let mut range = range.start.min(self.text.len())..range.end.min(self.text.len());
        if range.is_empty() {
            return String::new();
        }
        for token in &self.tokens {
            if token.range.start < range.end && range.start < token.range.end {
                range = range.start.min(token.range.start)..range.end.max(token.range.end);
            }
        }
        let deleted: String = self.text.drain(range.clone()).collect();
        self.tokens.retain(|token| token.range.end <= range.start || token.range.start >= range.end);
        for token in self.tokens.iter_mut().filter(|token| token.range.start >= range.end) {
            token.range = token.range.start - deleted.len()..token.range.end - deleted.len();
        }
        if self.cursor >= range.end {
            self.cursor -= deleted.len();
        } else if self.cursor > range.start {
            self.cursor = range.start;
        }
        deleted
    }

    /// Puts text in the place of a range; the cursor is behind it.
    pub(crate) fn replace(&mut self, range: Range<usize>, text: &str) {
        let start = range.start;
        self.delete(range);
        self.cursor = start.min(self.text.len());
        self.insert(text);
    }

    /// Puts what a paste stands for in the place of the token at the cursor. False when there is no such token.
    pub(crate) fn expand_token(&mut self) -> bool {
        let Some(Token { range, content: TokenContent::Paste(text) }) = self.token_at_cursor().cloned()
        else {
            return false;
        };
        self.tokens.retain(|token| token.range != range);
        self.replace(range, &text);
        true
    }

    /// The place one grapheme or token to the left.
    pub(crate) fn left_of(&self, place: usize) -> usize {
        if let Some(token) = self.tokens.iter().find(|token| token.range.end == place) {
            return token.range.start;
        }
        let before = self.text[..place].grapheme_indices(true).next_back();
        before.map_or(0, |(start, _)| start)
    }

    /// The place one grapheme or token to the right.
    pub(crate) fn right_of(&self, place: usize) -> usize {
        if let Some(token) = self.tokens.iter().find(|token| token.range.start == place) {
            return token.range.end;
        }
        let next = self.text[place..].graphemes(true).next();
        place + next.map_or(0, str::len)
    }

    /// The start of the word before a place.
    pub(crate) fn word_left(&self, place: usize) -> usize {
        let mut at = place;
        while at > 0 && !self.is_word(self.left_of(at)) {
            at = self.left_of(at);
        }
        while at > 0 && self.is_word(self.left_of(at)) {
            at = self.left_of(at);
        }
        at
    }

    /// The end of the word behind a place.
    pub(crate) fn word_right(&self, place: usize) -> usize {
        let mut at = place;
        while at < self.text.len() && !self.is_word(at) {
            at = self.right_of(at);
        }
        while at < self.text.len() && self.is_word(at) {
            at = self.right_of(at);
        }
        at
    }

    /// True when what begins at a place is part of a word. A token is a word.
    fn is_word(&self, place: usize) -> bool {
        let is_token = self.tokens.iter().any(|token| token.range.start == place);
        is_token
            || self.text[place..].chars().next().is_some_and(|sign| sign.is_alphanumeric() || sign == '_')
    }

    /// The start of the line of a place.
    pub(crate) fn line_start(&self, place: usize) -> usize {
        self.text[..place].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The end of the line of a place.
    pub(crate) fn line_end(&self, place: usize) -> usize {
        self.text[place..].find('\n').map_or(self.text.len(), |newline| place + newline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn paste(text: &str) -> TokenContent {
        TokenContent::Paste(text.to_owned())
    }

    #[test]
    fn a_token_is_one_thing() {
        let mut draft = Draft::of("a ");
        draft.insert_token("[Pasted text #1]", paste("one\ntwo"));
        draft.insert(" b");
        assert_eq!(draft.expanded(), "a one\ntwo b");
        let end = draft.text().len() - 2;
        draft.move_to(end);
        assert_eq!(draft.left_of(end), 2);
        draft.move_to(5);
        assert_eq!(draft.cursor(), 2);
        draft.delete(end - 1..end);
        assert_eq!((draft.text(), draft.tokens().len(), draft.expanded()), ("a  b", 0, "a  b".to_owned()));
    }

    #[test]
    fn several_tokens_keep_their_own_texts() {
        let mut draft = Draft::default();
        draft.insert_token("[#1]", paste("one"));
        draft.insert_token("[#2]", paste("two"));
        draft.move_to(0);
        draft.insert("x ");
        draft.delete(2..3);
        assert_eq!((draft.text(), draft.expanded().as_str()), ("x [#2]", "x two"));
    }

    #[test]
    fn a_token_can_be_expanded_in_place() {
        let mut draft = Draft::of("see ");
        draft.insert_token("[#1]", paste("all\nof it"));
        assert!(draft.expand_token());
        assert_eq!((draft.text(), draft.tokens().len()), ("see all\nof it", 0));
        assert!(!draft.expand_token());
    }

    #[test]
    fn moves_are_by_graphemes_and_words() {
        let draft = Draft::of("one 👩\u{200d}💻e\u{301} two_x");
        let end = draft.text().len();
        assert_eq!(draft.word_left(end), end - 5);
        let accent = draft.left_of(end - 6);
        assert_eq!(&draft.text()[accent..end - 6], "e\u{301}");
        assert_eq!(&draft.text()[draft.left_of(accent)..accent], "👩\u{200d}💻");
        assert_eq!(draft.word_right(0), 3);
    }

    proptest! {
        /// Any edits: the cursor and every token stay on graphemes and inside the text, and tokens do not overlap.
        #[test]
        fn edits_keep_it_well_formed(
            edits in proptest::collection::vec((0_u8..5, 0_usize..40, 0_usize..40, "[a世\n ]{0,4}"), 0..40)
        ) {
            let mut draft = Draft::default();
            for (kind, from, to, text) in edits {
                match kind {
                    0 => draft.insert(&text),
                    1 => draft.insert_token("[token]", paste(&text)),
                    2 => draft.move_to(from),
                    3 => {
                        let (mut from, mut to) = (from.min(draft.text().len()), to.min(draft.text().len()));
                        while !draft.text().is_char_boundary(from) { from -= 1; }
                        while !draft.text().is_char_boundary(to) { to -= 1; }
                        draft.delete(from.min(to)..from.max(to));
                    }
                    _ => { draft.expand_token(); }
                }
                prop_assert!(draft.text().is_char_boundary(draft.cursor()));
                let mut last = 0;
                for token in draft.tokens() {
                    prop_assert!(token.range.start >= last && token.range.end <= draft.text().len());
                    prop_assert_eq!(&draft.text()[token.range.clone()], "[token]");
                    last = token.range.end;
                }
                let cursor = draft.cursor();
                let inside = draft.tokens().iter().any(|token| token.range.start < cursor && cursor < token.range.end);
                prop_assert!(!inside);
            }
        }
    }
}
