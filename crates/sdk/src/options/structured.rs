//! Options that are more than a text or a number: the set of tools, the system prompt, thinking, settings and the like.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tools that exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSet {
    /// Only these; an empty list leaves out all.
    Only(Vec<String>),
    /// All built-in ones.
    Preset,
}

impl<S: Into<String>, const N: usize> From<[S; N]> for ToolSet {
    fn from(names: [S; N]) -> Self {
        Self::Only(names.into_iter().map(Into::into).collect())
    }
}

impl From<Vec<String>> for ToolSet {
    fn from(names: Vec<String>) -> Self {
        Self::Only(names)
    }
}

/// The system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemPrompt {
    /// This text and nothing else.
    Text(String),
    /// The built-in one, with a text behind it.
    Preset {
        /// The text behind it.
        append: Option<String>,
    },
    /// The text of a file.
    File(PathBuf),
}

impl From<&str> for SystemPrompt {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SystemPrompt {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// How much to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ThinkingConfig {
    /// The model decides.
    Adaptive,
    /// At most this many tokens.
    Enabled {
        /// The limit.
        budget_tokens: u32,
    },
    /// Not at all.
    Disabled,
}

/// How hard to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// Very much.
    Xhigh,
    /// As much as possible.
    Max,
}

impl Effort {
    /// The documented word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// A settings file that may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingSource {
    /// The user's.
    User,
    /// The project's shared one.
    Project,
    /// The project's private one.
    Local,
}

impl SettingSource {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}

/// Settings of one session.
#[derive(Debug, Clone, PartialEq)]
pub enum Settings {
    /// These.
    Inline(Map<String, Value>),
    /// Those in a file.
    File(PathBuf),
}

/// Skills of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skills {
    /// All that are found.
    All,
    /// These.
    Only(Vec<String>),
}

impl Skills {
    /// The rules that let them be used.
    pub(crate) fn rules(&self) -> Vec<String> {
        match self {
            Self::All => vec!["Skill".to_owned()],
            Self::Only(names) => names.iter().map(|name| format!("Skill({name})")).collect(),
        }
    }
}

/// A plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SdkPluginConfig {
    /// In a folder.
    Local(PathBuf),
}
