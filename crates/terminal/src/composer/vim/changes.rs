//! Commands that change text at the cursor: another character, another case, lines joined, a register put, the last change
//! once more.

use super::Vim;
use crate::composer::Composer;

impl Vim {
    pub(super) fn replace(&mut self, sign: char, composer: &mut Composer) -> bool {
        let cursor = composer.draft.cursor();
        if cursor < composer.draft.line_end(cursor) {
            let end = composer.draft.right_of(cursor);
            composer.replace(cursor..end, sign.encode_utf8(&mut [0; 4]));
            composer.go(super::super::draft::Draft::left_of);
            self.changes = true;
        }
        true
    }

    pub(super) fn switch_case(&mut self, composer: &mut Composer) {
        for _ in 0..self.times() {
            let cursor = composer.draft.cursor();
            let end = composer.draft.right_of(cursor);
            if cursor == composer.draft.line_end(cursor) {
                break;
            }
            let text: String = composer.draft.text()[cursor..end]
                .chars()
                .flat_map(|sign| -> Vec<char> {
                    if sign.is_uppercase() {
                        sign.to_lowercase().collect()
                    } else {
                        sign.to_uppercase().collect()
                    }
                })
                .collect();
            composer.replace(cursor..end, &text);
        }
        self.changes = true;
    }

    pub(super) fn join(&mut self, composer: &mut Composer) {
        let end = composer.draft.line_end(composer.draft.cursor());
        if end < composer.draft.text().len() {
            let next = end + 1 + composer.draft.text()[end + 1..].len()
                - composer.draft.text()[end + 1..].trim_start_matches([' ', '\t']).len();
            composer.replace(end..next, " ");
            composer.go(|_, _| end);
            self.changes = true;
        }
    }

    pub(super) fn put(&mut self, behind: bool, composer: &mut Composer) {
        let (text, linewise) = self.register.clone();
        if text.is_empty() {
            return;
        }
        let cursor = composer.draft.cursor();
        let text = text.repeat(self.times().min(100));
        if linewise {
            let (start, end) = (composer.draft.line_start(cursor), composer.draft.line_end(cursor));
            composer.go(|_, _| if behind { end } else { start });
            composer.insert(&if behind { format!("\n{text}") } else { format!("{text}\n") });
            composer.go(|_, _| if behind { end + 1 } else { start });
        } else {
            let end = composer.draft.line_end(cursor);
            let place = if behind { composer.draft.right_of(cursor).min(end.max(cursor)) } else { cursor };
            composer.go(|_, _| place);
            composer.insert(&text);
            composer.go(super::super::draft::Draft::left_of);
        }
        self.changes = true;
    }

    /// Gives the last command that changed something once more.
    pub(super) fn repeat(&mut self, composer: &mut Composer) {
        let keys = self.last_change.clone();
        self.reset();
        self.repeating = true;
        for key in keys {
            if self.key(key, composer).is_none() {
                composer.edit_key(key, usize::MAX);
            }
        }
        self.repeating = false;
        self.changes = false;
    }
}
