//! `kill -9` at random moments of a long session, over real processes: no input is lost, no effect happens twice, every
//! call has a truthful outcome, every background task ends once and leaves no process behind, and every request is a
//! byte extension of the one before. The number of kills is
//! QODER_CRASH_KILLS (25 without it); QODER_CRASH_SEED repeats a run.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed unwrap fails the test")]

#[cfg(test)]
mod agents;
#[cfg(test)]
mod arrivals;
#[cfg(test)]
mod every_append;

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

const TURNS: usize = 100;
/// A task that outlives every turn; it leaves its number behind.
const TASK: &str = "sleep 300 & echo $! >> tasks.txt; wait";
/// A run that takes longer hangs.
const GUARD: Duration = Duration::from_secs(120);

/// Small, seeded and good enough to choose moments.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Every third turn appends a line to `effects.txt`, the others read; some calls come in pairs, and some start a task.
fn script() -> Script {
    let mut replies: Vec<Reply> = (0..TURNS)
        .map(|turn| {
            let read = (
                "Read".to_owned(),
                json!({"file_path": format!("notes-{}.txt", turn % 7), "limit": turn + 1}),
            );
            let effect =
                ("Bash".to_owned(), json!({"command": format!("echo effect-{turn} >> effects.txt")}));
            let task = ("Bash".to_owned(), json!({"command": TASK, "run_in_background": true}));
            Reply::ToolCalls(match turn % 3 {
                0 if turn % 12 == 0 => vec![task, effect],
                0 => vec![effect],
                1 => vec![
                    read.clone(),
                    ("Read".to_owned(), json!({"file_path": "notes-0.txt", "offset": turn})),
                ],
                _ => vec![read, effect],
            })
        })
        .collect();
    replies.push(Reply::Text("all done".to_owned()));
    Script::by_assistant_count(replies)
}

