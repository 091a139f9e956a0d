//! Line mode: the whole front in lines, without one escape sequence.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use super::support::{CTRL_D, ENTER, Screen, Start};

/// A line that comes sooner than this after a question is a message.
const TOO_SOON: u64 = 350;

fn moves_no_cursor(screen: &Screen) {
    let bytes = screen.bytes();
    assert!(!bytes.contains(&0x1b), "{}", String::from_utf8_lossy(&bytes));
}

#[test]
fn a_conversation_with_a_question_in_labelled_lines() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("Bash", json!({ "command": "touch made" })),
        Reply::text("| Name | Size |\n| --- | --- |\n| made | 0 |"),
    ]));
    let mut screen = Start::new(&sandbox).with(&server).arguments(&["--screen-reader"]).run();
    screen.until("line mode, because --screen-reader is given").until("you:").send("please").send(ENTER);
    screen
        .until("permission required: ")
        .until("1. Yes, once")
        .until("answer:")
        .pause(TOO_SOON)
        .send("1")
        .send(ENTER);
    screen
        .until("tool: Bash touch made: ")
        .until("qoder: Name: made, Size: 0")
        .wait("the prompt", |rows| rows.last().is_some_and(|row| row == "you:"));
    assert!(sandbox.project().join("made").exists());
    screen.send(CTRL_D);
    assert!(screen.end().success());
    screen.until_seen("qodercli --resume");
    moves_no_cursor(&screen);
}

#[test]
fn a_call_is_changed_before_it_runs() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("Bash", json!({ "command": "touch made" })),
        Reply::text("all done"),
    ]));
    let mut screen = Start::new(&sandbox).with(&server).arguments(&["--screen-reader", "please"]).run();
    screen.until("To change it, type `edit` and the command.").until("answer:").pause(TOO_SOON);
    screen.send("edit touch other").send(ENTER);
    screen.until("tool: Bash touch other: done").until("all done");
    assert!(sandbox.project().join("other").exists() && !sandbox.project().join("made").exists());
    moves_no_cursor(&screen);
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_gets_lines_and_learns_which_model_answers() {
    let sandbox = Sandbox::new();
    let mut screen = Start::new(&sandbox).variable("TERM", "dumb").run();
    screen
        .until("line mode, because the terminal cannot move its cursor")
        .until("The built-in offline model answers");
    screen.until("you:").send("/help").send(ENTER).until("/permissions").send("/quit").send(ENTER);
    assert!(screen.end().success());
    moves_no_cursor(&screen);
}

#[test]
fn a_line_that_was_typed_before_the_question_is_a_message() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::SlowFirstByte {
            ms: 300,
            reply: Box::new(Reply::tool("Bash", json!({ "command": "touch made" }))),
        },
        Reply::text("all done"),
    ]));
    let mut screen = Start::new(&sandbox).with(&server).arguments(&["--screen-reader", "please"]).run();
    screen.until("line mode").send("1").send(ENTER).until("queued: 1").until("permission required: ");
    screen.until("answer:").pause(TOO_SOON).send("4").send(ENTER).until("all done");
    assert!(!sandbox.project().join("made").exists());
    moves_no_cursor(&screen);
}
