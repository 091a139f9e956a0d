//! A session in this process: its records' store and the fold of them. Every change goes through [`Session::append`]:
//! redacted, numbered, written, and only then applied.

pub(crate) mod account;
mod agent_logs;
pub(crate) mod call_ids;
pub(crate) mod cut;
pub(crate) mod lost_agents;
pub mod redact;
pub(crate) mod sidecar;
pub(crate) mod task_events;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use qoder_core::State;
use qoder_core::ports::{LogStore, LogStoreError, Outputs};
use qoder_core::recover::{left_running, lost_end, recover};
use qoder_core::state::TaskState;
use qoder_files::read_regular;
use qoder_store::SessionLocation;
use qoder_store::inbox::SessionInbox;
pub use qoder_store::timestamp;
use qoder_types::record::{RecordBody, SessionStarted, UserEntry, UserOrigin};
use qoder_types::{AgentAccount, Message, Record, TaskEnded, TaskStarted};
use serde_json::Value;

use self::redact::{Redactor, redact_body};
use self::task_events::TaskEvents;
use crate::VERSION;
use crate::error::SessionError;
use crate::layout::SessionPaths;
use crate::store::line::{self, Line, Owner};
use crate::telemetry::SessionObserver;
use qoder_config::trust::is_repository;
use qoder_hooks::Remembered;

pub use agent_logs::{AgentLog, agent_logs};

/// A session that this process drives.
pub struct Session {
    /// Its id; that of the agent when it is one's.
    pub id: String,
    /// The fold of its records.
    pub state: State,
    /// News of its background tasks.
    pub task_events: TaskEvents,
    /// What others leave for it.
    inbox: Option<Box<dyn SessionInbox>>,
    /// True once it is on record what an earlier process left open.
    is_recovered: bool,
    /// Tasks that an earlier process left running; their unknown end is on record and was not reported to the host.
    pub(crate) lost_tasks: Vec<String>,
    /// Questions of servers that an earlier process left open; their end is on record and was not reported to the host.
    pub(crate) lost_elicitations: Vec<String>,
    /// Agents that this process drove until they waited.
    pub(crate) parked_here: BTreeSet<String>,
    /// True once the mode of this run has been compared with the recorded one; a later change is the host's.
    pub(crate) mode_is_settled: bool,
    mirror: Option<Mirror>,
    /// The record with which this process began the session, if it did.
    first: Option<Record>,
    store: Box<dyn LogStore>,
    redactor: Redactor,
    location: SessionLocation,
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

/// Where a session that is open is kept.
#[derive(Clone)]
pub struct OpenedLog {
    /// The session itself; its agents are kept below it.
    pub location: SessionLocation,
    /// Is shown every line that is written to the logs of its agents.
    pub mirror: Option<Mirror>,
}

/// Is shown the log's path and lines that were just written to it.
pub type Mirror = Arc<dyn Fn(&Path, &[Value]) + Send + Sync>;

impl Session {
    /// Opens a session, or an agent's, creating it if it has no records yet.
    pub fn open(location: SessionLocation, redactor: Redactor, cwd: &Path) -> Result<Self, SessionError> {
        let mut state = State::default();
        let opened = location.open(|line| apply_line(&mut state, line))?;
        let branch = git_branch(cwd);
        let task_events = TaskEvents::default();
        let is_resumed = state.prompts > 0;
        let mut session = Self {
            id: location.key().id().to_owned(),
            state,
            task_events,
            inbox: Some(opened.inbox),
            is_recovered: false,
            lost_tasks: Vec::new(),
            lost_elicitations: Vec::new(),
            parked_here: BTreeSet::new(),
            mode_is_settled: false,
            mirror: None,
            first: None,
            store: opened.log,
            redactor,
            files: location.files(),
            location,
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
        Ok(session)
    }

    /// Puts on record what an earlier process left open, once. Driving begins with it; opening alone appends nothing.
    pub fn recover(&mut self) -> Result<(), LogStoreError> {
        if std::mem::replace(&mut self.is_recovered, true) {
            return Ok(());
        }
        let tasks: Vec<String> = left_running(&self.state).map(|start| start.task_id.clone()).collect();
        let elicitations: Vec<String> = self.state.elicitations.iter().cloned().collect();
        let recovered = recover(&self.state, &self.accounts_of_lost());
        if !recovered.is_empty() {
            self.write(recovered)?;
        }
        self.lost_tasks = tasks;
        self.lost_elicitations = elicitations;
        Ok(())
    }

    /// What the agents that were left running had used.
    fn accounts_of_lost(&self) -> BTreeMap<String, AgentAccount> {
        let agents = left_running(&self.state).filter(|start| start.is_agent());
        agents.map(|start| (start.task_id.clone(), lost_agents::used(self.location(), start))).collect()
    }

    /// Records an unknown end for tasks that were left running.
    pub(crate) fn end_lost_tasks(&mut self) -> Result<(), LogStoreError> {
        // What an earlier process left running is ended by the recovery.
        self.recover()?;
        let ends = left_running(&self.state).map(|start| RecordBody::TaskEnded(self.lost_end(start)));
        let ends: Vec<RecordBody> = ends.collect();
        if !ends.is_empty() {
            self.append_all(ends)?;
        }
        Ok(())
    }

    /// The end of a task that was left running.
    pub(crate) fn lost_end(&self, start: &TaskStarted) -> TaskEnded {
        let account = start.is_agent().then(|| lost_agents::used(self.location(), start));
        lost_end(start, account.as_ref())
    }

    /// Agents in the background that wait, as their logs were left.
    pub(crate) fn parked_in_background(&self) -> impl Iterator<Item = &TaskState> {
        let parked = self.state.running_tasks().filter(|task| task.parked.is_some());
        parked.filter(|task| !self.state.is_resumable(&task.start.tool_use_id))
    }

    /// Those of them that this process has not driven since their last answer.
    pub(crate) fn agents_to_resume(&self) -> impl Iterator<Item = &TaskState> {
        self.parked_in_background().filter(|task| !self.parked_here.contains(&task.start.task_id))
    }

    /// What other processes leave for it; once, for the task that serves it.
    pub(crate) fn take_inbox(&mut self) -> Option<Box<dyn SessionInbox>> {
        self.inbox.take()
    }

    /// Appends a line that is no record, such as a title.
    pub fn note(&mut self, line: &Value) -> Result<(), LogStoreError> {
        self.store.note(line)
    }

    /// Completes when everything appended so far is durable. Effects that a record announces wait for it.
    pub fn barrier(&mut self) -> BoxFuture<'static, Result<(), LogStoreError>> {
        self.store.barrier()
    }

