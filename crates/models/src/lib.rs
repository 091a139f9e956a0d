//! Models: wire protocols over routes, and the two models that need no network.
//!
//! * Protocols: Anthropic Messages, OpenAI Chat Completions, OpenAI Responses.
//! * `scripted:PATH` answers from a playbook, `replay:PATH` from a recording, `offline` by rules.
//! * [`resolve`] turns a name, settings and the environment into something that implements
//!   [`qoder_core::ports::Model`].

mod anthropic;
mod body;
mod call;
mod call_id;
mod cassette;
mod catalog;
mod client;
mod failure;
mod http;
mod image_answer;
mod images;
mod images_offline;
mod json;
mod list;
mod offline;
mod openai_chat;
mod openai_responses;
mod partial;
mod protocol;
mod provider;
mod resolve;
mod retry;
mod route;
mod scripted;
mod settings;

pub use images::resolve_image;
pub use list::{ListedModel, list_models};
pub use resolve::{SECRET_ENVIRONMENT, configured_secrets, resolve, unpriced_model};
pub use settings::{ModelConfigError, ModelOptions, ModelSettings, Price, ProviderSettings};
