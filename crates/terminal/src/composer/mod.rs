//! Where prompts are written: a pure model of text, tokens, what was cut, earlier states and earlier prompts. It knows no
//! terminal; the frame shows its layout.

mod draft;
mod edit;
mod layout;
mod recall;
mod vim;

use crate::input::Key;

pub use draft::ImageContent;
pub(crate) use draft::{Draft, TokenContent};
pub(crate) use layout::Layout;
pub(crate) use recall::Recall;
pub(crate) use vim::VimMode;

/// A paste beyond one of these is a token.
const LONG_PASTE: (usize, usize) = (1_000, 10);
/// How many earlier states are held, and how many bytes of them.
const MOST_STATES: (usize, usize) = (200, 4 * 1024 * 1024);
/// How many texts that were cut are held.
const MOST_CUT: usize = 20;

/// Where prompts are written.
#[derive(Debug, Default)]
pub(crate) struct Composer {
    draft: Draft,
    past: Vec<Draft>,
    future: Vec<Draft>,
    /// True while letters are typed in a row: they are taken back together.
    typing: bool,
    cut: Vec<String>,
    pastes: usize,
    images: usize,
    /// The text of the last paste that became a token.
    last_paste: Option<String>,
    /// The column that Up and Down keep.
    column: Option<usize>,
    recall: Recall,
    vim: Option<vim::Vim>,
}

impl Composer {
    /// What is being written.
    pub(crate) fn draft(&self) -> &Draft {
        &self.draft
    }

    /// True when nothing is being written.
    pub(crate) fn is_empty(&self) -> bool {
        self.draft.is_empty()
    }

    /// Earlier prompts.
    pub(crate) fn recall(&mut self) -> &mut Recall {
        &mut self.recall
    }

    /// Earlier prompts that contain a text, newest first.
    pub(crate) fn earlier(&self, text: &str) -> Vec<&str> {
        self.recall.search(text)
    }

    /// Switches vim keys on or off.
    pub(crate) fn set_vim(&mut self, on: bool) {
        self.vim = on.then(vim::Vim::default);
    }

    /// The mode of vim keys, when they are on.
    pub(crate) fn vim_mode(&self) -> Option<VimMode> {
        self.vim.as_ref().map(vim::Vim::mode)
    }

    /// Takes a key that edits. False when the key edits nothing. `width` is that of a row.
    pub(crate) fn key(&mut self, key: Key, width: usize) -> bool {
        if let Some(mut vim) = self.vim.take() {
            let taken = vim.key(key, self);
            self.vim = Some(vim);
            if let Some(taken) = taken {
                return taken;
            }
        }
        self.edit_key(key, width)
    }

    /// Inserts text at the cursor.
    pub(crate) fn insert(&mut self, text: &str) {
        self.remember(false);
        self.draft.insert(text);
    }

    /// Puts another draft in place; the present one can be had back.
    pub(crate) fn set(&mut self, draft: Draft) {
        self.remember(false);
        self.draft = draft;
    }

    /// Puts text before what is being written.
    pub(crate) fn put_before(&mut self, text: &str) {
        self.remember(false);
        let cursor = self.draft.cursor();
        let separator = if self.draft.is_empty() { "" } else { "\n" };
        self.draft.move_to(0);
        self.draft.insert(&format!("{text}{separator}"));
        let end = if separator.is_empty() { self.draft.text().len() } else { cursor + text.len() + 1 };
        self.draft.move_to(end);
    }

    /// Takes what was written; nothing is left.
    pub(crate) fn take(&mut self) -> Draft {
        let draft = std::mem::take(&mut self.draft);
        self.past.clear();
        self.future.clear();
        (self.typing, self.column, self.last_paste) = (false, None, None);
        (self.pastes, self.images) = (0, 0);
        self.recall.rest();
        if let Some(vim) = &mut self.vim {
            vim.begin_insert();
        }
        draft
    }

    /// Takes a paste: a large one is a token, and the same once more shows it whole.
    pub(crate) fn paste(&mut self, text: &str) {
        let is_long = text.chars().count() > LONG_PASTE.0 || text.matches('\n').count() + 1 > LONG_PASTE.1;
        if !is_long {
            self.insert(text);
            return;
        }
        self.remember(false);
        if self.last_paste.as_deref() == Some(text) && self.draft.expand_token() {
            self.last_paste = None;
            return;
        }
        self.pastes += 1;
        let lines = text.matches('\n').count() + 1;
        let label = format!("[Pasted text #{}, {lines} lines]", self.pastes);
        self.draft.insert_token(&label, TokenContent::Paste(text.to_owned()));
        self.last_paste = Some(text.to_owned());
    }

    /// Adds an image.
    pub(crate) fn add_image(&mut self, image: ImageContent) {
        self.remember(false);
        self.images += 1;
        let label = match image.size {
            Some((width, height)) => format!("[Image #{} {width}×{height}]", self.images),
            None => format!("[Image #{}]", self.images),
        };
        self.draft.insert_token(&label, TokenContent::Image(image));
    }

