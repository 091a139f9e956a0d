//! Compatibility profiles: what a server accepts of the wire protocol that it says it speaks.
//!
//! The rows are data ([`table`]); [`choose`] picks one for a route and says why; [`overrides`] reads what settings and
//! SDKs change in it; [`schema`] cuts schemas to what a server takes. Requests are built from the profile alone: no
//! other code asks which provider is behind a route.

pub(crate) mod choose;
pub(crate) mod overrides;
pub(crate) mod schema;
mod table;
mod words;

use qoder_types::ModelFailureClass;
use serde::{Deserialize, Serialize};

pub use choose::ProfileInForce;
pub(crate) use table::{UNKNOWN_CHAT, UNKNOWN_MESSAGES, UNKNOWN_RESPONSES};
pub(crate) use words::{keep as keep_word, keep_all as keep_words};

/// A word of a profile. It is never freed: the rows are static, and words from settings are kept once.
pub type Word = &'static str;
/// Words of a profile.
pub type Words = &'static [&'static str];
/// How a server words its errors, in lower case.
pub type Wordings = &'static [ErrorWords];

/// What a server accepts, and in which form. Field names in settings are those of this type in camel case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Profile {
    /// The name to write into `compat`.
    #[serde(deserialize_with = "words::word")]
    pub name: Word,
    /// The name for people.
    #[serde(deserialize_with = "words::word")]
    pub title: Word,
    /// Fields of a request that are never sent. `cache_control` means the one beside `messages`.
    #[serde(deserialize_with = "words::words")]
    pub never_sent: Words,
    /// The field that limits the output in Chat Completions.
    pub output_limit: OutputLimit,
    /// The most output tokens that may be asked for; `null` leaves it to the model.
    pub most_output_tokens: Option<u64>,
    /// The ids of calls that are accepted.
    pub call_ids: NameForm,
    /// The names of tools that are accepted.
    pub tool_names: NameForm,
    /// Where images are accepted.
    pub images: Images,
    /// True when two messages of one role in a row are refused; they are sent as one.
    pub roles_alternate: bool,
    /// False when a user message behind tool results is refused; an assistant message is put in between.
    pub user_after_tool: bool,
    /// How reasoning goes back in Chat Completions.
    pub reasoning: ReasoningBack,
    /// True when every assistant message with calls must carry reasoning.
    pub reasoning_required: bool,
    /// True when reasoning goes back although no signature or encrypted content came with it (Messages and Responses).
    pub unsigned_reasoning: bool,
    /// True when `<think>…</think>` at the start of the text is reasoning.
    pub think_tags: bool,
    /// The role of the system prompt in Chat Completions.
    pub system_role: SystemRole,
    /// Keywords that the schemas of tools must not contain.
    #[serde(deserialize_with = "words::words")]
    pub refused_schema_keywords: Words,
    /// False when an empty text is refused, such as the result of a command without output.
    pub empty_text: bool,
    /// False when `"content": null` beside calls is refused; an empty text is sent instead.
    pub null_content: bool,
    /// True when `cache_control` is accepted inside system blocks and tools (Messages).
    pub cache_marks: bool,
    /// The form of the list of models.
    pub models_list: ModelsList,
    /// What errors mean that the server words in its own way.
    #[serde(deserialize_with = "words::wordings")]
    pub error_words: Wordings,
}

/// Which names are accepted: length, and characters besides letters and digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NameForm {
    /// The fewest characters.
    pub shortest: usize,
    /// The most characters.
    pub longest: usize,
    /// Characters that are accepted besides ASCII letters and digits.
    #[serde(deserialize_with = "words::word")]
    pub further: Word,
}

/// The field that limits the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputLimit {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
    /// `max_completion_tokens` for OpenAI models that reason, `max_tokens` for all others.
    ByModel,
    /// No field.
    None,
}

/// Where images are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Images {
    /// In user messages and in tool results, as far as the protocol has a place for them.
    Everywhere,
    /// In user messages; those of tool results follow in one.
    UserMessage,
    /// Nowhere: a text replaces each.
    None,
}

/// How reasoning goes back in Chat Completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningBack {
    /// Under the name that it came under, with everything that came beside it.
    AsReceived,
    /// As `reasoning_content`.
    ReasoningContent,
    /// As `reasoning`.
    Reasoning,
    /// As `thinking_blocks` with their signatures, and as `reasoning_content`.
    ThinkingBlocks,
    /// As `<think>…</think>` in front of the text.
    ThinkTags,
    /// Not at all.
    None,
}

/// The role of the system prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemRole {
    /// `system`.
    System,
    /// `developer`.
    Developer,
}

/// The form of a list of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelsList {
    /// `{"data": [{"id": …}]}` below `/v1/models`.
    Data,
    /// `[{"id": …}]` below `/v1/models`.
    Array,
    /// `{"models": [{"name": …}]}` below `/api/tags`, where `/v1/models` is missing.
    Tags,
    /// `models/NAME` as ids.
    Resources,
    /// No list of models.
    None,
}

/// Words of a server's error, and the class of failure they mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ErrorWords {
    /// A part of the error, in lower case.
    #[serde(deserialize_with = "words::word")]
    pub says: Word,
    /// The class of the failure.
    pub means: ModelFailureClass,
}

impl std::hash::Hash for ErrorWords {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // The class follows from the settings that named the words.
        self.says.hash(state);
    }
}

impl Profile {
    /// True when this field of a request is sent.
    #[must_use]
    pub fn sends(&self, field: &str) -> bool {
        !self.never_sent.contains(&field)
    }

    /// A number that differs between profiles, to recognise messages that were encoded for another one.
    pub(crate) fn fingerprint(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// Every profile that is built in.
#[must_use]
pub fn profiles() -> &'static [Profile] {
    table::PROFILES
}
