//! What measures the built program: `cargo xtask bench`. It is a program of its own because it needs crates of the product,
//! and the other commands of the repository should not wait until they are compiled.

mod bench;

use std::process::ExitCode;

use anyhow::{Result, bail};
use xtask::repository_root;

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
    match words {
        ["bench", options @ ..] => bench::run(&repository_root()?, options),
        _ => bail!("unknown command; `cargo xtask help` lists them"),
    }
}
