//! Why a description cannot be used: which server, which field, and what would be accepted. No text repeats a value that
//! may be a secret.

/// The longest name of a server: the names of its tools must fit behind it.
const LONGEST_NAME: usize = 40;

/// A description that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The name cannot be part of the names of tools.
    #[error("the MCP server name `{server}` {problem}")]
    Name {
        /// The name.
        server: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Servers of this kind are not spoken with.
    #[error(
        "MCP server `{server}`: the type `{kind}` is not supported; accepted are stdio, sse, http and sdk"
    )]
    Kind {
        /// The server.
        server: String,
        /// Its kind, in its own words.
        kind: String,
    },
    /// A field is missing or has a value that it cannot have.
    #[error("MCP server `{server}`: `{field}` {problem}")]
    Field {
        /// The server.
        server: String,
        /// The field, with its place inside lists and objects.
        field: String,
        /// What is wrong.
        problem: String,
    },
    /// A variable of the environment is named that is not set.
    #[error("MCP server `{server}`: `{field}` uses ${{{variable}}}, which is not set")]
    Variable {
        /// The server.
        server: String,
        /// The field.
        field: String,
        /// The variable.
        variable: String,
    },
}

impl ConfigError {
    pub(super) fn field(server: &str, field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field { server: server.to_owned(), field: field.into(), problem: problem.into() }
    }

    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Name { .. } => "mcp_config_name",
            Self::Kind { .. } => "mcp_config_kind",
            Self::Field { .. } => "mcp_config_field",
            Self::Variable { .. } => "mcp_config_variable",
        }
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Name { .. } => "use letters, digits, `-` and `_`, without `__`".to_owned(),
            Self::Kind { .. } => {
                "a program: {\"command\": …, \"args\": […]}; an address: {\"type\": \"http\", \"url\": …}"
                    .to_owned()
            }
            Self::Field { .. } => "docs/mcp.md lists the fields and what each takes".to_owned(),
            Self::Variable { variable, .. } => {
                format!("set {variable}, or give a default: ${{{variable}:-…}}")
            }
        }
    }
}

/// Whether a server can have this name: it becomes a part of `mcp__server__tool`.
///
/// # Errors
/// When the name is empty, too long, has other characters than letters, digits, `-` and `_`, or has `__`.
pub fn check_name(name: &str) -> Result<(), ConfigError> {
    let is_accepted = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    let problem = if name.is_empty() {
        "is empty".to_owned()
    } else if name.len() > LONGEST_NAME {
        format!("is longer than {LONGEST_NAME} characters")
    } else if let Some(other) = name.chars().find(|character| !is_accepted(*character)) {
        format!("has the character {other:?}")
    } else if name.contains("__") {
        "has `__`, which separates the parts of a tool's name".to_owned()
    } else if name.ends_with('_') {
        "ends with `_`, which separates the parts of a tool's name".to_owned()
    } else {
        return Ok(());
    };
    Err(ConfigError::Name { server: name.chars().take(60).collect(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_tools_can_carry() {
        for name in ["git", "my-tools", "my_tools", "A1", "_x"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "a b", "a.b", "a__b", "ü", "a/b", "x_", &"a".repeat(41)] {
            assert_eq!(check_name(name).unwrap_err().code(), "mcp_config_name", "{name}");
        }
    }
}
