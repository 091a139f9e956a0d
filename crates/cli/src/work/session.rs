//! One session while a worker has it: its calls run one after the other, each written down before it runs, and its results are sent
//! until the server has them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::call_log::{CallLog, Progress};
use super::client::WorkError;
use super::events::{Followed, WorkCall, follow};
use super::lease::{Lease, LeaseState};
use super::tools::{CallResult, SessionPlace, SessionTools};
use super::{note, reached};
use crate::exit::Fault;

const UNKNOWN: &str =
    "The worker was stopped while this call ran. How far it came is unknown, and it was not run again.";
/// How long a call that is stopped may take to end.
const GRACE: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// How long a setup script may take, in milliseconds.
const SETUP_TIME: u64 = 600_000;

/// What serving sessions needs.
#[derive(Clone)]
pub struct Serving {
    /// The environment of this process.
    pub environment: BTreeMap<String, String>,
    /// The folder of the folders of sessions.
    pub folder: std::path::PathBuf,
    /// The worker's own folder.
    pub own: std::path::PathBuf,
    /// False when commands have the rights of this user.
    pub is_confined: bool,
    /// How long a session is kept after the end of a turn.
    pub max_idle: Duration,
    /// True when the worker shall end.
    pub stop: watch::Receiver<bool>,
}

/// A call that runs.
struct Running {
    call: WorkCall,
    cancel: Option<oneshot::Sender<()>>,
    result: BoxFuture<'static, CallResult>,
}

/// Serves the session of a lease until it needs no worker, and gives the lease back unless it is lost.
pub async fn serve(serving: Serving, lease: Lease) {
    let Some(session) = lease.session() else {
        lease.stop().await;
        return;
    };
    note(&format!("took {} for {session}", lease.work));
    let state = lease.clone().keep();
    let ended = match Seat::open(&serving, &lease, &session).await {
        Ok(Some(seat)) => seat.run(serving, state.clone()).await,
        Ok(None) => Ok(()),
        Err(problem) => Err(problem),
    };
    if let Err(problem) = &ended {
        note(&format!("{session}: {problem}"));
    }
    if *state.borrow() == LeaseState::Lost {
        note(&format!("lost {} for {session}", lease.work));
        lease.forget();
        return;
    }
    lease.stop().await;
    note(&format!("gave {} back for {session}", lease.work));
}

struct Seat {
    lease: Lease,
    session: String,
    log: CallLog,
    tools: std::sync::Arc<SessionTools>,
    followed: Followed,
}

