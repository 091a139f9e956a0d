//! `qodercli serve`, on SQLite unless a row says otherwise, with a scripted model that answers at once: memory of an idle server and of sessions that wait,
//! sessions created a second, and the time from a message to the end of its turn. Each turn is followed on one stream, as
//! clients do it.

mod client;
mod fan_out;
mod floor;
mod waking;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use qoder_testkit::{PostgresServer, Reply, Script, ScriptedServer};
use serde_json::{Value, json};

use super::Bench;
use super::measure::median;
use super::table::{Row, size as megabytes, time};
use client::{Client, Served};

/// Clients that create sessions at the same time.
const CLIENTS: usize = 64;

/// A call that waits for the client, or one call when the message asks for one, or a text.
fn script() -> Script {
    Script::by(|request, _| {
        let messages = request["messages"].to_string();
        let asks = messages.matches("use a tool").count();
        let calls = messages.matches("\"tool_use\"").count();
        if messages.contains("wait for me") {
            return Reply::tool("wait", json!({}));
        }
        if asks > calls {
            return Reply::tool("Glob", json!({ "pattern": "*" }));
        }
        Reply::text("done")
    })
}

/// The body of a session that can be created again and again.
fn session_body(client: &mut Client) -> Result<Value> {
    let tools = json!([{ "type": "agent_toolset_20260401" }, { "type": "custom", "name": "wait", "description": "",
        "input_schema": { "type": "object" } }]);
    let agent = client.make("agents", &json!({ "name": "bench", "model": "auto", "tools": tools }))?;
    let environment = client.make("environments", &json!({ "name": "bench" }))?;
    Ok(json!({ "agent": agent, "environment_id": environment }))
}

/// The time from a message to the end of its turn, in one session. Each turn makes this many requests to the model.
fn turns(served: &Served, body: &Value, (text, requests): (&str, usize), count: usize) -> Result<Duration> {
    let before = served.model.requests().len();
    let mut client = served.client()?;
    let session = client.make("sessions", body)?;
    let mut stream = served.stream(&session, None)?;
    let message = json!({ "events": [{ "type": "user.message", "content": text }] });
    let mut took = Vec::new();
    // The first turn opens the session and is not counted.
    for number in 0..=count {
        let begun = Instant::now();
        client.post(&format!("sessions/{session}/events"), &message)?;
        stream.until("\"stop_reason\":{\"type\":\"end_turn\"}")?;
        if number > 0 {
            took.push(begun.elapsed());
        }
    }
    let made = served.model.requests().len() - before;
    if made != requests * (count + 1) {
        bail!("{} turns made {made} requests", count + 1);
    }
    median(took.into_iter()).context("nothing was measured")
}

/// How often a second clients do something at the same time, when each does it so many times.
fn made_per_second(
    connect: &(dyn Fn() -> Result<Client> + Sync),
    each: usize,
    make: impl Fn(&mut Client) -> Result<()> + Sync,
) -> Result<f64> {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            let mut client = connect()?;
            (0..each).try_for_each(|_| make(&mut client))
        };
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a client panicked")))
        })
    })?;
    Ok((CLIENTS * each) as f64 / begun.elapsed().as_secs_f64())
}

/// Memory that sessions cost whose calls wait for the client, once nothing of them is open.
fn parked(bench: &Bench, count: usize) -> Result<u64> {
    let served = Served::start(bench, ScriptedServer::start(script().forget_bodies()))?;
    let mut client = served.client()?;
    let mut body = session_body(&mut client)?;
    let before = served.memory()?;
    body["initial_events"] = json!([{ "type": "user.message", "content": "wait for me" }]);
    for _ in 0..count {
        client.make("sessions", &body)?;
    }
    client.until_metrics(&[
        format!("qoder_sessions{{status=\"pending\"}} {count}"),
        "qoder_seats_warm 0".to_owned(),
    ])?;
    Ok(served.memory()?.saturating_sub(before))
}

