//! Notices: what a user should know that no reply and no result says, such as a rule that can never match or files that
//! are not used because their folder is not trusted. They go to stderr and, after `init`, onto the message stream.

use std::fmt;
use std::path::PathBuf;

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// Anything without a kind of its own.
    General,
    /// Files that are not used because their folder is not trusted.
    UntrustedFolder,
}

impl NoticeKind {
    /// The documented word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::UntrustedFolder => "untrusted_folder",
        }
    }
}

/// One warning for people and programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub kind: NoticeKind,
    /// What happened and what to do.
    pub text: String,
    /// The files that it names; absolute paths.
    pub files: Vec<PathBuf>,
}

impl From<String> for Notice {
    fn from(text: String) -> Self {
        Self { kind: NoticeKind::General, text, files: Vec::new() }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}
