//! The file store: one session, one file, one writer. Opening reads the log, cuts a torn tail and keeps the cut bytes
//! beside it; a bad line before the end is corruption and refused. The lock is freed by the kernel when its holder dies.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use qoder_core::ports::{LogStore, LogStoreError};
use qoder_types::record::RecordBody;
use qoder_types::{Behavior, Record};

use super::line::Owner;
use super::notes::Notes;
use super::{blob, folders, line, tear};
use crate::error::SessionError;
use crate::layout::SessionPaths;

/// When a record counts as kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Handed to the kernel: survives any death of the process. Synced once a turn.
    #[default]
    Process,
    /// Synced to the disk: survives a loss of power too.
    Power,
}

/// What reading a log came to.
#[derive(Debug, Default)]
pub struct Scan {
    /// Number of the last record.
    pub last_seq: u64,
    /// Lines read.
    pub lines: u64,
    /// Bytes of intact lines, up to a record that was never completed.
    pub intact: u64,
    /// Bytes of such a record behind them.
    pub torn: u64,
    /// Bytes behind that: lines that other programs appended after the tear.
    pub after_tear: u64,
    /// True when the last intact line has no newline.
    pub open_end: bool,
    /// Titles and tags.
    pub notes: Notes,
}

impl Scan {
    /// The offset of the first byte that was not looked at.
    fn end(&self) -> u64 {
        self.intact + self.torn + self.after_tear
    }

    fn corrupt(paths: &SessionPaths, line: u64, problem: String) -> SessionError {
        SessionError::Corrupt { path: paths.log.clone(), line, problem }
    }

    /// Takes a line that was read well, and that begins at the end so far.
    fn take(&mut self, decoded: &line::Line, text: &[u8], length: u64) -> Result<(), String> {
        match decoded {
            line::Line::Record(record) if record.seq != self.last_seq + 1 => {
                return Err(format!("record {} follows record {}", record.seq, self.last_seq));
            }
            line::Line::Record(record) => self.last_seq = record.seq,
            line::Line::Foreign(body) => self.notes.see(line::kind(body), text, self.end()),
        }
        self.pass(length);
        Ok(())
    }

    /// Passes over bytes that are in order.
    fn pass(&mut self, length: u64) {
        if self.torn > 0 {
            self.after_tear += length;
        } else {
            self.intact += length;
        }
    }
}

/// Reads a log from the start and hands every line to `visit`. A record that was never completed is a torn tail and
/// reported in the [`Scan`], also when other programs have appended lines of theirs behind it; a bad line before another
/// record is an error that names it.
pub fn scan(paths: &SessionPaths, mut visit: impl FnMut(line::Line)) -> Result<Scan, SessionError> {
    let unreadable = |error: std::io::Error| SessionError::io("read", &paths.log, &error);
    let file = File::open(&paths.log).map_err(unreadable)?;
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    let blobs = paths.blobs();
    let mut scan = Scan::default();
    // The bad line, which is only a torn tail if no record follows.
    let mut bad: Option<(u64, String)> = None;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let read = reader.read_until(b'\n', &mut buffer).map_err(unreadable)? as u64;
        if read == 0 {
            return Ok(scan);
        }
        let text = buffer.trim_ascii();
        if text.is_empty() {
            scan.pass(read);
            continue;
        }
        scan.lines += 1;
        let problem = match (line::decode(text, &blobs), &bad) {
            (Ok(line::Line::Record(_)), Some((line, problem))) => {
                return Err(Scan::corrupt(paths, *line, problem.clone()));
            }
            (Ok(decoded), _) => {
                scan.take(&decoded, text, read)
                    .map_err(|problem| Scan::corrupt(paths, scan.lines, problem))?;
                visit(decoded);
                scan.open_end = buffer.last() != Some(&b'\n');
                continue;
            }
            (Err(problem @ (line::LineError::NotJson(_) | line::LineError::Checksum)), None) => {
                problem.to_string()
            }
            (Err(problem), _) => return Err(Scan::corrupt(paths, scan.lines, problem.to_string())),
        };
        bad = Some((scan.lines, problem));
        scan.open_end = false;
        // A program that appends a line of its own appends it to the torn one.
        let (torn, joined) = buffer.split_at(tear::foreign_suffix(&buffer).unwrap_or(buffer.len()));
        match line::decode(joined.trim_ascii(), &blobs) {
            Ok(decoded) => {
                scan.torn = torn.len() as u64;
                scan.take(&decoded, joined.trim_ascii(), joined.len() as u64)
                    .map_err(|problem| Scan::corrupt(paths, scan.lines, problem))?;
                visit(decoded);
                scan.open_end = !joined.ends_with(b"\n");
            }
            Err(_) => scan.torn = read,
        }
    }
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
    _lock: File,
}

