//! Records of inputs: messages that were accepted, and what became of those that are no turn.

use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::content::{ContentBlock, ImageSource, Message, MessageContent, Role};

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

/// The kinds of images that every provider reads.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Why a message of a user is not taken. A message that no provider accepts would stay in the conversation, and every later
/// request would fail for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputProblem {
    /// It speaks for the model.
    #[error("a user message has another role than `user`")]
    Role,
    /// It says nothing.
    #[error("a user message is empty")]
    Empty,
    /// It has a character that no provider takes.
    #[error("a user message contains a NUL character")]
    Nul,
    /// It has a block that only a model writes.
    #[error("a user message has a block of the type `{kind}`, which only a model writes")]
    OfModel {
        /// The block's type.
        kind: String,
    },
    /// It has a block that no provider can read.
    #[error("a user message has a block of the type `{kind}` that cannot be read: {problem}")]
    Malformed {
        /// The block's type.
        kind: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl InputProblem {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Role => "input_role",
            Self::Empty => "input_empty",
            Self::Nul => "input_nul",
            Self::OfModel { .. } => "input_block_of_model",
            Self::Malformed { .. } => "input_block_malformed",
        }
    }

    /// What its sender can do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Role => "leave `role` out, or set it to `user`",
            Self::Empty => "send a text, an image or a document",
            Self::Nul => "take the character out",
            Self::OfModel { .. } | Self::Malformed { .. } => {
                "send blocks of the types text, image (PNG, JPEG, GIF or WebP) and document; nothing was kept of this message"
            }
        }
    }
}

impl InputProblem {
    /// What is wrong with a block of a user's message, if anything.
    #[must_use]
    pub fn of_block(block: &ContentBlock) -> Option<Self> {
        let of_model = |kind: &str| Some(Self::OfModel { kind: kind.to_owned() });
        let malformed =
            |kind: &str, problem: String| Some(Self::Malformed { kind: kind.to_owned(), problem });
        match block {
            // The result of a call that is not open is read as text.
            ContentBlock::Text { .. } | ContentBlock::ToolResult { .. } => None,
            ContentBlock::Image { source } => malformed("image", source_problem(source, &IMAGES)?),
            ContentBlock::Document { source, .. } => malformed("document", source_problem(source, &[])?),
            ContentBlock::ToolUse { .. } => of_model("tool_use"),
            ContentBlock::Thinking { .. } => of_model("thinking"),
            ContentBlock::RedactedThinking { .. } => of_model("redacted_thinking"),
            ContentBlock::Unknown(value) => {
                let Some(kind) = value["type"].as_str().filter(|kind| !kind.is_empty()) else {
                    return malformed("?", "it has no `type`".to_owned());
                };
                match (kind, value["source"]["type"].as_str()) {
                    // Sources of other kinds, such as a file that the provider has, are the provider's matter.
                    ("image" | "document", Some("base64" | "url") | None) => {
                        malformed(kind, "its `source` is incomplete".to_owned())
                    }
                    ("text", _) => malformed(kind, "its `text` is not a string".to_owned()),
                    ("tool_use" | "thinking" | "redacted_thinking", _) => of_model(kind),
                    _ => None,
                }
            }
        }
    }
}

impl InputAdmitted {
    /// Whether the message can be sent to a model.
    ///
    /// # Errors
    /// When it cannot, with the reason.
    pub fn check(&self) -> Result<(), InputProblem> {
        if self.message.role != Role::User {
            return Err(InputProblem::Role);
        }
        let text = self.message.content.to_text();
        let blocks = match &self.message.content {
            MessageContent::Text(_) => [].as_slice(),
            MessageContent::Blocks(blocks) => blocks.as_slice(),
        };
        if text.trim().is_empty() && blocks.iter().all(|block| matches!(block, ContentBlock::Text { .. })) {
            return Err(InputProblem::Empty);
        }
        if text.contains('\0') {
            return Err(InputProblem::Nul);
        }
        blocks.iter().find_map(InputProblem::of_block).map_or(Ok(()), Err)
    }
}

/// What is wrong with the bytes of an image or document, or with their address.
fn source_problem(source: &ImageSource, kinds: &[&str]) -> Option<String> {
    match source {
        ImageSource::Base64 { media_type, .. }
            if !kinds.is_empty() && !kinds.contains(&media_type.as_str()) =>
        {
            Some(format!("`{media_type}` is not one of {}", kinds.join(", ")))
        }
        ImageSource::Base64 { data, .. } => {
            let bytes = data.trim_end_matches('=');
            let fits = !bytes.is_empty() && data.len() % 4 == 0 && data.len() - bytes.len() <= 2;
            let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
            (!fits || !bytes.bytes().all(known)).then(|| "its `data` is not base64".to_owned())
        }
        ImageSource::Url { url } => {
            let fits = url.starts_with("https://") || url.starts_with("http://") || url.starts_with("data:");
            (!fits).then(|| "its `url` is not a web address".to_owned())
        }
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