fn command(sandbox: &Sandbox, server: &ScriptedServer, arguments: &[&str]) -> Command {
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_qodercli"));
    command
        .env("ANTHROPIC_BASE_URL", server.base_url())
        .env("ANTHROPIC_API_KEY", "test-key")
        .args(["-p", "--output-format", "json", "--allowed-tools", "Bash,Read"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Waits until the process ends or `moment` has passed, then kills it. True when it ended by itself.
fn run_until(child: &mut Child, moment: Duration) -> bool {
    let start = Instant::now();
    while start.elapsed() < moment {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

#[test]
fn a_session_killed_at_random_moments_loses_and_repeats_nothing() {
    let seed = number("QODER_CRASH_SEED", 0x9e37_79b9_7f4a_7c15);
    let wanted = number("QODER_CRASH_KILLS", 25);
    let mut random = Random(seed | 1);
    let mut kills = 0;
    let mut sessions = 0;
    while kills < wanted {
        sessions += 1;
        kills += one_session(&mut random, wanted - kills, seed);
    }
    println!("{kills} kills over {sessions} sessions, seed {seed}");
}

fn one_session(random: &mut Random, most_kills: u64, seed: u64) -> u64 {
    let sandbox = Sandbox::new();
    for note in 0..7 {
        sandbox.write(format!("notes-{note}.txt"), "a line of notes\n".repeat(40));
    }
    let server = ScriptedServer::start(script());
    let id = format!("00000000-0000-4000-8000-{:012x}", random.below(1 << 40));
    let prompt = "append a hundred effects";
    let mut kills = 0;
    let started = Instant::now();
    let output = loop {
        assert!(started.elapsed() < GUARD, "no progress; seed {seed}");
        // Before the prompt is in the log there is nothing to resume: the session is started again.
        let admitted = prompt_is_in_the_log(&sandbox);
        let arguments: Vec<&str> =
            if admitted { vec!["--resume", &id] } else { vec!["--session-id", &id, prompt] };
        let mut child = command(&sandbox, &server, &arguments).spawn().unwrap();
        let moment = if kills < most_kills { Duration::from_millis(2 + random.below(150)) } else { GUARD };
        if run_until(&mut child, moment) {
            break child.wait_with_output().unwrap();
        }
        kills += 1;
    };
    assert!(output.status.success(), "seed {seed}: {}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["result"], "all done", "seed {seed}");
    check_log(&sandbox, prompt, seed);
    check_tasks(&sandbox, seed);
    check_requests(&server, seed);
    kills
}

/// Looks at the raw text: a killed process may have left half a line.
fn prompt_is_in_the_log(sandbox: &Sandbox) -> bool {
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    sandbox.session_files().into_iter().map(text).any(|log| {
        log.split_inclusive('\n').any(|line| line.starts_with("{\"type\":\"user\"") && line.ends_with('\n'))
    })
}

/// Every call has exactly one result, and what the results say about effects is true.
fn check_log(sandbox: &Sandbox, prompt: &str, seed: u64) {
    let lines = sandbox.transcript_lines();
    let prompts = lines.iter().filter(|line| line["origin"] == "prompt").count();
    assert_eq!(prompts, 1, "the prompt stands once; seed {seed}");
    assert!(lines.iter().any(|line| line["message"]["content"] == prompt), "seed {seed}");
    let mut outcomes: HashMap<String, Vec<String>> = HashMap::new();
    for line in lines.iter().filter(|line| line["origin"] == "tool_result") {
        let call = line["message"]["content"][0]["tool_use_id"].as_str().unwrap().to_owned();
        outcomes.entry(call).or_default().push(line["outcome"].as_str().unwrap().to_owned());
    }
    let effects = std::fs::read_to_string(sandbox.project().join("effects.txt")).unwrap_or_default();
    let mut calls = 0;
    for line in lines.iter().filter(|line| line["type"] == "assistant") {
        for block in line["message"]["content"].as_array().unwrap() {
            if block["type"] != "tool_use" {
                continue;
            }
            calls += 1;
            let outcome = &outcomes[block["id"].as_str().unwrap()];
            assert_eq!(outcome.len(), 1, "one result a call: {block}; seed {seed}");
            let Some(command) = block["input"]["command"].as_str() else {
                assert_eq!(outcome[0], "completed", "reads are repeated: {block}; seed {seed}");
                continue;
            };
            if command == TASK {
                continue;
            }
            let effect = command.split_whitespace().nth(1).unwrap();
            let times = effects.lines().filter(|line| *line == effect).count();
            match outcome[0].as_str() {
                "completed" => assert_eq!(times, 1, "{effect} completed; seed {seed}"),
                "unknown" => assert!(times <= 1, "{effect} happened {times} times; seed {seed}"),
                other => panic!("{effect} has the outcome {other}; seed {seed}"),
            }
        }
    }
    assert_eq!(outcomes.len(), calls, "no result without a call; seed {seed}");
}

/// Every task ends once, after its start, and is reported at most once; no process of any is left.
fn check_tasks(sandbox: &Sandbox, seed: u64) {
    let (mut open, mut told) = (Vec::new(), Vec::new());
    for line in sandbox.transcript_lines() {
        match line["type"].as_str().unwrap() {
            "task-start" => open.push(line["taskId"].clone()),
            "task-end" => {
                let place = open.iter().position(|task| *task == line["taskId"]);
                open.remove(place.unwrap_or_else(|| panic!("{line} ends what does not run; seed {seed}")));
                told.push(line["taskId"].clone());
            }
            _ => {}
        }
        for task in line["tasks"].as_array().into_iter().flatten() {
            let place = told.iter().position(|ended| ended == task);
            told.remove(place.unwrap_or_else(|| panic!("{task} was told at a wrong time; seed {seed}")));
        }
    }
    assert_eq!(open, Vec::<Value>::new(), "tasks without an end; seed {seed}");
    let processes = std::fs::read_to_string(sandbox.project().join("tasks.txt")).unwrap_or_default();
    let start = Instant::now();
    for process in processes.lines() {
        let stat = format!("/proc/{process}/stat");
        while std::fs::read_to_string(&stat)
            .is_ok_and(|text| text.contains("(sleep)") && !text.contains(") Z "))
        {
            assert!(start.elapsed() < GUARD, "the process {process} of a task is left; seed {seed}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Each request only adds to the one before.
fn check_requests(server: &ScriptedServer, seed: u64) {
    let mut requests = server.requests();
    assert!(requests.len() > TURNS, "seed {seed}");
    // What a killed process had sent may be read after the first request of the next one.
    requests.sort_by_key(|request| request.body.len());
    for pair in requests.windows(2) {
        let (before, after) = (&pair[0].body, &pair[1].body);
        let open = before.strip_suffix(b"]}").expect("messages stand last in the body");
        assert!(after.starts_with(open), "a request changed what an earlier one had sent; seed {seed}");
    }
}
