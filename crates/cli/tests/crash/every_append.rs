//! `kill -9` at every append and every sync of a turn, one after another: the tracer ends the program when it enters the
//! n-th such system call, so no moment between two records is left out.

use std::process::{Command, Stdio};

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use super::{TASK, check_log, check_tasks, prompt_is_in_the_log};

const ID: &str = "00000000-0000-4000-8000-00000000abcd";
const PROMPT: &str = "append an effect";
/// A turn has far fewer of each system call; more means that it does not end.
const MOST: u64 = 200;

fn script() -> Script {
    let bash = |command: &str, background: bool| {
        ("Bash".to_owned(), json!({ "command": command, "run_in_background": background }))
    };
    Script::by_assistant_count(vec![
        Reply::ToolCalls(vec![bash("echo effect-1 >> effects.txt", false), bash(TASK, true)]),
        Reply::ToolCalls(vec![("Read".to_owned(), json!({ "file_path": "notes.txt" }))]),
        Reply::Text("all done".to_owned()),
    ])
}

/// The program as it is, or ended by the tracer when it enters the `number`-th call of `call`.
fn program(sandbox: &Sandbox, server: &ScriptedServer, kill: Option<(&str, u64)>) -> Command {
    traced(sandbox, super::command(sandbox, server, &[]), kill)
}

/// The command as it is, or ended by the tracer when it enters the `number`-th of these system calls.
pub(super) fn traced(sandbox: &Sandbox, plain: Command, kill: Option<(&str, u64)>) -> Command {
    let Some((call, number)) = kill else { return plain };
    let mut traced = sandbox.command("strace");
    traced.args(["-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
    traced.args(["-e", &format!("inject={call}:signal=KILL:when={number}")]).arg(plain.get_program());
    traced.args(plain.get_args()).envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    traced.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    traced
}

/// Runs one session whose first process is killed at this moment. False when it ended before the moment came.
fn killed_at(call: &str, number: u64, durability: &str) -> bool {
    let at = format!("{call} {number}, grade {durability}");
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "a line\n");
    let settings = json!({ "general": { "durability": durability } });
    std::fs::create_dir_all(sandbox.config()).unwrap();
    std::fs::write(sandbox.config().join("settings.json"), settings.to_string()).unwrap();
    let server = ScriptedServer::start(script());
    let first =
        program(&sandbox, &server, Some((call, number))).args(["--session-id", ID, PROMPT]).output().unwrap();
    let is_killed = !first.status.success();
    let last = if is_killed {
        let resumed = if prompt_is_in_the_log(&sandbox) {
            vec!["--resume", ID]
        } else {
            vec!["--session-id", ID, PROMPT]
        };
        program(&sandbox, &server, None).args(resumed).output().unwrap()
    } else {
        first
    };
    assert!(last.status.success(), "{at}: {}", String::from_utf8_lossy(&last.stderr));
    let result: Value = serde_json::from_slice(&last.stdout).unwrap();
    assert_eq!(result["result"], "all done", "{at}");
    check_log(&sandbox, PROMPT, number);
    check_tasks(&sandbox, number);
    is_killed
}

/// Kills at every call of `call`; answers with how many there were.
fn at_every(call: &str, durability: &str) -> u64 {
    let moments = (1..=MOST).take_while(|number| killed_at(call, *number, durability)).count();
    let moments = u64::try_from(moments).unwrap();
    assert!(moments < MOST, "{call} has no end");
    moments
}

#[test]
fn a_session_killed_before_and_after_each_append_loses_and_repeats_nothing() {
    // Each append locks the log before it and unlocks it after it.
    let moments = at_every("flock", "process");
    assert!(moments > 20, "a turn with three calls has more than {moments} locks");
}

#[test]
fn a_session_killed_at_each_barrier_loses_and_repeats_nothing() {
    let moments = at_every("fdatasync", "power");
    assert!(moments > 5, "a turn with three calls has more than {moments} barriers");
}
