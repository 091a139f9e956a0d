//! The file store: one session, one file, one writer. Opening takes the lease, reads the log, cuts a torn tail and keeps
//! the cut bytes beside it; a bad line before the end is corruption and refused.
//!
//! [`line`](mod@line) is the text of a record, [`blob`] large content, [`notes`] titles and tags, `sidecar` what is known of
//! an agent.

pub mod blob;
pub mod folders;
pub mod line;
pub mod notes;
mod scan;
pub(crate) mod sidecar;
pub(crate) mod tear;

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use qoder_core::ports::{LogStore, LogStoreError};
use qoder_types::record::RecordBody;
use qoder_types::{Behavior, Record};
use serde_json::Value;

use crate::error::StoreError;
use crate::layout::SessionPaths;
use crate::lease::Lease;
use line::Owner;
use notes::Notes;
pub use scan::{Scan, scan};

/// How long an append of the holder whose lease is taken over is waited for.
/// Bytes of the buffer for lines that are kept between two appends.
const KEPT_BUFFER: usize = 16 * 1024;
const LAST_APPEND: Duration = Duration::from_secs(2);

/// When a record counts as kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Handed to the kernel: survives any death of the process. Synced once a turn.
    #[default]
    Process,
    /// Synced to the disk: survives a loss of power too.
    Power,
}

/// The file store.
#[derive(Debug)]
pub struct JsonlStore {
    file: File,
    paths: SessionPaths,
    session_id: String,
    agent_id: Option<String>,
    durability: Durability,
    ended: bool,
    dirty: bool,
    /// Folders that have entries for new files and folders of the session.
    unsynced: BTreeSet<PathBuf>,
    buffer: Vec<u8>,
    notes: Notes,
    lease: Lease,
}

impl JsonlStore {
    /// Opens the log of a session for writing, creating it if it is not there. Every line that is already in it goes to
    /// `visit`.
    pub fn open(
        paths: &SessionPaths,
        session_id: &str,
        durability: Durability,
        visit: impl FnMut(line::Line),
    ) -> Result<Self, StoreError> {
        let unsynced = folders::above_missing(&paths.side);
        let lease = Lease::take(paths, session_id)?;
        Self::open_with(lease, unsynced, paths, session_id, durability, visit)
    }

    /// Opens the log like [`Self::open`], also when a process holds it: that process can append nothing from then on.
    pub fn take_over(
        paths: &SessionPaths,
        session_id: &str,
        durability: Durability,
        visit: impl FnMut(line::Line),
    ) -> Result<Self, StoreError> {
        let mut unsynced = folders::above_missing(&paths.side);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&paths.side)
            .map_err(|error| StoreError::io("create", &paths.side, &error))?;
        unsynced.extend(paths.log.parent().map(Path::to_path_buf));
        let log = open_log(paths)?;
        lock_between_appends(&log, paths, session_id)?;
        let lease = Lease::take_over(paths, session_id)?;
        drop(log);
        Self::open_with(lease, unsynced, paths, session_id, durability, visit)
    }

    fn open_with(
        lease: Lease,
        mut unsynced: BTreeSet<PathBuf>,
        paths: &SessionPaths,
        session_id: &str,
        durability: Durability,
        visit: impl FnMut(line::Line),
    ) -> Result<Self, StoreError> {
        let created = !paths.log.exists();
        if created {
            unsynced.extend(paths.log.parent().map(Path::to_path_buf));
        }
        let mut file = open_log(paths)?;
        let mut notes = Notes::default();
        if !created {
            let mut scan = scan(paths, visit)?;
            if let Some((line, version)) = scan.later {
                return Err(StoreError::Later { path: paths.log.clone(), line, version });
            }
            let length = tear::repair(&mut file, paths, &scan)
                .map_err(|error| StoreError::io("repair", &paths.log, &error))?;
            notes = std::mem::take(&mut scan.notes);
            notes.start_at(length);
        }
        Ok(Self {
            file,
            paths: paths.clone(),
            session_id: session_id.to_owned(),
            agent_id: None,
            durability,
            ended: false,
            dirty: created,
            unsynced,
            buffer: Vec::new(),
            notes,
            lease,
        })
    }

    /// Lines from now on are those of an agent of the session.
    #[must_use]
    pub fn of_agent(mut self, session_id: &str, agent_id: &str) -> Self {
        self.session_id = session_id.to_owned();
        self.agent_id = Some(agent_id.to_owned());
        self
    }

    fn place(&self) -> String {
        self.paths.log.display().to_string()
    }

    fn end_on_error(&mut self, result: std::io::Result<()>) -> Result<(), LogStoreError> {
        result.map_err(|error| {
            self.ended = true;
            LogStoreError::Failed { place: self.place(), problem: error.to_string() }
        })
    }

    /// Writes while no other process can take the lease over; false when one has it already.
    fn write_unless_lost(&mut self, records: &[Record]) -> std::io::Result<bool> {
        self.encode(records)?;
        self.file.lock()?;
        let is_lost = self.lease.is_lost();
        let written = if is_lost { Ok(()) } else { self.write_unless_deleted() };
        self.file.unlock()?;
        written?;
        if !is_lost {
            self.notes.wrote(self.buffer.len());
        }
        // A process may have a thousand sessions open; the few large lines of a session are not worth keeping room for.
        if self.buffer.capacity() > KEPT_BUFFER {
            self.buffer = Vec::new();
        }
        Ok(!is_lost)
    }

    /// Writes what is encoded. What a file without a name gets is lost with the process.
    fn write_unless_deleted(&mut self) -> std::io::Result<()> {
        if self.file.metadata()?.nlink() == 0 {
            return Err(std::io::Error::new(std::io::ErrorKind::NotFound, "the file was deleted"));
        }
        self.file.write_all(&self.buffer)
    }

    fn encode(&mut self, records: &[Record]) -> std::io::Result<()> {
        self.buffer.clear();
        for record in records {
            let start = self.buffer.len();
            let owner = Owner { session_id: &self.session_id, agent_id: self.agent_id.as_deref() };
            line::encode(record, owner, &mut self.buffer)?;
            if self.buffer.len() - start > blob::RECORD_CAP {
                let full = self.buffer.split_off(start);
                // The checksum is made anew for what stays in the line.
                let text = full.trim_ascii_end();
                let bare = strip_checksum(text);
                let small = blob::shrink(&bare, &self.paths.blobs())?;
                self.buffer.extend_from_slice(&small);
                line::seal(&mut self.buffer, start);
            }
        }
        Ok(())
    }
}

