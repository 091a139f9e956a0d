//! May the files of this folder count? Everything that trust would enable is listed; the answer that changes nothing comes
//! first.

/// What a folder would bring if it were trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustFacts {
    /// The folder.
    pub folder: String,
    /// Hooks with what they run, servers with their command lines, rules that allow, files: one a line.
    pub enables: Vec<String>,
}