    /// Appends one record.
    pub fn append(&mut self, body: RecordBody) -> Result<Record, LogStoreError> {
        let mut records = self.append_all(vec![body])?;
        // One body in, one record out.
        Ok(records.remove(0))
    }

    /// Appends records in one write.
    pub fn append_all(&mut self, bodies: Vec<RecordBody>) -> Result<Vec<Record>, LogStoreError> {
        // What an earlier process left open comes first, before any append.
        self.recover()?;
        let seq_before = self.state.last_seq;
        let records = self.write(bodies)?;
        if let (Some(mirror), Some(log)) = (&self.mirror, self.log_path()) {
            let first = self.first.as_ref().filter(|_| seq_before == 1);
            let mut lines: Vec<_> =
                first.iter().flat_map(|first| self.lines(std::slice::from_ref(*first))).collect();
            lines.extend(self.lines(&records));
            mirror(log, &lines);
        }
        if let Some(observer) = &mut self.observer {
            records.iter().for_each(|record| observer.see(record));
        }
        Ok(records)
    }

    /// Hands records over to the store and applies them.
    fn write(&mut self, bodies: Vec<RecordBody>) -> Result<Vec<Record>, LogStoreError> {
        let timestamp = timestamp();
        let mut seq = self.state.last_seq;
        let records: Vec<Record> = bodies
            .into_iter()
            .map(|mut body| {
                redact_body(&self.redactor, &mut body);
                seq += 1;
                Record { seq, timestamp: timestamp.clone(), body }
            })
            .collect();
        self.store.append(&records)?;
        records.iter().for_each(|record| self.state.apply(record));
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
        let key = self.location.key();
        let owner = Owner { session_id: &key.session, agent_id: key.agents.last().map(String::as_str) };
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
        Outputs { directory: self.outputs().to_path_buf(), redactor: self.redactor.clone() }
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

    /// True for an agent's session: its entries say so.
    #[must_use]
    pub fn is_of_agent(&self) -> bool {
        !self.location.key().agents.is_empty()
    }

    /// Where it is kept.
    #[must_use]
    pub fn location(&self) -> &SessionLocation {
        &self.location
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
        self.files().is_some_and(|files| !self.is_resumed && !files.has_others())
    }

    /// The folder for tool outputs that are too long for the model.
    #[must_use]
    pub fn outputs(&self) -> &Path {
        self.location.outputs()
    }

    /// A user entry at the end of the chain.
    #[must_use]
    pub fn user_entry(&self, origin: UserOrigin, message: Message) -> UserEntry {
        UserEntry {
            uuid: new_id(),
            parent_uuid: self.state.leaf.clone(),
            is_sidechain: self.is_of_agent(),
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

/// The longest `HEAD` that names a branch.
const LONGEST_HEAD: u64 = 4 * 1024;

/// The branch checked out in `cwd`, read without running git and without following what leads out of the repository.
#[must_use]
pub fn git_branch(cwd: &Path) -> Option<String> {
    let repository = cwd.ancestors().find(|folder| is_repository(folder))?;
    let head = read_regular(&repository.join(".git/HEAD"), Some(repository), LONGEST_HEAD);
    let head =
        head.ok().filter(|(_, is_cut)| !is_cut).and_then(|(bytes, _)| String::from_utf8(bytes).ok())?;
    head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use qoder_store::jsonl::Durability;
    use qoder_store::{MemorySessions, SessionKey, SessionStore, StoreError};
    use qoder_types::record::Interrupted;

    use super::*;

    fn open(paths: &SessionPaths) -> Session {
        let location = SessionLocation::in_files(paths, Durability::Process);
        Session::open(location, Redactor::default(), Path::new("/")).unwrap()
    }

    fn started() -> RecordBody {
        RecordBody::TaskStarted(TaskStarted {
            task_id: "b1".to_owned(),
            tool_use_id: "t".to_owned(),
            description: "d".to_owned(),
            task_type: "local_bash".to_owned(),
            output_file: String::new(),
            command: "c".to_owned(),
        })
    }

    #[test]
    fn a_session_in_any_store_is_resumed_with_an_equal_state() {
        let store = Arc::new(MemorySessions::default());
        let open = || {
            let store = Arc::clone(&store) as Arc<dyn SessionStore>;
            let location = SessionLocation::new(store, SessionKey::main("s"), "/nowhere".into());
            Session::open(location, Redactor::default(), Path::new("/"))
        };
        let mut session = open().unwrap();
        assert!(matches!(open(), Err(SessionError::Storage(StoreError::Locked { .. }))));
        session.prompt(Message::user("hello")).unwrap();
        let (last, leaf) = (session.state.last_seq, session.state.leaf.clone());
        drop(session);
        let again = open().unwrap();
        assert_eq!((again.state.last_seq, again.state.leaf.clone()), (last, leaf));
        assert!(again.is_resumed && again.state.turn.is_some());
    }

    #[test]
    fn opening_a_session_appends_nothing_and_the_first_append_says_what_was_lost() {
        let folder = tempfile::tempdir().unwrap();
        let paths = SessionPaths::new(folder.path(), "s");
        open(&paths).append(started()).unwrap();
        let before = std::fs::read(&paths.log).unwrap();
        let session = open(&paths);
        assert_eq!(session.state.running_tasks().count(), 1);
        drop(session);
        assert_eq!(std::fs::read(&paths.log).unwrap(), before);

        let mut session = open(&paths);
        session.append(RecordBody::Interrupted(Interrupted { by: "me".into() })).unwrap();
        assert_eq!(session.lost_tasks, ["b1"]);
        session.recover().unwrap();
        drop(session);
        let mut kinds = Vec::new();
        let see = |line: Line| {
            if let Line::Record(record) = line {
                kinds.push(line::kind(&record.body).to_owned());
            }
        };
        qoder_store::scan(&paths, see).unwrap();
        assert_eq!(kinds, ["session-start", "task-start", "task-end", "interrupt"]);
    }
}
