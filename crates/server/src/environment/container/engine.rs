//! The program that runs containers: asked for images, started for sessions, and cleaned up after.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::process::Command;
use tokio::sync::{Notify, OnceCell};

use super::ContainerError;
use crate::config::ContainerConfig;
use crate::model::ids::hex;

/// Marks containers of the servers of one data directory.
pub(super) const OWNER: &str = "dev.qoder.owner";
/// How long the program may take for anything but loading an image.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// The same for loading an image.
const PULL_PATIENCE: Duration = Duration::from_secs(10 * 60);
/// Beginnings of the names of variables that the program needs.
const KEPT: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_",
    "TMPDIR",
    "XDG_",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_",
    "CONTAINER_",
    "CONTAINERS_",
    "BUILDAH_",
    "REGISTRY_AUTH_FILE",
];
/// Variables that lead to a proxy: for loading images, and not for containers.
const PROXIES: [&str; 6] = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"];

/// The program and what this server runs with it.
#[derive(Debug)]
pub struct ContainerEngine {
    pub(super) config: ContainerConfig,
    environment: BTreeMap<String, String>,
    /// The `qodercli` that runs in containers.
    pub(super) tool_host: PathBuf,
    owner: String,
    /// Begins the names of the containers of this run of the server.
    run: String,
    pub(super) images: Mutex<HashMap<String, Arc<OnceCell<()>>>>,
    running: AtomicUsize,
    ended: Notify,
}

impl ContainerEngine {
    /// The program of a configuration, for the server of a data directory.
    #[must_use]
    pub fn new(
        config: ContainerConfig,
        environment: &BTreeMap<String, String>,
        data_dir: &Path,
    ) -> Arc<Self> {
        let tool_host = config.tool_host.clone().or_else(|| std::env::current_exe().ok());
        let place = data_dir.canonicalize().unwrap_or_else(|_| data_dir.to_path_buf());
        let digest = Sha256::digest(place.as_os_str().as_encoded_bytes());
        let run = uuid::Uuid::new_v4().simple().to_string();
        Arc::new(Self {
            config,
            environment: environment.clone(),
            tool_host: tool_host.unwrap_or_else(|| PathBuf::from("qodercli")),
            owner: hex(&digest[..8]),
            run: format!("qoder-{}", &run[..8]),
            images: Mutex::default(),
            running: AtomicUsize::new(0),
            ended: Notify::new(),
        })
    }

    /// The name of a new container.
    pub(super) fn new_name(&self) -> String {
        format!("{}-{}", self.run, uuid::Uuid::new_v4().simple())
    }

    /// The mark of this server's containers.
    pub(super) fn label(&self) -> String {
        format!("{OWNER}={}", self.owner)
    }

    /// The program with these arguments. It has nothing of the server's environment but what it needs itself.
    pub(super) fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.config.program);
        command.env_clear();
        let is_kept = |name: &str| KEPT.iter().any(|start| name.starts_with(start));
        command.envs(self.environment.iter().filter(|(name, _)| is_kept(name)));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        command
    }

    /// Runs the program to its end. Answers with what it printed.
    pub(super) async fn ask(&self, arguments: &[&str]) -> Result<String, ContainerError> {
        self.ask_within(arguments, PATIENCE, false).await
    }

    async fn ask_within(
        &self,
        arguments: &[&str],
        patience: Duration,
        through_proxy: bool,
    ) -> Result<String, ContainerError> {
        let owned: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let mut command = self.command(&owned);
        if through_proxy {
            let proxies = PROXIES.iter().filter_map(|name| Some((name, self.environment.get(*name)?)));
            command.envs(proxies);
        }
        let failed = |said: String| ContainerError::Failed {
            command: format!("{} {}", self.config.program, arguments.join(" ")),
            said,
        };
        let output = tokio::time::timeout(patience, command.output()).await;
        let output =
            output.map_err(|_| failed(format!("it took longer than {} seconds", patience.as_secs())))?;
        let output = output.map_err(|error| ContainerError::Program {
            program: self.config.program.clone(),
            problem: error.to_string(),
        })?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Loads an image that is not on this machine.
    pub(super) async fn load(&self, image: &str) -> Result<(), ContainerError> {
        if self.ask(&["image", "inspect", "--format", "{{.Id}}", image]).await.is_ok() {
            return Ok(());
        }
        self.ask_within(&["pull", image], PULL_PATIENCE, true).await.map(drop)
    }

    /// The version of the program.
    ///
    /// # Errors
    /// When it cannot be run.
    pub async fn version(&self) -> Result<String, ContainerError> {
        self.ask(&["--version"]).await
    }

    /// Removes the containers that earlier runs of the server left, because they were killed. Answers with how many there were.
    ///
    /// # Errors
    /// When the program cannot be used.
    pub async fn remove_leftovers(&self) -> Result<usize, ContainerError> {
        let filter = format!("label={}", self.label());
        let names = self.ask(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]).await?;
        let left: Vec<&str> = names.lines().filter(|name| !name.starts_with(&self.run)).collect();
        if !left.is_empty() {
            self.ask(&[&["rm", "--force"], left.as_slice()].concat()).await?;
        }
        Ok(left.len())
    }

    /// A container runs.
    pub(super) fn entered(&self) {
        self.running.fetch_add(1, Ordering::SeqCst);
    }

    /// A container has ended.
    pub(super) fn left(&self) {
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.ended.notify_waiters();
    }

    /// Waits until all containers of this run have ended.
    pub async fn settle(&self, patience: Duration) {
        let settled = async {
            loop {
                let ended = self.ended.notified();
                if self.running.load(Ordering::SeqCst) == 0 {
                    return;
                }
                ended.await;
            }
        };
        // What is left is removed at the next start.
        drop(tokio::time::timeout(patience, settled).await);
    }
}