fn open_log(paths: &SessionPaths) -> Result<File, StoreError> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&paths.log)
        .map_err(|error| StoreError::io("open", &paths.log, &error))
}

/// Locks the log between two appends.
fn lock_between_appends(log: &File, paths: &SessionPaths, session_id: &str) -> Result<(), StoreError> {
    let until = Instant::now() + LAST_APPEND;
    loop {
        match log.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Locked { id: session_id.to_owned(), holder: None });
            }
            Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &paths.log, &error)),
        }
    }
}

fn strip_checksum(text: &[u8]) -> Vec<u8> {
    let end = text.len().saturating_sub(br#","crc":"00000000"}"#.len());
    let mut bare = text[..end].to_vec();
    bare.push(b'}');
    bare
}

impl LogStore for JsonlStore {
    fn append(&mut self, records: &[Record]) -> Result<(), LogStoreError> {
        if self.ended {
            return Err(LogStoreError::Ended { place: self.place() });
        }
        let written = self.write_unless_lost(records);
        let is_written = matches!(written, Ok(true));
        self.end_on_error(written.map(|_| ()))?;
        if !is_written {
            self.ended = true;
            return Err(LogStoreError::Fenced { place: self.place() });
        }
        self.dirty = true;
        let must_last = self.durability == Durability::Power && records.iter().any(is_acted_upon);
        if must_last { self.flush() } else { Ok(()) }
    }

    fn note(&mut self, line: &Value) -> Result<(), LogStoreError> {
        if self.ended {
            return Err(LogStoreError::Ended { place: self.place() });
        }
        // A whole line in one call, because others may write too. The next sync finds it as it finds theirs.
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        self.dirty = true;
        self.end_on_error(written)
    }

    fn sync(&mut self) -> Result<(), LogStoreError> {
        if self.ended {
            return Err(LogStoreError::Ended { place: self.place() });
        }
        let kept = self.notes.keep_near_end(&mut self.file, &self.paths.log);
        self.dirty |= matches!(kept, Ok(true));
        self.end_on_error(kept.map(|_| ()))?;
        self.flush()
    }

    fn barrier(&mut self) -> BoxFuture<'static, Result<(), LogStoreError>> {
        let durable = match self.durability {
            _ if self.ended => Err(LogStoreError::Ended { place: self.place() }),
            Durability::Process => Ok(()),
            Durability::Power => self.flush(),
        };
        ready(durable).boxed()
    }
}

