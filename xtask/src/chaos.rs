//! `cargo xtask chaos`: the test of random faults, for much longer than the suite runs it.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use xtask::process;

const TEST: &str = "random_kills_freezes_and_cuts_lose_and_double_nothing";
const DEFAULT_FAULTS: &str = "10000";

pub(crate) fn run(root: &Path, options: &[&str]) -> Result<ExitCode> {
    let (faults, seed) = match options {
        [] => (DEFAULT_FAULTS, None),
        ["--seed", seed] => (DEFAULT_FAULTS, Some(*seed)),
        [faults] => (*faults, None),
        [faults, "--seed", seed] => (*faults, Some(*seed)),
        _ => bail!("usage: cargo xtask chaos [FAULTS] [--seed N]"),
    };
    for number in [Some(faults), seed].into_iter().flatten() {
        number.parse::<u64>().with_context(|| format!("`{number}` is not a number"))?;
    }
    // Without nextest, whose limit is for the suite: 10,000 faults take an hour.
    let arguments = ["test", "--package", "qodercli", "--test", "cli", TEST, "--", "--nocapture"];
    let mut command = process::cargo(root, &arguments);
    command.env("QODER_CHAOS_FAULTS", faults).envs(seed.map(|seed| ("QODER_CHAOS_SEED", seed)));
    let status = command.status().context("cannot start cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
