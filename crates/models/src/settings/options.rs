//! The options of one process: which model is used and how.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::ModelSettings;
use crate::learn::Learned;
use crate::routes::HttpClients;

/// Everything that decides which model is used and how.
#[derive(Clone)]
pub struct ModelOptions {
    /// The name a person gave; `None` is the same as `auto`.
    pub model: Option<String>,
    /// The model to ask when the main one fails for good.
    pub fallback_model: Option<String>,
    /// Settings of models.
    pub settings: ModelSettings,
    /// An address from the command line.
    pub base_url: Option<String>,
    /// The protocol at that address; `anthropic` unless said otherwise.
    pub api_style: Option<String>,
    /// The environment variable that holds the key for that address.
    pub api_key_env: Option<String>,
    /// The process environment, given in so that nothing here depends on global state.
    pub environment: BTreeMap<String, String>,
    /// How often a request is tried in all.
    pub max_attempts: u32,
    /// Where to record every request and response.
    pub record: Option<PathBuf>,
    /// Context window in tokens, over settings and catalog.
    pub context_window: Option<u64>,
    /// Output limit in tokens, over settings and catalog.
    pub max_output_tokens: Option<u32>,
    /// Beta features that Anthropic providers are asked for.
    pub betas: Vec<String>,
    /// A proxy in place of those that the environment names.
    pub proxy: Option<String>,
    /// The compatibility profile at the address from the command line, as `compat` of a provider has it.
    pub compat: Value,
    /// What the session learned about its servers; clones of the options share it.
    pub learned: Learned,
    /// HTTP clients; clones of the options share them.
    pub clients: HttpClients,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            model: None,
            fallback_model: None,
            settings: ModelSettings::default(),
            base_url: None,
            api_style: None,
            api_key_env: None,
            environment: BTreeMap::new(),
            max_attempts: 10,
            record: None,
            context_window: None,
            max_output_tokens: None,
            betas: Vec::new(),
            proxy: None,
            compat: Value::Null,
            learned: Learned::default(),
            clients: HttpClients::default(),
        }
    }
}

impl ModelOptions {
    /// A variable of the environment; an empty one counts as unset.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }
}
