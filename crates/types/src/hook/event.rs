//! The events that hooks may listen to, and what differs between them: whether a hook may end the turn, whether the exit
//! code 2 blocks something, what a plain text means, and what it means when a hook fails.

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
    /// When a process begins with a session, and when its conversation begins anew.
    SessionStart,
    /// At the end of a process that drove the session.
    SessionEnd,
    /// When the turn would end because the model is done.
    Stop,
    /// When the turn ends because the model failed.
    StopFailure,
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
    /// After a file was created, changed or removed.
    FileChanged,
    /// When a call would ask, before the question reaches an answerer.
    PermissionRequest,
    /// After a call was denied.
    PermissionDenied,
    /// When a person is wanted.
    Notification,
    /// When a file of settings, skills or agents changed while the session runs, before that counts.
    ConfigChange,
    /// In place of making a worktree.
    WorktreeCreate,
    /// Before a worktree is left for good.
    WorktreeRemove,
    /// When a server wants input of a person, before the question reaches one.
    Elicitation,
    /// When a server's question has its answer.
    ElicitationResult,
    /// After a background task began.
    TaskCreated,
    /// After a background task ended.
    TaskCompleted,
    /// Never: there are no teams. The name is known, because settings of other programs have it.
    TeammateIdle,
    /// Before the first turn of a folder's first session.
    Setup,
}

impl HookEvent {
    /// All of them.
    pub const ALL: [Self; 27] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::UserPromptSubmit,
        Self::SessionStart,
        Self::SessionEnd,
        Self::Stop,
        Self::StopFailure,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::PreCompact,
        Self::PostCompact,
        Self::CwdChanged,
        Self::InstructionsLoaded,
        Self::FileChanged,
        Self::PermissionRequest,
        Self::PermissionDenied,
        Self::Notification,
        Self::ConfigChange,
        Self::WorktreeCreate,
        Self::WorktreeRemove,
        Self::Elicitation,
        Self::ElicitationResult,
        Self::TaskCreated,
        Self::TaskCompleted,
        Self::TeammateIdle,
        Self::Setup,
    ];

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
            Self::StopFailure => "StopFailure",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::CwdChanged => "CwdChanged",
            Self::InstructionsLoaded => "InstructionsLoaded",
            Self::FileChanged => "FileChanged",
            Self::PermissionRequest => "PermissionRequest",
            Self::PermissionDenied => "PermissionDenied",
            Self::Notification => "Notification",
            Self::ConfigChange => "ConfigChange",
            Self::WorktreeCreate => "WorktreeCreate",
            Self::WorktreeRemove => "WorktreeRemove",
            Self::Elicitation => "Elicitation",
            Self::ElicitationResult => "ElicitationResult",
            Self::TaskCreated => "TaskCreated",
            Self::TaskCompleted => "TaskCompleted",
            Self::TeammateIdle => "TeammateIdle",
            Self::Setup => "Setup",
        }
    }

    /// The event of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == name)
    }

    /// True when `continue: false` ends the turn.
    #[must_use]
    pub fn may_stop(self) -> bool {
        matches!(
            self,
            Self::PreToolUse
                | Self::PostToolUse
                | Self::PostToolUseFailure
                | Self::UserPromptSubmit
                | Self::Stop
                | Self::SubagentStop
        )
    }

    /// True when the exit code 2 of a program blocks what the event is about.
    #[must_use]
    pub fn is_blockable(self) -> bool {
        matches!(
            self,
            Self::PreToolUse
                | Self::UserPromptSubmit
                | Self::Stop
                | Self::SubagentStop
                | Self::PreCompact
                | Self::ConfigChange
                | Self::Elicitation
                | Self::ElicitationResult
        )
    }

    /// True when a plain text of a hook is context for the model.
    #[must_use]
    pub fn takes_text(self) -> bool {
        matches!(self, Self::SessionStart | Self::UserPromptSubmit)
    }

    /// True when the event is about a call of a tool.
    #[must_use]
    pub fn is_of_tool(self) -> bool {
        matches!(
            self,
            Self::PreToolUse
                | Self::PostToolUse
                | Self::PostToolUseFailure
                | Self::PermissionRequest
                | Self::PermissionDenied
        )
    }

    /// What a failure means when the hook does not say. A hook that could have denied a call must not open it by failing.
    #[must_use]
    pub fn on_failure(self) -> OnFailure {
        match self {
            Self::PreToolUse | Self::PermissionRequest => OnFailure::Ask,
            Self::WorktreeCreate => OnFailure::Block,
            Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::UserPromptSubmit
            | Self::SessionStart
            | Self::SessionEnd
            | Self::Stop
            | Self::StopFailure
            | Self::SubagentStart
            | Self::SubagentStop
            | Self::PreCompact
            | Self::PostCompact
            | Self::CwdChanged
            | Self::InstructionsLoaded
            | Self::FileChanged
            | Self::PermissionDenied
            | Self::Notification
            | Self::ConfigChange
            | Self::WorktreeRemove
            | Self::Elicitation
            | Self::ElicitationResult
            | Self::TaskCreated
            | Self::TaskCompleted
            | Self::TeammateIdle
            | Self::Setup => OnFailure::Continue,
        }
    }
}

/// What it means when a hook fails, is too slow or answers nonsense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// As if the hook had no opinion.
    Continue,
    /// The call asks; where no one can answer it is denied.
    Ask,
    /// The action is blocked.
    Block,
}

impl OnFailure {
    /// Reads the wire word; `None` for a word that does not exist.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "continue" | "allow" => Some(Self::Continue),
            "ask" => Some(Self::Ask),
            "block" | "deny" => Some(Self::Block),
            _ => None,
        }
    }

    /// The word for it in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "allow",
            Self::Ask => "ask",
            Self::Block => "deny",
        }
    }
}
