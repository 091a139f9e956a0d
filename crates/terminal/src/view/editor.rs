//! Programs that get the terminal for a while: the editor. Everything is given back first and taken again afterwards.

use std::sync::Arc;

use super::{App, Dirty};
use crate::composer::Draft;
use crate::questions::Asked;
use crate::state::Level;

/// What is to be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Edit {
    /// What is being written.
    Draft,
    /// The input or the plan of the question; this is its text.
    Question(String),
    /// A file.
    File(String),
}

impl App {
    /// Lets the person edit, when that was asked for.
    pub(super) async fn edit_if_wanted(&mut self) {
        let Some(edit) = self.edit.take() else { return };
        self.writer.idle().await;
        self.writer.write(self.surface.erase());
        self.writer.idle().await;
        self.hand_over();
        let machine = Arc::clone(&self.front.machine);
        let edited = match &edit {
            Edit::Draft => machine.edit_text(&self.composer.draft().expanded(), "prompt.md"),
            Edit::Question(text) => machine.edit_text(text, "input.txt"),
            Edit::File(path) => machine.edit_file(path).map(|()| String::new()),
        };
        self.take_again();
        match (edited, edit) {
            (Ok(text), Edit::Draft) => self.composer.set(Draft::of(text.trim_end().to_owned())),
            (Ok(text), Edit::Question(before)) if text != before => self.take_edited(&text),
            (Ok(_), Edit::Question(_) | Edit::File(_)) => {}
            (Err(error), _) => self.conversation.notice(Level::Error, error.to_string()),
        }
        self.touch(Dirty::Now);
    }

    /// An edited plan is what is approved; an edited input is judged again.
    fn take_edited(&mut self, text: &str) {
        let by = self.front.machine.person();
        let Some(question) = &mut self.question else { return };
        match &mut question.asked {
            Asked::Plan(plan) => plan.edit(text.trim_end().to_owned()),
            Asked::Permission(permission) => match permission.edited(text, &by) {
                Ok(answer) => {
                    let action = permission.action();
                    self.answer(action, answer);
                }
                Err(error) => self.conversation.notice(Level::Error, error.to_string()),
            },
            Asked::Choices(_) | Asked::Form(_) | Asked::Trust(_) => {}
        }
    }
}