impl JsonlStore {
    /// Opens the log of a session for writing, creating it if it is not there. Every line that is already in it goes to
    /// `visit`.
    pub fn open(
        paths: &SessionPaths,
        session_id: &str,
        durability: Durability,
        visit: impl FnMut(line::Line),
    ) -> Result<Self, SessionError> {
        let mut unsynced = folders::above_missing(&paths.side);
        let lock = hold(paths, session_id)?;
        let created = !paths.log.exists();
        if created {
            unsynced.extend(paths.log.parent().map(Path::to_path_buf));
        }
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&paths.log)
            .map_err(|error| SessionError::io("open", &paths.log, &error))?;
        let mut notes = Notes::default();
        if !created {
            let mut scan = scan(paths, visit)?;
            let length = tear::repair(&mut file, paths, &scan)
                .map_err(|error| SessionError::io("repair", &paths.log, &error))?;
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
            _lock: lock,
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

    fn guard(&mut self, result: std::io::Result<()>) -> Result<(), LogStoreError> {
        result.map_err(|error| {
            self.ended = true;
            LogStoreError::Failed { place: self.place(), problem: error.to_string() }
        })
    }

    fn write(&mut self, records: &[Record]) -> std::io::Result<()> {
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
        self.file.write_all(&self.buffer)?;
        self.notes.wrote(self.buffer.len());
        if self.buffer.capacity() > 1024 * 1024 {
            self.buffer = Vec::new();
        }
        Ok(())
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
        let written = self.write(records);
        self.guard(written)?;
        self.dirty = true;
        let must_last = self.durability == Durability::Power && records.iter().any(is_acted_upon);
        if must_last { self.flush() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<(), LogStoreError> {
        if self.ended {
            return Err(LogStoreError::Ended { place: self.place() });
        }
        let kept = self.notes.keep_near_end(&mut self.file, &self.paths.log);
        self.dirty |= matches!(kept, Ok(true));
        self.guard(kept.map(|_| ()))?;
        self.flush()
    }
}

/// False for records upon which nothing happens before another record follows them: nobody is told, and nothing starts.
/// In grade `power` they are synced together with that one, so that one sync serves many records.
fn is_acted_upon(record: &Record) -> bool {
    match &record.body {
        // A denial is told to the host at once.
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
        self.guard(synced)?;
        let synced = std::mem::take(&mut self.unsynced).iter().try_for_each(|folder| folders::sync(folder));
        self.guard(synced)?;
        self.dirty = false;
        Ok(())
    }
}

/// How often and how long a lock is waited for whose holder is already dead.
const DEAD_HOLDER_TRIES: u32 = 100;
const DEAD_HOLDER_WAIT: Duration = Duration::from_millis(20);

/// Takes the lock of a session; it is free again when the answer is dropped.
pub(crate) fn hold(paths: &SessionPaths, session_id: &str) -> Result<File, SessionError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&paths.side)
        .map_err(|error| SessionError::io("create", &paths.side, &error))?;
    take_lock(&paths.lock(), session_id)
}

/// True when a process drives the session. Nothing is changed for the answer.
pub(crate) fn is_held(paths: &SessionPaths) -> bool {
    File::open(paths.lock()).is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)))
}

fn take_lock(path: &Path, session_id: &str) -> Result<File, SessionError> {
    let fault = |error: std::io::Error| SessionError::io("lock", path, &error);
    let mut lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(fault)?;
    let mut tries = 0;
    loop {
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(fault(error)),
        }
        let holder = holder(&mut lock);
        // A process that was just killed, or a child it was about to start, may keep the lock for a moment longer.
        let dying = holder.is_some_and(|pid| !is_alive(pid));
        if !dying || tries >= DEAD_HOLDER_TRIES {
            return Err(SessionError::Locked { id: session_id.to_owned(), holder });
        }
        tries += 1;
        std::thread::sleep(DEAD_HOLDER_WAIT);
    }
    lock.set_len(0).map_err(fault)?;
    lock.seek(SeekFrom::Start(0)).map_err(fault)?;
    lock.write_all(format!("{}\n", std::process::id()).as_bytes()).map_err(fault)?;
    Ok(lock)
}

/// The process that wrote its number into the lock; it may be just about to.
fn holder(lock: &mut File) -> Option<u32> {
    let mut text = String::new();
    lock.seek(SeekFrom::Start(0)).ok()?;
    lock.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// False for a process that does not exist any more or only waits to be reaped.
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
        log.append(RecordBody::Interrupted(Interrupted { by: "SIGTERM".to_owned() }));
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
