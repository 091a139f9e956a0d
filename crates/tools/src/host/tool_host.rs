//! The caller's side: a session's tool host, started at its first call, and started anew when it has ended.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;

use super::error::HostError;
use super::files::HostFile;
use super::link::Link;
use super::message::{HostSettings, Start};
use crate::ToolSettings;

/// How long a host may take until it answers.
const START_PATIENCE: Duration = Duration::from_secs(120);

/// A host that was started.
pub struct Launched {
    /// What it reads.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// What it writes.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// What it says about problems.
    pub errors: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// What it is given.
    pub start: Start,
    /// Dropped when the host is no longer used, by which it ends.
    pub process: Box<dyn Send + Sync>,
}

/// Starts hosts inside of an environment.
pub trait Launch: Send + Sync {
    /// Starts one.
    fn launch(&self) -> BoxFuture<'static, Result<Launched, HostError>>;
}

/// The tool host of a session.
pub struct ToolHost {
    launcher: Arc<dyn Launch>,
    tools: &'static [&'static str],
    outputs: PathBuf,
    settings: OnceLock<HostSettings>,
    link: Mutex<Option<Arc<Link>>>,
}

impl std::fmt::Debug for ToolHost {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ToolHost").field("tools", &self.tools).finish_non_exhaustive()
    }
}

impl ToolHost {
    /// A host that runs these tools and keeps outputs that are too long in a directory of the environment.
    #[must_use]
    pub fn new(launcher: Arc<dyn Launch>, tools: &'static [&'static str], outputs: PathBuf) -> Arc<Self> {
        Arc::new(Self { launcher, tools, outputs, settings: OnceLock::new(), link: Mutex::default() })
    }

    /// True for a tool that it runs.
    #[must_use]
    pub fn runs(&self, tool: &str) -> bool {
        self.tools.contains(&tool)
    }

    /// How tools behave; the first word counts.
    pub(crate) fn configure(&self, settings: &ToolSettings) {
        self.settings.get_or_init(|| settings.into());
    }

    pub(crate) fn outputs(&self) -> &Path {
        &self.outputs
    }

    /// The link to the host, which is started when it does not run.
    pub(crate) async fn link(&self) -> Result<Arc<Link>, HostError> {
        let mut link = self.link.lock().await;
        if let Some(link) = link.as_ref().filter(|link| link.is_open()) {
            return Ok(Arc::clone(link));
        }
        *link = None;
        let settings = self.settings.get_or_init(|| (&ToolSettings::default()).into()).clone();
        let launched = self.launcher.launch().await?;
        let opening = Link::open(launched, settings);
        let opened = tokio::time::timeout(START_PATIENCE, opening).await;
        let opened = opened.unwrap_or_else(|_| {
            Err(HostError::Start(format!("it did not answer within {} seconds", START_PATIENCE.as_secs())))
        })?;
        *link = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// Starts the host, if it does not run.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn start(&self) -> Result<(), HostError> {
        self.link().await.map(drop)
    }

    /// Ends the host with everything that runs in it. The next call starts another one.
    pub async fn close(&self) {
        self.link.lock().await.take();
    }

    /// Opens a file of the environment for reading.
    ///
    /// # Errors
    /// When the host cannot be started, or the file cannot be read.
    pub async fn open_file(&self, path: &Path) -> Result<HostFile, HostError> {
        let link = self.link().await?;
        HostFile::open(link, path).await
    }
}
