//! A container that runs, as a process of the program that runs it. When it is dropped its tool host ends, and the container
//! with it; one that does not is removed.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use qoder_runtime::ServerProcess;
use qoder_runtime::confinement::{HostRules, Scratch, SocketProxy};
use qoder_runtime::tool_host::{HostError, Launched, Start};

use super::engine::ContainerEngine;

/// Where the tool host is in a container.
const TOOL_HOST: &str = "/opt/qoder/qodercli";
/// Where the proxy's socket is in a container.
const PROXY: &str = "/run/qoder-proxy";
/// How long a container may take to end by itself.
const GRACE: Duration = Duration::from_secs(8);

/// How a container reaches the network.
pub(super) enum Network {
    /// Through the server's proxy, which leaves these hosts.
    Hosts(Vec<String>),
    /// As a network of the program lets it.
    Named(String),
}

/// What a container is made of.
pub(super) struct Shape {
    pub(super) image: String,
    pub(super) network: Network,
    /// What differs between containers of sessions and those that make images.
    pub(super) arguments: Vec<String>,
    /// Removed when it has ended.
    pub(super) is_removed: bool,
    pub(super) start: Start,
}

/// A bind mount of a folder at a place in the container.
pub(super) fn mount(source: &Path, target: &str, is_read_only: bool) -> Result<String, HostError> {
    let source = source.to_string_lossy();
    if source.contains(',') || target.contains(',') {
        let problem = format!("{source} has a comma in its name, which cannot be mounted into a container");
        return Err(HostError::Start(problem));
    }
    let mode = if is_read_only { ",readonly" } else { "" };
    Ok(format!("--mount=type=bind,source={source},target={target}{mode}"))
}

/// Starts a container with a tool host in it. Answers with its name, too.
pub(super) fn start(engine: &Arc<ContainerEngine>, shape: Shape) -> Result<(String, Launched), HostError> {
    let fault = |error: std::io::Error| HostError::Start(error.to_string());
    let (name, mut given) = (engine.new_name(), shape.start);
    let mut arguments: Vec<String> = Vec::new();
    let config = &engine.config;
    if let Some(runtime) = &config.runtime {
        let option = format!("--runtime={runtime}");
        // Of podman it is an option of the program, of docker one of `run`.
        arguments.extend(if config.is_podman() {
            [option, "run".to_owned()]
        } else {
            ["run".to_owned(), option]
        });
    } else {
        arguments.push("run".to_owned());
    }
    arguments
        .extend(["--interactive", "--pull=never", "--security-opt=no-new-privileges"].map(str::to_owned));
    arguments.extend([format!("--name={name}"), format!("--label={}", engine.label())]);
    arguments.extend([mount(&engine.tool_host, TOOL_HOST, true)?, format!("--entrypoint={TOOL_HOST}")]);
    arguments.extend(shape.is_removed.then(|| "--rm".to_owned()));
    arguments.extend(config.memory.iter().map(|most| format!("--memory={most}")));
    arguments.extend(config.cpus.iter().map(|most| format!("--cpus={most}")));
    arguments.extend(config.pids.iter().map(|most| format!("--pids-limit={most}")));
    let mut held = None;
    match shape.network {
        Network::Named(network) => arguments.push(format!("--network={network}")),
        Network::Hosts(hosts) => {
            arguments.push("--network=none".to_owned());
            let rules = HostRules::new(&hosts, &[]).map_err(|error| HostError::Start(error.to_string()))?;
            if !rules.is_closed() {
                let scratch = Scratch::create().map_err(fault)?;
                let folder = scratch.temporary();
                let proxy = SocketProxy::start(&folder.join("socket"), rules).map_err(fault)?;
                arguments.push(mount(&folder, PROXY, true)?);
                given.proxy = Some(Path::new(PROXY).join("socket"));
                held = Some((proxy, scratch));
            }
        }
    }
    arguments.extend(shape.arguments);
    arguments.extend(config.arguments.iter().cloned());
    arguments.extend([shape.image, "tool-host".to_owned()]);
    let mut command = engine.command(&arguments);
    command.kill_on_drop(false).stdin(Stdio::piped());
    let mut process = ServerProcess::start(command)
        .map_err(|error| HostError::Start(format!("`{}` cannot be run: {error}", engine.config.program)))?;
    let (input, output) = (process.take_input(), process.take_output());
    let errors = process.take_errors();
    engine.entered();
    let ending = Ending {
        engine: Arc::clone(engine),
        name: name.clone(),
        is_removed: shape.is_removed,
        process: Some(process),
        held,
        runtime: tokio::runtime::Handle::current(),
    };
    let (Some(input), Some(output)) = (input, output) else {
        return Err(HostError::Start("it has no pipes".to_owned()));
    };
    let launched = Launched {
        input: Box::new(input),
        output: Box::new(output),
        errors: errors.map(|errors| Box::new(errors) as _),
        start: given,
        process: Box::new(ending),
    };
    Ok((name, launched))
}

/// Ends a container when it is dropped.
struct Ending {
    engine: Arc<ContainerEngine>,
    name: String,
    is_removed: bool,
    process: Option<ServerProcess>,
    held: Option<(SocketProxy, Scratch)>,
    runtime: tokio::runtime::Handle,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let (engine, name, held) = (Arc::clone(&self.engine), self.name.clone(), self.held.take());
        let is_removed = self.is_removed;
        self.runtime.spawn(async move {
            // Its pipe has ended, so the tool host ends, and the container with it.
            process.end(GRACE).await;
            if is_removed {
                // It usually is no longer there.
                drop(engine.ask(&["rm", "--force", &name]).await);
            }
            drop(held);
            engine.left();
        });
    }
}
