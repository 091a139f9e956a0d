//! A killed terminal is resumed as it was; sessions are chosen from a list.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use super::support::{CTRL_D, DOWN, ENTER, ESC, FOCUS_QUESTION, RIGHT, Start, session_id};

#[test]
fn a_killed_terminal_shows_the_same_cells_and_asks_again() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("Read", json!({ "file_path": "a.txt" })),
        Reply::Blocks {
            thinking: None,
            text: Some("I will make a file.".to_owned()),
            tools: vec![("toolu_made".to_owned(), "Bash".to_owned(), json!({ "command": "touch made" }))],
            stop_reason: None,
            usage: None,
        },
        Reply::text("all done"),
    ]));
    let mut screen = Start::new(&sandbox).with(&server).arguments(&["please"]).run();
    screen.until("Bash needs permission").until("I will make a file.");
    let above = |screen: &super::support::Screen| {
        let rows = screen.rows();
        let from = rows.iter().position(|row| row.starts_with("> please")).unwrap();
        let to = rows.iter().position(|row| row.contains("Bash needs permission")).unwrap();
        rows[from..to].to_vec()
    };
    let before = above(&screen);
    screen.signal("KILL").end();
    let id = session_id(&sandbox);
    let mut again = Start::new(&sandbox).with(&server).arguments(&["--resume", &id]).run();
    again.until("Bash needs permission").until("I will make a file.");
    assert_eq!(above(&again), before);
    again.send(FOCUS_QUESTION).until("Enter chooses").send("y").until("all done");
    assert!(sandbox.project().join("made").exists());
}

#[test]
fn sessions_are_chosen_from_a_list_and_can_be_looked_at() {
    let sandbox = Sandbox::new();
    for name in ["first thing", "second thing"] {
        sandbox.run(super::support::BINARY, &["-p", name]);
    }
    let mut screen = Start::new(&sandbox).arguments(&["--resume"]).run();
    screen.until("Sessions").until("› second thing").until("  first thing").send(DOWN).until("› first thing");
    screen.send(RIGHT).until("1-").until("> first thing").send(ESC).until("Right shows it");
    screen.send("second").until("› second thing").send(ENTER).until("Resume it").send(ENTER);
    screen.until("> second thing").until_idle().send("/resume").send(ENTER).until("Sessions");
    screen
        .send("first")
        .until("› first thing")
        .send(ENTER)
        .until("Resume it")
        .send(ENTER)
        .until("> first thing");
    screen.until_idle().send(CTRL_D);
    assert!(screen.end().success());
}

#[test]
fn the_last_rows_of_a_long_session_are_printed() {
    let sandbox = Sandbox::new();
    let lines: Vec<String> = (0..600).map(|number| format!("line {number}")).collect();
    let server = ScriptedServer::start(Script::list(vec![Reply::text(lines.join("\n\n"))]));
    sandbox.run_with(super::support::BINARY, &server, &["-p", "count"]);
    let mut screen = Start::new(&sandbox).with(&server).arguments(&["--continue"]).run();
    screen.until("line 599").until("Ctrl+O").until_idle();
    assert!(screen.rows().len() < 260, "{}", screen.rows().len());
    assert_eq!(screen.count("line 599"), 1);
    screen
        .send("\u{f}")
        .until("Transcript")
        .until("line 599")
        .send("g")
        .until("> count")
        .until("line 1")
        .send(ESC);
    screen.until_gone("Transcript");
}

#[test]
fn a_message_can_be_gone_back_to() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    let server = ScriptedServer::start(Script::by(|request, _| {
        let text = request["messages"].to_string();
        match (text.contains("second prompt"), qoder_testkit::assistant_count(request)) {
            (false, 0) => Reply::tool("Write", json!({ "file_path": "b.txt", "content": "made\n" })),
            (false, _) => Reply::text("wrote b"),
            (true, _) => Reply::text("answered again"),
        }
    }));
    let arguments = ["--permission-mode", "acceptEdits", "first prompt"];
    let mut screen = Start::new(&sandbox).with(&server).arguments(&arguments).run();
    screen.until("wrote b").until_idle().send(ESC).send(ESC).until("Go back to a message");
    screen.until("1 file").send(ENTER).until("Files and conversation").send(DOWN).send(ENTER);
    screen.until("taken back").until_idle();
    assert!(!sandbox.project().join("b.txt").exists());
    screen.send("second prompt").send(ENTER).until("answered again");
    let last = server.requests().last().unwrap().json()["messages"].to_string();
    assert!(!last.contains("wrote b"), "{last}");
}
