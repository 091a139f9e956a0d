//! However the program ends, the terminal is as it was: settings, modes, the screen, and what the shell printed before.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use super::support::{CTRL_C, CTRL_D, ENTER, Screen, Start, contains, session_id};

/// Everything that may be on, off again.
const OFF: [&str; 7] = [
    "\u{1b}[?2004l",
    "\u{1b}[?1004l",
    "\u{1b}[?2026l",
    "\u{1b}[<u",
    "\u{1b}[=0;1u",
    "\u{1b}[23;2t",
    "\u{1b}[?25h",
];

/// A shell that starts the program, waits until the settings of the terminal are those from before, and reads a line. Until then
/// it prints nothing: after a kill the terminal is given back a moment later. `noflsh`, because the kernel else drops output
/// at Ctrl+C, and what the shell prints upon it can be part of that.
const SHELL: &str = "echo printed before; stty -a > before; sh -c 'echo $$ > pid; exec \"$QODER\" \"$@\"' sh \"$@\"; \
                     code=$?; until stty -a > after && cmp -s before after; do sleep 0.01; done; echo \"code $code\"; \
                     trap 'echo caught it; exit 7' INT; stty noflsh; echo given back; read line";

/// The program below a shell, ready for a prompt.
fn below_a_shell(sandbox: &Sandbox, server: Option<&ScriptedServer>) -> Screen {
    let mut start = Start::new(sandbox).shell(SHELL);
    if let Some(server) = server {
        start = start.with(server);
    }
    let mut screen = start.run();
    screen.until_idle();
    screen
}

/// Sends a signal to the program, not to the shell.
fn kill(sandbox: &Sandbox, signal: &str) {
    let pid = std::fs::read_to_string(sandbox.project().join("pid")).unwrap();
    let status = std::process::Command::new("kill").args([&format!("-{signal}"), pid.trim()]).status();
    assert!(status.unwrap().success());
}

/// The terminal is given back: everything is off, the settings are as they were, and Ctrl+C interrupts the shell.
fn is_given_back(screen: &mut Screen, from: usize) {
    screen.until("given back");
    let bytes = screen.bytes();
    for sequence in OFF {
        assert!(contains(&bytes[from..], sequence), "{sequence:?} is not in {:?}", text(&bytes[from..]));
    }
    assert_eq!(screen.count("printed before"), 1, "{}", screen.text());
    screen.send(CTRL_C).until("caught it");
    assert_eq!(screen.end().exit_code(), 7);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_terminal_is_given_back_after_leaving() {
    let sandbox = Sandbox::new();
    let mut screen = below_a_shell(&sandbox, None);
    let from = screen.bytes().len();
    screen.send(CTRL_D).until("code 0");
    is_given_back(&mut screen, from);
}

#[test]
fn the_terminal_is_given_back_after_each_signal_and_the_parent_learns_which() {
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("INT", 130), ("QUIT", 131)] {
        let sandbox = Sandbox::new();
        let mut screen = below_a_shell(&sandbox, None);
        let from = screen.bytes().len();
        kill(&sandbox, signal);
        screen.until(&format!("code {code}"));
        is_given_back(&mut screen, from);
    }
}

#[test]
fn the_terminal_is_given_back_after_a_kill() {
    let sandbox = Sandbox::new();
    let mut screen = below_a_shell(&sandbox, None);
    let from = screen.bytes().len();
    kill(&sandbox, "KILL");
    screen.until("code 137");
    is_given_back(&mut screen, from);
}

#[test]
fn a_kill_while_the_transcript_is_shown_leaves_the_alternate_screen() {
    let sandbox = Sandbox::new();
    let mut screen = below_a_shell(&sandbox, None);
    let from = screen.bytes().len();
    screen
        .until("The built-in offline model answers")
        .send("\u{f}")
        .until("Transcript")
        .until_written(from, "\u{1b}[?1049h");
    kill(&sandbox, "KILL");
    screen.until("code 137").until_written(from, "\u{1b}[?1049l");
    is_given_back(&mut screen, from);
}

#[test]
fn a_turn_that_a_signal_cut_off_is_resumed_with_its_question() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("Bash", json!({ "command": "touch made" })),
        Reply::text("all done"),
    ]));
    let mut screen = below_a_shell(&sandbox, Some(&server));
    let from = screen.bytes().len();
    screen.send("please").send(ENTER).until("Bash needs permission");
    kill(&sandbox, "TERM");
    screen.until("A call waits for an answer").until("code 143");
    is_given_back(&mut screen, from);
    let id = session_id(&sandbox);
    let mut again = Start::new(&sandbox).with(&server).arguments(&["--resume", &id]).run();
    again.until("Bash needs permission");
    assert!(!sandbox.project().join("made").exists());
}

/// Runs the program in a terminal, asks, and closes the terminal when the question is on it; prints how the program ended.
const HANGS_UP: &str = r#"
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen = b""
def until(text):
    global seen
    while text not in seen:
        seen += os.read(terminal, 65536)
until(b">")
os.write(terminal, b"please\r")
until(b"needs permission")
os.close(terminal)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

#[test]
fn a_terminal_that_is_closed_in_the_middle_of_a_turn_loses_nothing() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("Bash", json!({ "command": "touch made" })),
        Reply::text("all done"),
    ]));
    let mut command = sandbox.command_with("python3", &server);
    command.args(["-c", HANGS_UP, env!("CARGO_BIN_EXE_qodercli")]).env("TERM", "xterm-256color");
    let ended = command.output().unwrap();
    assert_eq!(text(&ended.stdout).trim(), "-1", "the hang-up ends it: {}", text(&ended.stderr));
    let mut again = Start::new(&sandbox).with(&server).arguments(&["--resume", &session_id(&sandbox)]).run();
    again.until("Bash needs permission");
    assert!(!sandbox.project().join("made").exists());
}

#[test]
fn the_program_stops_and_continues_with_its_draft() {
    let sandbox = Sandbox::new();
    // A shell with jobs: `fg` continues the program, and the script that started it.
    let script = "set -m; stty -a > before; sh -c '\"$QODER\"; true'; stty -a > after; cmp before after && echo stopped; read line; fg";
    let mut screen = Start::new(&sandbox).shell(script).run();
    screen.until_idle().send("half a thought").until("> half a thought").send("\u{1a}").until("stopped");
    screen.send("\n").until("> half a thought").send(" and more").until("> half a thought and more");
    screen.send(CTRL_C).until_prompt("").send(CTRL_D);
    screen.until("qodercli --resume");
}
