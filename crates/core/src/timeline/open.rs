//! What has begun and is not over: calls, questions, tasks. Each is found by its id at once, however many are open, and
//! all of them come out in the order in which they began.

use std::collections::BTreeMap;

/// Things that are open.
#[derive(Debug)]
pub(super) struct Open<T> {
    items: BTreeMap<String, (u64, i64, T)>,
    /// How many have begun.
    begun: u64,
}

impl<T> Default for Open<T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), begun: 0 }
    }
}

impl<T> Open<T> {
    /// Something begins. Answers with what was open under the same id: nothing else will say how that ended.
    pub(super) fn begin(&mut self, id: &str, began_ms: i64, item: T) -> Option<(i64, T)> {
        self.begun += 1;
        let before = self.items.insert(id.to_owned(), (self.begun, began_ms, item));
        before.map(|(_, began_ms, item)| (began_ms, item))
    }

    /// When it began, and what it is.
    pub(super) fn find(&mut self, id: &str) -> Option<(&mut i64, &mut T)> {
        self.items.get_mut(id).map(|(_, began_ms, item)| (began_ms, item))
    }

    /// True when it is open.
    pub(super) fn has(&self, id: &str) -> bool {
        self.items.contains_key(id)
    }

    /// It is over.
    pub(super) fn end(&mut self, id: &str) -> Option<(i64, T)> {
        self.items.remove(id).map(|(_, began_ms, item)| (began_ms, item))
    }

    /// All of them are over.
    pub(super) fn end_all(&mut self) -> Vec<(String, i64, T)> {
        let mut all: Vec<_> = std::mem::take(&mut self.items).into_iter().collect();
        all.sort_by_key(|(_, (order, ..))| *order);
        all.into_iter().map(|(id, (_, began_ms, item))| (id, began_ms, item)).collect()
    }
}
