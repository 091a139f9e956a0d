//! What people configure about models: the shape of the settings, and what follows from it for one model. Unknown keys are
//! ignored so that older versions read newer files.

pub(crate) mod catalog;
mod options;

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

pub use options::ModelOptions;

/// Settings of models, as read from the JSON of settings files. Every key is optional.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelSettings {
    /// Providers by the name that people put in front of a model, as in `work/gpt-5`.
    pub providers: BTreeMap<String, ProviderSettings>,
    /// Model names for the tiers `auto`, `ultimate`, `performance`, `efficient` and `lite`.
    pub tiers: BTreeMap<String, String>,
    /// Prices by model id; they win over the built-in ones.
    pub prices: BTreeMap<String, Price>,
    /// Context windows in tokens by model id.
    pub context_windows: BTreeMap<String, u64>,
    /// Output limits in tokens by model id.
    pub max_output_tokens: BTreeMap<String, u64>,
}

/// One provider in the settings.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderSettings {
    /// `anthropic-messages` (or `anthropic`), `openai-chat` (or `openai`) or `openai-responses`.
    pub protocol: Option<String>,
    /// The address, with or without `/v1`.
    pub base_url: Option<String>,
    /// The key itself.
    pub api_key: Option<String>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// Further headers of every request.
    pub headers: BTreeMap<String, String>,
    /// The ids this provider serves; the first one is its default.
    pub models: Vec<String>,
    /// The name of a compatibility profile, or an object of its fields that differ. Null leaves it to the address.
    pub compat: Value,
}

impl fmt::Debug for ProviderSettings {
    /// Written by hand because a key must not reach a log through `{:?}`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ProviderSettings")
            .field("protocol", &self.protocol)
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key.as_ref().map(|_| "***"))
            .field("api_key_env", &self.api_key_env)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("models", &self.models)
            .field("compat", &self.compat)
            .finish()
    }
}

/// Dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Price {
    /// Input that was neither read from nor written to the cache.
    pub input: f64,
    /// Output, reasoning included.
    pub output: f64,
    /// Input read from the cache.
    pub cache_read: f64,
    /// Input written to the cache.
    pub cache_write: f64,
    /// Dollars per picture that an image model makes, besides its tokens.
    pub image: f64,
}
