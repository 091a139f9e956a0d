//! The port of image models: what is asked of one, what it answers, and the ways in which it fails. A picture arrives as
//! bytes or as an address; fetching an address is the caller's business, under the rules for fetches.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::future::BoxFuture;
use qoder_types::{ModelFailure, ModelFailureClass, Usage};
use serde_json::Value;

/// A picture that goes to the model.
#[derive(Debug, Clone)]
pub struct InputImage {
    /// The name of its file, without a folder.
    pub file_name: String,
    /// Such as `image/png`.
    pub media_type: String,
    /// The file's bytes.
    pub bytes: Bytes,
}

/// One request to an image model.
#[derive(Debug, Clone, Default)]
pub struct ImageRequest {
    /// The session that asks.
    pub session_id: String,
    /// What the picture shows, or how the input picture changes.
    pub prompt: String,
    /// `WIDTHxHEIGHT` or `auto`; `None` is the model's own choice.
    pub size: Option<String>,
    /// A word of the provider, such as `high`.
    pub quality: Option<String>,
    /// How many pictures.
    pub count: u32,
    /// The wanted format: `png`, `jpeg` or `webp`. The model may answer with another.
    pub format: &'static str,
    /// A picture to change; none makes a new one.
    pub input: Option<InputImage>,
    /// What the provider's request gets besides.
    pub parameters: BTreeMap<String, Value>,
}

/// A picture as the model sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MadeImage {
    /// The file itself.
    Bytes(Bytes),
    /// Where it can be fetched for a while.
    Url(String),
}

/// A complete answer of an image model.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageReply {
    /// The model that answered.
    pub model: String,
    /// The provider that was asked, by its name in the GenAI conventions of OpenTelemetry where it has one.
    pub provider: String,
    /// The pictures; at least one.
    pub images: Vec<MadeImage>,
    /// The prompt as the provider rewrote it.
    pub revised_prompt: Option<String>,
    /// Tokens, where the provider counts them.
    pub usage: Usage,
    /// Price in dollars, 0 without a price.
    pub cost_usd: f64,
    /// Time from request to answer, retries included.
    pub duration_api_ms: u64,
}

/// An image request that failed for good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageFailure {
    /// No image model is configured.
    #[error("no image model can be used: {0}")]
    NoModel(String),
    /// The provider does not make this picture.
    #[error("the provider refused the prompt: {0}")]
    Refused(String),
    /// The account has no money or quota left; waiting does not help.
    #[error("the quota of the account is used up: {0}")]
    Quota(String),
    /// The model cannot make pictures of this size.
    #[error("the model does not make pictures of this size: {0}")]
    BadSize(String),
    /// The answer holds no picture.
    #[error("the answer holds no picture: {0}")]
    NotAnImage(String),
    /// A picture, or the whole answer, is larger than what is taken.
    #[error("the picture is too large: {0}")]
    TooLarge(String),
    /// Everything that can happen to a call of any model.
    #[error("{}", .0.message)]
    Model(ModelFailure),
}

impl ImageFailure {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoModel(_) => "image_no_model",
            Self::Refused(_) => "image_refused",
            Self::Quota(_) => "image_quota",
            Self::BadSize(_) => "image_bad_size",
            Self::NotAnImage(_) => "image_not_an_image",
            Self::TooLarge(_) => "image_too_large",
            Self::Model(failure) => match failure.class {
                ModelFailureClass::Authentication => "image_authentication",
                ModelFailureClass::Permission => "image_permission",
                ModelFailureClass::Quota => "image_quota",
                ModelFailureClass::NotFound => "image_model_not_found",
                ModelFailureClass::RateLimit => "image_rate_limit",
                ModelFailureClass::Overloaded => "image_overloaded",
                ModelFailureClass::ContextTooLong => "image_prompt_too_long",
                ModelFailureClass::InvalidRequest => "image_invalid_request",
                ModelFailureClass::Server => "image_server",
                ModelFailureClass::Network => "image_network",
                ModelFailureClass::Timeout => "image_timeout",
                ModelFailureClass::MalformedStream => "image_unreadable_answer",
                ModelFailureClass::Configuration => "image_configuration",
            },
        }
    }

    /// What to do next, for the model that called the tool.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoModel(_) => "Tell the user to set `model.image`.",
            Self::Refused(_) => {
                "Change the prompt, or tell the user that the provider does not make this picture."
            }
            Self::Quota(_) => "Do not try again; tell the user.",
            Self::BadSize(_) => "Leave `size` out, or use one that the provider names.",
            Self::NotAnImage(_) => "Try once more, or tell the user.",
            Self::TooLarge(_) => {
                "Ask for a smaller size, for fewer pictures, or give a smaller input picture."
            }
            Self::Model(failure) => match failure.class {
                ModelFailureClass::Authentication | ModelFailureClass::Permission => {
                    "Tell the user to check the key of the image model's provider."
                }
                ModelFailureClass::Quota => {
                    "Tell the user to check the plan and billing of the image model's provider."
                }
                ModelFailureClass::NotFound | ModelFailureClass::Configuration => {
                    "Tell the user to check `model.image` and the provider it names."
                }
                ModelFailureClass::InvalidRequest | ModelFailureClass::ContextTooLong => {
                    "Change what the provider complains about."
                }
                ModelFailureClass::RateLimit
                | ModelFailureClass::Overloaded
                | ModelFailureClass::Server
                | ModelFailureClass::Network
                | ModelFailureClass::Timeout
                | ModelFailureClass::MalformedStream => "Try again later.",
            },
        }
    }
}

impl From<ModelFailure> for ImageFailure {
    fn from(failure: ModelFailure) -> Self {
        Self::Model(failure)
    }
}

/// A model that makes pictures.
///
/// Contract: the future never panics, ends with a complete answer or a failure, and stops all work when it is dropped.
pub trait ImageModel: Send + Sync {
    /// False while no model is known; the tool is then not offered.
    fn is_known(&self) -> bool {
        true
    }

    /// Finds out whether there is a model, before the first turn of the session `session_id`. `None` when that is known.
    fn learn(&self, session_id: &str) -> Option<BoxFuture<'static, ()>> {
        let _ = session_id;
        None
    }

    /// Makes pictures.
    fn make(&self, request: ImageRequest) -> BoxFuture<'static, Result<ImageReply, ImageFailure>>;
}
