//! Print mode on a terminal asks the person there: y, always or n. A pseudo-terminal stands for the terminal, and an answer
//! is typed when the question was shown.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{Wire, calls, command};

/// A run on a terminal made by `script`.
struct Terminal {
    child: Child,
    shown: String,
}

impl Terminal {
    fn start(sandbox: &Sandbox, server: &ScriptedServer, flags: &str) -> Self {
        Self::line(sandbox, server, &format!("{} -p go {flags}", env!("CARGO_BIN_EXE_qodercli")))
    }

    /// A whole line of a shell.
    fn line(sandbox: &Sandbox, server: &ScriptedServer, line: &str) -> Self {
        let plain = command(sandbox, server, Wire::Messages);
        let mut shown = Command::new("script");
        shown.arg("-qec").arg(line).arg("/dev/null");
        shown.env_clear().current_dir(sandbox.project()).stdin(Stdio::piped()).stdout(Stdio::piped());
        for (name, value) in plain.get_envs() {
            if let Some(value) = value {
                shown.env(name, value);
            }
        }
        let child = shown.spawn().expect("`script` of util-linux is there");
        Self { child, shown: String::new() }
    }

    /// Reads until this was shown after what was read before; the rest stays unread.
    fn until(&mut self, text: &str) -> &mut Self {
        let from = self.shown.len();
        let mut bytes = Vec::new();
        let stdout = self.child.stdout.as_mut().unwrap();
        let mut byte = [0];
        while !String::from_utf8_lossy(&bytes).contains(text) {
            let count = stdout.read(&mut byte).unwrap();
            assert_eq!(count, 1, "`{text}` was not shown: {}", String::from_utf8_lossy(&bytes));
            bytes.push(byte[0]);
        }
        self.shown.push_str(&String::from_utf8_lossy(&bytes));
        assert!(self.shown.len() > from);
        self
    }

    fn types(&mut self, line: &str) -> &mut Self {
        self.child.stdin.as_mut().unwrap().write_all(format!("{line}\r").as_bytes()).unwrap();
        self
    }

    /// Waits for the end; answers with everything that was shown and the exit code.
    fn end(mut self) -> (String, i32) {
        let mut rest = Vec::new();
        self.child.stdout.as_mut().unwrap().read_to_end(&mut rest).unwrap();
        self.shown.push_str(&String::from_utf8_lossy(&rest));
        let status = self.child.wait().unwrap();
        (self.shown.replace("\r\n", "\n"), status.code().unwrap_or(-1))
    }
}