/// False for records upon which nothing happens before another record follows them: nothing is reported or started.
/// In grade `power` they are synced together with that one, so that one sync serves many records.
fn is_acted_upon(record: &Record) -> bool {
    match &record.body {
        // The host reads a denial at once.
        RecordBody::Decided(decided) => decided.decision.behavior != Behavior::Allow,
        RecordBody::Epoch(_)
        | RecordBody::Hooked(_)
        | RecordBody::FileKept(_)
        | RecordBody::SideCalled(_)
        | RecordBody::ModelNoticed(_)
        | RecordBody::ModelFailed(_) => false,
        RecordBody::SessionStarted(_)
        | RecordBody::InputAdmitted(_)
        | RecordBody::InputWithdrawn(_)
        | RecordBody::User(_)
        | RecordBody::Assistant(_)
        | RecordBody::System(_)
        | RecordBody::ModelRequested(_)
        | RecordBody::Asked(_)
        | RecordBody::Answered(_)
        | RecordBody::Elicited(_)
        | RecordBody::ElicitationAnswered(_)
        | RecordBody::PermissionsChanged(_)
        | RecordBody::ToolStarted(_)
        | RecordBody::TaskStarted(_)
        | RecordBody::TaskParked(_)
        | RecordBody::TaskEnded(_)
        | RecordBody::Interrupted(_)
        | RecordBody::TurnEnded(_)
        | RecordBody::Cut(_)
        | RecordBody::FilesRewound(_)
        | RecordBody::Unknown(_) => true,
    }
}

impl Drop for JsonlStore {
    /// Whatever ends the session, its last records survive a loss of power. Who needs to know of a fault has synced
    /// before.
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.flush();
        }
    }
}

impl JsonlStore {
    /// Makes what was written survive a loss of power.
    fn flush(&mut self) -> Result<(), LogStoreError> {
        if !self.dirty {
            return Ok(());
        }
        let synced = self.file.sync_data();
        #[cfg(test)]
        tests::SYNCS.set(tests::SYNCS.get() + 1);
        self.end_on_error(synced)?;
        let synced = std::mem::take(&mut self.unsynced).iter().try_for_each(|folder| folders::sync(folder));
        self.end_on_error(synced)?;
        self.dirty = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use qoder_types::record::{Decided, Interrupted, ToolStarted};
    use qoder_types::{Decision, ReplayClass};

    use super::*;

    thread_local! {
        /// How often a log was synced on this thread.
        pub(super) static SYNCS: Cell<u64> = const { Cell::new(0) };
    }

    fn decided(id: &str) -> RecordBody {
        let decision: Decision = serde_json::from_value(serde_json::json!({
            "behavior": Behavior::Allow, "layer": "mode", "reason": "r", "mode": "default",
        }))
        .unwrap();
        RecordBody::Decided(Decided { tool_use_id: id.to_owned(), tool_name: "Bash".to_owned(), decision })
    }

    fn started(id: &str) -> RecordBody {
        let (tool_use_id, tool_name) = (id.to_owned(), "Bash".to_owned());
        RecordBody::ToolStarted(ToolStarted { tool_use_id, tool_name, replay: ReplayClass::Effectful })
    }

    struct Log {
        store: JsonlStore,
        seq: u64,
        _folder: tempfile::TempDir,
    }

    impl Log {
        fn new(durability: Durability) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let paths = SessionPaths::new(&folder.path().join("projects/p"), "s");
            let store = JsonlStore::open(&paths, "s", durability, |_| ()).unwrap();
            SYNCS.set(0);
            Self { store, seq: 0, _folder: folder }
        }

        fn append(&mut self, body: RecordBody) {
            self.seq += 1;
            let record = Record { seq: self.seq, timestamp: String::new(), body };
            self.store.append(&[record]).unwrap();
        }
    }

    #[test]
    fn in_grade_power_one_sync_serves_the_records_up_to_one_that_is_acted_upon() {
        let mut log = Log::new(Durability::Power);
        for id in ["a", "b", "c", "d"] {
            log.append(decided(id));
        }
        assert_eq!(SYNCS.get(), 0, "nothing happens upon a decision alone");
        log.append(started("a"));
        assert_eq!(SYNCS.get(), 1, "a call that starts is on the disk, and so is what let it start");
        log.append(started("b"));
        assert_eq!(SYNCS.get(), 2);
    }

    #[test]
    fn in_grade_process_a_log_is_synced_when_it_is_closed() {
        let mut log = Log::new(Durability::Process);
        log.append(started("a"));
        log.append(RecordBody::Interrupted(Interrupted {
            by: qoder_types::Actor::Ending("SIGTERM".to_owned()),
        }));
        assert_eq!(SYNCS.get(), 0);
        log.store.sync().unwrap();
        log.store.sync().unwrap();
        assert_eq!(SYNCS.get(), 1, "what is synced is not synced again");
        log.append(started("b"));
        drop(log);
        assert_eq!(SYNCS.get(), 2);
    }

    #[test]
    fn folders_of_a_new_log_are_synced_with_it() {
        let mut log = Log::new(Durability::Power);
        assert_eq!(log.store.unsynced.len(), 3, "{:?}", log.store.unsynced);
        log.append(started("a"));
        assert!(log.store.unsynced.is_empty());
    }
}
