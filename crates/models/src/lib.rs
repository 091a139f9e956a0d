//! Models: wire protocols over routes, and the two models that need no network.
//!
//! * Protocols: Anthropic Messages, OpenAI Chat Completions, OpenAI Responses.
//! * `scripted:PATH` answers from a playbook, `replay:PATH` from a recording, `offline` by rules.
//! * What a server accepts of its protocol is a [`Profile`]; [`profiles`] is the table.
//! * [`resolve()`] turns a name, settings and the environment into something that implements
//!   [`qoder_core::ports::Model`].
//!
//! From the bottom: `protocol` and `profile` say how a server is spoken to, `routes` how it is reached, `failure` what
//! went wrong there. `wires` writes requests and reads replies; `learn` changes a profile after a refusal; `settings`
//! configure all of it. `calls` retries; `exchange`, `offline` and `scripted` are what it asks. `resolve`, `images` and
//! `check` build on everything else.

mod calls;
mod check;
mod error;
mod exchange;
mod failure;
mod images;
mod learn;
mod offline;
mod profile;
mod protocol;
mod resolve;
mod routes;
mod scripted;
mod settings;
mod wires;

pub use calls::{ModelByName, SwitchedModel, side_model};
pub use check::{Check, CheckReport, CheckedProfile, Finding, Probe, Progress, Verdict};
pub use error::ModelConfigError;
pub use images::resolve_image;
pub use learn::Learned;
pub use profile::{
    ErrorWords, Images, ModelsList, NameForm, OutputLimit, Profile, ProfileInForce, ReasoningBack,
    SystemRole, Word, Wordings, Words, profiles,
};
pub use resolve::{
    ListedModel, SECRET_ENVIRONMENT, check_compat, configured_secrets, is_tier, list_models,
    profile_in_force, provider_profiles, resolve, unpriced_model,
};
pub use routes::HttpClients;
pub use settings::{ModelOptions, ModelSettings, Price, ProviderSettings};