/// Everything about the server.
pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let each = if bench.quick { 20 } else { 100 };
    let floor = floor::run(bench, each)?;
    let served = Served::start(bench, ScriptedServer::start(script().forget_bodies()))?;
    let mut client = served.client()?;
    let body = session_body(&mut client)?;
    let idle = served.memory()?;
    let create = |client: &mut Client| client.make("sessions", &body).map(drop);
    let created = made_per_second(&|| served.client(), each, create)?;
    let text = turns(&served, &body, ("hello", 1), bench.many())?;
    let tool = turns(&served, &body, ("use a tool", 2), bench.many())?;
    drop(served);
    let (created_there, text_there) = on_postgres(bench, each)?;
    let many = if bench.quick { 100 } else { 1_000 };
    let waiting = parked(bench, many)?;
    let request = floor.request.as_secs_f64();
    let mut rows = vec![
        Row::new("an idle server, memory", megabytes(idle), "at most 30 MiB"),
        Row::new(
            format!("rows a second through bare axum and SQLite, {CLIENTS} clients"),
            format!("{:.0}", floor.rows),
            "",
        ),
        Row::new("a request for one row through bare axum and SQLite", time(floor.request), ""),
        Row::new(
            format!("sessions created a second, {CLIENTS} clients, SQLite"),
            format!("{created:.0}"),
            "at least 2,000",
        )
        .against(created, floor.rows, "rows a second"),
        Row::new(
            format!("sessions created a second, {CLIENTS} clients, PostgreSQL"),
            format!("{created_there:.0}"),
            "at least 1,500",
        )
        .against(created_there, created, "on SQLite"),
        Row::new(
            "a text turn on the server with PostgreSQL, from message to idle",
            time(text_there),
            "at most 8 ms and 3 syncs",
        )
        .against(text_there.as_secs_f64(), text.as_secs_f64(), "on SQLite"),
        Row::new("a text turn on the server, from message to idle", time(text), "at most 8 ms and 3 syncs")
            .against(text.as_secs_f64(), request, "a request for one row"),
        Row::new(
            "added by one tool call on the server",
            time(tool.saturating_sub(text)),
            "at most 4 ms and 2 syncs",
        ),
        Row::new(
            format!("{many} sessions that wait, memory above idle"),
            megabytes(waiting),
            "at most 5 MiB",
        ),
    ];
    rows.extend(continuing(bench, many)?);
    Ok(rows)
}

/// Sessions created a second, and the time of a text turn, with a PostgreSQL server whose commits are synced.
fn on_postgres(bench: &Bench, each: usize) -> Result<(f64, Duration)> {
    let model = ScriptedServer::start(script().forget_bodies());
    let served = Served::start_on(bench, model, Some(PostgresServer::start_durable()))?;
    let body = session_body(&mut served.client()?)?;
    let create = |client: &mut Client| client.make("sessions", &body).map(drop);
    let created = made_per_second(&|| served.client(), each, create)?;
    Ok((created, turns(&served, &body, ("hello", 1), bench.many())?))
}

/// Sessions that continue, and those who watch.
fn continuing(bench: &Bench, many: usize) -> Result<Vec<Row>> {
    let woken = waking::cold(bench)?;
    let arrived = fan_out::run(bench)?;
    let continued = waking::after_a_kill(bench, many)?;
    Ok(vec![
        Row::new(
            format!("from an answer to the result of its call, closed session of {} events", woken.events),
            format!("{} (slowest: {})", time(woken.median), time(woken.slowest)),
            "at most 15 ms (slowest: 40 ms)",
        ),
        Row::new(
            format!(
                "from a message to {} subscribers at {:.0} events a second, 99 of 100",
                arrived.subscribers, arrived.events
            ),
            time(arrived.late),
            "at most 50 ms",
        ),
        Row::new("an event to one subscriber, processor time", time(arrived.frame), "at most 5 µs"),
        Row::new(
            format!(
                "from the start after kill -9 until {} turns have ended, {many} sessions wait",
                waking::RUNNING
            ),
            time(continued),
            "at most 2 s",
        ),
    ])
}
