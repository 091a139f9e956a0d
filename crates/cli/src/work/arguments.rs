//! What `qodercli work` is started with.

use std::path::PathBuf;

use clap::Args;

/// What `--help` says at its end.
pub const HELP: &str = "\
The worker polls the queue of the environment, takes one session after the other, and runs the tools bash, read, write, edit, glob
and grep of each in a folder of its own, DIR/ID. Policies are the server's: a call that asks is run after it was allowed there.
Commands run in the sandbox; a machine that cannot confine them is refused unless you pass --no-sandbox.

A call that had started when the worker was killed is reported as unknown and not run again. SIGTERM ends the running call, gives
the sessions back to the queue and exits.

Example:
  qodercli serve token create --user builder --tenant ana --scopes environment:env_0123…
  export QODER_ENVIRONMENT_KEY=pt-…
  qodercli work --environment env_0123… --url http://127.0.0.1:8400 --dir ~/sessions";

/// What `qodercli work` is started with.
#[derive(Debug, Args)]
pub struct WorkArguments {
    /// The self-hosted environment to serve.
    #[arg(long, value_name = "ID", env = "QODER_ENVIRONMENT_ID")]
    pub environment: String,
    /// Address of the server. A path is kept: requests go to URL/v1/….
    #[arg(long, value_name = "URL", env = "QODER_MANAGED_BASE_URL", default_value = "http://127.0.0.1:8400")]
    pub url: String,
    /// Folder for the folders of sessions.
    #[arg(long, value_name = "DIR", default_value = "qodercli-work")]
    pub dir: PathBuf,
    /// Sessions to serve at the same time.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub sessions: u8,
    /// Seconds without anything to run until a session is given back. It comes again when there is something.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub max_idle: u64,
    /// Seconds until the server gives the sessions of a lost worker to another one.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub lease: u64,
    /// Exit when the queue is empty and every session that was taken is done.
    #[arg(long)]
    pub once: bool,
    /// Run commands with the rights of this user. For machines that are confined as a whole, such as containers.
    #[arg(long)]
    pub no_sandbox: bool,
    /// Run this command with `sh -c` for each item instead of serving it. It finds the item in ANTHROPIC_WORK_ID,
    /// ANTHROPIC_WORK_SECRET, ANTHROPIC_SESSION_ID, ANTHROPIC_ENVIRONMENT_ID, ANTHROPIC_ENVIRONMENT_KEY and ANTHROPIC_BASE_URL, and
    /// sends the heartbeats itself.
    #[arg(long, value_name = "COMMAND")]
    pub on_work: Option<String>,
}
