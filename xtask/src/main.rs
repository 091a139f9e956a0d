//! The repository's own commands: `cargo xtask test` runs everything a change has to pass, `cargo xtask check`
//! the house rules alone, and `cargo xtask bench` the benchmarks. This file reads the arguments and hands them
//! on.

mod chaos;
mod check;
mod suite;

use std::process::ExitCode;

use anyhow::{Context, Result};
use xtask::{process, repository_root};

const USAGE: &str = "usage: cargo xtask <command>

  test --quick                              format, house rules, units of the crates that changed against HEAD and of
                                            their dependants, changed tests, properties, the scenario files
  test [--long] [--load N] [--times N]      format, house rules, lints, all tests, documentation examples;
                                            --long runs 100,000 scripts against the gate instead of 2,000,
                                            --load keeps the machine busy with N threads meanwhile, and
                                            --times runs the tests N times
  check [--known]                           the house rules alone; --known prints the table of known exceptions
                                            as it is now
  bench [--only NAME] [--quick]             the benchmarks; --write puts the table into docs/benchmarks.md,
        [--against PROGRAM | --write]       --against measures another program in the same run, and --program one
        [--program PATH]                    that is there already instead of the release build of this checkout
  chaos [FAULTS] [--seed N]                 kills, freezes and cuts at random between two servers, their PostgreSQL and
                                            their clients: 10,000 of them, or as many as given";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[&str]) -> Result<ExitCode> {
    if words.iter().any(|word| matches!(*word, "--help" | "-h")) {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    match words {
        ["test", options @ ..] => suite::run(&repository_root()?, suite::Options::read(options)?),
        ["check"] => check::run(&repository_root()?),
        ["check", "--known"] => check::print_known(&repository_root()?),
        ["bench", ..] => trials(words),
        ["chaos", options @ ..] => chaos::run(&repository_root()?, options),
        ["help"] => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprintln!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    }
}

/// Commands that measure or try the built program are in a program of their own: it needs crates of the product, and no
/// other command has to wait until they are compiled.
fn trials(words: &[&str]) -> Result<ExitCode> {
    let mut command = process::cargo(&repository_root()?, &["run", "--quiet", "--package", "trials", "--"]);
    let status = command.args(words).status().context("cannot start cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
