//! The ways in which the configuration of models can be wrong.

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
