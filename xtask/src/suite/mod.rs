//! `cargo xtask test`: every check and every test in one go, cheapest first. Each check, test and
//! documentation example counts as one; the last line is the sum, and nothing else decides whether a change
//! is good.

mod counts;
mod examples;
mod load;
mod newcomer;
mod options;
mod real_models;
mod sdks;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

use crate::{check, packages, process};
use counts::Counts;
use load::Load;
pub(crate) use options::Options;

/// How many scripts the long form puts to the gate and really runs.
const LONG_ORACLE: (&str, &str) = ("QODER_ORACLE_SCRIPTS", "100000");

/// Runs every step, also after one has failed, and prints the sum as the last line.
pub(crate) fn run(root: &Path, options: Options) -> Result<ExitCode> {
    let mut total = Counts::default();
    total.add(step("format", || one_command(root, &["fmt", "--all", "--check"])));
    total.add(step("house rules", || house_rules(root)));
    let lints = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    total.add(step("lints", || one_command(root, &lints)));
    total.add(step("build", || one_command(root, &["build", "--locked", "-p", "qodercli"])));
    total.add(step("MCP servers of others", || mcp_servers(root)));
    let _load = Load::start(options.load);
    for time in 1..=options.times {
        if options.times > 1 {
            println!("== run {time} of {}", options.times);
        }
        all_tests(root, options.long, &mut total);
    }
    println!("{total}");
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn all_tests(root: &Path, long: bool, total: &mut Counts) {
    total.add(step("tests", || tests(root, long)));
    total.add(step("documentation tests", || {
        cargo_tests(root, &["test", "--doc", "--workspace", "--locked", "--no-fail-fast"], false)
    }));
    total.add(step("installation", || newcomer::install(root)));
    total.add(step("documentation examples", || examples::run(root)));
    total.add(step("Rust quickstart", || newcomer::rust(root)));
    total.add(step("Python SDK", || sdks::python(root)));
    total.add(step("TypeScript SDK", || sdks::typescript(root)));
    total.add(step("third-party client", || sdks::third_party(root)));
    total.add(step("real model", || real_models::run(root)));
}

/// Runs one step under a heading. A step that cannot run, and one that ran nothing, counts as one failure; one that says
/// that it cannot run on this machine counts as skipped.
fn step(heading: &str, work: impl FnOnce() -> Result<Counts>) -> Counts {
    println!("== {heading}");
    let start = Instant::now();
    let counts = match work() {
        Ok(counts) if counts != Counts::default() => counts,
        Ok(_) => {
            println!("nothing was run: a step without tests proves nothing");
            Counts { passed: 0, failed: 1, skipped: 0 }
        }
        Err(error) => {
            println!("{error:#}");
            Counts { passed: 0, failed: 1, skipped: 0 }
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    println!("   {counts}, {seconds:.1} s\n");
    counts
}

fn one_command(root: &Path, arguments: &[&str]) -> Result<Counts> {
    let finished = process::capture(&mut process::cargo(root, arguments))?;
    if finished.succeeded() {
        return Ok(Counts { passed: 1, failed: 0, skipped: 0 });
    }
    println!("{}", finished.output.trim_end());
    Ok(Counts { passed: 0, failed: 1, skipped: 0 })
}

fn house_rules(root: &Path) -> Result<Counts> {
    let mut counts = Counts::default();
    for verdict in check::verdicts(root)? {
        check::print(&verdict);
        counts.add(Counts::of(verdict.violations.is_empty()));
    }
    Ok(counts)
}

/// Installs the servers that the tests of MCP speak with, and the tracer of those about hostile folders.
fn mcp_servers(root: &Path) -> Result<Counts> {
    packages::mcp_servers(root)?;
    packages::strace()?;
    Ok(Counts { passed: 1, failed: 0, skipped: 0 })
}

/// All tests but the documentation's: by nextest where it is installed, else by cargo itself.
fn tests(root: &Path, long: bool) -> Result<Counts> {
    let nextest = process::capture(&mut process::cargo(root, &["nextest", "--version"]))?;
    if !nextest.succeeded() {
        return cargo_tests(
            root,
            &["test", "--workspace", "--all-targets", "--locked", "--no-fail-fast"],
            long,
        );
    }
    let arguments = ["nextest", "run", "--workspace", "--locked", "--no-fail-fast", "--color", "never"];
    let mut command = process::cargo(root, &arguments);
    command.env(packages::MCP_VARIABLE, packages::mcp_folder(root));
    command.envs(long.then_some(LONG_ORACLE));
    command.args(["--status-level", "fail", "--final-status-level", "fail"]);
    let finished = process::capture(&mut command)?;
    Ok(report(&finished, counts::from_nextest(&finished.output)))
}

fn cargo_tests(root: &Path, arguments: &[&str], long: bool) -> Result<Counts> {
    let mut command = process::cargo(root, arguments);
    command.env("CARGO_TERM_COLOR", "never").env(packages::MCP_VARIABLE, packages::mcp_folder(root));
    command.envs(long.then_some(LONG_ORACLE));
    let finished = process::capture(&mut command)?;
    Ok(report(&finished, counts::from_cargo(&finished.output)))
}

/// Shows the output of a run that failed, and counts a failure that no test explains, such as a broken build.
fn report(finished: &process::Finished, mut counts: Counts) -> Counts {
    if !finished.succeeded() {
        println!("{}", finished.output.trim_end());
        if counts.failed == 0 {
            counts.failed = 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_runs_nothing_fails() {
        let counts = step("empty", || Ok(Counts::default()));
        assert_eq!(counts, Counts { passed: 0, failed: 1, skipped: 0 });
    }

    #[test]
    fn a_step_that_is_skipped_is_neither_passed_nor_failed() {
        let skipped = Counts { skipped: 3, ..Counts::default() };
        assert_eq!(step("elsewhere", || Ok(skipped)), skipped);
    }

    #[test]
    fn a_step_that_cannot_run_fails() {
        let counts = step("broken", || anyhow::bail!("no such program"));
        assert_eq!(counts, Counts { passed: 0, failed: 1, skipped: 0 });
    }

    #[test]
    fn a_failure_without_a_failed_test_counts() {
        let finished = process::Finished { code: Some(101), output: "error: could not compile".to_owned() };
        let counts = report(&finished, Counts { passed: 7, failed: 0, skipped: 0 });
        assert_eq!(counts, Counts { passed: 7, failed: 1, skipped: 0 });
    }
}
