//! Text mode on a terminal, through a real pseudo-terminal: the answer as it comes, tool lines, and nothing in either
//! that would steer the terminal. Piped, the answer alone and as it is.

use std::process::{Command, Stdio};

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use crate::turns::support::{Wire, command};

/// Runs the program on a terminal made by `script` and answers with everything that was shown.
fn on_terminal(sandbox: &Sandbox, server: &ScriptedServer, prompt: &str) -> String {
    let plain = command(sandbox, server, Wire::Messages);
    let mut shown = Command::new("script");
    shown
        .arg("-qec")
        .arg(format!("{} -p '{prompt}' < /dev/null", env!("CARGO_BIN_EXE_qodercli")))
        .arg("/dev/null");
    shown.env_clear().current_dir(sandbox.project()).stdin(Stdio::null());
    for (name, value) in plain.get_envs() {
        if let Some(value) = value {
            shown.env(name, value);
        }
    }
    let output = shown.output().expect("`script` of util-linux is there");
    String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n")
}

fn server(answer: &str) -> ScriptedServer {
    ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("Read", json!({ "file_path": "notes.txt" })),
        Reply::text(answer),
    ]))
}

#[test]
fn the_answer_and_the_tools_are_shown() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "hello\n");
    let shown = on_terminal(&sandbox, &server("They say hello."), "read the notes");
    assert!(shown.contains("Read notes.txt"), "{shown:?}");
    assert_eq!(shown.matches("They say hello.").count(), 1, "{shown:?}");
}

#[test]
fn an_answer_cannot_steer_the_terminal() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "hello\n");
    let answer = "a\u{1b}]0;title\u{7}\u{1b}[2Jb\u{202e}c\n\td";
    let shown = on_terminal(&sandbox, &server(answer), "read the notes");
    assert!(shown.contains("a\\u{1b}]0;title\\u{7}\\u{1b}[2Jb\\u{202e}c\n"), "{shown:?}");
    let server = server(answer);
    let mut piped = command(&sandbox, &server, Wire::Messages);
    let output = piped.args(["-p", "read the notes"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{answer}\n"));
}