fn touches(names: &[&'static str]) -> ScriptedServer {
    let mut replies: Vec<Reply> = names
        .iter()
        .map(|name| {
            let id: &'static str = if *name == "one" { "toolu_1" } else { "toolu_2" };
            calls(&[(id, "Bash", json!({ "command": format!("touch {name}") }))])
        })
        .collect();
    replies.push(Reply::text("over"));
    ScriptedServer::start(Script::by_assistant_count(replies))
}

const QUESTION: &str = "[n] no > ";

#[test]
fn yes_lets_the_call_run_and_the_run_ends_with_the_id_of_the_session() {
    let (sandbox, server) = (Sandbox::new(), touches(&["one"]));
    let mut terminal = Terminal::start(&sandbox, &server, "");
    terminal.until(QUESTION).types("y");
    let (shown, code) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert!(sandbox.project().join("one").exists(), "{shown}");
    assert!(shown.contains("command: touch one") && shown.contains("needs permission"), "{shown}");
    let file = sandbox.session_files()[0].clone();
    let id = file.file_stem().unwrap().to_str().unwrap();
    let last = shown.trim_end().lines().last().unwrap();
    assert!(last.contains(&format!("session {id}")), "{shown}");
}

#[test]
fn no_denies_and_a_run_that_did_nothing_fails() {
    let (sandbox, server) = (Sandbox::new(), touches(&["one"]));
    let mut terminal = Terminal::start(&sandbox, &server, "");
    terminal.until(QUESTION).types("what?").until(QUESTION).types("n");
    let (shown, code) = terminal.end();
    assert_eq!(code, 1, "{shown}");
    assert!(!sandbox.project().join("one").exists());
    assert!(shown.contains("Answer y, always or n.") && shown.contains("nothing ran"), "{shown}");
}

#[test]
fn always_is_asked_once_and_kept() {
    let sandbox = Sandbox::new();
    let again = ["toolu_1", "toolu_2"].map(|id| calls(&[(id, "Bash", json!({ "command": "touch one" }))]));
    let mut replies = Vec::from(again);
    replies.push(Reply::text("over"));
    let server = ScriptedServer::start(Script::by_assistant_count(replies));
    let mut terminal = Terminal::start(&sandbox, &server, "--trust");
    terminal.until(QUESTION).types("always");
    let (shown, code) = terminal.end();
    assert_eq!((code, shown.matches(QUESTION).count()), (0, 1), "{shown}");
    let kept = std::fs::read_to_string(sandbox.project().join(".qoder/settings.local.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["permissions"]["allow"], json!(["Bash(touch one)"]));
}

#[test]
fn what_was_typed_before_a_question_does_not_answer_it() {
    let (sandbox, server) = (Sandbox::new(), touches(&["one", "two"]));
    let mut terminal = Terminal::start(&sandbox, &server, "");
    // The second line is there before the second question is.
    terminal.until(QUESTION).types("y").types("y").until(QUESTION).types("n");
    let (shown, code) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert!(sandbox.project().join("one").exists() && !sandbox.project().join("two").exists(), "{shown}");
}

#[test]
fn a_question_of_the_model_is_answered_with_a_number() {
    let sandbox = Sandbox::new();
    let question = json!({ "questions": [{ "question": "Which one?", "header": "One", "multiSelect": false,
        "options": [{ "label": "red", "description": "warm" }, { "label": "blue", "description": "cold" }] }] });
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        calls(&[("toolu_1", "AskUserQuestion", question)]),
        Reply::text("over"),
    ]));
    let mut terminal = Terminal::start(&sandbox, &server, "");
    terminal.until("or your own words > ").types("2");
    let (shown, code) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    let requests = server.requests();
    let told = requests.last().unwrap().json()["messages"].to_string();
    assert!(told.contains("blue"), "{told}");
}

#[test]
fn the_person_is_asked_where_stdin_brings_text_and_in_every_format() {
    let binary = env!("CARGO_BIN_EXE_qodercli");
    for line in [
        format!("echo text | {binary} -p go"),
        format!("echo text > in.txt; {binary} -p go < in.txt"),
        format!("{binary} -p go --output-format json"),
        format!("{binary} -p go --output-format stream-json | cat"),
    ] {
        let (sandbox, server) = (Sandbox::new(), touches(&["one"]));
        let mut terminal = Terminal::line(&sandbox, &server, &line);
        terminal.until(QUESTION).types("y");
        let (shown, code) = terminal.end();
        assert_eq!(code, 0, "{line}: {shown}");
        assert!(sandbox.project().join("one").exists(), "{line}: {shown}");
    }
}

#[test]
fn no_one_is_asked_where_stdin_is_closed_on_purpose() {
    let binary = env!("CARGO_BIN_EXE_qodercli");
    for line in [format!("{binary} -p go < /dev/null"), format!("{binary} -p go 2> said.txt")] {
        let (sandbox, server) = (Sandbox::new(), touches(&["one"]));
        let (shown, code) = Terminal::line(&sandbox, &server, &line).end();
        assert_eq!(code, 1, "{line}: {shown}");
        assert!(!shown.contains(QUESTION) && !sandbox.project().join("one").exists(), "{line}: {shown}");
    }
}

#[test]
fn a_folder_that_is_not_trusted_keeps_nothing_and_the_question_says_so() {
    let (sandbox, server) = (Sandbox::new(), touches(&["one"]));
    let mut terminal = Terminal::start(&sandbox, &server, "");
    terminal.until("yes, and in this session: Bash(touch one)").until(QUESTION).types("always");
    let (shown, code) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert!(!sandbox.project().join(".qoder").exists(), "{shown}");
}
