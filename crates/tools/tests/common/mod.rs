//! A bench for trying tools: a private directory, a memory of what was observed, and a record of the news.
//!
//! Every test file uses a part of it.
#![allow(dead_code, reason = "each test file uses a part of the bench")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

pub mod pdf;
pub mod sandboxed;
pub mod server;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use qoder_core::ports::{
    Cancelled, CommandEnvironment, KeepBefore, Outputs, SideModel, Tool, ToolContext, ToolOutcome,
    ToolProgress,
};
use qoder_core::redact::Redactor;
use qoder_tools::host::ToolHost;
use qoder_tools::{SessionShared, ToolSettings, built_in, built_in_with_host};
use qoder_types::{CallOutcome, Observation, PermissionMode, TaskEnded, Worktree};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

/// No test waits longer than this for anything.
pub const HANG_LIMIT: Duration = Duration::from_secs(240);

/// The whole name of a test of `module`, as its own program wants it behind `--exact`. With a name that no test has, the
/// program would run nothing and succeed.
pub fn whole_name(module: &str, test: &str) -> String {
    let (_, path) = module.split_once("::").expect("a module below the program");
    format!("{path}::{test}")
}

pub struct Bench {
    _directory: TempDir,
    pub cwd: PathBuf,
    pub outputs: PathBuf,
    pub settings: ToolSettings,
    pub hidden: Vec<String>,
    /// Variables that commands have otherwise than this process.
    pub changed: BTreeMap<String, Option<String>>,
    pub shared: Arc<SessionShared>,
    pub observed: Arc<Mutex<HashMap<PathBuf, Observation>>>,
    pub news: Arc<Mutex<Vec<ToolProgress>>>,
    pub keep_before: Option<KeepBefore>,
    pub side_model: Option<SideModel>,
    pub mode: PermissionMode,
    pub mode_after_plan: PermissionMode,
    pub worktree: Option<Worktree>,
    /// What runs the tools, when that is not this process.
    pub host: Option<Arc<ToolHost>>,
}

impl Bench {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let cwd = base.join("work");
        std::fs::create_dir(&cwd).unwrap();
        Self {
            _directory: directory,
            outputs: base.join("outputs"),
            cwd,
            settings: ToolSettings::default(),
            hidden: Vec::new(),
            changed: BTreeMap::new(),
            shared: SessionShared::new(),
            observed: Arc::default(),
            news: Arc::default(),
            keep_before: None,
            side_model: None,
            mode: PermissionMode::Default,
            mode_after_plan: PermissionMode::Default,
            worktree: None,
            host: None,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.cwd.join(name)
    }

