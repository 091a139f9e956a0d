//! Pages fetched in the last minutes, so that a second question about a page asks no server again.
//!
//! Bounded in number and size; the oldest page goes first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a page is kept.
const KEPT_FOR: Duration = Duration::from_secs(15 * 60);
/// The most pages.
const PAGES: usize = 50;
/// The most bytes of all pages.
const BYTES: usize = 50 * 1024 * 1024;

/// A page as text.
#[derive(Debug)]
pub(crate) struct Page {
    /// Where it came from in the end.
    pub(crate) url: String,
    /// The status.
    pub(crate) status: u16,
    /// How many bytes were sent.
    pub(crate) bytes: usize,
    /// Its text.
    pub(crate) text: String,
}

#[derive(Debug)]
struct Entry {
    key: String,
    since: Instant,
    page: Arc<Page>,
}

/// The pages, by the URL that was asked for.
#[derive(Debug, Default)]
pub(crate) struct PageCache(Mutex<VecDeque<Entry>>);

impl PageCache {
    /// The page that was fetched from `key`, if that was not long ago.
    pub(crate) fn get(&self, key: &str, now: Instant) -> Option<Arc<Page>> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| now.saturating_duration_since(entry.since) < KEPT_FOR);
        entries.iter().find(|entry| entry.key == key).map(|entry| Arc::clone(&entry.page))
    }

    /// Keeps a page.
    pub(crate) fn put(&self, key: String, page: Arc<Page>, now: Instant) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.key != key);
        entries.push_back(Entry { key, since: now, page });
        let mut total: usize = entries.iter().map(|entry| entry.page.text.len()).sum();
        while entries.len() > PAGES || total > BYTES {
            let Some(oldest) = entries.pop_front() else { break };
            total -= oldest.page.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(length: usize) -> Arc<Page> {
        Arc::new(Page { url: String::new(), status: 200, bytes: length, text: "x".repeat(length) })
    }

    #[test]
    fn pages_grow_old_and_make_room() {
        let cache = PageCache::default();
        let start = Instant::now();
        cache.put("a".to_owned(), page(1), start);
        assert!(cache.get("a", start + KEPT_FOR - Duration::from_secs(1)).is_some());
        assert!(cache.get("a", start + KEPT_FOR).is_none());
        for number in 0..60 {
            cache.put(number.to_string(), page(1), start);
        }
        assert!(cache.get("9", start).is_none() && cache.get("10", start).is_some());
        cache.put("large".to_owned(), page(BYTES), start);
        assert!(cache.get("59", start).is_none() && cache.get("large", start).is_some());
        cache.put("larger".to_owned(), page(BYTES + 1), start);
        assert!(cache.get("large", start).is_none() && cache.get("larger", start).is_none());
    }
}
