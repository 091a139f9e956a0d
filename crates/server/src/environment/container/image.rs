//! Images with the packages of an environment and what its setup script does: made once, by running the script in a container of
//! the configured image, and found again by their hash.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use qoder_runtime::tool_host::{HostError, Launch, Launched, Start, ToolHost};
use sha2::{Digest, Sha256};

use super::ContainerError;
use super::engine::ContainerEngine;
use super::launcher::network;
use super::process::{self, Shape};
use crate::model::ids::hex;

/// How long a setup may take.
const SETUP_PATIENCE: Duration = Duration::from_secs(30 * 60);
/// The name of such images; the hash is their tag.
const NAME: &str = "qoder-environment";

/// What an image is made by.
#[derive(Debug, Clone)]
pub(super) struct ImageSetup {
    pub(super) script: String,
    pub(super) hosts: Vec<String>,
    pub(super) tenant: String,
}

impl ContainerEngine {
    /// The image of a setup, which is made when it is not there. Several sessions wait for one.
    pub(super) async fn image_of(self: &Arc<Self>, setup: ImageSetup) -> Result<String, ContainerError> {
        let base = self.ask(&["image", "inspect", "--format", "{{.Id}}", &self.config.image]).await?;
        let mut digest = Sha256::new();
        for part in [&base, &setup.script, &setup.tenant, &setup.hosts.join(" ")] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let tag = hex(&digest.finalize()[..16]);
        let image = format!("{NAME}:{tag}");
        let made = {
            let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(images.entry(tag).or_default())
        };
        let making = made.get_or_try_init(|| async {
            if self.ask(&["image", "inspect", "--format", "{{.Id}}", &image]).await.is_ok() {
                return Ok(());
            }
            self.make(&setup, &image).await
        });
        making.await?;
        Ok(image)
    }

    async fn make(self: &Arc<Self>, setup: &ImageSetup, image: &str) -> Result<(), ContainerError> {
        let launcher = Arc::new(SetupLauncher {
            engine: Arc::clone(self),
            hosts: setup.hosts.clone(),
            name: std::sync::Mutex::default(),
        });
        let host = ToolHost::new(Arc::clone(&launcher) as _, &["Bash"], "/tmp/outputs".into());
        let failed = |error: HostError| ContainerError::Setup(error.to_string());
        let ran = host.run_script(&setup.script, "/".as_ref(), SETUP_PATIENCE).await;
        // By this its tool host ends, and the container stops.
        host.close().await;
        let name = launcher.name.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let kept = match ran {
            Err(error) => Err(failed(error)),
            Ok(end) if end.exit_code != 0 => {
                let said = end.output.trim();
                Err(ContainerError::Setup(format!("it ended with exit code {}: {said}", end.exit_code)))
            }
            Ok(_) => self.keep(name.as_deref(), image).await,
        };
        if let Some(name) = &name {
            // What stays is removed at the next start.
            drop(self.ask(&["rm", "--force", name]).await);
        }
        kept
    }

    async fn keep(&self, name: Option<&str>, image: &str) -> Result<(), ContainerError> {
        let name = name.ok_or_else(|| ContainerError::Setup("its container has no name".to_owned()))?;
        self.ask(&["wait", name]).await?;
        self.ask(&["commit", name, image]).await.map(drop)
    }
}

/// Starts the container in which an image is made: as root of the container, who may write everywhere in it.
struct SetupLauncher {
    engine: Arc<ContainerEngine>,
    hosts: Vec<String>,
    name: std::sync::Mutex<Option<String>>,
}

impl Launch for SetupLauncher {
    fn launch(&self) -> futures::future::BoxFuture<'static, Result<Launched, HostError>> {
        let shape = Shape {
            image: self.engine.config.image.clone(),
            network: network(&self.engine, &self.hosts),
            arguments: vec!["--user=0:0".to_owned(), "--workdir=/".to_owned()],
            is_removed: false,
            start: Start::default(),
        };
        let started = process::start(&self.engine, shape);
        Box::pin(std::future::ready(started.map(|(name, launched)| {
            *self.name.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
            launched
        })))
    }
}
