//! Approving servers of a folder, those that its agents describe included: what would run is shown in full, and the
//! approval holds for exactly that.

use std::collections::BTreeMap;

use std::path::Path;

use qoder_config::servers::{
    Approvals, Described, OfAgent, Standing, bound_digest, bound_files, of_agents, standing, unbound_parts,
};
use qoder_config::settings::WriteError;
use qoder_runtime::setup::Setup;

use super::get::{described_as, plain};
use super::{described, unknown};
use crate::exit::{Exit, Fault};
use crate::screen::{print_line, print_note, print_row};

/// Approves servers by name, or all that wait; without either, shows those that wait.
pub fn run(setup: &Setup, names: &[String], all: bool) -> Result<Exit, Fault> {
    if !setup.config.trust.is_trusted() {
        return Err(Fault::input(
            format!(
                "{} is not trusted, so its servers are not looked at",
                setup.config.project_root.display()
            ),
            "trust it first with `qodercli trust`",
        ));
    }
    let described = described(setup);
    let of_agents: Vec<OfAgent> = of_agents(&setup.extensions(BTreeMap::new())?.agents)
        .into_iter()
        .filter(OfAgent::is_of_folder)
        .collect();
    let of_agents: Vec<&Described> = of_agents.iter().map(|one| &one.server).collect();
    if names.is_empty() {
        return waiting(setup, &described, &of_agents, all);
    }
    for name in names {
        let of_folder = described.iter().rev().find(|one| one.name == *name && one.place.is_of_folder());
        let of_agents: Vec<&Described> = of_agents.iter().copied().filter(|one| one.name == *name).collect();
        if of_folder.is_none() && of_agents.is_empty() {
            if described.iter().any(|one| one.name == *name) {
                print_note(&format!("{name} is in your own settings and needs no approval"));
                continue;
            }
            return Err(unknown(setup, name, &described));
        }
        for (one, add) in of_folder
            .map(|one| (one, Approvals::add as Add))
            .into_iter()
            .chain(of_agents.into_iter().map(|one| (one, Approvals::add_beside as Add)))
        {
            print_server(setup, one)?;
            match stand(setup, one) {
                Standing::Approved => print_row(&format!("{name} was approved already"))?,
                Standing::SwitchedOff => {
                    print_note(&format!(
                        "warning: {name} stays off: it is in `mcp.disabledProjectMcpServers`"
                    ));
                    approve(setup, one, add)?;
                }
                Standing::Unapproved => approve(setup, one, add)?,
            }
        }
    }
    Ok(Exit::Success)
}

/// Puts an approval on record.
type Add = fn(&Path, &Path, &str, &str) -> Result<(), WriteError>;

/// Approvals are read each time: one that was just given may have taken the place of another.
fn stand(setup: &Setup, one: &Described) -> Standing {
    standing(one, &setup.config.settings, &Approvals::load(&setup.config.config_root), &setup.config)
}

/// Shows what waits, and approves it when that is wanted.
fn waiting(
    setup: &Setup,
    described: &[Described],
    of_agents: &[&Described],
    all: bool,
) -> Result<Exit, Fault> {
    let of_folder = described.iter().map(|one| (one, Approvals::add as Add));
    let of_agents = of_agents.iter().map(|one| (*one, Approvals::add_beside as Add));
    let waiting: Vec<(&Described, Add)> =
        of_folder.chain(of_agents).filter(|(one, _)| stand(setup, one) == Standing::Unapproved).collect();
    if waiting.is_empty() {
        print_line("no server of this folder waits for approval")?;
    }
    for (one, add) in waiting {
        print_server(setup, one)?;
        if all {
            approve(setup, one, add)?;
        }
    }
    Ok(Exit::Success)
}

fn approve(setup: &Setup, one: &Described, add: Add) -> Result<(), Fault> {
    record(setup, one, add)?;
    print_row(&format!("approved {} as it is described in {}", one.name, one.at))
}

fn record(setup: &Setup, one: &Described, add: Add) -> Result<(), Fault> {
    let mark = bound_digest(&one.name, &one.value, &setup.config.project_root);
    add(&setup.config.config_root, &setup.config.project_root, &one.name, &mark).map_err(|error| Fault {
        exit: Exit::Configuration,
        message: error.to_string(),
        hint: "check the configuration folder and its permissions".to_owned(),
    })
}

/// What would run: the command with all its arguments, or the address; of variables and headers the names. Then the files
/// that the approval is bound to, and what it cannot be bound to.
fn print_server(setup: &Setup, one: &Described) -> Result<(), Fault> {
    print_row(&format!("{} ({})", one.name, one.at))?;
    lines(setup, one).iter().try_for_each(|line| print_row(&format!("  {line}")))
}

fn lines(setup: &Setup, one: &Described) -> Vec<String> {
    let (shown, problem) = described_as(one);
    let fields = shown.as_object().into_iter().flatten();
    let mut lines: Vec<String> = fields.map(|(field, value)| format!("{field}: {}", plain(value))).collect();
    for file in bound_files(&one.value, &setup.config.project_root).keys() {
        lines.push(format!("bound: {file} (a change asks again)"));
    }
    for part in unbound_parts(&one.value, &setup.config.project_root) {
        lines.push(format!(
            "known only when the server starts: {part} (a change of any script in the folder asks again)"
        ));
    }
    if one.value.get("command").is_some() {
        let words =
            "not bound: what its program loads by itself, other than files of this folder that these name";
        lines.push(words.to_owned());
    }
    lines.extend(problem.map(|problem| format!("error: {problem}")));
    lines
}

/// A server of the folder as the terminal offers it for approval: what would run, and the mark of just that.
pub fn waiting_server(setup: &Setup, name: &str) -> Result<(Vec<String>, String), Fault> {
    let described = described(setup);
    let one = of_folder(setup, &described, name)?;
    let mark = bound_digest(&one.name, &one.value, &setup.config.project_root);
    Ok((lines(setup, one), mark))
}

/// Approves a server of the folder if it still is what has this mark.
pub fn approve_marked(setup: &Setup, name: &str, mark: &str) -> Result<(), Fault> {
    let described = described(setup);
    let one = of_folder(setup, &described, name)?;
    if bound_digest(&one.name, &one.value, &setup.config.project_root) != mark {
        let problem = format!("the description of `{name}` has changed since it was shown");
        return Err(Fault::input(problem, "look at it again"));
    }
    record(setup, one, Approvals::add)
}

fn of_folder<'a>(setup: &Setup, described: &'a [Described], name: &str) -> Result<&'a Described, Fault> {
    let found = described.iter().rev().find(|one| one.name == name && one.place.is_of_folder());
    found.ok_or_else(|| unknown(setup, name, described))
}
