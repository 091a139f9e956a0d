//! `sandbox status`: what the sandbox enforces on this machine, found out by trying it.
//!
//! Colour only on a terminal. The exit code says whether everything that the settings ask for holds.

use clap::Subcommand;
use std::collections::BTreeMap;
use std::path::PathBuf;

use qoder_process::sandbox::{Check, SandboxReport, report};
use qoder_runtime::setup::sandbox::places;
use qoder_runtime::setup::{Options, Setup};
use serde_json::json;

use crate::exit::{Exit, Fault};
use crate::screen::{self, Ink, Paint};

/// What to do with the sandbox.
#[derive(Debug, Subcommand)]
pub enum SandboxAction {
    /// Test what the sandbox enforces with a confined process, and print the result.
    ///
    /// Exit code 0 when everything the settings ask for is enforced here, else 44.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Working directory.
        #[arg(short = 'w', long)]
        cwd: Option<PathBuf>,
        /// Settings file, or JSON, that overrides all other layers.
        #[arg(long)]
        settings: Option<String>,
    },
}

/// Runs the subcommand.
pub fn run(action: SandboxAction, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    let SandboxAction::Status { json, cwd, settings } = action;
    let options = Options { cwd: cwd.unwrap_or_default(), settings, environment, ..Options::default() };
    let setup = Setup::prepare(options)?;
    screen::hide_secrets(&setup);
    for warning in &setup.warnings {
        screen::print_note(&format!("warning: {warning}"));
    }
    let workspace = setup.workspace(vec![setup.cwd.clone()]);
    let found = report(&setup.sandbox, &places(setup.rules(), &workspace), &setup.cwd);
    if json {
        screen::print_json_line(as_json(&setup, &found))?;
    } else {
        print_report(&setup, &found)?;
    }
    Ok(if found.is_enforced() { Exit::Success } else { Exit::Sandbox })
}

fn as_json(setup: &Setup, found: &SandboxReport) -> String {
    json!({ "enabled": setup.sandbox.enabled, "enforced": found.is_enforced(), "report": found }).to_string()
}

fn print_report(setup: &Setup, found: &SandboxReport) -> Result<(), Fault> {
    let paint = Paint::of_stdout(&setup.options.environment);
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
        screen::print_row(&format!("{name:<12} {value}"))?;
    }
    if !found.checks.is_empty() {
        screen::print_line("\ntried in a confined process:")?;
    }
    for check in &found.checks {
        let (word, ink) = mark(check);
        let line = paint.line().plain("  ").ink(ink, word).plain(&format!(" {}", check.attempt));
        screen::print_painted(&line)?;
    }
    for problem in &found.problems {
        let line = paint.line().plain("\n").ink(Ink::Bad, "not enforced").plain(&format!(": {problem}"));
        screen::print_painted(&line)?;
    }
    if found.is_enforced() {
        let line = paint.line().plain("\n").ink(Ink::Good, "everything asked for is enforced");
        screen::print_painted(&line)?;
    }
    Ok(())
}

fn mark(check: &Check) -> (&'static str, Ink) {
    let word = if check.allowed { "allowed" } else { "blocked" };
    let ink = match (check.holds(), check.expected) {
        (true, None) => Ink::Warning,
        (true, Some(_)) => Ink::Good,
        (false, _) => Ink::Bad,
    };
    (word, ink)
}
