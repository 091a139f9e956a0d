//! Long streams: the processor time that one more delta costs, when it is only read and when it
//! is also printed as a message of its own. A run with a single delta is the base that is taken
//! off.

use anyhow::Result;
use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};

use super::table::{Row, size as megabytes, time};
use super::{Bench, measure};

const DELTAS: usize = 20_000;

/// Both ways.
pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let printing = ["--output-format", "stream-json", "--include-partial-messages", "--verbose"];
    let mut rows = Vec::new();
    for (what, target, flags) in [
        ("a delta read, processor time", "at most 5 µs", &[][..]),
        ("a delta read and printed, processor time", "at most 10 µs", &printing[..]),
    ] {
        let base = cost(bench, 1, flags)?;
        let long = cost(bench, DELTAS, flags)?;
        let each = long.cpu.saturating_sub(base.cpu) / u32::try_from(DELTAS)?;
        rows.push(Row::new(what, time(each), target));
        let what = format!("{DELTAS} deltas{}, peak memory", if flags.is_empty() { "" } else { " printed" });
        rows.push(Row::new(what, megabytes(long.peak), "–").against(
            long.peak as f64,
            base.peak as f64,
            "one delta",
        ));
    }
    Ok(rows)
}

fn cost(bench: &Bench, deltas: usize, flags: &[&str]) -> Result<measure::Cost> {
    let reply = Reply::Deltas { count: deltas, text: "token ".to_owned() };
    let server = ScriptedServer::start(Script::list(vec![reply]));
    let sandbox = Sandbox::new();
    measure::repeat(bench.few(), || {
        let mut command = sandbox.command_with(&bench.binary, &server);
        command.args(["-p", "hi"]).args(flags);
        command
    })
}
