//! How long sessions are kept. One that was not used for `general.sessionRetention.maxAge` is deleted with everything
//! beside its log; never one that a process drives, and never one younger than `minRetention`. After a run this happens
//! at most once a day and for a bounded number of sessions; a command does it at once and for all.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::catalog::{entries, is_session_id, remove};
use crate::error::StoreError;
use crate::layout::{LOG_ENDING, SessionPaths, projects};
use crate::lease::{Lease, holder};

/// The settings of retention.
const KEY: &str = "general.sessionRetention";
/// Where the time of the last look is kept, in the configuration root.
const STAMP: &str = "last-prune";
/// How often a run looks.
const PAUSE: Duration = Duration::from_secs(24 * 60 * 60);
/// Sessions that a run deletes at most; the next day comes.
const MOST_AFTER_A_RUN: usize = 200;
/// Files that are looked at, however many there are.
const MOST_LOOKED_AT: usize = 100_000;

/// How long sessions are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// False: they are kept for good.
    pub enabled: bool,
    /// Sessions that were not used for this long go.
    pub max_age: Duration,
    /// No session younger than this goes.
    pub min_retention: Duration,
}

/// A session that went, or would.
#[derive(Debug, Clone)]
pub struct OldSession {
    /// Its id.
    pub id: String,
    /// Its files.
    pub paths: SessionPaths,
    /// When it was last written.
    pub modified: SystemTime,
    /// Size of its log.
    pub size: u64,
}

/// What a look came to.
#[derive(Debug, Default)]
pub struct Pruned {
    /// Sessions that went, or would.
    pub sessions: Vec<OldSession>,
    /// Old ones that a process drives; they stay.
    pub in_use: Vec<String>,
    /// Old ones that could not be deleted, and why.
    pub failed: Vec<(String, String)>,
}

/// Settings by their keys, as far as retention reads them. Their values were checked when they were read.
pub trait RetentionSettings {
    /// True when one of the settings under `key` is given.
    fn has(&self, key: &str) -> bool;
    /// A length of time.
    fn age(&self, key: &str) -> Option<Duration>;
    /// A switch.
    fn flag(&self, key: &str, default: bool) -> bool;
}

impl Retention {
    /// What the settings say.
    #[must_use]
    pub fn of(settings: &impl RetentionSettings) -> Self {
        let length = |key: &str, days: u64| {
            let given = settings.age(&format!("{KEY}.{key}"));
            given.unwrap_or(Duration::from_secs(days * 24 * 60 * 60))
        };
        Self {
            enabled: settings.flag(&format!("{KEY}.enabled"), true),
            max_age: length("maxAge", 30),
            min_retention: length("minRetention", 1),
        }
    }

    /// What the settings ask for in so many words: nothing unless one of them speaks of it. A library deletes nothing that
    /// its user has not said a word about.
    #[must_use]
    pub fn asked(settings: &impl RetentionSettings) -> Option<Self> {
        settings.has(KEY).then(|| Self::of(settings)).filter(|retention| retention.enabled)
    }

    /// Deletes what is too old, in all projects. With `dry_run` it only says what would go.
    #[must_use]
    pub fn prune(&self, config_root: &Path, now: SystemTime, dry_run: bool) -> Pruned {
        self.prune_some(config_root, now, dry_run, usize::MAX)
    }

    /// The same after a run, in words for people; `None` when nothing was deleted.
    #[must_use]
    pub fn after_run(&self, config_root: &Path) -> Option<String> {
        let count = self.prune_daily(config_root, SystemTime::now())?.sessions.len();
        (count > 0).then(|| format!("{count} old sessions were deleted (general.sessionRetention)"))
    }

    /// The same after a run: at most once a day, and not too much at once. `None` when it is not yet time.
    #[must_use]
    pub fn prune_daily(&self, config_root: &Path, now: SystemTime) -> Option<Pruned> {
        let stamp = config_root.join(STAMP);
        let last = std::fs::metadata(&stamp).and_then(|metadata| metadata.modified()).ok();
        // A stamp of the future is no reason to wait for it.
        let waits = last.is_some_and(|last| now.duration_since(last).is_ok_and(|since| since < PAUSE));
        if !self.enabled || waits {
            return None;
        }
        // Without a stamp every run would look at everything.
        let mut stamped = std::fs::OpenOptions::new();
        let stamped = stamped.create(true).truncate(true).write(true).mode(0o600).open(&stamp).ok()?;
        stamped.set_modified(now).ok()?;
        Some(self.prune_some(config_root, now, false, MOST_AFTER_A_RUN))
    }

    fn prune_some(&self, config_root: &Path, now: SystemTime, dry_run: bool, most: usize) -> Pruned {
        let mut pruned = Pruned::default();
        if !self.enabled {
            return pruned;
        }
        for old in self.old(config_root, now) {
            if pruned.sessions.len() >= most {
                break;
            }
            if dry_run {
                match holder(&old.paths) {
                    Some(_) => pruned.in_use.push(old.id),
                    None => pruned.sessions.push(old),
                }
                continue;
            }
            match self.delete(&old, now) {
                Ok(true) => pruned.sessions.push(old),
                Ok(false) => {}
                Err(StoreError::Locked { id, .. }) => pruned.in_use.push(id),
                Err(error) => pruned.failed.push((old.id, error.to_string())),
            }
        }
        pruned
    }

    /// Deletes a session unless it was used since it was looked at.
    fn delete(&self, old: &OldSession, now: SystemTime) -> Result<bool, StoreError> {
        let _lease = Lease::take(&old.paths, &old.id)?;
        let used = match glance(&old.paths.log) {
            Some(again) => !self.is_old(again.modified, now),
            // Only a folder is left; taking its lock may have changed it.
            None => old.paths.log.symlink_metadata().is_ok(),
        };
        if used {
            return Ok(false);
        }
        remove(&old.paths).map(|()| true)
    }

    fn is_old(&self, modified: SystemTime, now: SystemTime) -> bool {
        let limit = self.max_age.max(self.min_retention);
        now.duration_since(modified).is_ok_and(|unused| unused >= limit)
    }

    /// The sessions that are too old, oldest first.
    fn old(&self, config_root: &Path, now: SystemTime) -> Vec<OldSession> {
        let folders = entries(&projects(config_root));
        let files = folders.iter().flat_map(|folder| entries(folder)).take(MOST_LOOKED_AT);
        let mut old: Vec<OldSession> = files
            .filter_map(|file: PathBuf| glance(&file))
            .filter(|session| self.is_old(session.modified, now))
            .collect();
        old.sort_by_key(|session| session.modified);
        old
    }
}

/// What is known of a log without reading it; only a plain file in its place counts. A folder without a log is what a
/// deletion left that was cut off.
fn glance(entry: &Path) -> Option<OldSession> {
    let name = entry.file_name()?.to_str()?;
    let log = name.strip_suffix(LOG_ENDING);
    let id = log.unwrap_or(name);
    if !is_session_id(id) {
        return None;
    }
    let metadata = std::fs::symlink_metadata(entry).ok()?;
    let paths = SessionPaths::new(entry.parent()?, id);
    let counts = match log {
        Some(_) => metadata.is_file(),
        None => metadata.is_dir() && paths.log.symlink_metadata().is_err(),
    };
    let size = if metadata.is_file() { metadata.len() } else { 0 };
    counts
        .then(|| Some(OldSession { id: id.to_owned(), paths, modified: metadata.modified().ok()?, size }))?
}
