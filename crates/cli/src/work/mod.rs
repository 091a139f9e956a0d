//! `qodercli work`: takes sessions of a self-hosted environment from the queue of a server and runs their tools on this machine.

mod arguments;
mod call_log;
mod client;
mod events;
mod lease;
mod session;
mod tools;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use qoder_process::sandbox::report;
use qoder_runtime::setup::sandbox::places;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use url::Url;

pub use arguments::{HELP, WorkArguments};

use self::call_log::Items;
use self::client::{WorkClient, WorkError};
use self::lease::{Lease, LeaseState};
use self::session::Serving;
use self::tools::SessionPlace;
use crate::exit::{Exit, Fault};
use crate::run::signals::Signals;
use crate::screen;

/// Variables that hold the key, in order.
const KEYS: [&str; 4] =
    ["QODER_ENVIRONMENT_KEY", "ANTHROPIC_ENVIRONMENT_KEY", "QODER_ACCESS_TOKEN", "QODER_PAT"];
/// How long a poll that finds nothing waits at the server, in milliseconds.
const BLOCK: &str = "999";
/// The pauses of a worker that finds nothing, or no server.
const IDLE_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long a command of `--on-work` may take to end.
const COMMAND_GRACE: Duration = Duration::from_secs(5);
/// Base64 as workers read it: for URLs, with padding or without.
const SECRETS: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Runs the subcommand.
pub fn run(arguments: WorkArguments, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| fault("the worker cannot start", &error))?;
    let outcome = runtime.block_on(work(arguments, environment));
    runtime.shutdown_background();
    outcome
}

/// Reports on stderr what the worker does.
fn note(text: &str) {
    screen::print_note(text);
}

/// Completes when a value is as wanted, or no one can change it any longer.
async fn reached<T>(value: &mut watch::Receiver<T>, is_wanted: impl FnMut(&T) -> bool) {
    drop(value.wait_for(is_wanted).await);
}

fn fault(what: &str, error: &std::io::Error) -> Fault {
    Fault { exit: Exit::General, message: format!("{what}: {error}"), hint: String::new() }
}

/// A worker.
struct Worker {
    arguments: WorkArguments,
    client: WorkClient,
    serving: Serving,
    items: Arc<Items>,
    room: Arc<Semaphore>,
    tasks: JoinSet<()>,
    /// Held while the worker runs: its folder is its own.
    _lock: File,
}

async fn work(arguments: WorkArguments, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    let base = Url::parse(&arguments.url).ok().filter(Url::has_host);
    let base = base.ok_or_else(|| {
        Fault::input(
            format!("`--url`: `{}` is not an address", arguments.url),
            "pass one such as http://127.0.0.1:8400",
        )
    })?;
    let key = KEYS.iter().find_map(|name| environment.get(*name).filter(|key| !key.is_empty()));
    let key = key.cloned().ok_or_else(|| {
        Fault::input(
            "there is no key for the environment",
            format!(
                "set QODER_ENVIRONMENT_KEY; `qodercli serve token create --user NAME --tenant TENANT --scopes environment:{}` \
                 makes one",
                arguments.environment
            ),
        )
    })?;
    let own = arguments.dir.join(".worker");
    std::fs::create_dir_all(own.join("config")).map_err(|error| fault("`--dir` cannot be used", &error))?;
    let folder = arguments.dir.canonicalize().map_err(|error| fault("`--dir` cannot be used", &error))?;
    let own = folder.join(".worker");
    let lock = lock(&own)?;
    if !arguments.no_sandbox {
        check_sandbox(&own, &environment)?;
    }
    let items = Items::open(&own).map_err(|error| fault("`--dir` cannot be used", &error))?;
    let client = WorkClient::new(base, key, name(), &environment).map_err(|error| fault_of(&error))?;
    let (stopping, stop) = watch::channel(false);
    let serving = Serving {
        environment,
        folder,
        own,
        is_confined: !arguments.no_sandbox,
        max_idle: Duration::from_secs(arguments.max_idle),
        stop,
    };
    let room = Arc::new(Semaphore::new(usize::from(arguments.sessions)));
    let mut worker = Worker {
        arguments,
        client,
        serving,
        items: Arc::new(items),
        room,
        tasks: JoinSet::new(),
        _lock: lock,
    };
    let mut signals = Signals::new();
    worker.resume().await;
    let outcome = tokio::select! {
        outcome = worker.poll() => outcome,
        _ = signals.next() => Ok(()),
    };
    let _ = stopping.send(true);
    // A second signal ends the process at once, as a crash would, which is safe.
    tokio::select! {
        () = async { while worker.tasks.join_next().await.is_some() {} } => {}
        _ = signals.next() => return Ok(Exit::Interrupted),
    }
    outcome.map(|()| Exit::Success)
}

