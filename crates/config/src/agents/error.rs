//! Why the definition of an agent cannot be used.

/// Why a definition that a program or a flag gives cannot be used. The text names the field.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The text is not JSON.
    #[error("this is no JSON object of agents: {0}")]
    NotJson(#[source] serde_json::Error),
    /// An agent cannot have this name.
    #[error("agents.{name}: {problem}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The definition is not an object.
    #[error("agents.{name}: it has to be an object with `description` and `prompt`")]
    NotObject {
        /// The agent.
        name: String,
    },
    /// A field cannot be used.
    #[error("agents.{name}.{field}: {problem}")]
    Field {
        /// The agent.
        name: String,
        /// The field.
        field: String,
        /// What is wrong and what is accepted.
        problem: String,
    },
}

impl AgentError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotJson(_) => "agent_not_json",
            Self::Name { .. } => "agent_name",
            Self::NotObject { .. } => "agent_not_object",
            Self::Field { .. } => "agent_field",
        }
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotJson(_) | Self::NotObject { .. } => {
                "give an object such as {\"reviewer\": {\"description\": \"…\", \"prompt\": \"…\"}}"
            }
            Self::Name { .. } => "use letters, digits, spaces, `-`, `_`, `.` and `:`",
            Self::Field { .. } => "the fields of an agent are in docs/subagents.md",
        }
    }
}
