//! Records of inputs: messages that were accepted, and what became of those that are no turn.

use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::content::Message;

/// Who an input is from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputOrigin {
    /// The user: it opens a turn.
    #[default]
    User,
    /// The operator: the model reads it before the next prompt, and it opens no turn.
    System,
    /// The user, for the shell: the command runs, the model reads its output before the next prompt, and no model is asked.
    Shell,
}

impl InputOrigin {
    pub(crate) fn is_user(&self) -> bool {
        *self == Self::User
    }
}

/// An input accepted while a turn was running; it becomes a [`UserEntry`](super::UserEntry) when its turn starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputAdmitted {
    /// The id the sender gave it, or a new one.
    pub input_id: String,
    /// The message.
    pub message: Message,
    /// Who it is from.
    #[serde(default, skip_serializing_if = "InputOrigin::is_user")]
    pub origin: InputOrigin,
}

impl InputAdmitted {
    /// A message of the user.
    #[must_use]
    pub fn user(input_id: impl Into<String>, message: Message) -> Self {
        Self { input_id: input_id.into(), message, origin: InputOrigin::User }
    }

    /// A command of the user for the shell.
    #[must_use]
    pub fn shell(input_id: impl Into<String>, command: impl Into<String>) -> Self {
        Self { input_id: input_id.into(), message: Message::user(command), origin: InputOrigin::Shell }
    }

    /// A text of the operator.
    #[must_use]
    pub fn system(input_id: impl Into<String>, message: Message) -> Self {
        Self { input_id: input_id.into(), message, origin: InputOrigin::System }
    }
}

/// An admitted input that will not become a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputWithdrawn {
    /// The input.
    pub input_id: String,
    /// What took it back, for people.
    pub by: Actor,
}
