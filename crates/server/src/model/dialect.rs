//! The two dialects of the interface. Both are served at every path; a request says which one it speaks by its headers.

/// Which clients the request is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Qoder's cloud agents.
    Qoder,
    /// Claude's managed agents.
    Claude,
}

impl Dialect {
    /// How many there are.
    pub const COUNT: usize = 2;

    /// Its place among all of them.
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::Qoder => 0,
            Self::Claude => 1,
        }
    }
}
