//! The smallest things the program does, beside the smallest program there is: how large it is,
//! how long `--version` takes against an empty program, and what one prompt with one answer
//! costs.

use std::process::Command;

use anyhow::{Context, Result, bail};
use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};

use super::table::{Row, size as megabytes, time};
use super::{Bench, measure};

/// The size of the binary.
pub(super) fn size(bench: &Bench) -> Result<Vec<Row>> {
    let bytes = std::fs::metadata(&bench.binary).context("the binary is missing")?.len();
    Ok(vec![Row::new("binary size", megabytes(bytes), "at most 15 MB")])
}

/// `--version` against a program that prints one line.
pub(super) fn version(bench: &Bench) -> Result<Vec<Row>> {
    let source = bench.work.join("hello.rs");
    let hello = bench.work.join("hello");
    std::fs::write(&source, "fn main() {\n    println!(\"hello\");\n}\n")?;
    let status = Command::new("rustc").arg("-O").arg("-o").arg(&hello).arg(&source).status()?;
    if !status.success() {
        bail!("rustc failed on an empty program");
    }
    let sandbox = Sandbox::new();
    let mut floor = Vec::new();
    let mut ours = Vec::new();
    // Taken in turns, so that a change of the machine's mood meets both alike.
    for _ in 0..bench.many() {
        floor.push(measure::run(&mut Command::new(&hello))?);
        ours.push(measure::run(sandbox.command(&bench.binary).arg("--version"))?);
    }
    let (floor, ours) = (measure::median_cost(&floor)?, measure::median_cost(&ours)?);
    Ok(vec![
        Row::new("`--version`, wall", time(ours.wall), "–").against(
            ours.wall.as_secs_f64(),
            floor.wall.as_secs_f64(),
            "empty program",
        ),
        Row::new("`--version`, processor time", time(ours.cpu), "at most 3 ms").against(
            ours.cpu.as_secs_f64(),
            floor.cpu.as_secs_f64(),
            "empty program",
        ),
        Row::new("`--version`, peak memory", megabytes(ours.peak), "–").against(
            ours.peak as f64,
            floor.peak as f64,
            "empty program",
        ),
    ])
}

/// One prompt, one short answer, the session kept.
pub(super) fn one_shot(bench: &Bench) -> Result<Vec<Row>> {
    let server = ScriptedServer::start(Script::list(vec![Reply::text("hello")]));
    let sandbox = Sandbox::new();
    let mut version = Vec::new();
    let mut ours = Vec::new();
    for _ in 0..bench.many() {
        version.push(measure::run(sandbox.command(&bench.binary).arg("--version"))?);
        ours.push(measure::run(sandbox.command_with(&bench.binary, &server).args(["-p", "hi"]))?);
    }
    if server.requests().len() != ours.len() {
        bail!("{} runs made {} requests", ours.len(), server.requests().len());
    }
    let (version, ours) = (measure::median_cost(&version)?, measure::median_cost(&ours)?);
    Ok(vec![
        Row::new("one prompt, one answer, wall", time(ours.wall), "at most 20 ms").against(
            ours.wall.as_secs_f64(),
            version.wall.as_secs_f64(),
            "`--version`",
        ),
        Row::new("one prompt, one answer, processor time", time(ours.cpu), "at most 10 ms").against(
            ours.cpu.as_secs_f64(),
            version.cpu.as_secs_f64(),
            "`--version`",
        ),
        Row::new("one prompt, one answer, peak memory", megabytes(ours.peak), "at most 15 MB").against(
            ours.peak as f64,
            version.peak as f64,
            "`--version`",
        ),
    ])
}
