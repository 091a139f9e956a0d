//! What a query asks: one text, or messages that follow one another.

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};

use super::{Role, UserMessage};

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

/// Why a message cannot be a prompt, if so.
pub(crate) fn complaint(message: &UserMessage) -> Option<&'static str> {
    let text = message.text();
    if message.message.role != Role::User {
        return Some("a user message has another role than `user`");
    }
    if text.trim().is_empty() && message.content().is_empty() {
        return Some("a user message is empty");
    }
    text.contains('\0').then_some("a user message contains a NUL character")
}
