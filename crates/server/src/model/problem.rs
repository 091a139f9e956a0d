//! What is wrong with a request, before anything was changed: the field, and what is accepted.

/// A request that cannot be served as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// The field, by its path.
    pub field: Option<String>,
    /// The whole sentence.
    pub message: String,
    /// A stable name for programs, where the documented interface has one.
    pub code: Option<&'static str>,
}

impl Problem {
    /// A field that has a wrong value: `problem` continues its name.
    pub fn field(field: impl Into<String>, problem: impl AsRef<str>) -> Self {
        let field = field.into();
        let message = format!("`{field}` {}", problem.as_ref());
        Self { field: Some(field), message, code: None }
    }

    /// A request that is wrong as a whole.
    pub fn whole(message: impl Into<String>) -> Self {
        Self { field: None, message: message.into(), code: None }
    }

    /// With the documented name of it.
    #[must_use]
    pub fn with_code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// The same inside of another field.
    #[must_use]
    pub fn inside(mut self, outer: &str) -> Self {
        if let Some(field) = self.field.take() {
            let path = if field.is_empty() || field.starts_with('[') {
                format!("{outer}{field}")
            } else {
                format!("{outer}.{field}")
            };
            self.message = self.message.replacen(&format!("`{field}`"), &format!("`{path}`"), 1);
            self.field = Some(path);
        }
        self
    }
}
