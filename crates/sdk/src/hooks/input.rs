//! What a hook is given: the fields of all events, the typed part of the event, and the whole as it came, so that
//! fields of later versions can be read.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// What a hook is given.
///
/// ```
/// # use qoder_agent_sdk::{HookDetail, HookInput};
/// # use serde_json::json;
/// let input = HookInput::from_value(json!({
///     "hook_event_name": "UserPromptSubmit", "session_id": "s", "transcript_path": "", "cwd": "/", "prompt": "Hi",
/// }));
/// assert_eq!(input.detail, HookDetail::UserPromptSubmit { prompt: "Hi".to_owned() });
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HookInput {
    /// The event.
    pub hook_event_name: String,
    /// The session.
    pub session_id: String,
    /// The session's log.
    pub transcript_path: String,
    /// Working directory.
    pub cwd: String,
    /// The mode in force.
    pub permission_mode: Option<String>,
    /// What the event is about.
    pub detail: HookDetail,
    /// Everything, as it came.
    pub raw: Value,
}

impl HookInput {
    /// Reads the JSON of an input. An event that is not known, or lacks something, is [`HookDetail::Unknown`].
    #[must_use]
    pub fn from_value(raw: Value) -> Self {
        let text = |name: &str| raw.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            hook_event_name: text("hook_event_name").unwrap_or_default(),
            session_id: text("session_id").unwrap_or_default(),
            transcript_path: text("transcript_path").unwrap_or_default(),
            cwd: text("cwd").unwrap_or_default(),
            permission_mode: text("permission_mode"),
            detail: HookDetail::deserialize(&raw).unwrap_or(HookDetail::Unknown),
            raw,
        }
    }

    /// The tool, for events about one.
    #[must_use]
    pub fn tool_name(&self) -> Option<&str> {
        self.raw.get("tool_name")?.as_str()
    }

    /// The tool's input, for events about one.
    #[must_use]
    pub fn tool_input(&self) -> Option<&Value> {
        self.raw.get("tool_input")
    }
}

impl Serialize for HookInput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "hook_event_name")]
#[non_exhaustive]
pub enum HookDetail {
    /// A call is about to be decided.
    PreToolUse {
        /// The tool.
        tool_name: String,
        /// Its input.
        #[serde(default)]
        tool_input: Value,
    },
    /// A call succeeded.
    PostToolUse {
        /// The tool.
        tool_name: String,
        /// Its input.
        #[serde(default)]
        tool_input: Value,
        /// What it came to.
        #[serde(default)]
        tool_response: Value,
    },
    /// A call failed.
    PostToolUseFailure {
        /// The tool.
        tool_name: String,
        /// Its input.
        #[serde(default)]
        tool_input: Value,
        /// What went wrong.
        #[serde(default)]
        error: String,
        /// True when it was interrupted.
        #[serde(default)]
        is_interrupt: Option<bool>,
    },
    /// A prompt is about to be taken.
    UserPromptSubmit {
        /// Its text.
        prompt: String,
    },
    /// A session starts.
    SessionStart {
        /// `startup`, `resume`, `clear` or `compact`.
        source: String,
    },
    /// A session ends.
    SessionEnd {
        /// Why.
        reason: String,
    },
    /// The model stops.
    Stop {
        /// True when a hook keeps it going already.
        #[serde(default)]
        stop_hook_active: bool,
    },
    /// A subagent starts.
    SubagentStart {
        /// The subagent.
        agent_id: String,
        /// Its kind.
        #[serde(default)]
        agent_type: String,
    },
    /// A subagent stops.
    SubagentStop {
        /// True when a hook keeps it going already.
        #[serde(default)]
        stop_hook_active: bool,
    },
    /// Older messages are about to be replaced by a summary.
    PreCompact {
        /// `manual` or `auto`.
        trigger: String,
        /// What the summary shall look at.
        #[serde(default)]
        custom_instructions: Option<String>,
    },
    /// That is done.
    PostCompact {
        /// `manual` or `auto`.
        trigger: String,
        /// The summary.
        #[serde(default)]
        compact_summary: String,
    },
    /// The working directory changed.
    CwdChanged {
        /// Before.
        old_cwd: String,
        /// Now.
        new_cwd: String,
    },
    /// An instructions file was loaded.
    InstructionsLoaded {
        /// Why.
        load_reason: String,
    },
    /// A watched file changed.
    FileChanged {
        /// The file.
        file_path: String,
        /// `change`, `add` or `unlink`.
        event: String,
    },
    /// A call is about to ask.
    PermissionRequest {
        /// The tool.
        tool_name: String,
        /// Its input.
        #[serde(default)]
        tool_input: Value,
        /// Changes that would make the question unnecessary.
        #[serde(default)]
        permission_suggestions: Option<Vec<Value>>,
    },
    /// Another event; see [`HookInput::raw`].
    #[serde(other)]
    Unknown,
}
