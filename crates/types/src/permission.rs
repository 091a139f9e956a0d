//! Changes of permissions while a session runs, in the documented shape: rules, mode and directories, each with the place
//! that keeps it. Hosts return them with an answer, tools with an outcome, and an ask carries ready-made ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decision::{Behavior, PermissionMode};

/// Where a change is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UpdateDestination {
    /// The user's settings file.
    UserSettings,
    /// The project's shared settings file.
    ProjectSettings,
    /// The project's private settings file.
    LocalSettings,
    /// This session, also after a restart.
    Session,
    /// This session, as if given on the command line.
    CliArg,
}

/// A rule as two values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleValue {
    /// The tool.
    pub tool_name: String,
    /// The text in the parentheses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
}

impl RuleValue {
    /// The rule as it is written in settings.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.rule_content {
            Some(content) => {
                format!("{}({})", self.tool_name, content.replace('(', "\\(").replace(')', "\\)"))
            }
            None => self.tool_name.clone(),
        }
    }
}

/// One change of permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PermissionUpdate {
    /// Adds rules.
    AddRules {
        /// The rules.
        rules: Vec<RuleValue>,
        /// What they say.
        behavior: Behavior,
        /// Where they are kept.
        destination: UpdateDestination,
    },
    /// Replaces all rules of one behaviour at the destination.
    ReplaceRules {
        /// The rules.
        rules: Vec<RuleValue>,
        /// What they say.
        behavior: Behavior,
        /// Where they are kept.
        destination: UpdateDestination,
    },
    /// Removes rules.
    RemoveRules {
        /// The rules.
        rules: Vec<RuleValue>,
        /// What they say.
        behavior: Behavior,
        /// Where they are kept.
        destination: UpdateDestination,
    },
    /// Sets the mode; at a settings destination the default mode.
    SetMode {
        /// The mode.
        mode: PermissionMode,
        /// Where it is kept.
        destination: UpdateDestination,
    },
    /// Adds directories to work in.
    AddDirectories {
        /// The directories.
        directories: Vec<String>,
        /// Where they are kept.
        destination: UpdateDestination,
    },
    /// Removes directories to work in.
    RemoveDirectories {
        /// The directories.
        directories: Vec<String>,
        /// Where they are kept.
        destination: UpdateDestination,
    },
}

impl PermissionUpdate {
    /// Where the change is kept.
    #[must_use]
    pub fn destination(&self) -> UpdateDestination {
        match self {
            Self::AddRules { destination, .. }
            | Self::ReplaceRules { destination, .. }
            | Self::RemoveRules { destination, .. }
            | Self::SetMode { destination, .. }
            | Self::AddDirectories { destination, .. }
            | Self::RemoveDirectories { destination, .. } => *destination,
        }
    }
}

/// The git worktree a session works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Worktree {
    /// Where it is.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// The commit it was made from.
    pub base: String,
    /// The directory to return to.
    pub original_cwd: String,
}

/// A call that entered or left a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WorktreeChange {
    /// The session works there now.
    Entered(Worktree),
    /// The session is back where it was.
    Left,
}
