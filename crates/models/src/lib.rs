//! Models: wire protocols over routes, and the two models that need no network.
//!
//! * Protocols: Anthropic Messages, OpenAI Chat Completions, OpenAI Responses.
//! * `scripted:PATH` answers from a playbook, `replay:PATH` from a recording, `offline` by rules.
//! * What a server accepts of its protocol is a [`Profile`]; [`profiles`] is the table.
//! * [`resolve`] turns a name, settings and the environment into something that implements
//!   [`qoder_core::ports::Model`].

mod anthropic;
mod body;
mod call;
mod call_id;
mod carry;
mod cassette;
mod catalog;
mod check;
mod client;
mod compose;
mod failure;
mod http;
mod image_answer;
mod images;
mod images_offline;
mod json;
mod learn;
mod list;
mod meaning;
mod media;
mod offline;
mod openai_chat;
mod openai_responses;
mod partial;
mod profile;
mod protocol;
mod provider;
mod read;
mod resolve;
mod retry;
mod route;
mod scripted;
mod settings;
mod side;
mod switched;
mod unpack;

pub use check::{Check, CheckReport, CheckedProfile, Finding, Probe, Progress, Verdict};
pub use client::HttpClients;
pub use images::resolve_image;
pub use learn::Learned;
pub use list::{ListedModel, list_models};
pub use profile::{
    ErrorWords, Images, ModelsList, NameForm, OutputLimit, Profile, ProfileInForce, ReasoningBack,
    SystemRole, Word, Wordings, Words, profile_in_force, profiles, provider_profiles,
};
pub use resolve::{SECRET_ENVIRONMENT, check_compat, configured_secrets, resolve, unpriced_model};
pub use settings::{ModelConfigError, ModelOptions, ModelSettings, Price, ProviderSettings};
pub use side::{ModelByName, side_model};
pub use switched::SwitchedModel;
