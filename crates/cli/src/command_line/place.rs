//! Where a command looks: the working directory, settings and trust.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use qoder_runtime::setup::{Options, Setup};

use crate::exit::Fault;
use crate::keys;
use crate::screen::{hide_secrets, print_note};

/// Where to look, for commands that list what is in force.
#[derive(Debug, Args)]
pub struct PlaceArguments {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Working directory.
    #[arg(short = 'w', long)]
    pub cwd: Option<PathBuf>,
    /// Settings file, or JSON, that overrides all other layers.
    #[arg(long)]
    pub settings: Option<String>,
    /// Treat the folder as trusted for this command.
    #[arg(long)]
    pub trust: bool,
}

impl PlaceArguments {
    /// What a session there would begin with. Prints its warnings.
    pub fn prepare(self, environment: BTreeMap<String, String>) -> Result<Setup, Fault> {
        self.prepare_with(Options { environment, ..Options::default() })
    }

    /// The same with further options.
    pub fn prepare_with(self, options: Options) -> Result<Setup, Fault> {
        let Self { json: _, cwd, settings, trust } = self;
        let cwd = cwd.unwrap_or_default();
        let mut options = options;
        if let Some(warning) = keys::add_to(&mut options.environment) {
            print_note(&format!("warning: {warning}"));
        }
        let setup = Setup::prepare(Options { cwd, settings, trust, ..options })?;
        hide_secrets(&setup);
        for warning in &setup.warnings {
            print_note(&format!("warning: {warning}"));
        }
        Ok(setup)
    }
}

/// The folder of the current project's sessions, for commands.
pub fn current_directory(cwd: Option<&PathBuf>) -> Result<PathBuf, Fault> {
    let path = cwd.cloned().unwrap_or_else(|| PathBuf::from("."));
    path.canonicalize().map_err(|error| {
        Fault::input(format!("{} cannot be used as a directory: {error}", path.display()), "check the path")
    })
}
