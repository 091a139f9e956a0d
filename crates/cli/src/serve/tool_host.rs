//! `qodercli tool-host`: runs the tools of one session inside of its environment, for a server that speaks with it over its pipes.

use crate::exit::{Exit, Fault};
use crate::screen;

/// Threads that run tools; blocking work has its own.
const THREADS: usize = 2;
/// The most threads for blocking work.
const BLOCKING_THREADS: usize = 16;

/// Serves until the input ends.
pub fn run() -> Result<Exit, Fault> {
    // Commands of the session run beside this process and must not look into it.
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(|error| fault(&error.into()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()
        .map_err(|error| fault(&error))?;
    let served = runtime.block_on(qoder_tools::serve_tool_host(tokio::io::stdin(), screen::pipe()));
    // What still reads from the pipe has nothing left to do.
    runtime.shutdown_background();
    served.map(|()| Exit::Success).map_err(|error| fault(&error))
}

fn fault(error: &std::io::Error) -> Fault {
    let message = format!("the tool host ended: {error}");
    Fault { exit: Exit::General, message, hint: "`qodercli serve` starts it by itself".to_owned() }
}