impl Seat {
    /// Makes a session's folder ready; `None` for one that takes no more results.
    async fn open(serving: &Serving, lease: &Lease, session: &str) -> Result<Option<Self>, String> {
        let words = |error: WorkError| error.to_string();
        let shown = lease.client.get_patiently(&["sessions", session]).await.map_err(words)?;
        if shown["status"] == "terminated" || !shown["archived_at"].is_null() {
            return Ok(None);
        }
        let folder = serving.folder.join(session);
        let logs = serving.own.join("sessions");
        for folder in [&folder, &logs] {
            std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let folder = folder.canonicalize().map_err(|error| error.to_string())?;
        let variables = shown["environment_variables"].as_object().into_iter().flatten();
        let variables =
            variables.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let place = SessionPlace {
            id: session.to_owned(),
            folder: folder.clone(),
            own: serving.own.clone(),
            variables: variables.collect(),
            is_confined: serving.is_confined,
        };
        let tools =
            SessionTools::open(&place, &serving.environment).map_err(|Fault { message, .. }| message)?;
        let log = CallLog::open(&logs.join(format!("{session}.jsonl")));
        let mut seat = Self {
            lease: lease.clone(),
            session: session.to_owned(),
            log: log.map_err(|error| format!("the log of calls cannot be opened: {error}"))?,
            tools: std::sync::Arc::new(tools),
            followed: Followed::default(),
        };
        seat.followed.idle_since = (shown["status"] == "idle").then(Instant::now);
        seat.fetch_skills(&shown["agent"], &folder).await;
        seat.set_up().await?;
        Ok(Some(seat))
    }

    /// Loads the skills of the session's agents into its folder.
    async fn fetch_skills(&self, agent: &Value, folder: &Path) {
        let members = agent["multiagent"]["agents"].as_array().into_iter().flatten();
        let agents = std::iter::once(agent).chain(members);
        for skill in agents.flat_map(|agent| agent["skills"].as_array().into_iter().flatten()) {
            let (Some(id), Some(version)) = (skill["skill_id"].as_str(), skill["version"].as_str()) else {
                continue;
            };
            let mark = folder.join("skills").join(format!(".{id}-{version}"));
            if mark.exists() {
                continue;
            }
            let loaded = self.lease.client.bytes(&["skills", id, "versions", version, "content"]).await;
            let written = loaded.map_err(|error| error.to_string()).and_then(|archive| {
                let files = qoder_server::store::unpack(&archive).map_err(|problem| problem.message)?;
                qoder_server::store::write_files(&folder.join("skills"), &files)
                    .and_then(|()| std::fs::write(&mark, ""))
                    .map_err(|error| error.to_string())
            });
            if let Err(problem) = written {
                note(&format!("{}: the skill {id} cannot be loaded: {problem}", self.session));
            }
        }
    }

    /// Runs what the environment sets up, once in each folder.
    async fn set_up(&mut self) -> Result<(), String> {
        const CALL: &str = "setup";
        if self.log.progress(CALL).is_some() {
            return Ok(());
        }
        let environment = self.lease.client.get_patiently(&["environments", &self.lease.environment]).await;
        let environment = environment.map_err(|error| error.to_string())?;
        let Some(script) = environment["config"]["setup_script"].as_str() else { return Ok(()) };
        self.log.note(CALL, Progress::Started).map_err(|error| error.to_string())?;
        let input = json!({ "command": script, "timeout_ms": SETUP_TIME });
        let result = self.tools.run(CALL, "bash", &input, std::future::pending().boxed().shared()).await;
        if result.is_error {
            let text = result.content.first().map(|block| block["text"].to_string()).unwrap_or_default();
            note(&format!("{}: the setup script failed: {text}", self.session));
        }
        Ok(())
    }

    async fn run(mut self, serving: Serving, lease: watch::Receiver<LeaseState>) -> Result<(), String> {
        let mut events = follow(self.lease.client.clone(), self.session.clone());
        let (mut stop, mut ending) = (serving.stop.clone(), lease.clone());
        let mut running: Option<Running> = None;
        loop {
            if running.is_none() {
                running = self.begin(&lease).await?;
            }
            if let Some(one) = running.as_mut().filter(|one| self.followed.has_answer(&one.call.id)) {
                // Its turn was stopped; no one waits for it.
                drop(one.cancel.take());
            }
            let idle = self.followed.idle_since.filter(|_| running.is_none());
            let until = idle.map(|since| since + serving.max_idle);
            tokio::select! {
                biased;
                () = reached(&mut stop, |stop| *stop) => break,
                () = reached(&mut ending, |state| *state != LeaseState::Held) => break,
                event = events.recv() => match event {
                    Some(Ok(event)) => self.drain(&event, &mut events),
                    Some(Err(error)) => return Err(error.to_string()),
                    None => return Ok(()),
                },
                result = async { match running.as_mut() {
                    Some(one) => (&mut one.result).await,
                    None => std::future::pending().await,
                } } => {
                    if let Some(one) = running.take() {
                        self.end(&one.call, result, &lease).await?;
                    }
                }
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => break,
            }
            if self.followed.is_over {
                break;
            }
        }
        self.stop_running(running, &lease).await
    }

    /// Takes an event and those that are there already, so that what has a result is not run.
    fn drain(&mut self, event: &Value, events: &mut mpsc::Receiver<Result<Value, WorkError>>) {
        self.followed.take(event);
        while let Ok(Ok(event)) = events.try_recv() {
            self.followed.take(&event);
        }
    }

    /// Starts the next call. One that an earlier process began is not run again: its result is sent, or that it is unknown.
    async fn begin(&mut self, lease: &watch::Receiver<LeaseState>) -> Result<Option<Running>, String> {
        while let Some(call) = self.followed.next().cloned() {
            match self.log.progress(&call.id).cloned() {
                Some(Progress::Ended { event }) => self.deliver(&call, event, lease).await,
                Some(Progress::Started) => {
                    note(&format!("{}: {} is unknown", self.session, call.id));
                    self.end(&call, CallResult::failed(UNKNOWN), lease).await?;
                }
                None => {
                    let noted = self.log.note(&call.id, Progress::Started);
                    noted.map_err(|error| format!("the log of calls cannot be written: {error}"))?;
                    let (cancel, cancelled) = oneshot::channel::<()>();
                    let cancelled = cancelled.map(|_| ()).boxed().shared();
                    let (tools, made) = (std::sync::Arc::clone(&self.tools), call.clone());
                    let work = async move { tools.run(&made.id, &made.name, &made.input, cancelled).await };
                    return Ok(Some(Running { call, cancel: Some(cancel), result: work.boxed() }));
                }
            }
        }
        Ok(None)
    }

    /// A call has a result: written down first, and sent then.
    async fn end(
        &mut self,
        call: &WorkCall,
        result: CallResult,
        lease: &watch::Receiver<LeaseState>,
    ) -> Result<(), String> {
        let event = json!({ "type": "user.tool_result", "tool_use_id": call.id, "content": result.content,
            "is_error": result.is_error });
        let noted = self.log.note(&call.id, Progress::Ended { event: event.clone() });
        noted.map_err(|error| format!("the log of calls cannot be written: {error}"))?;
        note(&format!("{}: ran {} ({})", self.session, call.name, call.id));
        self.deliver(call, event, lease).await;
        Ok(())
    }

    /// Sends a result until the server has it, or has no use for it.
    async fn deliver(&mut self, call: &WorkCall, event: Value, lease: &watch::Receiver<LeaseState>) {
        let body = json!({ "events": [event] });
        let mut pause = FIRST_PAUSE;
        while !self.followed.has_answer(&call.id) && *lease.borrow() != LeaseState::Lost {
            match self.lease.client.post(&["sessions", &self.session, "events"], &[], &body).await {
                Ok(_) => break,
                Err(error) if error.is_passing() => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => {
                    note(&format!("{}: the result of {} was refused: {error}", self.session, call.id));
                    break;
                }
            }
        }
        self.followed.answered(&call.id);
    }

    /// Ends the call that runs, if one does, and reports that it was stopped.
    async fn stop_running(
        &mut self,
        running: Option<Running>,
        lease: &watch::Receiver<LeaseState>,
    ) -> Result<(), String> {
        let Some(Running { call, cancel, result }) = running else { return Ok(()) };
        drop(cancel);
        let result = tokio::time::timeout(GRACE, result).await;
        match result {
            Ok(result) if !result.is_interrupted => self.end(&call, result, lease).await,
            Ok(_) | Err(_) => self.end(&call, CallResult::failed(UNKNOWN), lease).await,
        }
    }
}
