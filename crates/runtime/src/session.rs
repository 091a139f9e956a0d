//! A session in this process: its records' store and the fold of them. Every change goes through [`Session::append`]:
//! redacted, numbered, written, and only then applied.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use qoder_core::State;
use qoder_core::ports::{LogStore, LogStoreError, Outputs};
use qoder_tools::read_regular;
use qoder_types::record::{ElicitationAnswered, RecordBody, SessionStarted, UserEntry, UserOrigin};
use qoder_types::{Message, Record, TaskEnded, TaskStarted, TaskStatus};
use serde_json::Value;

use crate::VERSION;
use crate::agent::lost;
use crate::error::SessionError;
use crate::hooks::Remembered;
use crate::layout::SessionPaths;
use crate::redact::{Redactor, redact_body};
use crate::store::jsonl::{Durability, JsonlStore};
use crate::store::line::{self, Line, Owner};
use crate::store::memory::MemoryStore;
use crate::task_events::TaskEvents;
use crate::telemetry::SessionObserver;
use crate::trust::is_repository;

/// A session that this process drives.
pub struct Session {
    /// Its id; that of the agent when it is one's.
    pub id: String,
    /// The main session, when it is an agent's.
    main: Option<String>,
    /// The fold of its records.
    pub state: State,
    /// News of its background tasks.
    pub task_events: TaskEvents,
    /// Tasks that an earlier process left running; their unknown end is on record and the host has not heard of it.
    pub(crate) lost_tasks: Vec<String>,
    /// Questions of servers that an earlier process left open; their end is on record and the host has not heard of it.
    pub(crate) lost_elicitations: Vec<String>,
    /// True once the mode of this run has been compared with the recorded one; a later change is the host's.
    pub(crate) mode_is_settled: bool,
    mirror: Option<Mirror>,
    /// The record with which this process began the session, if it did.
    first: Option<Record>,
    store: Box<dyn LogStore>,
    redactor: Redactor,
    outputs: PathBuf,
    /// True for a subagent's session: its entries say so.
    pub is_sidechain: bool,
    files: Option<SessionPaths>,
    /// True when an earlier process has taken a prompt.
    pub(crate) is_resumed: bool,
    /// True once this process has begun a turn.
    pub(crate) has_begun: bool,
    /// What hooks want the model to know before its next reply.
    pub(crate) hook_context: Vec<String>,
    /// What it keeps of its hooks.
    pub(crate) remembered: Remembered,
    branch: Option<String>,
    observer: Option<SessionObserver>,
}

/// Is shown the log's path and lines that were just written to it.
pub type Mirror = Arc<dyn Fn(&Path, &[Value]) + Send + Sync>;

/// Where a session is kept.
#[derive(Debug)]
pub enum Keep {
    /// In files.
    Files {
        /// The files.
        paths: SessionPaths,
        /// When a record counts as kept.
        durability: Durability,
    },
    /// Nowhere; tool outputs go to this folder.
    Nowhere {
        /// A private temporary folder.
        outputs: PathBuf,
    },
}

impl Session {
    /// Opens a session, creating it if it has no records yet.
    pub fn open(id: &str, keep: Keep, redactor: Redactor, cwd: &Path) -> Result<Self, SessionError> {
        Self::open_as(id, None, keep, redactor, cwd)
    }

    /// Opens the session of an agent of the session `main`, creating it if it has no records yet.
    pub fn open_of_agent(
        agent_id: &str,
        main: &str,
        keep: Keep,
        redactor: Redactor,
        cwd: &Path,
    ) -> Result<Self, SessionError> {
        Self::open_as(agent_id, Some(main), keep, redactor, cwd)
    }

