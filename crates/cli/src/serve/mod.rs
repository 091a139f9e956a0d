//! `qodercli serve`: the server, and what an operator does beside it.

mod arguments;
mod operations;
pub mod tool_host;

use std::collections::BTreeMap;

use qoder_server::config::{Config, ContainerOptions, ServeOptions};
use qoder_server::serve::ServeError;

use arguments::DataArguments;
pub use arguments::{HELP, ServeArguments};

use crate::exit::{Exit, Fault};
use crate::run::signals::{Signal, Signals};
use crate::screen;

/// Runs the subcommand.
pub fn run(arguments: ServeArguments, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    let ServeArguments { data, listening, action } = arguments;
    let options = listening.options(&data);
    let config = Config::load(options, environment).map_err(|error| fault(&ServeError::from(error)))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2)))
        .max_blocking_threads(128)
        .enable_all()
        .build()
        .map_err(|error| fault_of_system(&error))?;
    let outcome = match action {
        None => runtime.block_on(serve(config)),
        Some(action) => runtime.block_on(operations::run(action, config)),
    };
    // What still runs in the background has nothing left to do.
    runtime.shutdown_background();
    outcome
}

async fn serve(config: Config) -> Result<Exit, Fault> {
    let mut signals = Signals::new();
    let shutdown = async move {
        let _ = signals.next().await;
        tokio::spawn(async move {
            // The second signal ends the process at once, as a crash would, which is safe.
            let second = signals.next().await;
            std::process::exit(match second {
                Signal::Interrupt => 130,
                Signal::End(_) => 1,
            });
        });
    };
    let listening = |address: &str| {
        // A reader that is gone is no reason not to serve.
        let _ = screen::print_line(&format!("listening on {address}"));
    };
    let tidy = qoder_process::return_free_memory;
    qoder_server::serve::serve(config, listening, tidy, shutdown).await.map_err(|error| fault(&error))?;
    Ok(Exit::Success)
}

/// A server that cannot start, in words.
fn fault(error: &ServeError) -> Fault {
    let exit = match error {
        ServeError::Config(_) | ServeError::Settings(_) | ServeError::Tls(_) => Exit::Configuration,
        ServeError::DataDir { .. }
        | ServeError::InUse { .. }
        | ServeError::Listen { .. }
        | ServeError::Store(_)
        | ServeError::Objects(_)
        | ServeError::Backup
        | ServeError::BackupExists { .. }
        | ServeError::Secrets(_)
        | ServeError::Seal(_) => Exit::General,
    };
    Fault { exit, message: error.to_string(), hint: error.hint() }
}

fn fault_of_system(error: &std::io::Error) -> Fault {
    let message = format!("the system cannot start the server: {error}");
    Fault { exit: Exit::General, message, hint: String::new() }
}

impl arguments::ListenArguments {
    fn options(self, data: &DataArguments) -> ServeOptions {
        ServeOptions {
            config: data.config.clone(),
            data_dir: data.data_dir.clone(),
            database_url: data.database_url.clone(),
            listen_url: self.listen_url,
            roles: self.roles,
            workspaces: self.workspaces,
            object_store: data.object_store.clone(),
            node_address: self.node_address,
            listen: self.listen,
            public_url: self.public_url,
            allow_hosts: self.allow_host,
            allow_origins: self.allow_origin,
            tls_cert: self.tls_cert,
            tls_key: self.tls_key,
            behind_proxy: self.behind_proxy,
            trusted_proxies: self.trusted_proxy,
            container: ContainerOptions {
                program: self.container,
                image: self.container_image,
                runtime: self.container_runtime,
            },
            log_level: self.log_level,
        }
    }
}
