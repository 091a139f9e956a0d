//! The same with a family: a session with two parallel agents, a tool of an MCP server, a background task and a call that
//! waits for a person, killed at random moments and resumed. No call runs twice, no approval is lost, no record is lost,
//! every child continues as itself and its end is reported, and the figures of the tree add up in the end.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::crash::{GUARD, Random, TASK, check_tasks, number, run_until};

const ROUNDS: usize = 6;
const PROMPT: &str = "lead the family";
/// The exit code of a run that waits for a person.
const WAITING: i32 = 54;

/// What a conversation is about, by its first message.
fn subject(request: &Value) -> String {
    match &request["messages"][0]["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    }
}

fn effect(name: &str) -> (String, Value) {
    ("Bash".to_owned(), json!({ "command": format!("echo {name} >> effects.txt") }))
}

fn main_reply(replied: usize) -> Reply {
    let round = replied / 2;
    if round == ROUNDS {
        return Reply::text("all done");
    }
    let agent = |side: &str| ("Agent".to_owned(), json!({ "prompt": format!("CHILD {side}-{round}") }));
    let note = ("mcp__kit__note".to_owned(), json!({ "line": format!("note-{replied}") }));
    let task = ("Bash".to_owned(), json!({ "command": TASK, "run_in_background": true }));
    let write = json!({ "file_path": format!("approved-{round}.txt"), "content": "approved" });
    Reply::ToolCalls(match (replied % 2, round % 3) {
        (0, 0) => vec![task, agent("left"), agent("right")],
        (0, _) => vec![agent("left"), agent("right"), note],
        (_, 1) => vec![("Write".to_owned(), write)],
        (_, _) => vec![note, effect(&format!("main-{round}"))],
    })
}

fn child_reply(name: &str, replied: usize) -> Reply {
    match replied {
        0 => Reply::ToolCalls(vec![effect(&format!("{name}-a"))]),
        1 => Reply::ToolCalls(vec![
            ("Read".to_owned(), json!({ "file_path": "readme.txt" })),
            effect(&format!("{name}-b")),
        ]),
        _ => Reply::text(format!("{name} is done")),
    }
}

fn server() -> ScriptedServer {
    ScriptedServer::start(Script::by(|request, _| {
        let replied = qoder_testkit::assistant_count(request);
        match subject(request).strip_prefix("CHILD ") {
            Some(name) => child_reply(name, replied),
            None => main_reply(replied),
        }
    }))
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("readme.txt", "a line\n".repeat(40));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/crash/scripts/notes.py");
    let settings = json!({
        "permissions": { "unattended": "park", "trustDirectories": [sandbox.project().to_str().unwrap()] },
        "mcpServers": { "kit": { "command": "python3", "args": [script] } },
    });
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    sandbox
}

fn command(sandbox: &Sandbox, server: &ScriptedServer, arguments: &[&str]) -> Command {
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_qodercli"));
    command
        .env("ANTHROPIC_BASE_URL", server.base_url())
        .env("ANTHROPIC_API_KEY", "test-key")
        .args(["-p", "--output-format", "json", "--allowed-tools", "Bash,Read,Agent,mcp__kit__note"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[test]
fn a_family_killed_at_random_moments_loses_and_repeats_nothing() {
    let seed = number("QODER_CRASH_SEED", 0x9e37_79b9_7f4a_7c15);
    let wanted = number("QODER_CRASH_KILLS", 25);
    let mut random = Random(seed | 1);
    let mut kills = 0;
    let mut sessions = 0;
    while kills < wanted {
        sessions += 1;
        kills += one_family(&mut random, wanted - kills, seed);
    }
    println!("{kills} kills over {sessions} sessions, seed {seed}");
}

fn one_family(random: &mut Random, most_kills: u64, seed: u64) -> u64 {
    let (sandbox, server) = (sandbox(), server());
    let id = format!("00000000-0000-4000-8000-{:012x}", random.below(1 << 40));
    let (mut kills, mut approvals) = (0, 0);
    let started = Instant::now();
    let output = loop {
        assert!(started.elapsed() < GUARD, "no progress; seed {seed}");
        let admitted = lines(&sandbox.session_files()).any(|line| line["origin"] == "prompt");
        let arguments: Vec<&str> =
            if admitted { vec!["--resume", &id] } else { vec!["--session-id", &id, PROMPT] };
        let mut child = command(&sandbox, &server, &arguments).spawn().unwrap();
        let moment = if kills < most_kills { Duration::from_millis(100 + random.below(900)) } else { GUARD };
        if !run_until(&mut child, moment) {
            kills += 1;
            continue;
        }
        let output = child.wait_with_output().unwrap();
        if output.status.code() != Some(WAITING) {
            break output;
        }
        approvals += approve(&sandbox, &id);
    };
    assert!(output.status.success(), "seed {seed}: {}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["result"], "all done", "seed {seed}");
    assert_eq!(approvals, 2, "each question is put once and its answer is kept; seed {seed}");
    let main = log(&sandbox.session_files()[0]);
    check_calls(&sandbox, &main, seed);
    check_tasks(&sandbox, seed);
    check_children(&sandbox, &main, seed);
    kills
}

/// Answers what waits; returns how many answers there were.
fn approve(sandbox: &Sandbox, id: &str) -> usize {
    let run = |arguments: &[&str]| {
        let output = sandbox
            .command(env!("CARGO_BIN_EXE_qodercli"))
            .arg("permissions")
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let rows: Vec<Value> = serde_json::from_slice(&run(&["pending", id, "--json"])).unwrap();
    for row in &rows {
        run(&["answer", id, row["toolUseId"].as_str().unwrap(), "allow"]);
    }
    rows.len()
}

/// The complete lines of logs; a killed process may have left half a line.
fn lines(logs: &[PathBuf]) -> impl Iterator<Item = Value> {
    logs.iter().flat_map(|log| {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<Value>>()
    })
}

fn log(path: &PathBuf) -> Vec<Value> {
    let lines: Vec<Value> = lines(std::slice::from_ref(path)).collect();
    let ours = lines.iter().filter_map(|line| line["seq"].as_u64());
    assert!(ours.eq(1..=lines.len() as u64), "no record is lost: {}", path.display());
    lines
}

/// The outcome of every call in a log, each of which has exactly one; with the call.
fn outcomes(log: &[Value], seed: u64) -> Vec<(Value, String)> {
    let mut outcomes: HashMap<String, Vec<String>> = HashMap::new();
    for line in log.iter().filter(|line| line["origin"] == "tool_result") {
        let call = line["message"]["content"][0]["tool_use_id"].as_str().unwrap().to_owned();
        outcomes.entry(call).or_default().push(line["outcome"].as_str().unwrap().to_owned());
    }
    let replies = log.iter().filter(|line| line["type"] == "assistant");
    let blocks = replies.flat_map(|line| line["message"]["content"].as_array().unwrap().clone());
    let calls = blocks.filter(|block| block["type"] == "tool_use");
    let paired = calls.map(|call| {
        let found = outcomes.remove(call["id"].as_str().unwrap()).unwrap_or_default();
        assert_eq!(found.len(), 1, "one result a call: {call}; seed {seed}");
        (call, found[0].clone())
    });
    paired.collect()
}

/// What results say about effects is true, in every log of the family.
fn check_calls(sandbox: &Sandbox, main: &[Value], seed: u64) {
    let file = |name: &str| std::fs::read_to_string(sandbox.project().join(name)).unwrap_or_default();
    let (effects, notes) = (file("effects.txt"), file("notes.txt"));
    let mut all = outcomes(main, seed);
    for (path, _) in children(sandbox) {
        all.extend(outcomes(&log(&path), seed));
    }
    for (call, outcome) in all {
        let (written, wanted) = match call["name"].as_str().unwrap() {
            "Agent" | "Read" => {
                assert_eq!(outcome, "completed", "it continues, or is repeated: {call}; seed {seed}");
                continue;
            }
            "Write" => (file(call["input"]["file_path"].as_str().unwrap()), "approved".to_owned()),
            "mcp__kit__note" => (notes.clone(), call["input"]["line"].as_str().unwrap().to_owned()),
            _ if call["input"]["command"] == TASK => continue,
            _ => {
                let command = call["input"]["command"].as_str().unwrap();
                (effects.clone(), command.split_whitespace().nth(1).unwrap().to_owned())
            }
        };
        let times = written.lines().filter(|line| **line == wanted).count();
        match outcome.as_str() {
            "completed" => assert_eq!(times, 1, "{wanted} completed; seed {seed}"),
            "unknown" => assert!(times <= 1, "{wanted} happened {times} times; seed {seed}"),
            other => panic!("{wanted} has the outcome {other}; seed {seed}"),
        }
    }
}

/// The logs of agents, with their sidecars.
fn children(sandbox: &Sandbox) -> Vec<(PathBuf, Value)> {
    let folder = sandbox.session_files()[0].with_extension("").join("subagents");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let logs = paths.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    logs.map(|path| {
        let sidecar = std::fs::read_to_string(path.with_extension("meta.json")).unwrap();
        (path, serde_json::from_str(&sidecar).unwrap())
    })
    .collect()
}

/// Every call has one child, which was asked once and ended once; its end and its account are in the parent's log.
fn check_children(sandbox: &Sandbox, main: &[Value], seed: u64) {
    let children = children(sandbox);
    assert_eq!(children.len(), 2 * ROUNDS, "no child was started twice; seed {seed}");
    let ends: Vec<&Value> =
        main.iter().filter(|line| line["type"] == "task-end" && line["account"].is_object()).collect();
    assert_eq!(ends.len(), children.len(), "every child's end is reported once; seed {seed}");
    let tokens = |log: &[Value]| -> u64 {
        let replies = log.iter().filter(|line| line["type"] == "assistant");
        replies.map(|line| line["message"]["usage"]["output_tokens"].as_u64().unwrap()).sum()
    };
    let mut total = tokens(main);
    for (path, sidecar) in &children {
        let log = log(path);
        let prompts = log.iter().filter(|line| line["origin"] == "prompt").count();
        let turns = log.iter().filter(|line| line["type"] == "turn-end").count();
        assert_eq!((prompts, turns), (1, 1), "{}; seed {seed}", path.display());
        let end = ends.iter().find(|end| end["account"]["tool_use_id"] == sidecar["toolUseId"]).unwrap();
        assert_eq!(
            (&end["status"], &end["account"]["num_turns"]),
            (&json!("completed"), &json!(3)),
            "seed {seed}"
        );
        assert_eq!(end["account"]["usage"]["output_tokens"], tokens(&log), "seed {seed}");
        total += tokens(&log);
    }
    let last = main.iter().rfind(|line| line["type"] == "turn-end").unwrap();
    let models = last["modelUsage"].as_object().unwrap().values();
    let sum: u64 = models.map(|model| model["outputTokens"].as_u64().unwrap()).sum();
    assert_eq!(sum, total, "the figures of the tree add up; seed {seed}");
}
