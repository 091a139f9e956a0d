//! The events that hooks may listen to, and what differs between them: whether a hook may end the turn, and what it means
//! when a hook fails.

use super::OnFailure;

/// An event that hooks are called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookEvent {
    /// Before a call is judged.
    PreToolUse,
    /// After a call succeeded, before its result is recorded.
    PostToolUse,
    /// After a call failed, before its result is recorded.
    PostToolUseFailure,
    /// Before a prompt opens a turn.
    UserPromptSubmit,
    /// Before the first turn of a process.
    SessionStart,
    /// At the end of a process that drove the session.
    SessionEnd,
    /// When the turn would end because the model is done.
    Stop,
    /// Before the turn of an agent.
    SubagentStart,
    /// When the turn of an agent would end because its model is done.
    SubagentStop,
    /// Before a compaction.
    PreCompact,
    /// After a compaction.
    PostCompact,
    /// After a call changed the working directory.
    CwdChanged,
    /// After memory files were brought to the model.
    InstructionsLoaded,
    /// After a tool created or changed a file.
    FileChanged,
    /// When a call would ask, before anybody is asked.
    PermissionRequest,
    /// When a server wants input of a person, before anybody is asked.
    Elicitation,
    /// When a server's question has its answer.
    ElicitationResult,
}

impl HookEvent {
    /// The documented name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::Stop => "Stop",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::CwdChanged => "CwdChanged",
            Self::InstructionsLoaded => "InstructionsLoaded",
            Self::FileChanged => "FileChanged",
            Self::PermissionRequest => "PermissionRequest",
            Self::Elicitation => "Elicitation",
            Self::ElicitationResult => "ElicitationResult",
        }
    }

    /// True when `continue: false` ends the turn.
    #[must_use]
    pub fn may_stop(self) -> bool {
        match self {
            Self::PreToolUse
            | Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::UserPromptSubmit
            | Self::Stop
            | Self::SubagentStop => true,
            Self::SessionStart
            | Self::SessionEnd
            | Self::SubagentStart
            | Self::PreCompact
            | Self::PostCompact
            | Self::CwdChanged
            | Self::InstructionsLoaded
            | Self::FileChanged
            | Self::PermissionRequest
            | Self::Elicitation
            | Self::ElicitationResult => false,
        }
    }

    /// What a failure means when the hook does not say. A hook that could have denied a call must not open it by failing.
    #[must_use]
    pub fn on_failure(self) -> OnFailure {
        match self {
            Self::PreToolUse | Self::PermissionRequest => OnFailure::Ask,
            Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::UserPromptSubmit
            | Self::SessionStart
            | Self::SessionEnd
            | Self::Stop
            | Self::SubagentStart
            | Self::SubagentStop
            | Self::PreCompact
            | Self::PostCompact
            | Self::CwdChanged
            | Self::InstructionsLoaded
            | Self::FileChanged
            | Self::Elicitation
            | Self::ElicitationResult => OnFailure::Continue,
        }
    }
}
