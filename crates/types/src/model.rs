//! What is said between the runtime and a model: purposes, replies, usage, stop reasons and failures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::ContentBlock;

/// Why a model is called.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The conversation itself.
    #[default]
    Main,
    /// A summary that replaces older messages.
    Compact,
    /// The conversation of a subagent.
    Subagent,
    /// Reading a fetched page.
    WebFetch,
    /// Judging whether a call is safe in auto mode.
    Classifier,
    /// A title for the session.
    Title,
    /// What the person might ask next.
    Suggestion,
    /// A reply for an MCP server that may ask.
    Sampling,
    /// Judging an event for a hook that is a prompt.
    HookPrompt,
    /// Grading work against a rubric.
    Grading,
    /// Making a picture.
    ImageGen,
}

/// Token counts of one or several model calls. Parts do not overlap: the total is the sum of all four.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to the provider's cache.
    pub input_tokens: u64,
    /// Tokens the model wrote, reasoning included.
    pub output_tokens: u64,
    /// Input tokens written to the provider's cache.
    pub cache_creation_input_tokens: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read_input_tokens: u64,
}

impl Usage {
    /// Adds another count to this one.
    pub fn add(&mut self, other: &Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_creation_input_tokens += other.cache_creation_input_tokens;
        self.cache_read_input_tokens += other.cache_read_input_tokens;
    }

    /// Everything the model read.
    #[must_use]
    pub fn total_input(&self) -> u64 {
        self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens
    }
}

/// Usage and money per model, as `modelUsage` in a result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelTotals {
    /// See [`Usage::input_tokens`].
    pub input_tokens: u64,
    /// See [`Usage::output_tokens`].
    pub output_tokens: u64,
    /// See [`Usage::cache_read_input_tokens`].
    pub cache_read_input_tokens: u64,
    /// See [`Usage::cache_creation_input_tokens`].
    pub cache_creation_input_tokens: u64,
    /// Searches done by the provider.
    pub web_search_requests: u64,
    /// Money by the price table; 0 when the model has no price.
    #[serde(rename = "costUSD")]
    pub cost_usd: f64,
    /// The model's context window in tokens.
    pub context_window: u64,
    /// The most tokens one reply may have.
    pub max_output_tokens: u64,
}

impl ModelTotals {
    /// The tokens alone.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cache_creation_input_tokens: self.cache_creation_input_tokens,
            cache_read_input_tokens: self.cache_read_input_tokens,
        }
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had nothing more to say.
    EndTurn,
    /// It waits for tool results.
    ToolUse,
    /// The output limit cut it off.
    MaxTokens,
    /// A stop sequence was met.
    StopSequence,
    /// The provider paused; calling again continues.
    PauseTurn,
    /// The model or its provider refused.
    Refusal,
    /// A reason this version does not know.
    #[serde(untagged)]
    Other(String),
}

impl StopReason {
    /// The documented word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::StopSequence => "stop_sequence",
            Self::PauseTurn => "pause_turn",
            Self::Refusal => "refusal",
            Self::Other(word) => word,
        }
    }
}

impl std::ops::Deref for StopReason {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

/// A complete reply of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelReply {
    /// The provider's id of the message.
    pub id: String,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// The provider that was asked, by its name in the GenAI conventions of OpenTelemetry where it has one.
    pub provider: String,
    /// What it said.
    pub content: Vec<ContentBlock>,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// What it cost in tokens.
    pub usage: Usage,
    /// The provider's id of the request, from the response headers.
    pub request_id: Option<String>,
    /// Time from request to end of reply, retries included.
    pub duration_api_ms: u64,
    /// Price in dollars, 0 without a price.
    pub cost_usd: f64,
}

/// The kinds of failure that callers can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFailureClass {
    /// The key is missing, wrong or expired (401).
    Authentication,
    /// The key may not do this (403).
    Permission,
    /// The quota or credit of the account is used up (402), which no retry mends.
    Quota,
    /// No such model or address (404).
    NotFound,
    /// Too many requests (429).
    RateLimit,
    /// The provider has no capacity (503, 529).
    Overloaded,
    /// The request is longer than the model's window.
    ContextTooLong,
    /// The provider does not accept the request (other 4xx).
    InvalidRequest,
    /// The provider failed (5xx).
    Server,
    /// No connection, or it broke.
    Network,
    /// Nothing arrived for too long, or the whole call took too long.
    Timeout,
    /// What arrived is not what the protocol says.
    MalformedStream,
    /// The settings do not describe a model that can be called.
    Configuration,
}

/// Something that a model call did otherwise than asked, so that the server takes the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelNoticed {
    /// The model that was asked.
    pub model: String,
    /// For people: what happened and what to do.
    pub message: String,
    /// The server and model that it is about.
    pub place: String,
    /// What was learned about the server, as `compat` of a provider in the settings has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compat: Option<serde_json::Value>,
}

/// A model call that failed for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelFailure {
    /// What kind of failure.
    pub class: ModelFailureClass,
    /// What to tell a person, with the endpoint's own words.
    pub message: String,
    /// The HTTP status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the endpoint asked to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}
