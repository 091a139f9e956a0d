//! Which part of a list is asked for: how many are passed over, and how many are shown at most. The same for sessions on
//! disk and in a store.

/// A part of a list; `Default` is all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// So many at most.
    pub(crate) limit: Option<usize>,
    /// So many are passed over first.
    pub(crate) offset: usize,
}

impl Page {
    /// That part of what was found.
    pub(crate) fn of<T>(self, found: impl IntoIterator<Item = T>) -> Vec<T> {
        found.into_iter().skip(self.offset).take(self.limit.unwrap_or(usize::MAX)).collect()
    }
}
