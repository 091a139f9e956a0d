//! Another size of the window: every finished line stays in the scrollback once, and the prompt continues, whatever the size.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};

use super::support::{CTRL_D, ENTER, Screen, Start};

/// The end of an update.
const DRAWN: &str = "\u{1b}[?2026l";

fn numbered(word: &str, count: usize) -> String {
    (1..=count).map(|number| format!("{word} {number}.")).collect::<Vec<_>>().join("\n\n")
}

/// Every line is in the scrollback or on the screen, once.
fn has_each_once(screen: &Screen, word: &str, count: usize) {
    let rows = screen.rows();
    for number in 1..=count {
        let line = format!("{word} {number}.");
        let found = rows.iter().filter(|row| row.trim() == line).count();
        assert_eq!(found, 1, "{line} in\n{}", rows.join("\n"));
    }
}

/// Changes the size and waits until the program has drawn for it.
fn resize(screen: &mut Screen, columns: u16, rows: u16) {
    let from = screen.bytes().len();
    screen.resize(columns, rows).until_written(from, DRAWN);
}

#[test]
fn lines_are_kept_once_at_every_size() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![
        Reply::text(numbered("line", 80)),
        Reply::text(numbered("more", 40)),
    ]));
    // The emulator of the tests does not break rows anew, as xterm does not.
    let start = Start::new(&sandbox).with(&server).variable("XTERM_VERSION", "XTerm(400)").size(80, 30);
    let mut screen = start.run();
    screen.until_idle().send("count").send(ENTER).until("line 80.").until_idle();
    has_each_once(&screen, "line", 80);
    for (columns, rows) in [(80, 12), (80, 40), (60, 40), (40, 10), (100, 30), (80, 24)] {
        resize(&mut screen, columns, rows);
        screen.until_prompt("");
        has_each_once(&screen, "line", 80);
    }
    screen.send("again").send(ENTER).until("more 40.").until_idle();
    has_each_once(&screen, "line", 80);
    has_each_once(&screen, "more", 40);
}

#[test]
fn a_window_of_one_cell_takes_keys_and_comes_back() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text(numbered("line", 30))]));
    let mut screen = Start::new(&sandbox).with(&server).variable("XTERM_VERSION", "XTerm(400)").run();
    screen.until_idle().send("be").until_prompt("be");
    resize(&mut screen, 1, 1);
    screen.send("fore");
    resize(&mut screen, 80, 24);
    screen.until_prompt("before").send(ENTER).until("line 30.").until_idle();
    has_each_once(&screen, "line", 30);
    screen.send(CTRL_D);
    assert!(screen.end().success());
}

#[test]
fn a_small_window_shows_a_question_and_takes_the_answer() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("Bash", serde_json::json!({ "command": "touch made" })),
        Reply::text("all done"),
    ]));
    let mut screen = Start::new(&sandbox).with(&server).arguments(&["please"]).size(40, 10).run();
    // What would run is in sight at once, and everything else can be reached.
    screen.until("Bash needs permission").until("touch made").send(super::support::FOCUS_QUESTION);
    screen
        .until("Enter chooses")
        .send(super::support::DOWN)
        .send(super::support::DOWN)
        .until("3. Yes, always");
    screen.send("y").until("all done");
    assert!(sandbox.project().join("made").exists());
}
