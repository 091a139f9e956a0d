//! Permission modes, where rules come from, and the decision about one call with its explanation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;

/// The seven documented values; `yolo` is an alias and parses to [`PermissionMode::BypassPermissions`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Reads run, the rest asks.
    #[default]
    Default,
    /// Edits inside the workspace run too.
    AcceptEdits,
    /// Everything that is not denied runs.
    BypassPermissions,
    /// Reads only.
    Plan,
    /// What would ask is denied.
    DontAsk,
    /// Never asks: reads and workspace edits run, the rest is denied.
    Auto,
}

impl PermissionMode {
    /// Every spelling a person may use, for error messages.
    pub const ACCEPTED: &'static str =
        "default, acceptEdits, plan, dontAsk, auto, bypassPermissions (alias yolo)";

    /// Reads a mode in any documented spelling: case, `_` and `-` do not matter.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let folded: String =
            text.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect();
        Some(match folded.as_str() {
            "default" => Self::Default,
            "acceptedits" => Self::AcceptEdits,
            "bypasspermissions" | "yolo" => Self::BypassPermissions,
            "plan" => Self::Plan,
            "dontask" => Self::DontAsk,
            "auto" => Self::Auto,
            _ => return None,
        })
    }

    /// The spelling on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::BypassPermissions => "bypassPermissions",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
            Self::Auto => "auto",
        }
    }
}

/// What a rule or a decision says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Behavior {
    /// Run it.
    Allow,
    /// A person has to say.
    Ask,
    /// Do not run it.
    Deny,
}

/// The layer a rule was given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RuleSource {
    /// The user's settings file.
    UserSettings,
    /// The project's shared settings file.
    ProjectSettings,
    /// The project's private settings file.
    LocalSettings,
    /// `--settings`.
    FlagSettings,
    /// `--allowed-tools` and `--disallowed-tools`.
    CliArg,
    /// `/allow` and `/deny` in a session.
    Command,
    /// An answer given in this session.
    Session,
}

/// Where exactly a rule was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleOrigin {
    /// The layer.
    pub source: RuleSource,
    /// The file, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in that file, when it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// The layer of the gate that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DecisionLayer {
    /// A deny, ask or allow rule.
    Rule,
    /// What the runtime knows about the tool itself.
    BuiltIn,
    /// A limit that no rule or mode lifts.
    SafetyCheck,
    /// The permission mode.
    Mode,
    /// The call was about to ask and no one can answer.
    Unattended,
    /// A person or the host that speaks for one.
    Person,
    /// A model that judges calls in auto mode.
    Classifier,
    /// The sandbox the command runs in.
    Sandbox,
    /// A hook.
    Hook,
}

/// Something else that was looked at on the way to a decision: a rule that matched and was outranked, or a layer that
/// had nothing to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Considered {
    /// Which layer.
    pub layer: DecisionLayer,
    /// What it would have said, when it spoke of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behavior: Option<Behavior>,
    /// The rule's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Where the rule was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<RuleOrigin>,
    /// One sentence for people.
    pub note: String,
}

/// A decision about one call, with its explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// What was decided.
    pub behavior: Behavior,
    /// Which layer decided.
    pub layer: DecisionLayer,
    /// The text of the deciding rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Where that rule was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<RuleOrigin>,
    /// The mode in force.
    pub mode: PermissionMode,
    /// One sentence for people and for the model.
    pub reason: String,
    /// What else was looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub considered: Vec<Considered>,
    /// Who answered the question, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<Actor>,
}
