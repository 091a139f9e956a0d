//! What people configure about models: the shape of the settings, the options of one process, and
//! the ways in which they can be wrong. Unknown keys are ignored so that older versions read newer
//! files.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::client::HttpClients;
use crate::learn::Learned;

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

/// A configuration that does not describe a model that can be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelConfigError {
    /// A protocol name that means nothing here.
    #[error("unknown protocol `{protocol}` for {subject}")]
    UnknownProtocol {
        /// What was written.
        protocol: String,
        /// The provider or flag it was written for.
        subject: String,
    },
    /// A `provider/model` name whose provider is not configured.
    #[error("no provider `{provider}` is configured for model `{model}`")]
    UnknownProvider {
        /// The part in front of the slash.
        provider: String,
        /// The whole name.
        model: String,
        /// The names that are configured.
        known: Vec<String>,
    },
    /// A model that was named, and no provider at all is configured.
    #[error("model `{model}`: no provider is configured")]
    NoProvider {
        /// The name.
        model: String,
    },
    /// An address that cannot be used.
    #[error("the address `{url}` of {subject} cannot be used: {reason}")]
    BadUrl {
        /// What was written, without credentials.
        url: String,
        /// The provider or flag it was written for.
        subject: String,
        /// Why not.
        reason: String,
    },
    /// A variable that should hold a key is not set.
    #[error("the environment variable {name}, named by {subject}, is not set")]
    MissingEnvironment {
        /// The variable.
        name: String,
        /// Who names it.
        subject: String,
    },
    /// A header that HTTP does not allow.
    #[error("the header `{name}` of {subject} is not a valid HTTP header")]
    BadHeader {
        /// The header's name.
        name: String,
        /// The provider it was written for.
        subject: String,
    },
    /// A provider with a key in two places.
    #[error(
        "provider `{provider}` has both `providers.{provider}.apiKey` and `providers.{provider}.apiKeyEnv`"
    )]
    TwoKeys {
        /// The provider.
        provider: String,
    },
    /// A key of one provider for another.
    #[error("the key in {origin} is one of {owner}, but {host} is {asked}")]
    WrongKey {
        /// The variable or setting that holds the key.
        origin: String,
        /// Whose key it is.
        owner: String,
        /// Who would get it.
        asked: String,
        /// Where it would go.
        host: String,
    },
    /// A compatibility profile that does not exist.
    #[error("`{setting}`: no compatibility profile is called `{name}`")]
    UnknownProfile {
        /// The path of the setting.
        setting: String,
        /// What was written.
        name: String,
        /// The nearest name.
        nearest: String,
    },
    /// A field of a compatibility profile that does not exist.
    #[error("`{setting}`: a compatibility profile has no field `{field}`")]
    UnknownCompatField {
        /// The path of the setting.
        setting: String,
        /// What was written.
        field: String,
        /// The nearest name.
        nearest: String,
    },
    /// A value that a field of a compatibility profile does not take.
    #[error("`{setting}` {problem}")]
    BadCompat {
        /// The path of the setting.
        setting: String,
        /// What is wrong.
        problem: String,
    },
    /// A playbook or recording that cannot be read.
    #[error("cannot read {path}{}: {reason}", line.map(|line| format!(" (line {line})")).unwrap_or_default())]
    Unreadable {
        /// The file.
        path: String,
        /// The line, where it is known.
        line: Option<usize>,
        /// Why not.
        reason: String,
    },
    /// A recording that cannot be written.
    #[error("cannot record to {path}: {reason}")]
    Unwritable {
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
}

impl ModelConfigError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownProtocol { .. } => "model_unknown_protocol",
            Self::UnknownProvider { .. } => "model_unknown_provider",
            Self::NoProvider { .. } => "model_no_provider",
            Self::BadUrl { .. } => "model_bad_url",
            Self::MissingEnvironment { .. } => "model_missing_environment",
            Self::BadHeader { .. } => "model_bad_header",
            Self::TwoKeys { .. } => "model_two_keys",
            Self::WrongKey { .. } => "model_wrong_key",
            Self::UnknownProfile { .. } => "model_unknown_profile",
            Self::UnknownCompatField { .. } | Self::BadCompat { .. } => "model_bad_compat",
            Self::Unreadable { .. } => "model_unreadable_file",
            Self::Unwritable { .. } => "model_unwritable_file",
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownProtocol { .. } => {
                "Use anthropic-messages (alias anthropic), openai-chat (alias openai) or openai-responses."
                    .into()
            }
            Self::UnknownProvider { known, .. } if known.is_empty() => {
                "Add it to `providers` in the settings, or set ANTHROPIC_API_KEY or OPENAI_API_KEY.".into()
            }
            Self::UnknownProvider { known, .. } => {
                format!("Configured are: {}. Add it to `providers` in the settings.", known.join(", "))
            }
            Self::NoProvider { .. } => {
                "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, add `providers` to the settings, or use \
                 the built-in model `offline`."
                    .into()
            }
            Self::BadUrl { .. } => {
                "Give an address such as https://api.example.com or http://localhost:8080/v1.".into()
            }
            Self::MissingEnvironment { name, .. } => {
                format!("Set {name}, or take its name out of the configuration.")
            }
            Self::BadHeader { .. } => {
                "Header names hold letters, digits and dashes; values hold no line breaks.".into()
            }
            Self::TwoKeys { .. } => "Keep one of them; a variable is better.".into(),
            Self::WrongKey { owner, asked, .. } => {
                format!(
                    "Put a key of {asked} there, or change the base URL to that of {owner}. Nothing was sent."
                )
            }
            Self::UnknownProfile { nearest, .. } | Self::UnknownCompatField { nearest, .. } => {
                format!(
                    "Did you mean `{nearest}`? The table in docs/models.md lists the profiles and their fields."
                )
            }
            Self::BadCompat { .. } => {
                "The table in docs/models.md lists the profiles and what their fields take.".into()
            }
            Self::Unwritable { .. } => {
                "Give --record a file in a folder that exists and can be written.".into()
            }
            Self::Unreadable { .. } => {
                "Check the path and that the file is the JSON described in docs/testing-agents.md.".into()
            }
        }
    }
}
