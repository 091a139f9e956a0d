//! What MCP servers cost: a call over a pipe against the bare client that ours is built on, and a first model call with
//! a hundred servers configured that cannot be reached.

use anyhow::{Context, Result};
use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Map, Value, json};

use super::table::{Row, time};
use super::{Bench, example, measure};

/// Both.
pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = calls(bench)?;
    rows.extend(dead_servers(bench)?);
    Ok(rows)
}

fn calls(bench: &Bench) -> Result<Vec<Row>> {
    let text = example(bench, "qoder-mcp", "call_overhead")?;
    let found: Value = serde_json::from_str(text.trim()).context("the example's answer is not JSON")?;
    let number = |key: &str| {
        found.get(key).and_then(Value::as_f64).with_context(|| format!("the example says nothing of {key}"))
    };
    let (bare, ours) = (number("bareCallUs")?, number("ourCallUs")?);
    Ok(vec![
        Row::new("MCP: a call of a child process's tool and back", format!("{ours:.0} µs"), "–").against(
            ours,
            bare,
            "bare `rmcp` client",
        ),
    ])
}

/// Half of them are programs that do not exist, half are ports without a listener.
fn dead_servers(bench: &Bench) -> Result<Vec<Row>> {
    let servers: Map<String, Value> = (0..100)
        .map(|number| {
            let description = if number % 2 == 0 {
                json!({ "command": format!("no-such-server-{number}") })
            } else {
                json!({ "type": "http", "url": "http://127.0.0.1:1/mcp" })
            };
            (format!("dead-{number}"), description)
        })
        .collect();
    let config = bench.work.join("dead-servers.json");
    std::fs::write(&config, json!({ "mcpServers": servers }).to_string())?;
    let server = ScriptedServer::start(Script::list(vec![Reply::text("hello")]));
    let sandbox = Sandbox::new();
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..bench.few() {
        without.push(measure::run(sandbox.command_with(&bench.binary, &server).args(["-p", "hi"]))?);
        let mut command = sandbox.command_with(&bench.binary, &server);
        with.push(measure::run(command.args(["-p", "hi", "--mcp-config"]).arg(&config))?);
    }
    let (without, with) = (measure::median_cost(&without)?, measure::median_cost(&with)?);
    Ok(vec![Row::new("MCP: one prompt with 100 dead servers, wall", time(with.wall), "–").against(
        with.wall.as_secs_f64(),
        without.wall.as_secs_f64(),
        "without servers",
    )])
}
