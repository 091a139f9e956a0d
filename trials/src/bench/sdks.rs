//! What the SDKs add to a session: from a query to the first message, a call of the program's own tool and back, and
//! pieces of a reply. Each SDK measures itself with its own program, on the release build.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Bench;
use super::table::Row;
use xtask::{packages, process};

/// All three.
pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = rows("Python", &python(bench)?, "at most 30 ms", "at most 1 ms")?;
    rows.extend(self::rows("TypeScript", &typescript(bench)?, "–", "at most 1 ms")?);
    rows.extend(self::rows("Rust", &rust(bench)?, "–", "at most 0.05 ms")?);
    Ok(rows)
}

fn rows(name: &str, found: &Value, init: &str, call: &str) -> Result<Vec<Row>> {
    let number = |key: &str| {
        found.get(key).and_then(Value::as_f64).with_context(|| format!("{name} says nothing of {key}"))
    };
    let call_ms = match number("toolRoundTripMs") {
        Ok(milliseconds) => milliseconds,
        Err(_) => number("toolRoundTripUs")? / 1_000.0,
    };
    let pieces = number("partialMessagesPerSecond")?;
    Ok(vec![
        Row::new(format!("{name}: query to init"), format!("{:.1} ms", number("queryToInitMs")?), init),
        Row::new(format!("{name}: a call of the program's tool and back"), format!("{call_ms:.3} ms"), call),
        Row::new(format!("{name}: pieces of a reply a second"), format!("{pieces:.0}"), "at least 20,000"),
    ])
}

fn python(bench: &Bench) -> Result<Value> {
    let environment = packages::python(&bench.root, "python-release", &bench.binary)?;
    let mut command = environment.python(&[]);
    printed(command.arg(bench.root.join("sdks/python/benchmarks/overhead.py")), &bench.binary)
}

fn typescript(bench: &Bench) -> Result<Value> {
    let package = packages::typescript(&bench.root)?;
    for arguments in [
        &["install", "--omit=optional", "--no-audit", "--no-fund", "--loglevel=error"][..],
        &["run", "build"],
    ] {
        process::insist(Command::new("npm").args(arguments).current_dir(&package))?;
    }
    let mut command = Command::new("node");
    printed(command.arg("benchmarks/overhead.mjs").current_dir(&package), &bench.binary)
}

fn rust(bench: &Bench) -> Result<Value> {
    let arguments =
        ["run", "--release", "--quiet", "--locked", "-p", "qoder-agent-sdk", "--example", "overhead"];
    printed(&mut process::cargo(&bench.root, &arguments), &bench.binary)
}

fn printed(command: &mut Command, binary: &Path) -> Result<Value> {
    let output = command.env("QODERCLI_PATH", binary).output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("what the benchmark printed is not JSON")
}
