//! `cargo xtask test`: every check and every test in one go. Steps that compile run one after another, because cargo
//! lets only one build at a time; what waits for the network or for other processes runs beside them. Each check, test
//! and documentation example counts as one; the last line is the sum, and nothing else decides whether a change is good.

mod changed;
mod counts;
mod examples;
mod load;
mod newcomer;
mod options;
mod quick;
mod real_models;
mod report;
mod sdks;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use xtask::{packages, process};

use crate::check;
use load::Load;
pub(crate) use options::Options;
use report::{Report, Tally};

/// How many scripts the long form puts to the gate and really runs.
const LONG_ORACLE: (&str, &str) = ("QODER_ORACLE_SCRIPTS", "100000");

/// Run all tests, also after one has failed, and name only those that failed.
const TO_THE_END: [&str; 5] = ["--no-fail-fast", "--status-level", "fail", "--final-status-level", "fail"];

/// Runs every step, also after one has failed, and prints the sum as the last line.
pub(crate) fn run(root: &Path, options: Options) -> Result<ExitCode> {
    let tally = Tally::new();
    if options.quick {
        quick::run(root, &tally)?;
    } else {
        prepare(root, &tally);
        let _load = Load::start(options.load);
        for time in 1..=options.times {
            if options.times > 1 {
                println!("== run {time} of {}", options.times);
            }
            all_tests(root, options.long, &tally);
        }
    }
    Ok(if tally.finish().failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is checked once, and what the tests need: the installed program and packages of others.
fn prepare(root: &Path, tally: &Tally) {
    std::thread::scope(|scope| {
        scope.spawn(|| tally.step("packages of others", || packages_of_others(root)));
        sources(root, tally);
        let lints = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
        tally.step("lints", || one_command(root, &lints));
        tally.step("installation", || newcomer::install(root));
    });
}

/// What can be said about the sources without compiling them.
fn sources(root: &Path, tally: &Tally) {
    tally.step("format", || one_command(root, &["fmt", "--all", "--check"]));
    tally.step("house rules", || house_rules(root));
}

/// The SDKs in other languages use the installed program and nothing that cargo may replace meanwhile.
fn all_tests(root: &Path, long: bool, tally: &Tally) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            tally.step("Python SDK", || sdks::python(root));
            tally.step("TypeScript SDK", || sdks::typescript(root));
            tally.step("third-party client", || sdks::third_party(root));
            tally.step("clients of the server", || sdks::server_clients(root));
            tally.step("real model", || real_models::run(root));
        });
        tally.step("tests", || tests(root, long));
        let documentation = ["test", "--doc", "--workspace", "--locked", "--no-fail-fast"];
        tally.step("documentation tests", || cargo_tests(root, &documentation, false));
        tally.step("documentation examples", || examples::run(root));
        tally.step("Rust quickstart", || newcomer::rust(root));
    });
}

fn one_command(root: &Path, arguments: &[&str]) -> Result<Report> {
    let finished = process::capture(&mut process::cargo(root, arguments))?;
    Ok(Report::of_command(&finished, counts::Counts::of(finished.succeeded())))
}

fn house_rules(root: &Path) -> Result<Report> {
    let mut report = Report::default();
    for verdict in check::verdicts(root)? {
        let kept = verdict.violations.is_empty();
        report.line(format!("{:>6}  {}", if kept { "ok" } else { "BROKEN" }, verdict.rule));
        for violation in &verdict.violations {
            report.line(format!("        {violation}"));
        }
        report.add(&Report::of(kept));
    }
    Ok(report)
}

/// Installs the servers that the tests of MCP speak with, programs of the system, a type checker, and the packages of the
/// third-party client and of the server's clients.
fn packages_of_others(root: &Path) -> Result<Report> {
    packages::mcp_servers(root)?;
    packages::system_programs()?;
    packages::pyright(root)?;
    sdks::install_third_party(root).context("cannot install the third-party client")?;
    sdks::install_server_clients(root).context("cannot install the clients of the server")?;
    Ok(Report::of(true))
}

/// All tests but the documentation's: by nextest where it is installed, else by cargo itself.
fn tests(root: &Path, long: bool) -> Result<Report> {
    if !has_nextest(root)? {
        let arguments = ["test", "--workspace", "--all-targets", "--locked", "--no-fail-fast"];
        return cargo_tests(root, &arguments, long);
    }
    let mut command = nextest(root);
    // No example is linked: the lints check all of them, and the tests of the SDK contain and run those of its pages.
    command.args(["--lib", "--bins", "--tests"]).args(TO_THE_END).envs(long.then_some(LONG_ORACLE));
    let finished = process::capture(&mut command)?;
    Ok(Report::of_command(&finished, counts::from_nextest(&finished.output)))
}

fn has_nextest(root: &Path) -> Result<bool> {
    Ok(process::capture(&mut process::cargo(root, &["nextest", "--version"]))?.succeeded())
}

/// Always for the whole workspace: cargo would build every crate again with the features of a part of it.
fn nextest(root: &Path) -> std::process::Command {
    let mut command =
        process::cargo(root, &["nextest", "run", "--workspace", "--locked", "--color", "never"]);
    command.env(packages::MCP_VARIABLE, packages::mcp_folder(root));
    command
}

fn cargo_tests(root: &Path, arguments: &[&str], long: bool) -> Result<Report> {
    let mut command = process::cargo(root, arguments);
    command.env("CARGO_TERM_COLOR", "never").env(packages::MCP_VARIABLE, packages::mcp_folder(root));
    command.envs(long.then_some(LONG_ORACLE));
    let finished = process::capture(&mut command)?;
    Ok(Report::of_command(&finished, counts::from_cargo(&finished.output)))
}
