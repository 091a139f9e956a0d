//! The lease of a session in files: a lock that the kernel frees when its holder dies. Its file names the process that
//! holds it. A lease that is taken over gets a new file, so that the older holder finds that it lost it.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::StoreError;
use crate::layout::SessionPaths;
use crate::watch::{Wanted, Watch};

/// How often and how long a lock is waited for whose holder is already dead.
const DEAD_HOLDER_TRIES: u32 = 100;
const DEAD_HOLDER_WAIT: Duration = Duration::from_millis(20);
/// How often and how long any lock is waited for: [`holder`] takes it for a moment.
const GLANCE_TRIES: u32 = 3;
const GLANCE_WAIT: Duration = Duration::from_millis(2);
/// How often and how long it is looked whether a lock is free whose file was closed.
const RELEASE_TRIES: u32 = 22;
const RELEASE_WAIT: Duration = Duration::from_millis(20);

/// The right to append to a session; given back when it is dropped.
#[derive(Debug)]
pub struct Lease {
    lock: File,
    identity: (u64, u64),
    path: PathBuf,
}

/// Which process holds a session, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// The process; `None` while it has not yet written its number.
    pub pid: Option<u32>,
    /// When it took the lease.
    pub since: Option<SystemTime>,
}

impl Lease {
    /// Takes the lease of a session that no process holds.
    pub fn take(paths: &SessionPaths, session_id: &str) -> Result<Self, StoreError> {
        create_side(paths)?;
        take_lock(&paths.lock(), session_id)
    }

    /// Takes the lease away from the process that holds it, which can append nothing from then on. The caller keeps that
    /// process from appending at this moment.
    pub(crate) fn take_over(paths: &SessionPaths, session_id: &str) -> Result<Self, StoreError> {
        create_side(paths)?;
        let path = paths.lock();
        let fresh = path.with_extension(format!("{}", std::process::id()));
        let fault = |error: std::io::Error| StoreError::io("lock", &path, &error);
        // A file with this name is left from a killed process.
        let _ = std::fs::remove_file(&fresh);
        let lease = take_lock(&fresh, session_id)?;
        std::fs::rename(&fresh, &path).map_err(fault)?;
        Ok(Self { path, ..lease })
    }

    /// True once another process has taken the lease over. A lock file that was only removed makes no other process the
    /// holder.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok_and(|present| identity(&present) != self.identity)
    }

    /// True when the file that others would lock is this one.
    fn is_present(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok_and(|present| identity(&present) == self.identity)
    }

    /// Writes the number of this process into the lock, for those who find it held.
    fn signed(mut self) -> std::io::Result<Self> {
        self.lock.set_len(0)?;
        self.lock.seek(SeekFrom::Start(0))?;
        self.lock.write_all(format!("{}\n", std::process::id()).as_bytes())?;
        Ok(self)
    }
}

/// The living process that holds the session now, if one does. Never waits, and changes nothing.
#[must_use]
pub fn holder(paths: &SessionPaths) -> Option<Holder> {
    let mut lock = File::open(paths.lock()).ok()?;
    // Shared, so that two who look do not take each other for the holder.
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) | Err(TryLockError::Error(_)) => return None,
    }
    let since = lock.metadata().and_then(|metadata| metadata.modified()).ok();
    Some(Holder { pid: written_pid(&mut lock), since })
}

/// Completes when no process holds the session.
pub async fn released(paths: &SessionPaths) {
    let mut watch = Watch::new(&paths.lock(), Wanted::Closing);
    loop {
        // The kernel reports that a file is closed before it frees the lock; on a busy machine that takes a while.
        for attempt in 1..=RELEASE_TRIES {
            if holder(paths).is_none() {
                return;
            }
            tokio::time::sleep(RELEASE_WAIT * attempt).await;
        }
        watch.changed().await;
        if watch.is_over() {
            watch = Watch::new(&paths.lock(), Wanted::Closing);
        }
    }
}

fn create_side(paths: &SessionPaths) -> Result<(), StoreError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&paths.side)
        .map_err(|error| StoreError::io("create", &paths.side, &error))
}

fn take_lock(path: &Path, session_id: &str) -> Result<Lease, StoreError> {
    let fault = |error: std::io::Error| StoreError::io("lock", path, &error);
    let mut tries = 0;
    loop {
        let mut lock = open_lock(path).map_err(fault)?;
        match lock.try_lock() {
            Ok(()) => {
                let identity = identity(&lock.metadata().map_err(fault)?);
                let lease = Lease { lock, identity, path: path.to_path_buf() };
                // The previous holder may have removed or replaced the file since it was opened.
                if lease.is_present() {
                    return lease.signed().map_err(fault);
                }
                tries += 1;
                if tries > DEAD_HOLDER_TRIES {
                    return Err(StoreError::Locked { id: session_id.to_owned(), holder: None });
                }
                continue;
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(fault(error)),
        }
        let holder = written_pid(&mut lock);
        // A process that was just killed, or a child it was about to start, may keep the lock for a moment longer.
        let dying = holder.is_some_and(|pid| !is_alive(pid));
        let wait = match (tries, dying) {
            (..GLANCE_TRIES, _) => GLANCE_WAIT,
            (..DEAD_HOLDER_TRIES, true) => DEAD_HOLDER_WAIT,
            (_, _) => return Err(StoreError::Locked { id: session_id.to_owned(), holder }),
        };
        tries += 1;
        std::thread::sleep(wait);
    }
}

fn open_lock(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path)
}

/// Distinguishes files, whatever their names.
fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// The process that wrote its number into the lock; it may be just about to.
fn written_pid(lock: &mut File) -> Option<u32> {
    let mut text = String::new();
    lock.seek(SeekFrom::Start(0)).ok()?;
    lock.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// False for a process that no longer exists or only waits to be reaped.
fn is_alive(pid: u32) -> bool {
    let number = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let exists = number
        .is_some_and(|number| rustix::process::test_kill_process(number) != Err(rustix::io::Errno::SRCH));
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let dead = state
        .rsplit(')')
        .next()
        .is_some_and(|rest| matches!(rest.trim_start().chars().next(), Some('Z' | 'X')));
    exists && !dead
}
