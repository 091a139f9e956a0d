//! The part of a request in front of its messages: what decides it, and the parameters that a request may add.

use qoder_core::ports::ModelRequest;

use super::json;
use crate::profile::Profile;

/// The parts of a request that decide its head, besides system prompt and tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeadOptions {
    pub(crate) model: String,
    pub(crate) max_tokens: u64,
    /// True when the request set the limit or it is known: only then it is sent where it can be left out.
    pub(crate) is_limited: bool,
    pub(crate) profile: Profile,
}

/// Fields that requests have by themselves.
const OWN_FIELDS: [&str; 19] = [
    "model",
    "stream",
    "stream_options",
    "store",
    "include",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "system",
    "instructions",
    "tools",
    "thinking",
    "reasoning",
    "reasoning_effort",
    "output_config",
    "cache_control",
    "prompt_cache_key",
    "messages",
    "input",
];

/// Writes the parameters of a request that it does not have by itself.
pub(crate) fn write_parameters(out: &mut Vec<u8>, request: &ModelRequest, profile: &Profile) {
    for (name, value) in &request.parameters {
        if !OWN_FIELDS.contains(&name.as_str()) && profile.sends(name) {
            json::field(out, name, value);
        }
    }
}
