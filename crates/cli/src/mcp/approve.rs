//! Approving servers of a folder: what would run is shown in full, and the approval holds for exactly that.

use qoder_runtime::mcp_sources::{Approvals, Described, Standing, digest, standing};
use qoder_runtime::setup::Setup;

use super::get::{described_as, plain};
use super::{described, unknown};
use crate::exit::{Exit, Fault};
use crate::host::{say, tell};

/// Approves servers by name, or all that wait; without either, shows those that wait.
pub fn run(setup: &Setup, names: &[String], all: bool) -> Result<Exit, Fault> {
    if !setup.trust.is_trusted() {
        return Err(Fault::input(
            format!("{} is not trusted, so its servers are not looked at", setup.project_root.display()),
            "trust it first with `qodercli trust`",
        ));
    }
    let described = described(setup);
    let approvals = Approvals::load(&setup.config_root);
    let stand = |one: &Described| standing(one, &setup.settings, &approvals, setup);
    if names.is_empty() {
        let waiting: Vec<&Described> =
            described.iter().filter(|one| stand(one) == Standing::Unapproved).collect();
        if waiting.is_empty() {
            say("no server of this folder waits for approval")?;
        }
        for one in waiting {
            show(one)?;
            if all {
                approve(setup, one)?;
            }
        }
        return Ok(Exit::Success);
    }
    for name in names {
        let Some(one) = described.iter().rev().find(|one| one.name == *name && one.place.is_of_folder())
        else {
            if described.iter().any(|one| one.name == *name) {
                tell(&format!("{name} is in your own settings and needs no approval"));
                continue;
            }
            return Err(unknown(setup, name, &described));
        };
        show(one)?;
        match stand(one) {
            Standing::Approved => say(&format!("{name} was approved already"))?,
            Standing::SwitchedOff => {
                tell(&format!("warning: {name} stays off: it is in `mcp.disabledProjectMcpServers`"));
                approve(setup, one)?;
            }
            Standing::Unapproved => approve(setup, one)?,
        }
    }
    Ok(Exit::Success)
}

fn approve(setup: &Setup, one: &Described) -> Result<(), Fault> {
    let mark = digest(&one.name, &one.value);
    Approvals::add(&setup.config_root, &setup.project_root, &one.name, &mark).map_err(|error| Fault {
        exit: Exit::Configuration,
        message: error.to_string(),
        hint: "check the configuration folder and its permissions".to_owned(),
    })?;
    say(&format!("approved {} as it is described in {}", one.name, one.at))
}

/// What would run: the command with all its arguments, or the address; of variables and headers the names.
fn show(one: &Described) -> Result<(), Fault> {
    let (shown, problem) = described_as(one);
    say(&format!("{} ({})", one.name, one.at))?;
    for (field, value) in shown.as_object().into_iter().flatten() {
        say(&format!("  {field}: {}", plain(value)))?;
    }
    match problem {
        Some(problem) => say(&format!("  error: {problem}")),
        None => Ok(()),
    }
}