    fn open_as(
        id: &str,
        main: Option<&str>,
        keep: Keep,
        redactor: Redactor,
        cwd: &Path,
    ) -> Result<Self, SessionError> {
        let mut state = State::default();
        let mut files = None;
        let (store, outputs): (Box<dyn LogStore>, PathBuf) = match keep {
            Keep::Files { paths, durability } => {
                let outputs = paths.outputs();
                let store = JsonlStore::open(&paths, id, durability, |line| apply_line(&mut state, line))?;
                let store = match main {
                    Some(main) => store.of_agent(main, id),
                    None => store,
                };
                files = Some(paths);
                (Box::new(store), outputs)
            }
            Keep::Nowhere { outputs } => (Box::new(MemoryStore), outputs),
        };
        let branch = git_branch(cwd);
        let task_events = TaskEvents::default();
        let lost_tasks = left_running(&state).map(|start| start.task_id.clone()).collect();
        let lost_elicitations = state.elicitations.iter().cloned().collect();
        let is_resumed = state.prompts > 0;
        let mut session = Self {
            id: id.to_owned(),
            main: main.map(str::to_owned),
            state,
            task_events,
            lost_tasks,
            lost_elicitations,
            mode_is_settled: false,
            mirror: None,
            first: None,
            store,
            redactor,
            outputs,
            is_sidechain: main.is_some(),
            files,
            is_resumed,
            has_begun: false,
            hook_context: Vec::new(),
            remembered: Remembered::default(),
            branch,
            observer: None,
        };
        // A transcript of another program has entries but no record of ours yet.
        if session.state.last_seq == 0 {
            let first = session.append(RecordBody::SessionStarted(SessionStarted {
                cwd: cwd.to_string_lossy().into_owned(),
                version: VERSION.to_owned(),
                forked_from: None,
            }))?;
            session.first = Some(first);
        }
        session.end_lost_tasks()?;
        session.cancel_lost_elicitations()?;
        Ok(session)
    }

    /// A server whose connection is gone gets no answer any more.
    fn cancel_lost_elicitations(&mut self) -> Result<(), LogStoreError> {
        let cancelled = self.lost_elicitations.iter().map(|id| {
            RecordBody::ElicitationAnswered(ElicitationAnswered {
                elicitation_id: id.clone(),
                action: "cancel".to_owned(),
                by: "resume".to_owned(),
            })
        });
        let cancelled: Vec<RecordBody> = cancelled.collect();
        if !cancelled.is_empty() {
            self.append_all(cancelled)?;
        }
        Ok(())
    }

    /// Puts on record that nobody knows how tasks ended that were left running.
    pub(crate) fn end_lost_tasks(&mut self) -> Result<(), LogStoreError> {
        let ends = left_running(&self.state).map(|start| RecordBody::TaskEnded(self.lost_end(start)));
        let ends: Vec<RecordBody> = ends.collect();
        if !ends.is_empty() {
            self.append_all(ends)?;
        }
        Ok(())
    }

    /// The end of a task that was left running.
    pub(crate) fn lost_end(&self, start: &TaskStarted) -> TaskEnded {
        if start.is_agent() {
            return lost::end(self.folder(), start);
        }
        TaskEnded {
            task_id: start.task_id.clone(),
            status: TaskStatus::Unknown,
            summary: format!(
                "Background command \"{}\": outcome unknown: the program ended while the task ran",
                start.description
            ),
            exit_code: None,
            account: None,
        }
    }

    /// Appends one record.
    pub fn append(&mut self, body: RecordBody) -> Result<Record, LogStoreError> {
        let mut records = self.append_all(vec![body])?;
        // One body in, one record out.
        Ok(records.remove(0))
    }

    /// Appends records in one write.
    pub fn append_all(&mut self, bodies: Vec<RecordBody>) -> Result<Vec<Record>, LogStoreError> {
        let timestamp = timestamp();
        let mut seq = self.state.last_seq;
        let seq_before = seq;
        let records: Vec<Record> = bodies
            .into_iter()
            .map(|mut body| {
                redact_body(&self.redactor, &mut body);
                seq += 1;
                Record { seq, timestamp: timestamp.clone(), body }
            })
            .collect();
        self.store.append(&records)?;
        if let (Some(mirror), Some(log)) = (&self.mirror, self.log_path()) {
            let first = self.first.as_ref().filter(|_| seq_before == 1);
            let mut lines: Vec<_> =
                first.iter().flat_map(|first| self.lines(std::slice::from_ref(*first))).collect();
            lines.extend(self.lines(&records));
            mirror(log, &lines);
        }
        for record in &records {
            self.state.apply(record);
            if let Some(observer) = &mut self.observer {
                observer.see(record);
            }
        }
        Ok(records)
    }

    /// Lets telemetry see every record that is written from now on.
    pub fn observe(&mut self, observer: SessionObserver) {
        let observer = match (&self.state.turn, self.state.prompts) {
            (Some(_), turns) => observer.going_on(turns, &self.state.last_prompt, &timestamp()),
            (None, _) => observer,
        };
        self.observer = Some(observer);
    }

    /// Shows every line that is written from now on to `mirror`, together with the first one of a session that this
    /// process began.
    pub fn mirror_to(&mut self, mirror: Mirror) {
        self.mirror = Some(mirror);
    }

