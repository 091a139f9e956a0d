//! Where `cloud` environments run when that is a container: the program that runs containers, the image and its limits.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::ConfigError;

/// The most processes of a container when nothing else is said.
const MOST_PROCESSES: u32 = 1024;

/// What a file says about containers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContainerFile {
    /// The program: `docker`, `podman`, or the path of one of them.
    pub program: Option<String>,
    /// The image that sessions run in.
    pub image: Option<String>,
    /// The runtime that the program uses.
    pub runtime: Option<String>,
    /// The network of environments that reach every host; without it they reach hosts through the server's proxy, too.
    pub network: Option<String>,
    /// The most memory, as the program takes it.
    pub memory: Option<String>,
    /// The most processors, as the program takes it.
    pub cpus: Option<String>,
    /// The most processes; 0 for no limit.
    pub pids: Option<u32>,
    /// Further arguments of the program's `run`.
    pub arguments: Vec<String>,
    /// The `qodercli` that runs in containers, when this one does not run in the image.
    pub tool_host: Option<PathBuf>,
}

/// What the command line says about containers.
#[derive(Debug, Clone, Default)]
pub struct ContainerOptions {
    /// The program.
    pub program: Option<String>,
    /// The image.
    pub image: Option<String>,
    /// The runtime.
    pub runtime: Option<String>,
}

/// How `cloud` environments run in containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerConfig {
    /// The program.
    pub program: String,
    /// The image.
    pub image: String,
    /// The runtime that the program uses.
    pub runtime: Option<String>,
    /// The network of environments that reach every host.
    pub network: Option<String>,
    /// The most memory.
    pub memory: Option<String>,
    /// The most processors.
    pub cpus: Option<String>,
    /// The most processes.
    pub pids: Option<u32>,
    /// Further arguments of the program's `run`.
    pub arguments: Vec<String>,
    /// The `qodercli` that runs in containers.
    pub tool_host: Option<PathBuf>,
}

impl ContainerConfig {
    /// Puts the configuration together; `None` when environments do not run in containers.
    ///
    /// # Errors
    /// When a part is missing or cannot be used.
    pub(super) fn read(options: ContainerOptions, file: ContainerFile) -> Result<Option<Self>, ConfigError> {
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let image = given(options.image).or(given(file.image));
        let Some(program) = given(options.program).or(given(file.program)) else {
            return match image {
                Some(_) => Err(ConfigError::option("--container", "is required with `--container-image`")),
                None => Ok(None),
            };
        };
        let image = image.ok_or_else(|| {
            let problem = format!("is required with `--container {program}`: the image that sessions run in");
            ConfigError::option("--container-image", problem)
        })?;
        if image.starts_with('-') {
            return Err(ConfigError::option(
                "--container-image",
                format!("is `{image}`, which is not an image"),
            ));
        }
        if file.network.as_deref() == Some("host") {
            let problem = "is `host`, by which sessions would reach what listens on this machine alone";
            return Err(ConfigError::option("container.network", problem));
        }
        Ok(Some(Self {
            program,
            image,
            runtime: given(options.runtime).or(given(file.runtime)),
            network: given(file.network),
            memory: given(file.memory),
            cpus: given(file.cpus),
            pids: Some(file.pids.unwrap_or(MOST_PROCESSES)).filter(|most| *most > 0),
            arguments: file.arguments,
            tool_host: file.tool_host,
        }))
    }

    /// True when the program is podman, by its name.
    #[must_use]
    pub fn is_podman(&self) -> bool {
        let name = Path::new(&self.program).file_name();
        name.is_some_and(|name| name.to_string_lossy().contains("podman"))
    }
}
