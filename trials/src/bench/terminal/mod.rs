//! The interactive front in a pseudo-terminal: the first frame, keys, long streams, waiting, long sessions, pastes,
//! another size, and the end.

mod pty;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};

use super::measure::{self, median};
use super::table::{Row, size, time};
use super::{Bench, resume};
use pty::{Pty, WINDOW};

/// One delta of the long reply: 20,000 of them are 1 MB of Markdown with code.
const PIECE: &str = "- `item` with **words**\n```rust\nlet a = 1;\n```\n\n";
const DELTAS: usize = 20_000;
/// Nothing more is drawn when nothing was written for this long.
const QUIET: Duration = Duration::from_millis(150);
const LEAVE: &str = "\u{4}";
const DELETE_LINE: &str = "\u{15}";

/// All figures of the interactive front.
pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = first_frame(bench)?;
    rows.extend(keys(bench)?);
    rows.extend(stream(bench)?);
    rows.extend(waiting(bench)?);
    rows.extend(long_session(bench)?);
    rows.extend(paste_and_resize(bench)?);
    Ok(rows)
}

fn model(replies: Vec<Reply>) -> ScriptedServer {
    ScriptedServer::start(Script::list(replies).forget_bodies())
}

fn first_frame(bench: &Bench) -> Result<Vec<Row>> {
    let (sandbox, server) = (Sandbox::new(), model(Vec::new()));
    let (mut frames, mut times, mut peaks, mut ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.many() {
        let mut pty = Pty::start(&bench.binary, &sandbox, &server, &[])?;
        frames.push(pty.until_idle()?);
        times.push(pty.processor_time()?);
        peaks.push(pty.peak()?);
        pty.settle(Instant::now(), QUIET);
        let begun = pty.send(LEAVE)?;
        ends.push(pty.end(begun)?);
    }
    Ok(vec![
        Row::new("terminal: start to the first frame, wall", time(middle(frames)?), "at most 30 ms"),
        Row::new("the same, processor time", time(middle(times)?), "at most 20 ms"),
        Row::new("the same, peak memory", size(middle(peaks)?), "at most 30 MB"),
        Row::new("terminal: end, until the shell has it back", time(middle(ends)?), "at most 50 ms"),
    ])
}

/// Typing, when nothing happens and while a reply arrives.
fn keys(bench: &Bench) -> Result<Vec<Row>> {
    let strokes = if bench.quick { 40 } else { 200 };
    let sandbox = Sandbox::new();
    let server = model(Vec::new());
    let mut pty = Pty::start(&bench.binary, &sandbox, &server, &[])?;
    pty.until_idle()?;
    pty.settle(Instant::now(), QUIET);
    let (idle, bytes) = type_keys(&mut pty, strokes)?;
    drop(pty);

    let seconds = if bench.quick { 5 } else { 20 };
    let reply = Reply::Deltas { count: seconds * 1_000, text: "word ".to_owned() };
    let server = model(vec![Reply::PacedStream { events: 10, ms: 10, reply: Box::new(reply) }]);
    let mut pty = Pty::start(&bench.binary, &sandbox, &server, &[])?;
    pty.until_idle()?;
    let begun = pty.send("go\r")?;
    pty.until("the reply", begun, |screen| screen.contents().contains("word word"))?;
    let (busy, _) = type_keys(&mut pty, strokes)?;
    Ok(vec![
        Row::new("terminal: key to bytes, 95 of 100", time(late(idle)?), "at most 5 ms"),
        Row::new("the same while 1,000 deltas a second arrive", time(late(busy)?), "at most 10 ms"),
        Row::new("terminal: bytes for a key", middle(bytes)?.to_string(), "at most 40"),
    ])
}

/// Types letters one after another; answers with how long each took and how many bytes were written for it.
fn type_keys(pty: &mut Pty, strokes: usize) -> Result<(Vec<Duration>, Vec<usize>)> {
    let (mut times, mut bytes) = (Vec::new(), Vec::new());
    let mut typed = String::from("> ");
    for stroke in 0..strokes {
        if typed.len() > 60 {
            let begun = pty.send(DELETE_LINE)?;
            pty.until("an empty prompt", begun, |screen| prompt(screen).as_deref() == Some(">"))?;
            typed = String::from("> ");
        }
        typed.push(char::from(b'a' + u8::try_from(stroke % 26)?));
        let before = pty.written();
        let begun = pty.send(&typed[typed.len() - 1..])?;
        times.push(pty.until(&typed, begun, |screen| prompt(screen).as_deref() == Some(typed.as_str()))?);
        bytes.push(pty.written() - before);
        // No person types faster than this.
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok((times, bytes))
}

/// The row of the prompt.
fn prompt(screen: &vt100::Screen) -> Option<String> {
    let text = screen.contents();
    text.lines().rev().find(|row| row.starts_with('>')).map(|row| row.trim_end().to_owned())
}

/// A long reply with code, against the same in print mode.
fn stream(bench: &Bench) -> Result<Vec<Row>> {
    let reply = || Reply::Deltas { count: DELTAS, text: PIECE.to_owned() };
    let sandbox = Sandbox::new();
    let (mut times, mut written) = (Vec::new(), Vec::new());
    for _ in 0..bench.few() {
        let server = model(vec![reply()]);
        let mut pty = Pty::start(&bench.binary, &sandbox, &server, &[])?;
        pty.until_idle()?;
        let begun = pty.send("go\r")?;
        pty.until("the reply", begun, |screen| screen.contents().contains("let a"))?;
        pty.until_idle()?;
        pty.settle(Instant::now(), QUIET);
        times.push(pty.processor_time()?);
        written.push(pty.written());
    }
    let server = model((0..bench.few()).map(|_| reply()).collect());
    let plain = measure::repeat(bench.few(), || {
        let mut command = sandbox.command_with(&bench.binary, &server);
        command.args(["-p", "go"]);
        command
    })?;
    let (cpu, written) = (middle(times)?, middle(written)?);
    let reply = DELTAS * PIECE.len();
    let over = format!("{} over print mode", time(cpu.saturating_sub(plain.cpu)));
    Ok(vec![
        Row::new("terminal: 20,000 deltas, 1 MB of Markdown, processor time", over, "at most 0.6 s over")
            .against(cpu.as_secs_f64(), plain.cpu.as_secs_f64(), "print mode"),
        Row::new("the same, bytes written", size(written as u64), "at most 3 × the reply").against(
            written as f64,
            reply as f64,
            "the reply",
        ),
    ])
}

/// Nothing to do, and waiting for a model.
fn waiting(bench: &Bench) -> Result<Vec<Row>> {
    let sandbox = Sandbox::new();
    let server = model(Vec::new());
    let pty = Pty::start(&bench.binary, &sandbox, &server, &[])?;
    pty.until_idle()?;
    pty.settle(Instant::now(), Duration::from_secs(1));
    let seconds = if bench.quick { 5 } else { 30 };
    let (idle, idle_bytes) = over(&pty, seconds)?;
    drop(pty);

    let late = Reply::SlowFirstByte { ms: 60_000, reply: Box::new(Reply::text("late")) };
    let server = model(vec![late]);
    let mut pty = Pty::start(&bench.binary, &sandbox, &server, &[])?;
    pty.until_idle()?;
    let begun = pty.send("go\r")?;
    pty.until("the spinner", begun, |screen| screen.contents().contains("Esc stops"))?;
    let seconds_waiting = if bench.quick { 3 } else { 10 };
    let (busy, busy_bytes) = over(&pty, seconds_waiting)?;
    let share = busy.as_secs_f64() / seconds_waiting as f64 * 100.0;
    Ok(vec![
        Row::new(
            format!("terminal: {seconds} s with nothing to do"),
            format!("{idle_bytes} bytes, {}", time(idle)),
            "0 bytes, at most 5 ms",
        ),
        Row::new(
            "terminal: waiting for a model, each second",
            format!("{} bytes, {share:.2} % of a core", busy_bytes / seconds_waiting as usize),
            "at most 1 KiB, 1 %",
        ),
    ])
}

/// What the process costs and writes in some seconds.
fn over(pty: &Pty, seconds: u64) -> Result<(Duration, usize)> {
    let (cpu, written) = (pty.processor_time()?, pty.written());
    std::thread::sleep(Duration::from_secs(seconds));
    Ok((pty.processor_time()?.saturating_sub(cpu), pty.written() - written))
}

/// A resumed session of 5,000 entries, against the same in print mode.
fn long_session(bench: &Bench) -> Result<Vec<Row>> {
    let sandbox = resume::long_session(bench)?;
    let server = model(vec![Reply::text("hello"); bench.few()]);
    let (mut frames, mut peaks, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.few() {
        let pty = Pty::start(&bench.binary, &sandbox, &server, &["--resume", resume::SESSION])?;
        frames.push(pty.until_idle()?);
        pty.settle(Instant::now(), QUIET);
        peaks.push(pty.peak()?);
        rows.push(pty.scrolled() + usize::from(WINDOW.1));
    }
    let plain = measure::repeat(bench.few(), || {
        let mut command = sandbox.command_with(&bench.binary, &server);
        command.args(["--resume", resume::SESSION, "-p", "hi"]);
        command
    })?;
    let peak = middle(peaks)?;
    Ok(vec![
        Row::new("terminal: resume of 5,000 entries, first frame", time(middle(frames)?), "at most 80 ms"),
        Row::new("the same, rows printed", middle(rows)?.to_string(), "about 200"),
        Row::new("the same, peak memory", size(peak), "at most 1.5 × print mode").against(
            peak as f64,
            plain.peak as f64,
            "print mode",
        ),
    ])
}

fn paste_and_resize(bench: &Bench) -> Result<Vec<Row>> {
    let (sandbox, server) = (Sandbox::new(), model(vec![Reply::text("word ".repeat(2_000))]));
    let pasted = format!("\u{1b}[200~{}\u{1b}[201~", "a line of text to paste\n".repeat(43_690));
    let (mut pastes, mut sizes) = (Vec::new(), Vec::new());
    let mut pty = Pty::start(&bench.binary, &sandbox, &server, &[])?;
    pty.until_idle()?;
    let begun = pty.send("go\r")?;
    pty.until("the reply", begun, |screen| screen.contents().contains("word word"))?;
    pty.until_idle()?;
    for number in 1..=bench.few() {
        let begun = pty.send(&pasted)?;
        let token = format!("[Pasted text #{number},");
        pastes.push(pty.until(&token, begun, |screen| screen.contents().contains(&token))?);
        pty.send(DELETE_LINE)?;
        pty.settle(Instant::now(), QUIET);
        let begun = pty.resize(if number % 2 == 1 { (70, 24) } else { WINDOW })?;
        sizes.push(pty.settle(begun, QUIET));
    }
    Ok(vec![
        Row::new("terminal: paste of 1 MB, until its token is shown", time(middle(pastes)?), "at most 50 ms"),
        Row::new(
            "terminal: another size, until the screen is stable",
            time(middle(sizes)?),
            "at most 100 ms",
        ),
    ])
}

fn middle<T: Ord + Copy>(values: Vec<T>) -> Result<T> {
    median(values.into_iter()).context("nothing was measured")
}

/// What 95 of 100 do not exceed.
fn late(mut values: Vec<Duration>) -> Result<Duration> {
    values.sort_unstable();
    let at = (values.len() * 95).div_ceil(100).saturating_sub(1);
    values.get(at).copied().context("nothing was measured")
}
