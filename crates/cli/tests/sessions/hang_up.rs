//! A hang-up ends a turn like a request to terminate: with a proper result, unless the parent asked to ignore it.

use std::process::{Command, Stdio};

use qoder_testkit::{Reply, Sandbox};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{ID, Run, assert_failure, end, kinds, online, server, stalled, wait_for};

/// Starts the command, sends the signal while the model is asked, and waits for the end.
fn signalled(mut command: Command, signal: Signal, asked: impl Fn() -> bool) -> Run {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("a request", asked);
    kill_process(Pid::from_child(&child), signal).unwrap();
    end(child)
}

#[test]
fn a_hang_up_ends_the_turn_with_a_result() {
    for signal in [Signal::HUP, Signal::TERM] {
        let sandbox = Sandbox::new();
        let server = server(vec![stalled()]);
        let command =
            online(&sandbox, &server, &["-p", "hello", "--session-id", ID, "--output-format", "json"]);
        let run = signalled(command, signal, || !server.requests().is_empty()).exits(130);
        assert_failure(&run.json(), "Interrupted");
        assert_eq!(kinds(&sandbox, ID).last().unwrap(), "turn-end");
    }
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
    let run = signalled(command, Signal::HUP, || !server.requests().is_empty()).exits(0);
    assert_eq!(run.stdout, "still here\n");
}