    pub fn text_path(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn content(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let tools = match &self.host {
            Some(host) => built_in_with_host(&self.settings, host),
            None => built_in(&self.settings),
        };
        tools.into_iter().find(|tool| tool.definition().name == name).unwrap()
    }

    pub fn context(&self, cancelled: Cancelled) -> ToolContext {
        let observed = self.observed.clone();
        let news = self.news.clone();
        ToolContext {
            session_id: "session".to_owned(),
            tool_use_id: "call".to_owned(),
            cwd: self.cwd.clone(),
            roots: Arc::from([self.cwd.clone()]),
            outputs: Outputs { directory: self.outputs.clone(), redactor: Redactor::default() },
            observed: Arc::new(move |path: &Path| observed.lock().unwrap().get(path).cloned()),
            keep_before: self.keep_before.clone(),
            hidden: None,
            cancelled,
            progress: Arc::new(move |item| {
                if let ToolProgress::TaskStarted { receipt, .. } = &item {
                    receipt.confirm();
                }
                news.lock().unwrap().push(item);
            }),
            environment: Arc::new(CommandEnvironment {
                hidden: self.hidden.clone(),
                changed: self.changed.clone(),
            }),
            side_model: self.side_model.clone(),
            spent: qoder_core::ports::Spent::default(),
            permissions: qoder_core::permissions::SessionPermissions::default(),
            mode: self.mode,
            mode_after_plan: self.mode_after_plan,
            worktree: self.worktree.clone(),
            shared: self.shared.clone(),
        }
    }

    /// Runs a call to its end and remembers what it observed.
    pub async fn run(&self, name: &str, input: Value) -> ToolOutcome {
        self.run_until(name, input, never()).await
    }

    pub async fn run_until(&self, name: &str, input: Value, cancelled: Cancelled) -> ToolOutcome {
        let call = self.tool(name).run(input, self.context(cancelled));
        let outcome = tokio::time::timeout(HANG_LIMIT, call).await.expect("the call hangs");
        for observation in &outcome.observations {
            let path = PathBuf::from(&observation.path);
            self.observed.lock().unwrap().insert(path, observation.clone());
        }
        outcome
    }

    /// Runs a call that must succeed; returns its text.
    pub async fn succeed(&self, name: &str, input: Value) -> String {
        let outcome = self.run(name, input).await;
        assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", text(&outcome));
        text(&outcome)
    }

    /// Runs a call that must fail; returns its text.
    pub async fn fail(&self, name: &str, input: Value) -> String {
        let outcome = self.run(name, input).await;
        assert_eq!(outcome.outcome, CallOutcome::Failed, "{}", text(&outcome));
        text(&outcome)
    }

    /// The output shown while calls ran.
    pub fn shown(&self) -> String {
        let news = self.news.lock().unwrap();
        let texts = news.iter().filter_map(|item| match item {
            ToolProgress::Output(text) => Some(text.as_str()),
            ToolProgress::TaskStarted { .. }
            | ToolProgress::TaskProgress { .. }
            | ToolProgress::TaskParked(_)
            | ToolProgress::TaskEnded(_) => None,
        });
        texts.collect()
    }

    /// Starts a background task; returns its id and its output file.
    pub async fn task(&self, command: &str) -> (String, PathBuf) {
        let outcome = self.run("Bash", json!({ "command": command, "run_in_background": true })).await;
        assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", text(&outcome));
        let field = |name: &str| outcome.structured[name].as_str().unwrap().to_owned();
        (field("backgroundTaskId"), field("persistedOutputPath").into())
    }

    /// Waits until a background task has ended; returns how.
    pub async fn ended_task(&self) -> TaskEnded {
        let waiting = async {
            loop {
                let ended = self.news.lock().unwrap().iter().find_map(|item| match item {
                    ToolProgress::TaskEnded(end) => Some(end.clone()),
                    ToolProgress::TaskStarted { .. }
                    | ToolProgress::TaskProgress { .. }
                    | ToolProgress::TaskParked(_)
                    | ToolProgress::Output(_) => None,
                });
                match ended {
                    Some(ended) => return ended,
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        tokio::time::timeout(HANG_LIMIT, waiting).await.expect("the task never ended")
    }
}

pub fn text(outcome: &ToolOutcome) -> String {
    outcome.content.to_text()
}

pub fn never() -> Cancelled {
    futures::future::pending().boxed().shared()
}

/// A cancellation and what triggers it.
pub fn cancellable() -> (oneshot::Sender<()>, Cancelled) {
    let (sender, receiver) = oneshot::channel::<()>();
    (sender, async move { drop(receiver.await) }.boxed().shared())
}

/// Waits until `path` exists and is not empty; returns its content without blanks at the ends.
pub async fn appears(path: &Path) -> String {
    appears_as(path, |text| !text.is_empty()).await
}

/// Waits until the trimmed text of the file is as wanted. What writes it runs on the same thread, so the wait yields.
pub async fn appears_as(path: &Path, is_wanted: impl Fn(&str) -> bool) -> String {
    let waiting = async {
        loop {
            match std::fs::read_to_string(path) {
                Ok(text) if is_wanted(text.trim()) => return text.trim().to_owned(),
                Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(HANG_LIMIT, waiting).await.expect("the file never had the text")
}

/// Waits until the process is gone or a zombie that is not reaped yet.
pub async fn is_gone(process: &str) {
    let waiting = async {
        loop {
            let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let after_name = state.rsplit(')').next().unwrap_or_default().trim_start().to_owned();
            if state.is_empty() || after_name.starts_with('Z') {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG_LIMIT, waiting).await.expect("the process survived");
}

/// Checks that nothing still appends to `path`: a process that still ran would, many times a second.
pub async fn is_still(path: &Path) {
    let length = || std::fs::metadata(path).map_or(0, |found| found.len());
    let before = length();
    for _ in 0..25 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(length(), before, "a process still writes to {}", path.display());
    }
}
