//! Why an answer to a question does not count.

use qoder_types::AskKind;

use crate::question::Answer;

/// Why an answer does not count.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AnswerError {
    /// Another answer was first.
    #[error("the call was answered before: {} by {}", .0.word(), .0.by)]
    Lost(Box<Answer>),
    /// The question was taken back.
    #[error("the question was withdrawn: its turn was interrupted or the session ended")]
    Withdrawn,
    /// There is no such question.
    #[error("the call waits for no answer")]
    NotPending,
    /// Several agents wait with a call of this id.
    #[error("several agents wait with a call of this ID; name the agent")]
    Ambiguous,
    /// The question wants another kind of answer.
    #[error("{}", wrong_kind(*.0))]
    WrongKind(AskKind),
    /// The result has a block that a tool result cannot contain.
    #[error("a tool result cannot contain a `{0}` block; send text, image or document blocks")]
    UnusableBlock(&'static str),
    /// The answer did not reach the process or server that drives the session.
    #[error("the answer was not delivered: {0}")]
    Undelivered(String),
}

impl AnswerError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Lost(_) => "answer_lost",
            Self::Withdrawn => "answer_withdrawn",
            Self::NotPending => "answer_not_pending",
            Self::Ambiguous => "answer_ambiguous",
            Self::WrongKind(_) => "answer_wrong_kind",
            Self::UnusableBlock(_) => "answer_unusable_block",
            Self::Undelivered(_) => "answer_undelivered",
        }
    }

    /// Why an answer cannot be one to a question of this kind.
    #[must_use]
    pub fn of_misfit(answer: &Answer, kind: AskKind) -> Option<Self> {
        match (&answer.result, kind) {
            (Some(result), AskKind::External) => result.unusable_block().map(Self::UnusableBlock),
            (None, AskKind::Permission) => None,
            (None, AskKind::External) if !answer.allow => None,
            (Some(_), AskKind::Permission) | (None, AskKind::External) => Some(Self::WrongKind(kind)),
        }
    }
}

fn wrong_kind(wanted: AskKind) -> &'static str {
    match wanted {
        AskKind::Permission => "the call waits for permission: answer allow or deny, not a result",
        AskKind::External => "the call runs outside the runtime: answer with its result, or deny it",
    }
}
