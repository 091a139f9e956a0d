//! The commands that the program has by itself. They work without a model; only a compaction asks one.

/// A built-in command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Local {
    /// Lists the agents.
    Agents,
    /// Begins a new conversation.
    Clear,
    /// Replaces the conversation by a summary.
    Compact,
    /// Shows what fills the model's context.
    Context,
    /// Shows what the session has used.
    Cost,
    /// Lists the commands.
    Help,
}

impl Local {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Agents, Self::Clear, Self::Compact, Self::Context, Self::Cost, Self::Help];

    /// The command of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|local| local.name() == name)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Clear => "clear",
            Self::Compact => "compact",
            Self::Context => "context",
            Self::Cost => "cost",
            Self::Help => "help",
        }
    }

    /// What it does.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Agents => "List the agents that there are",
            Self::Clear => "Begin a new conversation; the session's log keeps the old one",
            Self::Compact => "Replace the conversation by a summary of it",
            Self::Context => "Show what fills the model's context",
            Self::Cost => "Show what the session has used so far",
            Self::Help => "List the commands",
        }
    }

    /// What may follow its name.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::Compact => "[what the summary is to keep]",
            Self::Agents | Self::Clear | Self::Context | Self::Cost | Self::Help => "",
        }
    }
}
