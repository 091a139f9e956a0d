//! What servers ask of us: input of a person, the session's folders, and credentials. The owner of the session answers;
//! where no one can be asked, [`NoAnswerer`] cancels.

use std::path::PathBuf;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::authorization::OAuthToken;

/// A server wants input of a person (form mode; the other mode is refused before it gets here).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elicitation {
    /// The server, by the name of its configuration.
    pub server_name: String,
    /// What it says to the person: untrusted.
    pub message: String,
    /// Always `form`.
    pub mode: String,
    /// The server's id of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// JSON Schema of the wanted content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Value>,
    /// A heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the server calls itself, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
}

/// What the person did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitationAction {
    /// Gave the content.
    Accept,
    /// Said no.
    Decline,
    /// Did not answer.
    Cancel,
}

/// The answer to an [`Elicitation`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElicitationAnswer {
    /// What the person did.
    pub action: ElicitationAction,
    /// What was entered; fits the requested schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
}

impl ElicitationAnswer {
    /// No one answered.
    #[must_use]
    pub fn cancel() -> Self {
        Self { action: ElicitationAction::Cancel, content: None }
    }
}

/// A server wants credentials, and a person must get them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OAuthQuestion {
    /// The server, by the name of its configuration.
    pub server_name: String,
    /// Its address.
    pub server_url: String,
    /// Where the person grants access.
    pub auth_url: String,
    /// The state that the callback must bring back.
    pub state: String,
    /// What is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// Where the server describes itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_metadata_url: Option<String>,
}

/// The answer to an [`OAuthQuestion`].
#[derive(Debug, Clone, PartialEq)]
pub enum OAuthAnswer {
    /// A token that was got elsewhere.
    Token(OAuthToken),
    /// The whole URL that the browser was sent to.
    CallbackUrl(String),
    /// The two parts of it that matter.
    Code {
        /// The authorization code.
        code: String,
        /// The state as it came back.
        state: String,
    },
    /// No.
    Rejected,
}

/// One message of a server's question to our model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleMessage {
    /// True for what a model is said to have answered.
    pub is_reply: bool,
    /// What it says: untrusted.
    pub text: String,
}

/// A server wants a reply of our model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampling {
    /// The server, by the name of its configuration.
    pub server_name: String,
    /// How the model shall answer.
    pub system_prompt: Option<String>,
    /// The conversation.
    pub messages: Vec<SampleMessage>,
    /// The longest reply.
    pub max_tokens: u32,
}

/// What the model said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// Which model it was.
    pub model: String,
    /// Its words.
    pub text: String,
}

/// Why a server gets no reply of our model. The text is for the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// Nothing can be asked.
    #[error("there is no model to ask")]
    NoModel,
    /// The session is over, its money is spent, or the model failed.
    #[error("{0}")]
    Failed(String),
}

impl SampleError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoModel => "sampling_no_model",
            Self::Failed(_) => "sampling_failed",
        }
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoModel => "Ask while a session is open.",
            Self::Failed(_) => "Ask again later, or continue without a reply.",
        }
    }
}

impl From<String> for SampleError {
    fn from(problem: String) -> Self {
        Self::Failed(problem)
    }
}

/// Who answers the questions of servers.
pub trait ServerQuestions: Send + Sync {
    /// Input of a person. The answer is checked against the schema by the asker.
    fn elicit(&self, question: Elicitation) -> BoxFuture<'static, ElicitationAnswer>;
    /// The directories that the session works in, real paths.
    fn roots(&self) -> Vec<PathBuf>;
    /// True when [`authorize`](Self::authorize) reaches a person or host; otherwise a server that wants credentials stays in
    /// `needs-auth`.
    fn can_authorize(&self) -> bool;
    /// Credentials for a server.
    fn authorize(&self, question: OAuthQuestion) -> BoxFuture<'static, OAuthAnswer>;
    /// A reply of the session's model; only servers whose description allows it get here.
    fn sample(&self, _: Sampling) -> BoxFuture<'static, Result<Sampled, SampleError>> {
        std::future::ready(Err(SampleError::NoModel)).boxed()
    }
}

/// Answers when no one can be asked.
#[derive(Debug, Default)]
pub struct NoAnswerer;

impl ServerQuestions for NoAnswerer {
    fn elicit(&self, _: Elicitation) -> BoxFuture<'static, ElicitationAnswer> {
        std::future::ready(ElicitationAnswer::cancel()).boxed()
    }

    fn roots(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn can_authorize(&self) -> bool {
        false
    }

    fn authorize(&self, _: OAuthQuestion) -> BoxFuture<'static, OAuthAnswer> {
        std::future::ready(OAuthAnswer::Rejected).boxed()
    }
}