    /// Records as the log has them, but without number and checksum: a store keeps what a line means, not its bytes, and
    /// a log that comes back from it is read like one of another program.
    fn lines(&self, records: &[Record]) -> Vec<Value> {
        let owner = match &self.main {
            Some(main) => Owner { session_id: main, agent_id: Some(&self.id) },
            None => Owner { session_id: &self.id, agent_id: None },
        };
        let line = |record: &Record| {
            let mut bytes = Vec::new();
            line::encode(record, owner, &mut bytes).ok()?;
            let mut line: Value = serde_json::from_slice(&bytes).ok()?;
            let fields = line.as_object_mut()?;
            for key in ["seq", "v", "crc"] {
                fields.shift_remove(key);
            }
            Some(line)
        };
        records.iter().filter_map(line).collect()
    }

    /// Knows the session's secrets.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Where long outputs go, without secrets.
    #[must_use]
    pub fn kept_outputs(&self) -> Outputs {
        Outputs { directory: self.outputs.clone(), redactor: self.redactor.clone() }
    }

    /// Makes everything so far survive a loss of power.
    pub fn sync(&mut self) -> Result<(), LogStoreError> {
        self.store.sync()
    }

    /// The folder for what belongs to the session; `None` when nothing of it is kept.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.files.as_ref().map(|files| files.side.as_path())
    }

    /// Its files; `None` when nothing is kept.
    pub(crate) fn files(&self) -> Option<&SessionPaths> {
        self.files.as_ref()
    }

    /// The log; `None` when nothing is kept.
    #[must_use]
    pub fn log_path(&self) -> Option<&Path> {
        self.files.as_ref().map(|files| files.log.as_path())
    }

    /// True when no other session of the folder is kept. One that is not kept itself cannot be known for the first.
    pub(crate) fn is_first_of_folder(&self) -> bool {
        let Some(log) = self.log_path().filter(|_| !self.is_resumed) else { return false };
        let Some(Ok(kept)) = log.parent().map(std::fs::read_dir) else { return true };
        let mut others = kept.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path != log);
        !others.any(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
    }

    /// The folder for tool outputs that are too long for the model.
    #[must_use]
    pub fn outputs(&self) -> &Path {
        &self.outputs
    }

    /// A user entry at the end of the chain.
    #[must_use]
    pub fn user_entry(&self, origin: UserOrigin, message: Message) -> UserEntry {
        UserEntry {
            uuid: new_id(),
            parent_uuid: self.state.leaf.clone(),
            is_sidechain: self.is_sidechain,
            cwd: self.state.cwd.clone(),
            version: VERSION.to_owned(),
            git_branch: self.branch.clone(),
            is_meta: origin == UserOrigin::Notice,
            is_compact_summary: origin == UserOrigin::Summary,
            origin,
            input_id: None,
            message,
            outcome: None,
            tool_use_result: None,
            observations: Vec::new(),
            new_cwd: None,
            duration_ms: None,
            worktree: None,
            memory: Vec::new(),
            tasks: Vec::new(),
            typed: None,
            turn_rules: Vec::new(),
            turn_model: None,
        }
    }

    /// Takes a prompt into the log. It opens a turn.
    pub fn prompt(&mut self, message: Message) -> Result<Record, LogStoreError> {
        let entry = self.user_entry(UserOrigin::Prompt, message);
        self.append(RecordBody::User(Box::new(entry)))
    }
}

/// The tasks that an earlier process left running. Those of a call that goes on are not lost.
fn left_running(state: &State) -> impl Iterator<Item = &TaskStarted> {
    let starts = state.running_tasks().map(|task| &task.start);
    starts.filter(|start| !start.is_agent() || !state.is_resumable(&start.tool_use_id))
}

/// Applies a line of the log; lines of other programs do not count as records.
pub fn apply_line(state: &mut State, line: Line) {
    match line {
        Line::Record(record) => state.apply(&record),
        Line::Foreign(body) => {
            if matches!(body, RecordBody::Unknown(_)) {
                return;
            }
            state.apply(&Record { seq: state.last_seq, timestamp: String::new(), body });
        }
    }
}

/// A new unique id.
#[must_use]
pub fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The present moment as records write it.
#[must_use]
pub fn timestamp() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// The longest `HEAD` that names a branch.
const LONGEST_HEAD: u64 = 4 * 1024;

/// The branch checked out in `cwd`, read without running git and without following what leads out of the repository.
fn git_branch(cwd: &Path) -> Option<String> {
    let repository = cwd.ancestors().find(|folder| is_repository(folder))?;
    let head = read_regular(&repository.join(".git/HEAD"), Some(repository), LONGEST_HEAD);
    let head =
        head.ok().filter(|(_, is_cut)| !is_cut).and_then(|(bytes, _)| String::from_utf8(bytes).ok())?;
    head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
}
