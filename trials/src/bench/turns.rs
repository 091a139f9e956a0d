//! Loops of tool calls: what one more round costs and whether it costs more in a long conversation. Times are taken at
//! the endpoint, from the last byte of an answer to the complete next request, so that they hold everything the program
//! does in between: reading the reply, deciding, running the tool, keeping the records, making the request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use super::measure::{Cost, median};
use super::table::{Row, size as megabytes, time};
use super::{Bench, measure};

/// Rules and no mode: a mode that loosens has no effect in a folder that is not trusted.
pub(super) const ALLOWED: &str = "Read,Grep,Glob,Bash";

/// A loop that was run.
pub(super) struct Loop {
    pub(super) cost: Cost,
    /// The time between an answer and the next request, for each round.
    pub(super) rounds: Vec<Duration>,
}

/// Runs the program in `sandbox` with a model that makes `call(n)` in round n and ends after `rounds` rounds.
pub(super) fn run_loop(
    bench: &Bench,
    sandbox: &Sandbox,
    rounds: usize,
    extra: &[&str],
    call: impl Fn(usize) -> Reply + Send + Sync + 'static,
) -> Result<Loop> {
    let errors = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&errors);
    let script = Script::by(move |request, number| {
        if last_result_failed(request) {
            seen.fetch_add(1, Ordering::Relaxed);
        }
        if number < rounds { call(number) } else { Reply::text("done") }
    });
    let server = ScriptedServer::start(script.forget_bodies());
    let mut command = sandbox.command_with(&bench.binary, &server);
    command.args(["-p", "go", "--allowed-tools", ALLOWED]).args(extra);
    let cost = measure::run(&mut command)?;
    let requests = server.requests();
    if requests.len() != rounds + 1 {
        bail!("{rounds} rounds made {} requests", requests.len());
    }
    let failed = errors.load(Ordering::Relaxed);
    if failed > 0 {
        bail!("{failed} of {rounds} rounds had a failed call");
    }
    let between = requests.windows(2).map(|pair| pair[1].at.saturating_duration_since(pair[0].answered));
    Ok(Loop { cost, rounds: between.collect() })
}

fn last_result_failed(request: &Value) -> bool {
    let last = request["messages"].as_array().and_then(|messages| messages.last());
    let blocks = last.and_then(|message| message["content"].as_array());
    blocks.is_some_and(|blocks| blocks.iter().any(|block| block["is_error"] == true))
}

/// A text file of about `bytes` bytes.
pub(super) fn text_of(bytes: usize, seed: usize) -> String {
    let mut text = String::with_capacity(bytes + 64);
    let mut line = 0;
    while text.len() < bytes {
        text.push_str(&format!("file {seed} line {line}: the quick brown fox jumps over it\n"));
        line += 1;
    }
    text
}

/// A loop of reads, each of a file of its own with about 2.5 KB.
fn reads(bench: &Bench, rounds: usize) -> Result<Loop> {
    let sandbox = Sandbox::new();
    for number in 0..rounds {
        sandbox.write(format!("files/{number}.txt"), text_of(2_300, number));
    }
    let folder = sandbox.project().join("files");
    run_loop(bench, &sandbox, rounds, &[], move |number| {
        Reply::tool("Read", json!({ "file_path": folder.join(format!("{number}.txt")) }))
    })
}

/// The median of `count` rounds that end with round `last`.
fn around(rounds: &[Duration], last: usize, count: usize) -> Result<Duration> {
    let from = last.saturating_sub(count);
    median(rounds.get(from..last).unwrap_or_default().iter().copied()).context("too few rounds")
}

/// All loops.
pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut peaks = Vec::new();
    for rounds in [1, 20, 100] {
        let run = reads(bench, rounds)?;
        let what = format!("{rounds} reads, wall");
        rows.push(Row::note(what, time(run.cost.wall)));
        peaks.push((rounds, run.cost.peak));
    }
    let long = reads(bench, 400)?;
    rows.push(Row::note("400 reads, wall", time(long.cost.wall)));
    let early = around(&long.rounds, 24, 8)?;
    let late = around(&long.rounds, 400, 20)?;
    rows.push(Row::new("a read at round 20", time(early), "at most 1 ms"));
    rows.push(Row::new("a read at round 400", time(late), "at most 4 ms more than round 20").against(
        late.as_secs_f64(),
        early.as_secs_f64(),
        "round 20",
    ));
    let hundred = peaks.iter().find(|(rounds, _)| *rounds == 100).map_or(0, |(_, peak)| *peak);
    rows.push(Row::new("100 reads, peak memory", megabytes(hundred), "at most 20 MB"));
    rows.push(Row::new("400 reads, peak memory", megabytes(long.cost.peak), "at most 25 MB").against(
        long.cost.peak as f64,
        hundred as f64,
        "100 reads",
    ));
    let repetitions = if bench.quick { 20 } else { 60 };
    let shell = run_loop(bench, &Sandbox::new(), repetitions, &[], |_| {
        Reply::tool("Bash", json!({ "command": "true", "description": "does nothing" }))
    })?;
    let shell = around(&shell.rounds, repetitions, repetitions)?;
    rows.push(Row::new("a shell command (`true`)", time(shell), "at most 3 ms").against(
        shell.as_secs_f64(),
        early.as_secs_f64(),
        "a read",
    ));
    let sandbox = Sandbox::new();
    for number in 0..128 {
        sandbox.write(format!("tree/{}/{number}.txt", number % 8), text_of(2_000, number));
    }
    let grep = run_loop(bench, &sandbox, repetitions, &[], |_| {
        Reply::tool("Grep", json!({ "pattern": "line 7: the quick" }))
    })?;
    let grep = around(&grep.rounds, repetitions, repetitions)?;
    rows.push(Row::new("a search in 128 files", time(grep), "at most 3 ms").against(
        grep.as_secs_f64(),
        early.as_secs_f64(),
        "a read",
    ));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_call_is_noticed() {
        let failed = json!({ "messages": [{ "content": [{ "type": "tool_result", "is_error": true }] }] });
        let fine = json!({ "messages": [{ "content": [{ "type": "tool_result" }] }] });
        assert!(last_result_failed(&failed));
        assert!(!last_result_failed(&fine) && !last_result_failed(&Value::Null));
    }

    #[test]
    fn rounds_are_taken_from_the_end() {
        let rounds: Vec<Duration> = (1..=10).map(Duration::from_millis).collect();
        assert_eq!(around(&rounds, 10, 3).unwrap(), Duration::from_millis(9));
        assert!(around(&rounds, 11, 3).is_err());
    }
}
