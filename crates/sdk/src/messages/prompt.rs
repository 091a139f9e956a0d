//! What a query asks: one text, or messages that follow one another.

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};

use qoder_protocol::{InputAdmitted, InputProblem};

use super::UserMessage;
use crate::error::{Error, Result};

/// What a query asks. A text is one turn; of a stream each message is a turn, and the query ends after the last.
///
/// ```
/// # use qoder_agent_sdk::{Prompt, UserMessage};
/// let one: Prompt = "What is in this folder?".into();
/// let two = Prompt::stream(futures::stream::iter([UserMessage::new("Hello"), UserMessage::new("And now?")]));
/// # drop((one, two));
/// ```
pub enum Prompt {
    /// One text.
    Text(String),
    /// Messages that follow one another.
    Messages(BoxStream<'static, UserMessage>),
}

impl Prompt {
    /// Messages that follow one another.
    pub fn stream(messages: impl Stream<Item = UserMessage> + Send + 'static) -> Self {
        Self::Messages(messages.boxed())
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<UserMessage> for Prompt {
    fn from(message: UserMessage) -> Self {
        Self::stream(futures::stream::iter([message]))
    }
}

impl std::fmt::Debug for Prompt {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => formatter.debug_tuple("Text").field(text).finish(),
            Self::Messages(_) => formatter.write_str("Messages(…)"),
        }
    }
}

/// Whether a model would take a message.
///
/// # Errors
/// When it would not, with the reason.
pub(crate) fn check(message: &UserMessage) -> Result<()> {
    let input = InputAdmitted::user(String::new(), message.message.clone().into());
    input.check().map_err(|problem| refused(&problem))
}

/// The error for a message that no model would take.
pub(crate) fn refused(problem: &InputProblem) -> Error {
    let hint = match problem {
        InputProblem::Empty => "say what the model shall do",
        _ => problem.hint(),
    };
    Error::option("prompt", problem.to_string(), hint)
}
