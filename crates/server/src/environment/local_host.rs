//! The tool host of a session on this machine: confined as its commands are, so that no link that they put somewhere leads its
//! file tools out of the session.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_runtime::ServerProcess;
use qoder_runtime::confinement::{Sandbox, SandboxPlaces, SandboxSettings};
use qoder_runtime::tool_host::{HostError, Launch, Launched, Start};

use super::local::Places;

/// Starts the tool hosts of one session.
pub struct LocalLauncher {
    program: PathBuf,
    places: Places,
    sandbox: Arc<Sandbox>,
    start: Start,
}

impl LocalLauncher {
    /// For the session with these folders. `program` is what serves as tool host.
    #[must_use]
    pub fn new(program: PathBuf, places: Places, start: Start) -> Self {
        let settings = SandboxSettings {
            enabled: true,
            allow_unsandboxed_commands: false,
            ..SandboxSettings::default()
        };
        let mut isolation = places.isolation();
        isolation.readable.push(program.clone());
        let sandbox =
            Sandbox::new(settings, SandboxPlaces { isolation: Some(isolation), ..SandboxPlaces::default() });
        Self { program, places, sandbox: Arc::new(sandbox), start }
    }
}

impl Launch for LocalLauncher {
    fn launch(&self) -> BoxFuture<'static, Result<Launched, HostError>> {
        let (sandbox, program, start) = (Arc::clone(&self.sandbox), self.program.clone(), self.start.clone());
        let (workspace, session) = (self.places.workspace.clone(), self.places.session.clone());
        let home = self.places.home.clone();
        async move {
            let fault = |problem: String| HostError::Start(problem);
            let folder = workspace.clone();
            // It looks through folders.
            let confined =
                tokio::task::spawn_blocking(move || sandbox.confine(&folder, &[folder.clone(), session]));
            let confinement = confined.await.map_err(|error| fault(error.to_string()))?;
            let confinement = confinement.map_err(|error| fault(error.to_string()))?;
            let mut process = ServerProcess::start_confined(&program, confinement, |command| {
                command.arg("tool-host").env_clear().env("HOME", home).current_dir(workspace);
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            })
            .map_err(|error| fault(error.to_string()))?;
            let (input, output, errors) =
                (process.take_input(), process.take_output(), process.take_errors());
            let (Some(input), Some(output)) = (input, output) else {
                return Err(fault("it has no pipes".to_owned()));
            };
            Ok(Launched {
                input: Box::new(input),
                output: Box::new(output),
                errors: errors.map(|errors| Box::new(errors) as _),
                start,
                process: Box::new(process),
            })
        }
        .boxed()
    }
}
