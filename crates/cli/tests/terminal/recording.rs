//! A recording shows what the terminal showed. The one for the documentation, `docs/terminal.cast`, is made here:
//! `UPDATE_DOCS=1` writes it anew.

use std::path::Path;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use super::support::{self, CTRL_D, ENTER, Start, session_id};

const SIZE: (u16, u16) = (80, 24);
/// Seconds between two frames of the recording for the documentation: its time does not depend on the machine.
const STEP: f64 = 0.15;

fn model() -> ScriptedServer {
    ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("Read", json!({ "file_path": "greet.py" })),
        Reply::tool("Edit", json!({ "file_path": "greet.py", "old_string": "Helo", "new_string": "Hello" })),
        Reply::tool("Bash", json!({ "command": "python3 greet.py ana" })),
        Reply::text(
            "The greeting was misspelt. It is **fixed**, and the program prints it:\n\n\
             | who | greeting |\n| --- | --- |\n| ana | `Hello, ana!` |\n",
        ),
    ]))
}

/// The frames of a recording, shown one after another.
fn played(recording: &str) -> Vec<String> {
    let (rows, columns) = (SIZE.1.try_into().unwrap(), SIZE.0.try_into().unwrap());
    let mut parser = vt100::Parser::new(rows, columns, 10_000);
    for line in recording.lines().skip(1) {
        let frame: Value = serde_json::from_str(line).unwrap();
        assert_eq!(frame[1], "o");
        parser.process(frame[2].as_str().unwrap().as_bytes());
    }
    support::rows(&mut parser)
}

/// The recording with a time that does not depend on the machine, and without the ID of this session.
fn for_the_page(recording: &str, id: &str) -> String {
    let mut page = String::new();
    for (at, line) in recording.lines().enumerate() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if at > 0 {
            line[0] = json!((at as f64 * STEP * 100.0).round() / 100.0);
            line[2] = json!(line[2].as_str().unwrap().replace(id, "6f1c2d3e-4b5a-4c6d-8e7f-001122334455"));
        }
        page.push_str(&format!("{line}\n"));
    }
    page
}

#[test]
fn a_recording_shows_what_the_terminal_showed() {
    let sandbox = Sandbox::new();
    let folder = sandbox.home().join("demo");
    sandbox.write(
        folder.join("greet.py"),
        "import sys\n\n\ndef greet(name):\n    return f\"Helo, {name}!\"\n\n\nprint(greet(sys.argv[1]))\n",
    );
    let file = sandbox.home().join("terminal.cast");
    let server = model();
    let folder = folder.display().to_string();
    let arguments = ["--cwd", &folder, "--permission-mode", "acceptEdits", "--allowed-tools", "Bash"];
    let start = Start::new(&sandbox).with(&server).arguments(&arguments).size(SIZE.0, SIZE.1);
    let mut screen = start.variable("QODER_TUI_RECORD", file.to_str().unwrap()).run();
    screen.until_idle().until("~/demo");
    let mut typed = String::new();
    for sign in "fix the greeting".chars() {
        typed.push(sign);
        screen.send(&sign.to_string()).until_prompt(&typed);
    }
    screen.send(ENTER).until("Hello, ana!").until("ctx").until_idle().send(CTRL_D);
    assert!(screen.end().success());

    let recording = std::fs::read_to_string(&file).unwrap();
    assert_eq!(played(&recording), screen.rows());
    let page = for_the_page(&recording, &session_id(&sandbox));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/terminal.cast");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(played(&kept), played(&page), "run the test again with UPDATE_DOCS=1");
}
