//! How soon a session continues: after the answer to a call of a session that nothing holds in memory, and after a server
//! was killed with sessions that run and sessions that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use qoder_testkit::{Reply, Script, ScriptedServer};
use serde_json::{Value, json};

use super::super::Bench;
use super::super::measure::median;
use super::client::{Client, Served};

/// The sessions that were running when the server was killed.
pub(super) const RUNNING: usize = 100;
/// The turns of a session before the one that waits.
const TURNS: usize = 12;

/// From an answer to the result of the call it allows.
pub(super) struct Woken {
    pub(super) median: Duration,
    pub(super) slowest: Duration,
    /// The events of a session.
    pub(super) events: usize,
}

fn body(client: &mut Client) -> Result<Value> {
    let tools = json!([{ "type": "agent_toolset_20260401", "configs": [
        { "name": "Grep", "permission_policy": { "type": "always_ask" } }] }]);
    let agent = client.make("agents", &json!({ "name": "waking", "model": "auto", "tools": tools }))?;
    let environment = client.make("environments", &json!({ "name": "waking" }))?;
    Ok(json!({ "agent": agent, "environment_id": environment }))
}

fn message(text: &str) -> Value {
    json!({ "events": [{ "type": "user.message", "content": text }] })
}

/// Answers sessions that are closed, one after another.
pub(super) fn cold(bench: &Bench) -> Result<Woken> {
    let model = ScriptedServer::start(Script::by(|request, _| {
        let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let last = messages.last().map(Value::to_string).unwrap_or_default();
        if last.contains("look for it") {
            return Reply::tool("Grep", json!({ "pattern": "nothing" }));
        }
        if last.contains("look around") {
            return Reply::tool("Glob", json!({ "pattern": "*" }));
        }
        Reply::text("done")
    }));
    let served = Served::start(bench, model)?;
    let mut client = served.client()?;
    let session = body(&mut client)?;
    let count = if bench.quick { 3 } else { 20 };
    let mut sessions = Vec::new();
    for _ in 0..count {
        let id = client.make("sessions", &session)?;
        let mut stream = served.stream(&id, None)?;
        for _ in 0..TURNS {
            client.post(&format!("sessions/{id}/events"), &message("look around"))?;
            stream.until("\"stop_reason\":{\"type\":\"end_turn\"}")?;
        }
        client.post(&format!("sessions/{id}/events"), &message("look for it"))?;
        let asked = stream.until("\"evaluated_permission\":\"ask\"")?;
        let call = asked.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next());
        sessions.push((id, call.context("a call without an ID")?.to_owned()));
    }
    client.until_metrics(&["qoder_seats_warm 0".to_owned()])?;
    let mut took = Vec::new();
    for (id, call) in &sessions {
        let mut stream = served.stream(id, Some(call))?;
        let answer = json!({ "events": [{ "type": "user.tool_confirmation", "tool_use_id": call, "result": "allow" }] });
        let begun = Instant::now();
        client.post(&format!("sessions/{id}/events"), &answer)?;
        stream.until("\"type\":\"agent.tool_result\"")?;
        took.push(begun.elapsed());
    }
    let first = sessions.first().context("no session")?;
    let events = client.get_text(&format!("/v1/sessions/{}/events?limit=500", first.0))?;
    let slowest = took.iter().max().copied().unwrap_or_default();
    let events = events.matches("\"processed_at\"").count();
    Ok(Woken { median: median(took.into_iter()).context("nothing was measured")?, slowest, events })
}

/// From the start of a server to the end of every turn that the killed one was running.
pub(super) fn after_a_kill(bench: &Bench, parked: usize) -> Result<Duration> {
    let slow = Arc::new(AtomicBool::new(true));
    let held = Arc::clone(&slow);
    let model = ScriptedServer::start(Script::by(move |request, _| {
        let messages = request["messages"].to_string();
        if messages.contains("look for it") {
            return Reply::tool("Grep", json!({ "pattern": "nothing" }));
        }
        let reply = Reply::text("done");
        if held.load(Ordering::Relaxed) {
            return Reply::SlowFirstByte { ms: 20_000, reply: Box::new(reply) };
        }
        reply
    }));
    let mut served = Served::start(bench, model)?;
    let mut client = served.client()?;
    let session = body(&mut client)?;
    let begin = |text: &str| {
        let mut session = session.clone();
        session["initial_events"] = json!([{ "type": "user.message", "content": text }]);
        session
    };
    for _ in 0..parked {
        client.make("sessions", &begin("look for it"))?;
    }
    client.until_metrics(&[format!("qoder_sessions{{status=\"pending\"}} {parked}")])?;
    let before = served.model.requests().len();
    for _ in 0..RUNNING {
        client.make("sessions", &begin("hello"))?;
    }
    served.until_requests(before + RUNNING)?;
    slow.store(false, Ordering::Relaxed);
    let begun = Instant::now();
    served.kill_and_restart(bench)?;
    let mut client = served.client()?;
    client.until_metrics(&[format!("qoder_sessions{{status=\"idle\"}} {}", parked + RUNNING)])?;
    let took = begun.elapsed();
    ensure!(served.model.requests().len() >= before + 2 * RUNNING, "not every turn was continued");
    Ok(took)
}
