//! The repository's own commands: `cargo xtask test` runs everything a change has to pass, `cargo xtask check`
//! the house rules alone, and `cargo xtask bench` the benchmarks. This file reads the arguments and hands them
//! on.

mod bench;
mod check;
mod packages;
mod process;
mod suite;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};

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
        [--against PROGRAM | --write]       --against measures another program in the same run";

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
        ["bench", options @ ..] => bench::run(&repository_root()?, options),
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

/// The workspace's root: the folder above this crate's.
fn repository_root() -> Result<PathBuf> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").context("run me as `cargo xtask`")?;
    let root = PathBuf::from(here).parent().context("this crate's folder has no parent")?.to_path_buf();
    Ok(root)
}