/// Makes sure that no other worker uses the folder.
fn lock(own: &Path) -> Result<File, Fault> {
    let lock = File::create(own.join("lock")).map_err(|error| fault("`--dir` cannot be used", &error))?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        Fault::input("`--dir`: another worker uses this folder", "pass another folder with --dir")
    })?;
    Ok(lock)
}

/// Makes sure that commands can be confined here.
fn check_sandbox(own: &Path, environment: &BTreeMap<String, String>) -> Result<(), Fault> {
    let trial = own.join("trial");
    std::fs::create_dir_all(&trial).map_err(|error| fault("`--dir` cannot be used", &error))?;
    let place = SessionPlace {
        id: "trial".to_owned(),
        folder: trial,
        own: own.to_path_buf(),
        variables: BTreeMap::new(),
        is_confined: true,
    };
    let setup = tools::prepare(&place, environment)?;
    let workspace = setup.workspace(vec![setup.cwd.clone()]);
    let found = report(&setup.sandbox, &places(setup.rules(), &workspace), &setup.cwd);
    if found.is_enforced() {
        return Ok(());
    }
    let problems =
        if found.problems.is_empty() { "the trial failed".to_owned() } else { found.problems.join("; ") };
    Err(Fault {
        exit: Exit::Sandbox,
        message: format!("commands cannot be confined on this machine: {problems}"),
        hint: "pass --no-sandbox to run them with the rights of this user, on a machine that is confined as a whole".to_owned(),
    })
}

/// What this worker is called: the machine, and a part that no other worker has.
fn name() -> String {
    let uname = rustix::system::uname();
    let host: String =
        uname.nodename().to_string_lossy().chars().filter(char::is_ascii_graphic).take(64).collect();
    let id = uuid::Uuid::new_v4().simple().to_string();
    format!("{host}-{}", &id[..12])
}

fn fault_of(error: &WorkError) -> Fault {
    let exit = match error.status() {
        Some(401 | 403) => Exit::Authentication,
        Some(_) => Exit::Input,
        None => Exit::General,
    };
    let hint = "check --url, --environment and the key in QODER_ENVIRONMENT_KEY".to_owned();
    Fault { exit, message: error.to_string(), hint }
}

/// The token that an item has, else the environment's key.
fn token_of(item: &Value) -> Option<String> {
    let payload = SECRETS.decode(item["secret"].as_str()?).ok()?;
    let payload: Value = serde_json::from_slice(&payload).ok()?;
    payload["sessions_token"].as_str().filter(|token| !token.is_empty()).map(str::to_owned)
}

impl Worker {
    fn lease(&self, item: Value) -> Option<Lease> {
        let client = match token_of(&item) {
            Some(token) => self.client.with_token(token),
            None => self.client.clone(),
        };
        Lease::new(client, item, self.arguments.lease, Arc::clone(&self.items))
    }

