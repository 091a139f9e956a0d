//! SIGTERM and SIGHUP end the program and not the turn: the host gets a result, the log says which signal it was, and a
//! resume without a prompt continues as it does after SIGKILL. A hang-up that the parent asked to ignore is ignored.

use std::process::{Command, Stdio};

use qoder_testkit::{ReceivedRequest, Reply, Sandbox, Script, ScriptedServer, assistant_count};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::sessions::support::{
    ID, Run, assert_failure, assert_success, end, kinds, online, records, run_with, server, stalled, wait_for,
};

/// Starts the command, sends the signal while the model is asked, and waits for the end.
fn signalled(command: &Command, signal: Signal, asked: impl Fn() -> bool) -> Run {
    let child = with_hangup(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("a request", asked);
    kill_process(Pid::from_child(&child), signal).unwrap();
    end(child)
}

/// The same command with SIGHUP as usual: tests that `nohup` started hand on that it is ignored, which counts.
fn with_hangup(command: &Command) -> Command {
    let mut usual = Command::new("env");
    usual.arg("--default-signal=HUP").arg(command.get_program()).args(command.get_args());
    usual.env_clear().stdin(Stdio::null());
    usual.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        usual.current_dir(folder);
    }
    usual
}

/// The signals that end the program, with their names.
const ENDING: [(Signal, &str); 2] = [(Signal::HUP, "SIGHUP"), (Signal::TERM, "SIGTERM")];

/// What the records say interrupted the turn.
fn interrupts(sandbox: &Sandbox) -> Vec<String> {
    let by = |record: Value| record["by"].as_str().unwrap().to_owned();
    records(sandbox, ID).into_iter().filter(|record| record["type"] == "interrupt").map(by).collect()
}

#[test]
fn a_turn_that_is_waiting_for_the_model_goes_on_after_a_resume() {
    for (signal, name) in ENDING {
        let sandbox = Sandbox::new();
        let server = ScriptedServer::start(Script::list(vec![stalled(), Reply::text("resumed")]));
        let command =
            online(&sandbox, &server, &["-p", "hello", "--session-id", ID, "--output-format", "json"]);
        let run = signalled(&command, signal, || !server.requests().is_empty()).exits(130);
        assert_failure(&run.json(), &format!("Interrupted by {name}"));
        assert!(run.stderr.contains(&format!("qodercli -p --resume {ID}")), "{}", run.stderr);
        assert_eq!(interrupts(&sandbox), [name]);
        assert!(!kinds(&sandbox, ID).contains(&"turn-end".to_owned()), "the turn is not over");
        let resumed =
            run_with(&sandbox, &server, &["-p", "--resume", ID, "--output-format", "json"]).exits(0);
        assert_success(&resumed.json(), ID, "resumed");
        let asked: Vec<Value> = server.requests().iter().map(ReceivedRequest::json).collect();
        assert_eq!(asked[0]["messages"], asked[1]["messages"], "the model is asked the same again");
    }
}

#[test]
fn a_command_that_runs_is_stopped_and_its_turn_goes_on_after_a_resume() {
    for (signal, name) in ENDING {
        let sandbox = Sandbox::new();
        let hang = json!({"command": "echo once >> effects; sleep 600"});
        let server = server(vec![Reply::tool("Bash", hang), Reply::text("resumed")]);
        let arguments =
            ["-p", "hello", "--session-id", ID, "--output-format", "stream-json", "--allowed-tools", "Bash"];
        let command = online(&sandbox, &server, &arguments);
        // The shell makes the file before it writes into it.
        let effects = || std::fs::read_to_string(sandbox.project().join("effects")).unwrap_or_default();
        let run = signalled(&command, signal, || effects() == "once\n").exits(130);
        let last = run.lines().pop().unwrap();
        assert_failure(&last, &format!("Interrupted by {name}"));
        assert_eq!(run.lines().iter().filter(|line| line["type"] == "result").count(), 1);
        assert_eq!(interrupts(&sandbox), [name]);
        let resume = ["-p", "--resume", ID, "--output-format", "json", "--allowed-tools", "Bash"];
        assert_success(&run_with(&sandbox, &server, &resume).exits(0).json(), ID, "resumed");
        assert_eq!(effects(), "once\n");
        let asked = server.requests().last().unwrap().json();
        assert!(asked["messages"].to_string().contains("tool_result"), "{asked:#}");
    }
}

#[test]
fn an_agent_that_works_is_resumed() {
    let sandbox = Sandbox::new();
    let agent = json!({"prompt": "CHILD: work", "description": "works"});
    let hang = json!({"command": "echo once >> effects; sleep 600"});
    let script = Script::by(move |request, _| {
        let is_child = request["messages"][0].to_string().contains("CHILD");
        match (is_child, assistant_count(request)) {
            (false, 0) => Reply::tool("Agent", agent.clone()),
            (true, 0) => Reply::tool("Bash", hang.clone()),
            (true, _) => Reply::text("the child is done"),
            (false, _) => Reply::text("resumed"),
        }
    });
    let server = ScriptedServer::start(script);
    let tools = ["--allowed-tools", "Agent,Bash", "--output-format", "stream-json"];
    let arguments = [&["-p", "hello", "--session-id", ID], &tools[..]].concat();
    let command = online(&sandbox, &server, &arguments);
    signalled(&command, Signal::TERM, || sandbox.project().join("effects").exists()).exits(130);
    assert!(!kinds(&sandbox, ID).contains(&"task-end".to_owned()), "the agent is not over");
    let resume = [&["-p", "--resume", ID], &tools[..]].concat();
    let resumed = run_with(&sandbox, &server, &resume).exits(0);
    assert_success(resumed.lines().last().unwrap(), ID, "resumed");
    let asked = server.requests().last().unwrap().json();
    assert!(asked["messages"].to_string().contains("the child is done"), "{asked:#}");
    let starts = kinds(&sandbox, ID).iter().filter(|kind| *kind == "task-start").count();
    assert_eq!(starts, 1, "it is the same agent");
}

#[test]
fn a_hang_up_that_is_to_be_ignored_is_ignored() {
    let sandbox = Sandbox::new();
    let reply = Reply::SlowFirstByte { ms: 500, reply: Box::new(Reply::text("still here")) };
    let server = server(vec![reply]);
    let direct = online(&sandbox, &server, &[]);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" -p hello"]).arg(direct.get_program());
    command.env_clear().envs(direct.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(sandbox.project()).stdin(Stdio::null());
    let run = signalled(&command, Signal::HUP, || !server.requests().is_empty()).exits(0);
    assert_eq!(run.stdout, "still here\n");
}
