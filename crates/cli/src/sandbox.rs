//! `sandbox status`: what the sandbox enforces on this machine, found out by trying it.
//!
//! Colour only on a terminal. The exit code says whether everything that the settings ask for holds.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use qoder_runtime::sandbox::places;
use qoder_runtime::setup::{Options, Setup};
use qoder_tools::sandbox::{Check, SandboxReport, report};
use serde_json::json;

use crate::commands::SandboxAction;
use crate::exit::{Exit, Fault};
use crate::host;

/// Runs the subcommand.
pub fn run(action: SandboxAction, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    let SandboxAction::Status { json, cwd, settings } = action;
    let options = Options { cwd: cwd.unwrap_or_default(), settings, environment, ..Options::default() };
    let setup = Setup::prepare(options)?;
    for warning in &setup.warnings {
        host::tell(&format!("warning: {warning}"));
    }
    let workspace = setup.workspace(vec![setup.cwd.clone()]);
    let found = report(&setup.sandbox, &places(setup.rules(), &workspace), &setup.cwd);
    if json {
        host::say(&as_json(&setup, &found))?;
    } else {
        show(&setup, &found)?;
    }
    Ok(if found.is_enforced() { Exit::Success } else { Exit::Sandbox })
}

fn as_json(setup: &Setup, found: &SandboxReport) -> String {
    json!({ "enabled": setup.sandbox.enabled, "enforced": found.is_enforced(), "report": found }).to_string()
}

fn show(setup: &Setup, found: &SandboxReport) -> Result<(), Fault> {
    let colour = std::io::stdout().is_terminal();
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let enabled =
        if setup.sandbox.enabled { "on" } else { "off (--sandbox or `sandbox.enabled` switches it on)" };
    let namespaces = match &found.namespaces_problem {
        Some(problem) => format!("no ({problem})"),
        None => yes_no(found.namespaces).to_owned(),
    };
    let landlock = found.landlock.map_or_else(|| "no".to_owned(), |version| format!("version {version}"));
    let bubblewrap =
        found.bubblewrap.as_ref().map_or_else(|| "not found".to_owned(), |path| path.display().to_string());
    let protected = match (found.protected_files, &found.broker_problem) {
        (Some(mechanism), Some(problem)) => format!("{mechanism}; no broker ({problem})"),
        (mechanism, _) => mechanism.unwrap_or("nothing").to_owned(),
    };
    let processes = match (found.confined_processes, &found.process_namespace_problem) {
        (Some(mechanism), Some(problem)) if mechanism != "PID namespace" => {
            format!("{mechanism}; no PID namespace ({problem})")
        }
        (Some(mechanism), _) => mechanism.to_owned(),
        (None, _) => "nothing".to_owned(),
    };
    let rows = [
        ("sandbox", enabled.to_owned()),
        ("system", found.system.clone()),
        ("landlock", landlock),
        ("namespaces", namespaces),
        ("seccomp", yes_no(found.seccomp).to_owned()),
        ("bubblewrap", bubblewrap),
        ("confined by", found.mechanism.unwrap_or("nothing").to_owned()),
        ("protected", protected),
        ("processes", format!("confined: {processes}")),
        ("", format!("ordinary: {}", found.ordinary_processes)),
    ];
    for (name, value) in rows {
        host::say(&format!("{name:<12} {value}"))?;
    }
    if !found.checks.is_empty() {
        host::say("\ntried in a confined process:")?;
    }
    for check in &found.checks {
        host::say(&format!("  {} {}", mark(check, colour), check.attempt))?;
    }
    for problem in &found.problems {
        host::say(&format!("\n{}: {problem}", painted("not enforced", "31", colour)))?;
    }
    if found.is_enforced() {
        host::say(&format!("\n{}", painted("everything asked for is enforced", "32", colour)))?;
    }
    Ok(())
}

fn mark(check: &Check, colour: bool) -> String {
    let word = if check.allowed { "allowed" } else { "blocked" };
    let paint = match (check.holds(), check.expected) {
        (true, None) => "33",
        (true, Some(_)) => "32",
        (false, _) => "31",
    };
    painted(word, paint, colour)
}

fn painted(text: &str, paint: &str, colour: bool) -> String {
    if colour { format!("\u{1b}[{paint}m{text}\u{1b}[0m") } else { text.to_owned() }
}