    /// Continues the leases that an earlier process of this worker had.
    async fn resume(&mut self) {
        for item in self.items.all() {
            let Some(mut lease) = self.lease(item) else { continue };
            match lease.beat().await {
                Ok(LeaseState::Held) => {
                    let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
                        lease.stop().await;
                        continue;
                    };
                    self.serve(lease, permit);
                }
                Ok(LeaseState::Stopping) => lease.stop().await,
                // Its lease ends by itself, and the queue hands the item out again.
                Err(error) if error.is_passing() => {}
                Ok(LeaseState::Lost) | Err(_) => lease.forget(),
            }
        }
    }

    fn serve(&mut self, lease: Lease, permit: OwnedSemaphorePermit) {
        let serving = self.serving.clone();
        match self.arguments.on_work.clone() {
            None => drop(self.tasks.spawn(async move {
                session::serve(serving, lease).await;
                drop(permit);
            })),
            Some(command) => {
                let key = self.client.token().to_owned();
                self.tasks.spawn(async move {
                    hand_over(&command, &lease, &key, serving.stop).await;
                    drop(permit);
                });
            }
        }
    }

    /// Takes items from the queue until the server refuses for good; with `--once` until there are none.
    async fn poll(&mut self) -> Result<(), Fault> {
        let environment = self.arguments.environment.clone();
        let path = ["environments", environment.as_str(), "work"];
        note(&format!("serving {environment} at {}", self.client.base()));
        let mut pause = IDLE_PAUSE;
        loop {
            while self.tasks.try_join_next().is_some() {}
            let Ok(permit) = Arc::clone(&self.room).acquire_owned().await else { return Ok(()) };
            let polled = self.client.get(&[&path[..], &["poll"]].concat(), &[("block_ms", BLOCK)]).await;
            match polled {
                Ok(Value::Null) => {
                    pause = IDLE_PAUSE;
                    while self.tasks.try_join_next().is_some() {}
                    if self.arguments.once && self.tasks.is_empty() {
                        return Ok(());
                    }
                }
                Ok(item) => {
                    pause = IDLE_PAUSE;
                    let Some(mut lease) = self.lease(item) else { continue };
                    match lease.take().await {
                        Ok(LeaseState::Held) => self.serve(lease, permit),
                        // Another worker has it, or the queue hands it out again.
                        Ok(LeaseState::Stopping | LeaseState::Lost) | Err(_) => {}
                    }
                    continue;
                }
                Err(error) if error.is_passing() => {
                    note(&format!("{error}; trying again"));
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => return Err(fault_of(&error)),
            }
            drop(permit);
            tokio::time::sleep(pause).await;
        }
    }
}

/// Runs the user's command for an item; it serves the item itself. One that fails gives the item back.
async fn hand_over(command: &str, lease: &Lease, key: &str, mut stop: watch::Receiver<bool>) {
    let session = lease.session().unwrap_or_default();
    note(&format!("handing {} for {session} over", lease.work));
    let base = lease.client.base().to_string();
    let child = Command::new("sh")
        .args(["-c", command])
        .env("ANTHROPIC_WORK_ID", &lease.work)
        .env("ANTHROPIC_WORK_SECRET", lease.secret())
        .env("ANTHROPIC_SESSION_ID", &session)
        .env("ANTHROPIC_ENVIRONMENT_ID", &lease.environment)
        .env("ANTHROPIC_ENVIRONMENT_KEY", key)
        .env("ANTHROPIC_BASE_URL", base.trim_end_matches('/'))
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let ended = match child {
        Err(error) => Err(error.to_string()),
        Ok(mut child) => tokio::select! {
            status = child.wait() => match status {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(status.to_string()),
                Err(error) => Err(error.to_string()),
            },
            () = reached(&mut stop, |stop| *stop) => {
                end_group(&mut child).await;
                Err("the worker ends".to_owned())
            }
        },
    };
    match ended {
        Ok(()) => note(&format!("the command for {} is done", lease.work)),
        Err(problem) => {
            note(&format!("the command for {} failed: {problem}", lease.work));
            lease.stop().await;
        }
    }
}

/// Ends a command and what it started.
async fn end_group(child: &mut Child) {
    let Some(group) = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) else { return };
    // One that is gone has nothing to end.
    let _ = kill_process_group(group, Signal::TERM);
    if tokio::time::timeout(COMMAND_GRACE, child.wait()).await.is_err() {
        let _ = kill_process_group(group, Signal::KILL);
    }
}
