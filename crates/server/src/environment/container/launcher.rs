//! The container of a session: its folders are mounted at their own paths and at those of the interface, everything else of the
//! image is read-only, and it has no privileges.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_runtime::tool_host::{HostError, Launch, Launched, Start, ToolHost};

use super::engine::ContainerEngine;
use super::image::ImageSetup;
use super::process::{self, Network, Shape};
use crate::environment::{LocalEnvironments, Places};
use crate::model::ids::SessionId;

/// How long a command may take that tries containers.
const TRIAL_PATIENCE: Duration = Duration::from_secs(60);

/// Takes a problem that the session's clients read.
pub type ReportProblem = Arc<dyn Fn(String) + Send + Sync>;

/// Starts the containers of one session.
pub struct ContainerLauncher {
    /// What runs them.
    pub engine: Arc<ContainerEngine>,
    /// The session's folders.
    pub places: Places,
    /// The hosts that it reaches; `*` is every public one.
    pub hosts: Vec<String>,
    /// What its image has beside the configured one.
    pub setup: Option<String>,
    /// Whose it is: images are not shared between tenants.
    pub tenant: String,
    /// What its tool host is given.
    pub start: Start,
    /// Takes the problem of a setup that failed.
    pub report: ReportProblem,
}

impl Launch for ContainerLauncher {
    fn launch(&self) -> BoxFuture<'static, Result<Launched, HostError>> {
        let setup = self.setup.as_ref().map(|script| ImageSetup {
            script: script.clone(),
            hosts: self.hosts.clone(),
            tenant: self.tenant.clone(),
        });
        let (engine, report) = (Arc::clone(&self.engine), Arc::clone(&self.report));
        let arguments = self.arguments();
        let (network, start) = (network(&engine, &self.hosts), self.start.clone());
        async move {
            let start_error = |error: super::ContainerError| HostError::Start(error.to_string());
            let configured = engine.config.image.clone();
            engine.load(&configured).await.map_err(start_error)?;
            let image = match setup {
                None => configured,
                Some(setup) => match engine.image_of(setup).await {
                    Ok(image) => image,
                    // As where there are no containers: the session runs without what could not be set up.
                    Err(error) => {
                        report(format!("The setup of the environment failed: {error}"));
                        configured
                    }
                },
            };
            let shape = Shape { image, network, arguments: arguments?, is_removed: true, start };
            process::start(&engine, shape).map(|(_, launched)| launched)
        }
        .boxed()
    }
}

impl ContainerEngine {
    /// Starts a container as sessions have it, with folders below this one, and runs a command in it.
    ///
    /// # Errors
    /// When it cannot be started, or the command does not do what it says.
    pub async fn try_tools(self: &Arc<Self>, root: &Path) -> Result<(), HostError> {
        let places = LocalEnvironments::new(root).prepare(SessionId([0; 16]));
        let places = places.map_err(|error| HostError::Start(error.to_string()))?;
        let (workspace, outputs) = (places.workspace.clone(), places.host_outputs.clone());
        let launcher = ContainerLauncher {
            engine: Arc::clone(self),
            places,
            hosts: vec!["*".to_owned()],
            setup: None,
            tenant: String::new(),
            start: Start::default(),
            report: Arc::new(|_| ()),
        };
        let host = ToolHost::new(Arc::new(launcher) as Arc<dyn Launch>, &["Bash"], outputs);
        let ran = host.run_script("echo works > tried && cat tried", &workspace, TRIAL_PATIENCE).await;
        host.close().await;
        self.settle(TRIAL_PATIENCE).await;
        match ran? {
            end if end.output.trim() == "works" && workspace.join("tried").exists() => Ok(()),
            end => {
                Err(HostError::Start(format!("a command printed `{}` and not `works`", end.output.trim())))
            }
        }
    }
}

impl ContainerLauncher {
    fn arguments(&self) -> Result<Vec<String>, HostError> {
        let places = &self.places;
        let own = |path: &PathBuf, is_read_only| process::mount(path, &path.to_string_lossy(), is_read_only);
        let mut arguments = vec![
            "--read-only".to_owned(),
            "--cap-drop=ALL".to_owned(),
            "--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777".to_owned(),
            format!("--workdir={}", places.workspace.display()),
            own(&places.workspace, false)?,
            own(&places.session, false)?,
            own(&places.mounts, true)?,
            own(&places.outputs, true)?,
            process::mount(&places.workspace, "/workspace", false)?,
            process::mount(&places.mounts, "/mnt", true)?,
        ];
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        arguments.push(format!("--user={}:{}", user.as_raw(), group.as_raw()));
        if self.engine.config.is_podman() && !user.is_root() {
            // Without this the files of the session would be another user's in the container.
            arguments.push("--userns=keep-id".to_owned());
        }
        Ok(arguments)
    }
}

/// How an environment that reaches these hosts reaches the network.
pub(super) fn network(engine: &ContainerEngine, hosts: &[String]) -> Network {
    let is_open = hosts.iter().any(|host| host == "*");
    match engine.config.network.as_ref().filter(|_| is_open) {
        Some(network) => Network::Named(network.clone()),
        None => Network::Hosts(hosts.to_vec()),
    }
}
