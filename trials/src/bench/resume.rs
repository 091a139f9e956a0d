//! Resuming a long session: one of about 5,000 entries and 20 MB is made by the program itself,
//! with a scripted model that reads many files in each round, and then resumed with one more
//! prompt.

use anyhow::{Context, Result};
use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use super::table::{Row, size as megabytes, time};
use super::turns::{run_loop, text_of};
use super::{Bench, measure};

pub(super) const SESSION: &str = "22222222-2222-4222-8222-222222222222";
/// Few rounds with many calls: the log grows by calls, and the requests stay few.
const ROUNDS: usize = 50;
const CALLS: usize = 98;
/// With its line numbers and its typed output a read takes about twice its size in the log.
const FILE_BYTES: usize = 1_900;

/// Makes the session in a sandbox of its own.
pub(super) fn long_session(bench: &Bench) -> Result<Sandbox> {
    let sandbox = Sandbox::new();
    for number in 0..ROUNDS * CALLS {
        sandbox.write(format!("files/{number}.txt"), text_of(FILE_BYTES, number));
    }
    let folder = sandbox.project().join("files");
    run_loop(bench, &sandbox, ROUNDS, &["--session-id", SESSION], move |round| {
        let call = |index: usize| {
            let file = folder.join(format!("{}.txt", round * CALLS + index));
            ("Read".to_owned(), json!({ "file_path": file }))
        };
        Reply::ToolCalls((0..CALLS).map(call).collect())
    })?;
    Ok(sandbox)
}

/// Makes the session and resumes it.
pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let sandbox = long_session(bench)?;
    let log = sandbox.session_files().pop().context("the session was not kept")?;
    let text = std::fs::read_to_string(&log)?;
    let entry =
        |line: &&str| line.starts_with("{\"type\":\"user\"") || line.starts_with("{\"type\":\"assistant\"");
    let entries = text.lines().filter(entry).count();

    let server = ScriptedServer::start(Script::list(vec![Reply::text("hello")]).forget_bodies());
    let fresh = Sandbox::new();
    let base = measure::repeat(bench.few(), || {
        let mut command = fresh.command_with(&bench.binary, &server);
        command.args(["-p", "hi"]);
        command
    })?;
    let resumed = measure::repeat(bench.few(), || {
        let mut command = sandbox.command_with(&bench.binary, &server);
        command.args(["--resume", SESSION, "-p", "hi"]);
        command
    })?;
    let bytes = text.len() as u64;
    let what = format!("resume of {entries} entries, {}", megabytes(bytes));
    Ok(vec![
        Row::new(format!("{what}, wall"), time(resumed.wall), "at most 300 ms").against(
            resumed.wall.as_secs_f64(),
            base.wall.as_secs_f64(),
            "a new session",
        ),
        Row::new(format!("{what}, processor time"), time(resumed.cpu), "–").against(
            resumed.cpu.as_secs_f64(),
            base.cpu.as_secs_f64(),
            "a new session",
        ),
        Row::new(format!("{what}, peak memory"), megabytes(resumed.peak), "at most 80 MB").against(
            resumed.peak as f64,
            bytes as f64,
            "the log",
        ),
    ])
}