    /// Shows the paste at the cursor whole. False when no paste is there.
    pub(crate) fn expand_token(&mut self) -> bool {
        let before = self.draft.clone();
        let expanded = self.draft.expand_token();
        if expanded {
            self.keep(before);
        }
        expanded
    }

    /// Replaces a range, as a popup does with what was chosen.
    pub(crate) fn replace(&mut self, range: std::ops::Range<usize>, text: &str) {
        self.remember(false);
        self.draft.replace(range, text);
    }

    /// Remembers the present state, to be had back. Letters in a row are one change.
    fn remember(&mut self, typing: bool) {
        let continues = typing && self.typing && !self.past.is_empty();
        self.typing = typing;
        self.column = None;
        if !continues {
            self.keep(self.draft.clone());
        }
    }

    fn keep(&mut self, state: Draft) {
        self.future.clear();
        self.past.push(state);
        let mut bytes: usize = self.past.iter().map(|draft| draft.text().len()).sum();
        while self.past.len() > MOST_STATES.0 || (bytes > MOST_STATES.1 && self.past.len() > 1) {
            bytes -= self.past.remove(0).text().len();
        }
    }

    /// Goes back to the state before the last change.
    fn revert(&mut self) {
        if let Some(state) = self.past.pop() {
            self.future.push(std::mem::replace(&mut self.draft, state));
            self.typing = false;
        }
    }

    /// Goes forward again.
    fn restore(&mut self) {
        if let Some(state) = self.future.pop() {
            self.past.push(std::mem::replace(&mut self.draft, state));
            self.typing = false;
        }
    }

    /// Deletes a range and holds its text.
    fn cut_range(&mut self, range: std::ops::Range<usize>) {
        if range.is_empty() {
            return;
        }
        self.remember(false);
        let text = self.draft.delete(range);
        self.hold(text);
    }

    fn hold(&mut self, text: String) {
        if self.cut.len() == MOST_CUT {
            self.cut.remove(0);
        }
        self.cut.push(text);
    }

    /// True when something was cut that can be put back.
    pub(crate) fn has_cut(&self) -> bool {
        !self.cut.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::KeyCode;

    const WIDTH: usize = 40;

    fn typed(text: &str) -> Composer {
        let mut composer = Composer::default();
        text.chars().for_each(|sign| {
            composer.key(Key::char(sign), WIDTH);
        });
        composer
    }

    #[test]
    fn a_large_paste_is_a_token_and_the_same_again_shows_it() {
        let mut composer = typed("see ");
        let text = "line\n".repeat(84);
        composer.paste(text.trim_end());
        assert_eq!(composer.draft().text(), "see [Pasted text #1, 84 lines]");
        assert_eq!(composer.draft().expanded(), format!("see {}", text.trim_end()));
        composer.paste(text.trim_end());
        assert_eq!(composer.draft().text(), format!("see {}", text.trim_end()));
        let mut composer = Composer::default();
        composer.paste("short\ntext");
        assert_eq!(composer.draft().text(), "short\ntext");
    }

    #[test]
    fn deleting_a_token_drops_its_text() {
        let mut composer = Composer::default();
        composer.paste(&"x".repeat(2_000));
        composer.key(Key::plain(KeyCode::Backspace), WIDTH);
        assert_eq!((composer.draft().text(), composer.draft().expanded().as_str()), ("", ""));
    }

    #[test]
    fn changes_can_be_taken_back() {
        let mut composer = typed("hello");
        composer.key(Key::ctrl('w'), WIDTH);
        assert_eq!(composer.draft().text(), "");
        composer.key(Key::ctrl('_'), WIDTH);
        assert_eq!(composer.draft().text(), "hello");
        composer.key(Key::ctrl('_'), WIDTH);
        assert_eq!(composer.draft().text(), "");
        composer.key(Key::alt(KeyCode::Char('_')), WIDTH);
        assert_eq!(composer.draft().text(), "hello");
    }

    #[test]
    fn what_is_put_before_a_draft_does_not_replace_it() {
        let mut composer = typed("draft");
        composer.put_before("interrupted");
        assert_eq!(composer.draft().text(), "interrupted\ndraft");
        composer.key(Key::char('!'), WIDTH);
        assert_eq!(composer.draft().text(), "interrupted\ndraft!");
        let mut empty = Composer::default();
        empty.put_before("again");
        assert_eq!((empty.draft().text(), empty.draft().cursor()), ("again", 5));
    }

    #[test]
    fn a_large_paste_is_quick() {
        let text = "some words on a line\n".repeat(50_000);
        let mut composer = Composer::default();
        composer.paste(&text);
        assert!(composer.draft().text().starts_with("[Pasted text #1"));
        assert_eq!(composer.take().expanded().len(), text.len());
    }
}
