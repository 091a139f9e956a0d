//! How a database is doing: whether its last transaction worked, and how long transactions take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How a database is doing.
#[derive(Debug)]
pub struct Health {
    works: AtomicBool,
    /// Transactions that were committed.
    pub commits: Arc<AtomicU64>,
    /// Microseconds that they took together.
    pub commit_micros: Arc<AtomicU64>,
}

impl Health {
    /// Of a database that works.
    #[must_use]
    pub fn good() -> Self {
        Self { works: AtomicBool::new(true), commits: Arc::default(), commit_micros: Arc::default() }
    }

    /// False while the last transaction failed.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.works.load(Ordering::Relaxed)
    }

    pub(super) fn set_good(&self, works: bool) {
        self.works.store(works, Ordering::Relaxed);
    }
}
